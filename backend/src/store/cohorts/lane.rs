//! What names a lane (RULES 7): broker, virtual host and name of the queue that it is for.

use super::super::Tx;
use crate::error::{Error, Result};
use domain::ids::{BrokerId, QueueId};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::{fmt, str::FromStr};

/// What would make two names one, or one two.
const PART: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// A lane, as it is kept and as the plan holds it: `<broker id>/<vhost>/<queue>`, a slash within a name as `%2F`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The cluster.
    pub broker: BrokerId,
    /// Its virtual host.
    pub vhost: String,
    /// The queue's name.
    pub queue: String,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |name| utf8_percent_encode(name, PART);
        write!(f, "{}/{}/{}", self.broker, part(&self.vhost), part(&self.queue))
    }
}

impl FromStr for Lane {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unreadable = || Error::Internal(anyhow::anyhow!("a stored lane can't be read: {text:?}"));
        let mut parts = text.split('/');
        let (Some(broker), Some(vhost), Some(queue), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unreadable());
        };
        let part = |name| percent_decode_str(name).decode_utf8().map(String::from).map_err(|_| unreadable());
        Ok(Self { broker: broker.parse().map_err(|_| unreadable())?, vhost: part(vhost)?, queue: part(queue)? })
    }
}

impl Lane {
    /// The watched queue that it is for, if it is watched.
    ///
    /// # Errors
    /// The database's.
    pub async fn watched_queue(&self, tx: &mut Tx) -> Result<Option<QueueId>> {
        let queue = sqlx::query_scalar!(
            "SELECT id FROM queues WHERE broker_id = $1 AND vhost = $2 AND name = $3",
            self.broker.0,
            self.vhost,
            self.queue
        )
        .fetch_optional(&mut **tx)
        .await?;
        Ok(queue.map(QueueId))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ids::BrokerId;
    use uuid::Uuid;

    fn lane(vhost: &str, queue: &str) -> Lane {
        Lane { broker: BrokerId(Uuid::from_u128(7)), vhost: vhost.to_owned(), queue: queue.to_owned() }
    }

    #[test]
    fn names_of_any_kind_come_back() {
        for lane in [lane("/", "orders.invoice"), lane("a/b", "c"), lane("", "%2F /ü\n"), lane("100%", "/")] {
            assert_eq!(lane.to_string().parse::<Lane>().unwrap(), lane);
        }
    }

    #[test]
    fn no_two_queues_share_a_lane() {
        assert_ne!(lane("a/b", "c").to_string(), lane("a", "b/c").to_string());
        assert_ne!(lane("%2F", "c").to_string(), lane("/", "c").to_string());
    }

    #[test]
    fn what_is_no_lane_is_said() {
        for text in
            ["", "b/v/q", "00000000-0000-0000-0000-000000000007/v", "00000000-0000-0000-0000-000000000007/a/b/c"]
        {
            assert!(text.parse::<Lane>().is_err(), "{text}");
        }
    }
}
