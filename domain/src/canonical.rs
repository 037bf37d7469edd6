//! Canonical form v1 of a message (RULES 1) and the two hashes over it.
//!
//! The form is the version byte `01`, then parts, each prefixed by its length as u64 big-endian: the body; then every
//! present property in AMQP order. A property's part is its place (1 = `content-type` … 14 = `cluster-id`) as one
//! byte, so that equal values of different properties differ, then its value: a short string's bytes, one byte, eight
//! bytes big-endian for `timestamp`. `headers` (place 3) comes last instead of third: AMQP field-table bytes with type
//! tags kept and keys sorted bytewise at every level; equal keys stay in the order they arrived in.

use crate::amqp::{Message, Property, Table};
use crate::keyed::{Hash32, InstallationKey, Keyed, RowKey};

/// The version byte of the form.
pub const VERSION: u8 = 1;

/// Headers that the broker counts up while it holds a message; two deliveries of one message may differ in them.
const BROKER_COUNTERS: [&[u8]; 2] = [b"x-delivery-count", b"x-acquired-count"];

/// What is left to prove what a message was: HMAC-SHA256 under the row's own key, which is erased with the payload.
/// Plans and audit entries carry it.
pub fn commitment(key: &RowKey, message: &Message) -> Hash32 {
    let mut mac = Keyed::unlabelled(&key.0);
    write(message, message.properties.headers.clone(), |bytes| mac.update(bytes));
    mac.finish()
}

/// Equal for two deliveries of one message, whatever the broker counted in between: HMAC-SHA256 under the
/// installation's key over the canonical form without `x-delivery-count` and `x-acquired-count`. Equality is a hint,
/// never proof that two rows are one message (RULES 2).
///
/// A header table that held nothing but those two counts as absent, since the broker makes one to hold them.
pub fn match_hash(key: &InstallationKey, message: &Message) -> Hash32 {
    let headers = message.properties.headers.clone().map(|headers| {
        headers.into_iter().filter(|(key, _)| !BROKER_COUNTERS.contains(&key.as_bytes())).collect::<Table>()
    });
    let mut mac = Keyed::new(&key.0, "lazaret.match.v1");
    write(message, headers.filter(|headers| !headers.is_empty()), |bytes| mac.update(bytes));
    mac.finish()
}

/// The canonical bytes of `message`.
pub fn canonical_form(message: &Message) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.body.len() + 128);
    write(message, message.properties.headers.clone(), |bytes| out.extend_from_slice(bytes));
    out
}

