//! Decisions, written in the transaction of the change that they tell of (RULES 18).

use super::Tx;
use crate::{
    actor::Actor,
    clock::new_id,
    error::{Error, Result},
};
use domain::{
    api::{AuditActor, AuditEntry, AuditResult, AuditSubject},
    ids::{AuditId, UserId},
    vocabulary::Action,
};
use serde_json::Value;
use sqlx::PgPool;

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

/// What a list of entries is narrowed to; `None` and empty lists don't narrow.
#[derive(Debug, Default)]
pub struct Filter {
    /// The actor's name.
    pub actor: Option<String>,
    /// `noun.verb`, any of them.
    pub actions: Vec<String>,
    /// The subject's kind, id or name.
    pub subject: Option<String>,
    /// `done` or `refused`.
    pub result: Option<String>,
    /// From then on.
    pub from: Option<time::OffsetDateTime>,
    /// Before then.
    pub to: Option<time::OffsetDateTime>,
}

struct Row {
    id: uuid::Uuid,
    at: time::OffsetDateTime,
    actor_kind: String,
    actor_id: Option<uuid::Uuid>,
    actor_name: String,
    actor_roles: Vec<String>,
    credential_id: Option<String>,
    action: String,
    subject_kind: String,
    subject_id: String,
    subject_name: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
    reason: Option<String>,
    request_id: Option<String>,
    ip: Option<String>,
    result: String,
    code: Option<String>,
    count: i64,
}

impl Row {
    fn read(self) -> Result<AuditEntry> {
        let unknown = |error: domain::vocabulary::UnknownWord| Error::Internal(error.into());
        Ok(AuditEntry {
            id: AuditId(self.id),
            seq: None,
            at: self.at.into(),
            actor: AuditActor {
                kind: self.actor_kind,
                id: self.actor_id.map(UserId),
                name: self.actor_name,
                roles: super::users::roles(&self.actor_roles)?,
                credential_id: self.credential_id,
            },
            action: self.action.parse().map_err(unknown)?,
            subject: AuditSubject { kind: self.subject_kind, id: self.subject_id, name: self.subject_name },
            before: self.before,
            after: self.after,
            reason: self.reason,
            request_id: self.request_id,
            ip: self.ip,
            result: if self.result == "done" { AuditResult::Done } else { AuditResult::Refused },
            code: self.code,
            count: self.count,
        })
    }
}

/// Entries, newest first, after the key `after` (time in microseconds, id); and how many match, counted to `count_limit`.
///
/// # Errors
/// The database's.
pub async fn list(
    pool: &PgPool,
    filter: &Filter,
    after: Option<(time::OffsetDateTime, uuid::Uuid)>,
    rows: i64,
    count_limit: i64,
) -> Result<(Vec<AuditEntry>, i64)> {
    let (after_at, after_id) = after.unzip();
    let entries = sqlx::query_as!(
        Row,
        r#"SELECT e.id, e.at, actor_kind, e.actor_id, actor_name, actor_roles, credential_id, action, subject_kind,
             subject_id, subject_name, before, after, reason, request_id, ip, result, e.code, coalesce(r.count, 1) AS "count!"
           FROM audit_entries e LEFT JOIN audit_refusal_counts r ON r.entry_id = e.id
           WHERE ($1::text IS NULL OR actor_name = $1)
             AND (cardinality($2::text[]) = 0 OR action = ANY ($2))
             AND ($3::text IS NULL OR subject_kind = $3 OR subject_id = $3 OR subject_name = $3)
             AND ($4::text IS NULL OR result = $4)
             AND ($5::timestamptz IS NULL OR at >= $5) AND ($6::timestamptz IS NULL OR at < $6)
             AND ($7::timestamptz IS NULL OR (at, id) < ($7, $8::uuid))
           ORDER BY at DESC, id DESC LIMIT $9"#,
        filter.actor,
        &filter.actions,
        filter.subject,
        filter.result,
        filter.from,
        filter.to,
        after_at,
        after_id,
        rows
    )
    .fetch_all(pool)
    .await?;
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
             SELECT FROM audit_entries
             WHERE ($1::text IS NULL OR actor_name = $1)
               AND (cardinality($2::text[]) = 0 OR action = ANY ($2))
               AND ($3::text IS NULL OR subject_kind = $3 OR subject_id = $3 OR subject_name = $3)
               AND ($4::text IS NULL OR result = $4)
               AND ($5::timestamptz IS NULL OR at >= $5) AND ($6::timestamptz IS NULL OR at < $6)
             LIMIT $7) AS matching"#,
        filter.actor,
        &filter.actions,
        filter.subject,
        filter.result,
        filter.from,
        filter.to,
        count_limit + 1
    )
    .fetch_one(pool)
    .await?;
    Ok((entries.into_iter().map(Row::read).collect::<Result<_>>()?, count))
}

/// One entry.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn get(pool: &PgPool, id: AuditId) -> Result<AuditEntry> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT e.id, e.at, actor_kind, e.actor_id, actor_name, actor_roles, credential_id, action, subject_kind,
             subject_id, subject_name, before, after, reason, request_id, ip, result, e.code, coalesce(r.count, 1) AS "count!"
           FROM audit_entries e LEFT JOIN audit_refusal_counts r ON r.entry_id = e.id WHERE e.id = $1"#,
        id.0
    )
    .fetch_optional(pool)
    .await?;
    row.ok_or(Error::NotFound { what: "audit entry" })?.read()
}
