//! What an admin sets up before anyone can be on call: broker, queue, custody, probe, the workers' account, and a
//! second engineer's.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::client::Person;
use super::shop::Surroundings;
use crate::services::{Stack, password, server::User};

/// The source queue.
pub(super) const QUEUE: &str = "orders.invoice";
/// Its dead-letter queue.
const DEAD_LETTER_QUEUE: &str = "orders.invoice.dlq";
/// The probe that looks for the invoice.
pub(super) const PROBE: &str = "invoice-row";

/// What was registered.
#[derive(Debug, Clone)]
pub(super) struct Registered {
    /// The queue's id.
    pub(super) queue_id: String,
    /// The account of the shop's processes.
    pub(super) workers: User,
    /// Responder and approver at once: only the rule of four eyes keeps her from approving what she has edited.
    pub(super) ines: User,
}

/// Registers everything through the API.
///
/// # Errors
/// With what the API said.
pub(super) fn register(admin: &Person, stack: &Stack, surroundings: &Surroundings) -> Result<Registered> {
    let workers = hire(admin, "workers", &["emitter"], true)?;
    let ines = hire(admin, "ines", &["responder", "approver"], false)?;

    let amqp = stack.rabbitmq.amqp_url();
    let (_, address) = amqp.rsplit_once('@').context("the broker's address names no account")?;
    let broker = json!({
        "name": "shop",
        "amqp_url": format!("amqp://{address}"),
        "management_url": stack.rabbitmq.management_url(),
        "credentials": format!("file:{}", surroundings.broker_credentials.display()),
    });
    let broker = admin.act("POST", "/brokers", None, &broker)?;

    let probe = json!({
        "definition": {
            "kind": "sql",
            "database": format!("file:{}", surroundings.probe_database.display()),
            "statement": "SELECT job_id, invoice_number, amount_cents, currency, worker_version, redrive_id \
                          FROM invoices WHERE job_id = $1",
            "redrive_id_column": "redrive_id",
        },
        "reason": "The invoice is the durable effect of an order.",
    });
    admin.act("PUT", &format!("/probes/{PROBE}"), None, &probe)?;

    let queue = json!({
        "broker_id": broker["id"],
        "vhost": "/",
        "name": QUEUE,
        "dead_letter_queue": DEAD_LETTER_QUEUE,
        "headers": {
            "job_id": "job-id",
            "attempt": "attempt",
            "max_attempts": "max-attempts",
            "idempotency_key": "idempotency-key",
            "enqueued_at": "enqueued-at",
            "parent_message_id": "parent-message-id",
        },
        "retry_policy": { "max_attempts": 5, "permanent_classes": ["schema_invalid", "amount_rejected"] },
        "slo": { "completion_s": 60, "oldest_age_s": 30 },
        "approval_policy": { "approvals": 1 },
        "default_probe": PROBE,
    });
    let queue = admin.act("POST", "/queues", None, &queue)?;
    take_into_custody(admin, &queue)?;
    let queue_id = queue["id"].as_str().context("the queue has no id")?.to_owned();
    Ok(Registered { queue_id, workers, ines })
}

fn hire(admin: &Person, name: &str, roles: &[&str], machine: bool) -> Result<User> {
    let roles = roles.iter().map(ToString::to_string).collect();
    let user = User { username: name.to_owned(), password: password()?, roles };
    let account =
        json!({ "username": user.username, "password": user.password, "roles": user.roles, "machine": machine });
    admin.act("POST", "/users", None, &account)?;
    Ok(user)
}

/// Switches the queue's DLQ to `drain`.
fn take_into_custody(admin: &Person, queue: &Value) -> Result<()> {
    let id = queue["dead_letter_queue"]["id"].as_str().context("the queue names no dead-letter queue")?;
    let path = format!("/dead-letter-queues/{id}");
    let version = admin.get(&path)?["version"].as_i64();
    let change = json!({ "custody": "drain", "reason": "Dead letters become evidence." });
    admin.act("PATCH", &path, version, &change).map(drop)
}