fn write(message: &Message, headers: Option<Table>, mut sink: impl FnMut(&[u8])) {
    sink(&[VERSION]);
    let mut part = |place: Option<u8>, bytes: &[u8]| {
        sink(&((bytes.len() + usize::from(place.is_some())) as u64).to_be_bytes());
        if let Some(place) = place {
            sink(&[place]);
        }
        sink(bytes);
    };
    part(None, &message.body);
    for (place, _, property) in message.properties.present() {
        match property {
            Property::Short(text) => part(Some(place), text.as_bytes()),
            Property::Byte(byte) => part(Some(place), &[byte]),
            Property::Time(seconds) => part(Some(place), &seconds.to_be_bytes()),
            Property::Headers(_) => {}
        }
    }
    if let Some(headers) = headers {
        part(Some(3), &headers.sorted().encode());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::amqp::{Properties, ShortString, Value, strategy};

    fn short(text: &str) -> ShortString {
        ShortString::new(text).unwrap()
    }

    fn message() -> Message {
        Message {
            body: b"hi".to_vec(),
            properties: Properties {
                content_type: Some(short("a")),
                delivery_mode: Some(2),
                timestamp: Some(1),
                headers: Some(Table::from_iter([
                    (short("b"), Value::U8(1)),
                    (
                        short("a"),
                        Value::Table(Table::from_iter([(short("z"), Value::Void), (short("y"), Value::Void)])),
                    ),
                ])),
                ..Properties::default()
            },
        }
    }

    #[test]
    fn the_form_is_fixed() {
        let want = [
            "01",
            "0000000000000002 6869",
            "0000000000000002 01 61",
            "0000000000000002 04 02",
            "0000000000000009 0a 0000000000000001",
            // table of 17 bytes: a = F(6: y=V, z=V), b = B 1
            "0000000000000016 03 00000011 0161 46 00000006 0179 56 017a 56 0162 42 01",
        ];
        assert_eq!(hex::encode(canonical_form(&message())), want.concat().replace(' ', ""));
    }

    #[test]
    fn hashes_are_fixed() {
        // computed with Python's hmac over the bytes of the test above
        let hash = commitment(&RowKey([1; 32]), &message()).to_string();
        assert_eq!(hash, "a0bd4e7e81338c0205926c82bec7ce7bf8fdae6540b83dd12a259ecf27b8893c");
        let hash = match_hash(&InstallationKey([1; 32]), &message()).to_string();
        assert_eq!(hash, "2aa6df9712305a78dc4f619ac7d5c0ffc5a18db098f84c1a9e80f00efb4db1b9");
    }

    #[test]
    fn equal_values_in_other_places_differ() {
        let with = |f: fn(&mut Properties)| {
            let mut properties = Properties::default();
            f(&mut properties);
            canonical_form(&Message { body: vec![], properties })
        };
        let forms = [
            with(|_| {}),
            with(|p| p.content_type = Some(short("x"))),
            with(|p| p.content_encoding = Some(short("x"))),
            with(|p| p.content_encoding = Some(short(""))),
            with(|p| p.delivery_mode = Some(0)),
            with(|p| p.priority = Some(0)),
            with(|p| p.headers = Some(Table::new())),
        ];
        for (i, a) in forms.iter().enumerate() {
            assert!(forms[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn broker_counters_dont_change_the_match() {
        let key = InstallationKey([9; 32]);
        let mut counted = message();
        let headers = counted.properties.headers.get_or_insert_default();
        headers.push(short("x-delivery-count"), Value::I64(3));
        headers.push(short("x-acquired-count"), Value::I64(4));
        assert_eq!(match_hash(&key, &counted), match_hash(&key, &message()));
        assert_ne!(commitment(&RowKey([9; 32]), &counted), commitment(&RowKey([9; 32]), &message()));

        let bare = Message::default();
        let mut counted = Message::default();
        counted.properties.headers.get_or_insert_default().push(short("x-delivery-count"), Value::I64(1));
        assert_eq!(match_hash(&key, &counted), match_hash(&key, &bare));
    }

    proptest! {
        #[test]
        fn order_of_keys_doesnt_matter(message in strategy::message()) {
            let mut reordered = message.clone();
            if let Some(headers) = &mut reordered.properties.headers {
                let mut fields: Vec<_> = headers.clone().into_iter().collect();
                // a stable sort by key, backwards: equal keys keep their order
                fields.sort_by(|(a, _), (b, _)| b.cmp(a));
                *headers = fields.into_iter().collect();
            }
            prop_assert_eq!(canonical_form(&message), canonical_form(&reordered));
        }

        #[test]
        fn different_messages_differ(a in strategy::message(), b in strategy::message()) {
            let sorted = |m: &Message| {
                let mut m = m.clone();
                m.properties.headers = m.properties.headers.map(|h| h.sorted());
                m
            };
            prop_assert_eq!(sorted(&a) == sorted(&b), canonical_form(&a) == canonical_form(&b));
        }

        #[test]
        fn one_byte_of_the_body_matters(mut message in strategy::message(), extra in any::<u8>()) {
            let before = commitment(&RowKey([3; 32]), &message);
            message.body.push(extra);
            prop_assert_ne!(before, commitment(&RowKey([3; 32]), &message));
        }
    }
}
