//! What a redrive changes on a message (BROKER.md, "Dead-lettering"): the broker's bookkeeping goes, our two headers
//! come, everything else stays as it was and absent fields stay absent. Each change is listed with its reason, for
//! the reviewer; what goes stays in the evidence.

use uuid::Uuid;

use crate::amqp::{Properties, ReadableText, ShortString, Table, Value};
use crate::death::Deaths;
use crate::headers::{REDRIVE_GENERATION, REDRIVE_ID};

/// What the plan chose where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Choices {
    /// Put the original expiration back. The message may then expire before a consumer takes it.
    pub restore_expiration: bool,
}

/// What our headers will say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The cohort's redrive generation.
    pub generation: u64,
    /// The redrive id of this publish.
    pub redrive_id: Uuid,
}

/// The properties to publish, and how they came to differ from the dead letter's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redriven {
    /// What is published.
    pub properties: Properties,
    /// Every difference, in the order of the message.
    pub changes: Vec<Change>,
}

/// One difference between the dead letter and what a redrive publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The property or header.
    pub field: Field,
    /// What happens to it.
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

/// A property or a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The property of that name, in AMQP's spelling.
    Property(&'static str),
    /// The top-level header of that key.
    Header(ReadableText),
}

/// What a redrive does to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Taken off.
    Removed,
    /// Put on.
    Added,
    /// Taken off and put on with our value.
    Replaced,
}

/// Why a redrive changes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Carried back, it would be read as history of the new delivery, and by some brokers as a cycle, which drops.
    DeathHistory,
    /// The broker's counter of another delivery; on RabbitMQ 4 a copy is shown as if it were the broker's.
    BrokerCounter,
    /// The broker would publish it to these keys again.
    FansOut,
    /// The broker refuses a user other than the connection's, and closes the channel.
    ForeignUser,
    /// The message would expire, and the plan doesn't ask for that.
    WouldExpire,
    /// The plan asks for the original expiration.
    ExpirationRestored,
    /// Ours: says which approved cohort sent it.
    OurMark,
}

impl Reason {
    /// The reason as a sentence for the page.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::DeathHistory => {
                "history of an earlier delivery; carried back it would look like this one's, and some brokers drop on it"
            }
            Self::BrokerCounter => "the broker's counter of an earlier delivery",
            Self::FansOut => "the broker would send a copy to each of these keys",
            Self::ForeignUser => "the broker refuses a user other than its connection's",
            Self::WouldExpire => "the message could expire before a consumer takes it",
            Self::ExpirationRestored => "the plan restores the original expiration",
            Self::OurMark => "names the approved redrive",
        }
    }
}

/// Applies the redrive transformation. Stale marks of an earlier redrive are replaced; every header of a stripped
/// name goes, however often it occurs.
pub fn redrive(dead_letter: &Properties, choices: Choices, marks: Marks) -> Redriven {
    let mut changes = Vec::new();
    let mut properties = dead_letter.clone();

    let mut replaced = (false, false);
    let mut headers = Table::new();
    for (key, value) in properties.headers.take().unwrap_or_default() {
        match key.as_bytes() {
            name if name == REDRIVE_GENERATION.as_bytes() => replaced.0 = true,
            name if name == REDRIVE_ID.as_bytes() => replaced.1 = true,
            name => match stripped(name) {
                Some(reason) => {
                    let field = Field::Header(ReadableText::of(name));
                    changes.push(Change { field, action: Action::Removed, reason });
                }
                None => headers.push(key, value),
            },
        }
    }

    if properties.user_id.take().is_some() {
        changes.push(Change {
            field: Field::Property("user-id"),
            action: Action::Removed,
            reason: Reason::ForeignUser,
        });
    }
    properties.expiration = expiration(dead_letter, choices, &mut changes);

    // Generations are written as signed 64 bits, the one wide integer that RabbitMQ has.
    let generation = Value::I64(i64::try_from(marks.generation).unwrap_or(i64::MAX));
    let redrive_id = Value::text(marks.redrive_id.to_string());
    for (name, value, was_there) in [(REDRIVE_GENERATION, generation, replaced.0), (REDRIVE_ID, redrive_id, replaced.1)]
    {
        headers.push(ShortString::new(name).expect("our header names are short"), value);
        let action = if was_there { Action::Replaced } else { Action::Added };
        let field = Field::Header(ReadableText::of(name.as_bytes()));
        changes.push(Change { field, action, reason: Reason::OurMark });
    }
    properties.headers = Some(headers);
    Redriven { properties, changes }
}

