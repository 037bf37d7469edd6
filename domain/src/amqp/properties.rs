//! The basic properties and the message they belong to.

use super::{ShortString, Table};

/// The frame size that RabbitMQ and its clients agree on unless configured otherwise, in bytes.
pub const DEFAULT_FRAME_MAX: usize = 131_072;

/// A message as a broker hands it over: body and properties, nothing interpreted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// The body, of any bytes.
    pub body: Vec<u8>,
    /// Properties and headers.
    pub properties: Properties,
}

/// The 14 basic properties; absent ones stay absent (a missing `priority` is not 0).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Properties {
    /// MIME type.
    pub content_type: Option<ShortString>,
    /// MIME content encoding.
    pub content_encoding: Option<ShortString>,
    /// The header table; an empty table is not the same as none.
    pub headers: Option<Table>,
    /// 1 transient, 2 persistent.
    pub delivery_mode: Option<u8>,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// Correlation id.
    pub correlation_id: Option<ShortString>,
    /// Queue to answer to.
    pub reply_to: Option<ShortString>,
    /// Time to live as a decimal string of milliseconds.
    pub expiration: Option<ShortString>,
    /// The sender's message id.
    pub message_id: Option<ShortString>,
    /// Seconds since 1970, as the sender claims.
    pub timestamp: Option<u64>,
    /// The property `type`.
    pub kind: Option<ShortString>,
    /// The sender's user, checked by the broker against its connection.
    pub user_id: Option<ShortString>,
    /// The sending application.
    pub app_id: Option<ShortString>,
    /// Reserved by the specification.
    pub cluster_id: Option<ShortString>,
}

/// One present property, as [`Properties::present`] walks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property<'a> {
    /// A short string.
    Short(&'a ShortString),
    /// One byte.
    Byte(u8),
    /// Seconds since 1970.
    Time(u64),
    /// The header table.
    Headers(&'a Table),
}

impl Properties {
    /// Every present property in AMQP order, with its place (1 = `content-type` … 14 = `cluster-id`) and name.
    pub fn present(&self) -> impl Iterator<Item = (u8, &'static str, Property<'_>)> {
        fn short(value: &Option<ShortString>) -> Option<Property<'_>> {
            value.as_ref().map(Property::Short)
        }
        [
            (1, "content-type", short(&self.content_type)),
            (2, "content-encoding", short(&self.content_encoding)),
            (3, "headers", self.headers.as_ref().map(Property::Headers)),
            (4, "delivery-mode", self.delivery_mode.map(Property::Byte)),
            (5, "priority", self.priority.map(Property::Byte)),
            (6, "correlation-id", short(&self.correlation_id)),
            (7, "reply-to", short(&self.reply_to)),
            (8, "expiration", short(&self.expiration)),
            (9, "message-id", short(&self.message_id)),
            (10, "timestamp", self.timestamp.map(Property::Time)),
            (11, "type", short(&self.kind)),
            (12, "user-id", short(&self.user_id)),
            (13, "app-id", short(&self.app_id)),
            (14, "cluster-id", short(&self.cluster_id)),
        ]
        .into_iter()
        .filter_map(|(place, name, property)| Some((place, name, property?)))
    }

    /// The size in bytes of the content-header frame that carries these properties, framing included: the whole of
    /// it must fit the connection's `frame_max`.
    pub fn frame_len(&self) -> usize {
        // 7 bytes of frame header and 1 of frame end; class, weight, body size and property flags are 2 + 2 + 8 + 2
        const FRAME: usize = 8 + 14;
        let properties: usize = self
            .present()
            .map(|(_, _, property)| match property {
                Property::Short(text) => 1 + text.as_bytes().len(),
                Property::Byte(_) => 1,
                Property::Time(_) => 8,
                Property::Headers(table) => table.encoded_len(),
            })
            .sum();
        FRAME + properties
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::Value;

    #[test]
    fn present_properties_keep_amqp_order_and_absence() {
        let text = |t: &str| Some(ShortString::new(t).unwrap());
        let properties = Properties {
            cluster_id: text("c"),
            content_type: text("text/plain"),
            headers: Some(Table::new()),
            delivery_mode: Some(2),
            ..Properties::default()
        };
        let names: Vec<_> = properties.present().map(|(place, name, _)| (place, name)).collect();
        assert_eq!(names, [(1, "content-type"), (3, "headers"), (4, "delivery-mode"), (14, "cluster-id")]);
    }

    #[test]
    fn frame_length_counts_every_byte() {
        assert_eq!(Properties::default().frame_len(), 22);
        let headers = Table::from_iter([(ShortString::new("k").unwrap(), Value::text("vv"))]);
        let properties = Properties { headers: Some(headers), priority: Some(0), ..Properties::default() };
        // table: 4 + 1 + 1 + 1 + 4 + 2
        assert_eq!(properties.frame_len(), 22 + 1 + 13);
    }
}
