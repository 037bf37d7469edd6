//! What a message carries.

use serde::{Deserialize, Serialize};

/// The body of `invoice.create`: JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invoice {
    /// The order that is billed.
    pub order: String,
    /// The number on the invoice.
    pub invoice_number: String,
    /// Who pays.
    pub customer: String,
    /// ISO 4217.
    pub currency: String,
    /// What they pay, in hundredths.
    pub amount_cents: i64,
}

impl Invoice {
    /// The invoice of order `number`; every [`LARGE_EVERY`]th is a large one.
    #[must_use]
    pub fn of_order(number: i64) -> Self {
        // any spread of amounts will do, as long as large ones are on their side of the line
        let spread = number.wrapping_mul(7_919).rem_euclid(300_000);
        let amount_cents = if number % LARGE_EVERY == 0 { LARGE_CENTS + 1 + spread } else { 1_250 + spread };
        Self {
            order: format!("ord-{number:06}"),
            invoice_number: format!("INV-2026-{number:06}"),
            customer: format!("cust-{:04}", number.wrapping_mul(31).rem_euclid(5_000)),
            currency: "EUR".to_owned(),
            amount_cents,
        }
    }

    /// The job that bills this order.
    #[must_use]
    pub fn job_id(&self) -> String {
        format!("{}.invoice", self.order)
    }

    /// What makes its effect happen once.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("invoice:{}", self.order)
    }

    /// As it is published.
    ///
    /// # Errors
    /// Never in practice: strings and an integer.
    pub fn body(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// The one that no revision can read: the amount is a sentence of another locale.
    ///
    /// # Errors
    /// Never in practice: strings.
    pub fn poisoned_body(&self) -> serde_json::Result<Vec<u8>> {
        let mut body = serde_json::to_value(self)?;
        body["amount_cents"] = "12 400,00".into();
        serde_json::to_vec(&body)
    }
}

/// From here on an amount is large: the line that revision 2026.12.1 is wrong about.
pub const LARGE_CENTS: i64 = 500_000;

/// One order in so many is large.
pub const LARGE_EVERY: i64 = 4;
