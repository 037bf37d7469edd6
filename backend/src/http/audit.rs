//! `/audit`: recorded decisions.

use super::{Answer, Json, Path, Permit, Query, auth::Read};
use crate::{
    app::paging,
    state::App,
    store::audit::{self, Filter},
};
use axum::extract::State;
use domain::{
    api::{AuditEntry, AuditResult, Page, Timestamp},
    ids::{AuditId, CohortId},
    vocabulary::Action,
};
use serde::Deserialize;
use time::OffsetDateTime;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// The actor's name then.
    actor: Option<String>,
    /// `noun.verb`; may be repeated.
    #[serde(default)]
    action: Vec<Action>,
    /// The subject's kind, id or name.
    subject: Option<String>,
    /// One cohort's.
    cohort: Option<CohortId>,
    /// `done` or `refused`.
    result: Option<AuditResult>,
    /// From then on.
    from: Option<Timestamp>,
    /// Before then.
    to: Option<Timestamp>,
    /// 1 to 200, default 50.
    limit: Option<i64>,
    /// As `next_cursor` said.
    cursor: Option<String>,
}

/// Decisions, newest first.
#[utoipa::path(get, path = "/audit", operation_id = "list_audit", tag = "audit", params(ListQuery),
    responses((status = 200, description = "Entries", body = Page<AuditEntry>)))]
async fn list(
    State(app): State<App>,
    _: Permit<Read>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<Page<AuditEntry>>> {
    let limit = paging::limit(query.limit)?;
    let after: Option<(i64, Uuid)> = paging::after(query.cursor.as_deref())?;
    let after = after.and_then(|(micros, id)| Some((instant(micros)?, id)));
    let filter = Filter {
        actor: query.actor,
        actions: query.action.iter().map(ToString::to_string).collect(),
        subject: query.cohort.map(|cohort| cohort.to_string()).or(query.subject),
        result: query.result.map(|result| match result {
            AuditResult::Done => "done".to_owned(),
            AuditResult::Refused => "refused".to_owned(),
        }),
        from: query.from.map(|at| at.0),
        to: query.to.map(|at| at.0),
    };
    let (entries, count) = audit::list(app.store.pool(), &filter, after, limit + 1, paging::COUNT_LIMIT).await?;
    Ok(Json(paging::page(entries, limit, count, |entry| (micros(entry.at.0), entry.id))?))
}

/// One decision.
#[utoipa::path(get, path = "/audit/{id}", operation_id = "get_audit_entry", tag = "audit",
    params(("id" = AuditId, Path)), responses((status = 200, description = "The entry", body = AuditEntry)))]
async fn show(State(app): State<App>, _: Permit<Read>, Path(id): Path<AuditId>) -> Answer<Json<AuditEntry>> {
    Ok(Json(audit::get(app.store.pool(), id).await?))
}

/// Microseconds, which is what Postgres keeps.
fn micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX)
}

fn instant(micros: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).ok()
}
