//! The stopping rule (DESIGN.md, section 3): whether a failed job may be tried again. Backoff with jitter says when a
//! retry returns; it never decides that it should. `sdk/vectors/decide.json` holds the cases that every language's
//! version of this function must pass.

use crate::vocabulary::Kind;

/// What becomes of a failed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// One more attempt.
    Retry,
    /// To the dead-letter queue.
    Quarantine,
}

/// A job without an id, or with an attempt or a budget below 1: nothing can be decided about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid retry metadata")]
pub struct InvalidRetryMetadata;

/// Decides after a failure of `kind` in the given `attempt` (from 1) of a budget of `max_attempts`.
pub fn decide(job_id: &[u8], attempt: i64, max_attempts: i64, kind: Kind) -> Result<Decision, InvalidRetryMetadata> {
    if job_id.is_empty() || attempt < 1 || max_attempts < 1 {
        return Err(InvalidRetryMetadata);
    }
    Ok(match kind {
        Kind::Permanent => Decision::Quarantine,
        Kind::Transient if attempt >= max_attempts => Decision::Quarantine,
        Kind::Transient => Decision::Retry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct File {
        vectors: Vec<Vector>,
    }

    #[derive(serde::Deserialize)]
    struct Vector {
        job_id: String,
        attempt: i64,
        max_attempts: i64,
        kind: Kind,
        decision: Option<String>,
        error: Option<String>,
    }

    #[test]
    fn the_vectors_hold() {
        let file: File = serde_json::from_str(include_str!("../../sdk/vectors/decide.json")).unwrap();
        for v in file.vectors {
            let decided = decide(v.job_id.as_bytes(), v.attempt, v.max_attempts, v.kind);
            let want = match (v.decision.as_deref(), v.error.as_deref()) {
                (Some("retry"), None) => Ok(Decision::Retry),
                (Some("quarantine"), None) => Ok(Decision::Quarantine),
                (None, Some("invalid retry metadata")) => Err(InvalidRetryMetadata),
                other => panic!("no outcome: {other:?}"),
            };
            assert_eq!(decided, want, "{} {}/{}", v.job_id, v.attempt, v.max_attempts);
        }
    }
}
