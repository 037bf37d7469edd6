//! Decisions, written in the transaction of the change that they tell of (RULES 18).

use super::Tx;
use crate::{actor::Actor, clock::new_id, error::Result};
use domain::vocabulary::Action;
use serde_json::Value;

/// What an entry says beyond who did it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What was done.
    pub action: Action,
    /// On what kind of thing.
    pub subject_kind: &'static str,
    /// Its id or name.
    pub subject_id: String,
    /// What a person calls it.
    pub subject_name: Option<String>,
    /// Before; commitments in place of payloads.
    pub before: Option<Value>,
    /// After.
    pub after: Option<Value>,
    /// Why.
    pub reason: Option<String>,
}

impl Entry {
    /// An entry with no before, after or reason.
    pub fn new(action: Action, subject_kind: &'static str, subject_id: impl ToString) -> Self {
        Self {
            action,
            subject_kind,
            subject_id: subject_id.to_string(),
            subject_name: None,
            before: None,
            after: None,
            reason: None,
        }
    }

    /// What a person calls the subject.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.subject_name = Some(name.into());
        self
    }

    /// What it was before.
    #[must_use]
    pub fn before(mut self, value: Value) -> Self {
        self.before = Some(value);
        self
    }

    /// What it is after.
    #[must_use]
    pub fn after(mut self, value: Value) -> Self {
        self.after = Some(value);
        self
    }

    /// Why it was done.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Writes that it was done.
///
/// # Errors
/// The database's.
pub async fn done(tx: &mut Tx, actor: &Actor, entry: Entry) -> Result<()> {
    insert(tx, actor, entry, "done", None).await.map(|_| ())
}

/// Writes that it was refused; further refusals of one actor and code within a minute only raise a count.
///
/// # Errors
/// The database's.
pub async fn refused(tx: &mut Tx, actor: &Actor, entry: Entry, code: &str) -> Result<()> {
    let actor_id = actor.user.as_ref().map(|user| user.id.0).unwrap_or_default();
    let folded = sqlx::query!(
        "UPDATE audit_refusal_counts SET count = count + 1
         WHERE actor_id = $1 AND code = $2 AND minute = date_trunc('minute', now())",
        actor_id,
        code
    )
    .execute(&mut **tx)
    .await?
    .rows_affected()
        > 0;
    if folded {
        return Ok(());
    }
    let id = insert(tx, actor, entry, "refused", Some(code)).await?;
    sqlx::query!(
        "INSERT INTO audit_refusal_counts (entry_id, actor_id, code, minute) VALUES ($1, $2, $3, date_trunc('minute', now()))
         ON CONFLICT ON CONSTRAINT audit_refusal_counts_scope DO UPDATE SET count = audit_refusal_counts.count + 1",
        id,
        actor_id,
        code
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn insert(tx: &mut Tx, actor: &Actor, entry: Entry, result: &str, code: Option<&str>) -> Result<uuid::Uuid> {
    let id = new_id();
    let (kind, user) = match &actor.user {
        None => ("system", None),
        Some(user) => (if user.machine { "machine" } else { "person" }, Some(user)),
    };
    let roles: Vec<String> = user.map(|user| user.roles.iter().map(ToString::to_string).collect()).unwrap_or_default();
    sqlx::query!(
        "INSERT INTO audit_entries (id, actor_kind, actor_id, actor_name, actor_roles, credential_id, action,
           subject_kind, subject_id, subject_name, before, after, reason, request_id, ip, result, code)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        id,
        kind,
        user.map(|user| user.id.0),
        user.map_or("system", |user| user.username.as_str()),
        &roles,
        user.map(|user| user.credential_id.as_str()),
        entry.action.as_str(),
        entry.subject_kind,
        entry.subject_id,
        entry.subject_name,
        entry.before,
        entry.after,
        entry.reason,
        actor.request_id.as_deref(),
        actor.ip.as_deref(),
        result,
        code
    )
    .execute(&mut **tx)
    .await?;
    super::notify(tx, "audit", Some(id)).await?;
    Ok(id)
}
