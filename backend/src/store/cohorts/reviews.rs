//! Reviews, touches and the people who may approve: the facts of RULES 4.

use super::super::Tx;
use crate::{
    clock::new_id,
    error::{Error, Result},
};
use anyhow::Context as _;
use domain::{
    api::UserRef,
    eligibility::{AccountChange, reaching},
    ids::{CohortId, UserId},
    vocabulary::{CohortCommand, Role},
};
use sqlx::PgConnection;
use time::OffsetDateTime;

/// Writes that a person touched a revision.
///
/// # Errors
/// The database's.
pub async fn touch(tx: &mut Tx, cohort: CohortId, user: UserId, revision: i64, how: &str) -> Result<()> {
    sqlx::query!(
        "INSERT INTO cohort_touches (cohort_id, user_id, revision, how) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        cohort.0,
        user.0,
        revision,
        how
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Everyone who touched any revision.
///
/// # Errors
/// The database's.
pub async fn touched_by(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<UserId>> {
    let ids = sqlx::query_scalar!("SELECT DISTINCT user_id FROM cohort_touches WHERE cohort_id = $1", cohort.0)
        .fetch_all(db)
        .await?;
    Ok(ids.into_iter().map(UserId).collect())
}

/// A review.
#[derive(Debug, Clone)]
pub struct Review {
    /// Who.
    pub by: UserRef,
    /// When.
    pub at: OffsetDateTime,
    /// Of which revision.
    pub revision: i64,
    /// Which decision.
    pub decision: CohortCommand,
    /// Of which digest.
    pub digest: Vec<u8>,
    /// In their words.
    pub comment: String,
    /// Whether it still counts.
    pub valid: bool,
}

/// Writes a review.
///
/// # Errors
/// 409 `already_approved` when the person's approval of this revision counts already; the database's.
pub async fn add(
    tx: &mut Tx,
    cohort: CohortId,
    revision: i64,
    by: UserId,
    decision: CohortCommand,
    digest: &[u8],
    comment: &str,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO cohort_reviews (id, cohort_id, revision, user_id, decision, digest, comment) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        new_id(),
        cohort.0,
        revision,
        by.0,
        decision.as_str(),
        digest,
        comment
    )
    .execute(&mut **tx)
    .await
    .map_err(|error| match crate::error::broken_constraint(&error) {
        Some("cohort_reviews_one_approval") => {
            Error::refused("already_approved", "You have approved this revision; one person counts once.")
        }
        _ => error.into(),
    })?;
    Ok(())
}

/// Approvals of a revision stop counting: all of them, or one person's. How many did.
///
/// # Errors
/// The database's.
pub async fn void_approvals(tx: &mut Tx, cohort: CohortId, by: Option<UserId>) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE cohort_reviews SET voided_at = clock_timestamp()
         WHERE cohort_id = $1 AND decision = 'approve' AND voided_at IS NULL AND ($2::uuid IS NULL OR user_id = $2)",
        cohort.0,
        by.map(|user| user.0)
    )
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Every review of every revision, oldest first.
///
/// # Errors
/// The database's.
pub async fn all(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<Review>> {
    sqlx::query!(
        r#"SELECT review.user_id, users.username, review.at, review.revision, review.decision, review.digest, review.comment,
             review.voided_at IS NULL AS "valid!"
           FROM cohort_reviews AS review JOIN users ON users.id = review.user_id
           WHERE review.cohort_id = $1 ORDER BY review.at, review.id"#,
        cohort.0
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| {
        Ok(Review {
            by: UserRef { id: UserId(row.user_id), username: row.username },
            at: row.at,
            revision: row.revision,
            decision: row.decision.parse().context("a stored decision")?,
            digest: row.digest,
            comment: row.comment,
            valid: row.valid,
        })
    })
    .collect()
}

/// Approvals of a revision that count, with their people's ids and digests; locked against change when `tx` is one.
///
/// # Errors
/// The database's.
pub async fn approvals_for_share(tx: &mut Tx, cohort: CohortId, revision: i64) -> Result<Vec<(UserId, Vec<u8>)>> {
    let rows = sqlx::query!(
        "SELECT user_id, digest FROM cohort_reviews
         WHERE cohort_id = $1 AND revision = $2 AND decision = 'approve' AND voided_at IS NULL FOR SHARE",
        cohort.0,
        revision
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows.into_iter().map(|row| (UserId(row.user_id), row.digest)).collect())
}

/// A person or machine, and what RULES 4 asks about them.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who.
    pub user: UserRef,
    /// Roles now.
    pub roles: Vec<Role>,
    /// A machine never approves.
    pub machine: bool,
    /// The account may not sign in.
    pub disabled: bool,
    /// The changes that reach this account.
    pub changes: Vec<AccountChange>,
}

/// People by RULES 4: everyone with the approver role, and those named.
///
/// # Errors
/// The database's.
pub async fn people(db: &mut PgConnection, named: &[UserId]) -> Result<Vec<Person>> {
    let named: Vec<uuid::Uuid> = named.iter().map(|user| user.0).collect();
    let rows = sqlx::query!(
        "SELECT id, username, roles, machine, disabled_at FROM users
         WHERE 'approver' = ANY(roles) OR id = ANY($1) ORDER BY username",
        &named
    )
    .fetch_all(&mut *db)
    .await?;
    let changes: Vec<(UserId, AccountChange)> = sqlx::query!(
        r#"SELECT user_id, changed_by AS "changed_by!", at FROM user_changes
           WHERE changed_by IS NOT NULL AND at > clock_timestamp() - interval '30 days'"#
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| (UserId(row.user_id), AccountChange { by: UserId(row.changed_by), at: row.at }))
    .collect();
    rows.into_iter()
        .map(|row| {
            Ok(Person {
                roles: row.roles.iter().map(|role| role.parse()).collect::<Result<_, _>>().context("a stored role")?,
                machine: row.machine,
                disabled: row.disabled_at.is_some(),
                changes: reaching(UserId(row.id), &changes),
                user: UserRef { id: UserId(row.id), username: row.username },
            })
        })
        .collect()
}

/// Locks these accounts against change until the transaction ends: their roles are what a re-check rests on.
///
/// # Errors
/// The database's.
pub async fn lock_people_for_share(tx: &mut Tx, people: &[UserId]) -> Result<()> {
    let ids: Vec<uuid::Uuid> = people.iter().map(|user| user.0).collect();
    sqlx::query!("SELECT id FROM users WHERE id = ANY($1) ORDER BY id FOR SHARE", &ids).fetch_all(&mut **tx).await?;
    Ok(())
}

/// Approvals of a revision that count, with their people's ids and digests.
///
/// # Errors
/// The database's.
pub async fn approvals(db: &mut PgConnection, cohort: CohortId, revision: i64) -> Result<Vec<(UserId, Vec<u8>)>> {
    let rows = sqlx::query!(
        "SELECT user_id, digest FROM cohort_reviews
         WHERE cohort_id = $1 AND revision = $2 AND decision = 'approve' AND voided_at IS NULL",
        cohort.0,
        revision
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (UserId(row.user_id), row.digest)).collect())
}
