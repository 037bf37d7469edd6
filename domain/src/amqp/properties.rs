//! The basic properties and the message they belong to.

use super::codec::Reader;
use super::{DecodeError, Fault, ShortString, Table};

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

impl Properties {
    /// The AMQP property list of everything but the headers: 16 flag bits, then the present values in AMQP order.
    /// The vault keeps it beside [`Table::encode`] of the headers.
    pub fn encode_list(&self) -> Vec<u8> {
        let mut flags = 0_u16;
        let mut values = Vec::new();
        for (place, _, property) in self.present() {
            match property {
                Property::Headers(_) => continue,
                Property::Short(text) => {
                    values.push(text.as_bytes().len() as u8);
                    values.extend_from_slice(text.as_bytes());
                }
                Property::Byte(byte) => values.push(byte),
                Property::Time(seconds) => values.extend_from_slice(&seconds.to_be_bytes()),
            }
            flags |= flag(place);
        }
        [&flags.to_be_bytes()[..], &values].concat()
    }

    /// Reads what [`Properties::encode_list`] and [`Table::encode`] wrote.
    pub fn decode(list: &[u8], headers: Option<&[u8]>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(list);
        let flags = u16::from_be_bytes(reader.array()?);
        // The headers are kept apart; bit 0 would announce more flags, of which AMQP 0-9-1 has none.
        if flags & (flag(3) | 0b11) != 0 {
            return Err(DecodeError { at: 0, fault: Fault::UnknownProperty });
        }
        let mut short = |place| if flags & flag(place) == 0 { Ok(None) } else { reader.short().map(Some) };
        let (content_type, content_encoding) = (short(1)?, short(2)?);
        let mut byte =
            |place| if flags & flag(place) == 0 { Ok(None) } else { reader.array().map(|[byte]| Some(byte)) };
        let (delivery_mode, priority) = (byte(4)?, byte(5)?);
        let mut short = |place| if flags & flag(place) == 0 { Ok(None) } else { reader.short().map(Some) };
        let (correlation_id, reply_to, expiration, message_id) = (short(6)?, short(7)?, short(8)?, short(9)?);
        let timestamp = if flags & flag(10) == 0 { None } else { Some(u64::from_be_bytes(reader.array()?)) };
        let mut short = |place| if flags & flag(place) == 0 { Ok(None) } else { reader.short().map(Some) };
        let (kind, user_id, app_id, cluster_id) = (short(11)?, short(12)?, short(13)?, short(14)?);
        reader.finish()?;
        Ok(Self {
            content_type,
            content_encoding,
            headers: headers.map(Table::decode).transpose()?,
            delivery_mode,
            priority,
            correlation_id,
            reply_to,
            expiration,
            message_id,
            timestamp,
            kind,
            user_id,
            app_id,
            cluster_id,
        })
    }
}

/// The flag bit of the property at that place: the highest is the first's.
fn flag(place: u8) -> u16 {
    1 << (16 - place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::strategy;
    use super::*;
    use crate::amqp::Value;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(properties in strategy::properties()) {
            let headers = properties.headers.as_ref().map(Table::encode);
            prop_assert_eq!(Properties::decode(&properties.encode_list(), headers.as_deref()), Ok(properties));
        }

        #[test]
        fn any_list_decodes_without_panic(list in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(properties) = Properties::decode(&list, None) {
                prop_assert_eq!(properties.encode_list(), list);
            }
        }
    }

    #[test]
    fn the_list_is_amqps() {
        let short = |text: &str| Some(ShortString::new(text).unwrap());
        let properties = Properties {
            content_type: short("a"),
            delivery_mode: Some(2),
            timestamp: Some(1),
            cluster_id: short(""),
            headers: Some(Table::new()),
            ..Properties::default()
        };
        assert_eq!(hex::encode(properties.encode_list()), ["9044", "0161", "02", "0000000000000001", "00"].concat());
    }

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
