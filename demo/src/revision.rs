//! The three revisions of the worker: what each checks, and what each does about a failure.

use std::{fmt, str::FromStr, time::Duration};

use crate::invoice::{Invoice, LARGE_CENTS};

/// A released revision of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// Good.
    R2026_11_3,
    /// Its stricter check fails good invoices, slowly, and its handler answers a failure with a new message.
    R2026_12_1,
    /// Mended: the check is right again, and what is permanent is dead-lettered at once.
    R2026_12_2,
}

/// Why an attempt failed, in the worker's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `schema_invalid` or `amount_rejected`; both fail the same way however often they are tried.
    pub class: &'static str,
    /// For people.
    pub text: String,
}

/// What a revision does about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Reject it: the broker puts it on the dead-letter queue.
    DeadLetter,
    /// Publish the job again as a new message and acknowledge this one: a retry that the broker can't count.
    Replace,
}

/// How long an attempt takes before the downstream is asked.
const ORDINARY_WORK: Duration = Duration::from_millis(40);
/// How long the stricter check takes over a large amount before it fails it.
const TARIFF_HISTORY: Duration = Duration::from_millis(700);

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 3] = [Self::R2026_11_3, Self::R2026_12_1, Self::R2026_12_2];

    /// As workers report it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R2026_11_3 => "2026.11.3",
            Self::R2026_12_1 => "2026.12.1",
            Self::R2026_12_2 => "2026.12.2",
        }
    }

    /// Reads and judges a message.
    ///
    /// # Errors
    /// The failure that the worker reports; permanent in both classes.
    pub fn check(self, body: &[u8]) -> Result<Invoice, Failure> {
        let invoice: Invoice = serde_json::from_slice(body).map_err(|error| Failure {
            class: "schema_invalid",
            text: format!("the invoice can't be read: {error}"),
        })?;
        if self == Self::R2026_12_1 && invoice.amount_cents > LARGE_CENTS {
            return Err(Failure {
                class: "amount_rejected",
                text: format!("amount {} is over the limit {LARGE_CENTS} of the standard tariff", invoice.amount_cents),
            });
        }
        Ok(invoice)
    }

    /// How long the attempt keeps its slot, the downstream's own time apart.
    #[must_use]
    pub fn work(self, judged: &Result<Invoice, Failure>) -> Duration {
        match judged {
            Err(failure) if failure.class == "amount_rejected" => TARIFF_HISTORY,
            _ => ORDINARY_WORK,
        }
    }

    /// What it does about a failed attempt.
    #[must_use]
    pub fn after_failure(self, attempt: i64, max_attempts: i64) -> AfterFailure {
        match self {
            Self::R2026_12_1 if attempt < max_attempts => AfterFailure::Replace,
            _ => AfterFailure::DeadLetter,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| format!("no revision `{text}`; there are {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bad_revision_fails_large_amounts_and_none_reads_the_poison() {
        for number in 1..=400 {
            let invoice = Invoice::of_order(number);
            let large = number % crate::invoice::LARGE_EVERY == 0;
            for revision in Revision::ALL {
                let judged = revision.check(&invoice.body().unwrap());
                if revision == Revision::R2026_12_1 && large {
                    assert_eq!(judged.unwrap_err().class, "amount_rejected");
                } else {
                    assert_eq!(judged.unwrap(), invoice);
                }
                let poison = revision.check(&invoice.poisoned_body().unwrap());
                assert_eq!(poison.unwrap_err().class, "schema_invalid");
            }
        }
    }

    #[test]
    fn only_the_bad_revision_replaces_and_only_within_its_budget() {
        assert_eq!(Revision::R2026_12_1.after_failure(4, 5), AfterFailure::Replace);
        assert_eq!(Revision::R2026_12_1.after_failure(5, 5), AfterFailure::DeadLetter);
        for good in [Revision::R2026_11_3, Revision::R2026_12_2] {
            assert_eq!(good.after_failure(1, 5), AfterFailure::DeadLetter);
        }
    }

    #[test]
    fn revisions_are_read_as_they_are_written() {
        for revision in Revision::ALL {
            assert_eq!(revision.to_string().parse(), Ok(revision));
        }
        assert!("2026.12.9".parse::<Revision>().is_err());
    }
}