fn stripped(header: &[u8]) -> Option<Reason> {
    match header {
        b"x-death" => Some(Reason::DeathHistory),
        name if name.starts_with(b"x-first-death-") || name.starts_with(b"x-last-death-") => Some(Reason::DeathHistory),
        b"x-delivery-count" | b"x-acquired-count" => Some(Reason::BrokerCounter),
        b"CC" | b"BCC" => Some(Reason::FansOut),
        _ => None,
    }
}

/// The expiration to publish: none, unless the plan restores the one that the broker took off (or that the message
/// still has).
fn expiration(dead_letter: &Properties, choices: Choices, changes: &mut Vec<Change>) -> Option<ShortString> {
    let field = Field::Property("expiration");
    if !choices.restore_expiration {
        if dead_letter.expiration.is_some() {
            changes.push(Change { field, action: Action::Removed, reason: Reason::WouldExpire });
        }
        return None;
    }
    if dead_letter.expiration.is_some() {
        return dead_letter.expiration.clone();
    }
    let restored = original_expiration(dead_letter)?;
    changes.push(Change { field, action: Action::Added, reason: Reason::ExpirationRestored });
    Some(restored)
}

/// The expiration that the broker took off when the message died, in decimal milliseconds: a fact for the review.
/// The oldest entry that tells it wins, since only the first death can have seen the sender's own.
pub fn original_expiration(dead_letter: &Properties) -> Option<ShortString> {
    let deaths = Deaths::read(dead_letter.headers.as_ref()?);
    let told = match deaths.first() {
        Some(first) => first.original_expiration.clone(),
        None => deaths.entries.iter().rev().find_map(|death| death.original_expiration.clone()),
    }?;
    let is_whole = !told.is_empty() && told.iter().all(u8::is_ascii_digit);
    ShortString::new(told).ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::amqp::strategy;

    const MARKS: Marks = Marks { generation: 4, redrive_id: Uuid::from_u128(7) };
    const RESTORE: Choices = Choices { restore_expiration: true };

    fn short(text: &str) -> ShortString {
        ShortString::new(text).unwrap()
    }

    fn table(fields: Vec<(&str, Value)>) -> Table {
        fields.into_iter().map(|(key, value)| (short(key), value)).collect()
    }

    fn with_headers(fields: Vec<(&str, Value)>) -> Properties {
        Properties { headers: Some(table(fields)), ..Properties::default() }
    }

    fn marks() -> Vec<(&'static str, Value)> {
        vec![(REDRIVE_GENERATION, Value::I64(4)), (REDRIVE_ID, Value::text(MARKS.redrive_id.to_string()))]
    }

    #[test]
    fn a_bare_message_gets_our_marks_only() {
        let redriven = redrive(&Properties::default(), Choices::default(), MARKS);
        assert_eq!(redriven.properties, with_headers(marks()));
        assert!(redriven.changes.iter().all(|c| c.action == Action::Added && c.reason == Reason::OurMark));
    }

    #[test]
    fn each_header_is_stripped_or_kept() {
        let cases = [
            ("x-death", Some(Reason::DeathHistory)),
            ("x-first-death-queue", Some(Reason::DeathHistory)),
            ("x-first-death-exchange", Some(Reason::DeathHistory)),
            ("x-last-death-reason", Some(Reason::DeathHistory)),
            ("x-delivery-count", Some(Reason::BrokerCounter)),
            ("x-acquired-count", Some(Reason::BrokerCounter)),
            ("CC", Some(Reason::FansOut)),
            ("BCC", Some(Reason::FansOut)),
            ("cc", None),
            ("attempt", None),
            ("x-priority", None),
            ("x-deaths", None),
            ("", None),
        ];
        for (name, reason) in cases {
            let redriven =
                redrive(&with_headers(vec![(name, Value::U8(1)), ("kept", Value::Void)]), Choices::default(), MARKS);
            let mut want = if reason.is_some() { vec![] } else { vec![(name, Value::U8(1))] };
            want.push(("kept", Value::Void));
            want.extend(marks());
            assert_eq!(redriven.properties, with_headers(want), "{name}");
            let removed: Vec<_> =
                redriven.changes.iter().filter(|c| c.action == Action::Removed).map(|c| c.reason).collect();
            assert_eq!(removed, Vec::from_iter(reason), "{name}");
        }
    }

    #[test]
    fn stale_marks_are_replaced() {
        let stale = with_headers(vec![
            (REDRIVE_ID, Value::text("old")),
            (REDRIVE_GENERATION, Value::I32(3)),
            (REDRIVE_ID, Value::text("older")),
        ]);
        let redriven = redrive(&stale, Choices::default(), MARKS);
        assert_eq!(redriven.properties, with_headers(marks()));
        assert!(redriven.changes.iter().all(|c| c.action == Action::Replaced));
    }

    #[test]
    fn a_user_is_dropped_and_said() {
        let dead = Properties { user_id: Some(short("orders")), ..Properties::default() };
        let redriven = redrive(&dead, Choices::default(), MARKS);
        assert_eq!(redriven.properties.user_id, None);
        assert_eq!(redriven.changes[0].reason, Reason::ForeignUser);
    }

    #[test]
    fn expiration_comes_back_only_when_asked() {
        let death = |original: &str| {
            Value::Array(vec![Value::Table(table(vec![
                ("queue", Value::text("q")),
                ("original-expiration", Value::text(original)),
            ]))])
        };
        let dead = with_headers(vec![("x-death", death("1000"))]);
        assert_eq!(redrive(&dead, Choices::default(), MARKS).properties.expiration, None);
        let redriven = redrive(&dead, RESTORE, MARKS);
        assert_eq!(redriven.properties.expiration, Some(short("1000")));
        assert!(redriven.changes.iter().any(|c| c.reason == Reason::ExpirationRestored));
        // what is no whole number would close the channel
        assert_eq!(
            redrive(&with_headers(vec![("x-death", death("soon"))]), RESTORE, MARKS).properties.expiration,
            None
        );

        let still = Properties { expiration: Some(short("5")), ..Properties::default() };
        let redriven = redrive(&still, Choices::default(), MARKS);
        assert_eq!(redriven.properties.expiration, None);
        assert_eq!(redriven.changes[0].reason, Reason::WouldExpire);
        assert_eq!(redrive(&still, RESTORE, MARKS).properties.expiration, Some(short("5")));
    }

    proptest! {
        #[test]
        fn all_else_stays_and_every_difference_is_listed(dead in strategy::properties(), restore in any::<bool>()) {
            let redriven = redrive(&dead, Choices { restore_expiration: restore }, MARKS);
            let mut restored = redriven.properties.clone();
            let kept = |headers: &Option<Table>| -> Vec<_> {
                let ours = |key: &[u8]| key == REDRIVE_ID.as_bytes() || key == REDRIVE_GENERATION.as_bytes();
                headers.clone().unwrap_or_default().into_iter()
                    .filter(|(key, _)| stripped(key.as_bytes()).is_none() && !ours(key.as_bytes())).collect()
            };
            prop_assert_eq!(kept(&restored.headers), kept(&dead.headers));
            let listed = |name| redriven.changes.iter().any(|c| c.field == Field::Property(name));
            prop_assert_eq!(listed("user-id"), dead.user_id != restored.user_id);
            prop_assert_eq!(listed("expiration"), dead.expiration != restored.expiration);
            restored.headers = dead.headers.clone();
            restored.user_id = dead.user_id.clone();
            restored.expiration = dead.expiration.clone();
            prop_assert_eq!(restored, dead);
        }

        #[test]
        fn redriving_again_changes_only_the_marks(dead in strategy::properties()) {
            let once = redrive(&dead, Choices::default(), MARKS).properties;
            let again = redrive(&once, Choices::default(), MARKS);
            prop_assert_eq!(&again.properties, &once);
            prop_assert!(again.changes.iter().all(|c| c.reason == Reason::OurMark));
        }
    }
}
