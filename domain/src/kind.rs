//! The kind of an error class (RULES 2): permanent or transient, by a queue's policy. What isn't known counts as
//! permanent, and of two judgements the stricter counts, so that no later rule loosens what custody froze.

use crate::api::RetryPolicy;
use crate::vocabulary::Kind;

/// The kind that `policy` gives to `class`. A class that it doesn't name, one that it names both ways, and no class at
/// all are permanent.
pub fn judge(policy: &RetryPolicy, class: Option<&str>) -> Kind {
    let names = |classes: &[String]| class.is_some_and(|class| classes.iter().any(|name| name == class));
    if names(&policy.transient_classes) && !names(&policy.permanent_classes) {
        Kind::Transient
    } else {
        Kind::Permanent
    }
}

/// The stricter of the kind frozen at custody and the kind that the policy gives now.
pub fn stricter(then: Kind, now: Kind) -> Kind {
    match (then, now) {
        (Kind::Transient, Kind::Transient) => Kind::Transient,
        _ => Kind::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_permanent() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let policy = RetryPolicy {
            max_attempts: None,
            permanent_classes: names(&["schema_invalid", "both"]),
            transient_classes: names(&["timeout", "both"]),
        };
        let cases = [
            (Some("timeout"), Kind::Transient),
            (Some("schema_invalid"), Kind::Permanent),
            (Some("both"), Kind::Permanent),
            (Some("Timeout"), Kind::Permanent),
            (Some("unheard_of"), Kind::Permanent),
            (Some(""), Kind::Permanent),
            (None, Kind::Permanent),
        ];
        for (class, want) in cases {
            assert_eq!(judge(&policy, class), want, "{class:?}");
        }
    }

    #[test]
    fn no_later_rule_loosens() {
        for (then, now, want) in [
            (Kind::Transient, Kind::Transient, Kind::Transient),
            (Kind::Permanent, Kind::Transient, Kind::Permanent),
            (Kind::Transient, Kind::Permanent, Kind::Permanent),
            (Kind::Permanent, Kind::Permanent, Kind::Permanent),
        ] {
            assert_eq!(stricter(then, now), want);
        }
    }
}
