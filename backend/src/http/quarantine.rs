//! `/quarantine`.

use super::{
    Act, Acted, Answer, Json, Path, Permit, Query,
    auth::{Read, Reveal},
};
use crate::{
    act,
    app::quarantine::{self, After},
    error::{Error, Result},
    state::App,
    store::quarantine::Filter,
};
use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    amqp::visible,
    api::{Assign, Page, QuarantineGroup, QuarantinePage, QuarantinedMessage, Reason, RevealedPayload, Timestamp},
    ids::{AppName, CohortId, QuarantineId},
    keyed::InstallationKey,
    vocabulary::{Kind, QuarantineState},
};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    RevealPayload: Reveal, PayloadRevealed, "quarantine";
    AssignMessage: Respond, MessageAssigned, "quarantine";
}

/// The longest text that is searched for, characters.
const SEARCH: usize = 1_000;

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(groups))
        .routes(routes!(show))
        .routes(routes!(reveal))
        .routes(routes!(payload))
        .routes(routes!(assign))
}

/// What is looked for. Several values of one name: any of them; `""` is "none".
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Filters {
    /// Queue ids; `""` is unattributed.
    queue: Vec<String>,
    /// Derived states.
    state: Vec<QuarantineState>,
    /// Classes; `""` is unclassified.
    error_class: Vec<String>,
    /// Group keys.
    fingerprint: Vec<String>,
    /// Worker revisions; `""` is unknown.
    worker_version: Vec<String>,
    /// `permanent` or `transient`.
    kind: Vec<Kind>,
    /// A whole job id; `b64:…` where it isn't UTF-8.
    job_id: Option<String>,
    /// A whole message id, likewise.
    message_id: Option<String>,
    /// The redrive generation that the message carries.
    generation: Option<i64>,
    /// Messages that are or were in this cohort.
    #[param(value_type = Option<CohortId>)]
    cohort: Option<CohortId>,
    /// Died at or after.
    #[param(value_type = Option<String>, format = DateTime)]
    dead_lettered_from: Option<Timestamp>,
    /// Died before.
    #[param(value_type = Option<String>, format = DateTime)]
    dead_lettered_to: Option<Timestamp>,
    /// Literal text in job id, message id or error text; at most 1 000 characters.
    q: Option<String>,
    /// 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// Where the last page ended.
    cursor: Option<String>,
    /// Of `/quarantine/groups` alone.
    #[param(ignore)]
    by: Option<GroupBy>,
}

/// What makes a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum GroupBy {
    /// The fingerprint, by queue.
    Fingerprint,
}

impl Filters {
    fn filter(&self) -> Result<Filter> {
        let name = |name: &'static str, value: &Option<String>| {
            let value = value.as_deref().map(AppName::from_path_segment).transpose();
            value.map(|id| id.map(|id| id.0)).map_err(|_| Error::invalid(name, "text, or `b64:` and URL-safe base64"))
        };
        let q = self.q.as_deref().filter(|q| !q.is_empty());
        if q.is_some_and(|q| q.chars().count() > SEARCH) {
            return Err(Error::invalid("q", format!("at most {SEARCH} characters")));
        }
        // what is kept as text shows its controls, so what is compared with it does too
        let shown = |values: &[String]| values.iter().map(|value| visible(value)).collect();
        Ok(Filter {
            queue: shown(&self.queue),
            state: self.state.iter().map(ToString::to_string).collect(),
            error_class: shown(&self.error_class),
            fingerprint: shown(&self.fingerprint),
            worker_version: shown(&self.worker_version),
            kind: self.kind.iter().map(ToString::to_string).collect(),
            job_id: name("job_id", &self.job_id)?,
            message_id: name("message_id", &self.message_id)?,
            generation: self.generation,
            cohort: self.cohort.map(|id| id.0),
            dead_lettered_from: self.dead_lettered_from.map(|at| at.0),
            dead_lettered_to: self.dead_lettered_to.map(|at| at.0),
            q_bytes: q.map(|q| q.as_bytes().to_vec()),
            q_text: q.map(visible),
        })
    }

    fn limit(&self) -> Result<i64> {
        match self.limit.unwrap_or(50) {
            limit @ 1..=200 => Ok(limit),
            _ => Err(Error::invalid("limit", "1 to 200")),
        }
    }
}

fn to_cursor((at, id): After) -> String {
    let micros = i64::try_from(at.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX);
    URL_SAFE_NO_PAD.encode([&micros.to_be_bytes()[..], id.as_bytes()].concat())
}

fn from_cursor(cursor: &str) -> Result<After> {
    let bad =
        || Error::BadRequest { code: "bad_cursor", detail: "The cursor isn't one that this list gave.".to_owned() };
    let bytes: [u8; 24] =
        URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(bad)?;
    let (mut micros, mut id) = ([0; 8], [0; 16]);
    micros.copy_from_slice(&bytes[..8]);
    id.copy_from_slice(&bytes[8..]);
    let nanos = i128::from(i64::from_be_bytes(micros)) * 1_000;
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| bad())?;
    Ok((at, uuid::Uuid::from_bytes(id)))
}

/// Quarantined messages, newest first, with facets.
#[utoipa::path(get, path = "/quarantine", operation_id = "list_quarantine", tag = "evidence", params(Filters),
    responses((status = 200, description = "A page", body = QuarantinePage)))]
async fn list(State(app): State<App>, _: Permit<Read>, Query(filters): Query<Filters>) -> Answer<Json<QuarantinePage>> {
    if filters.by.is_some() {
        return Err(Error::invalid("by", "only /quarantine/groups takes it"));
    }
    let after = filters.cursor.as_deref().map(from_cursor).transpose()?;
    let (page, next) = quarantine::list(&app, filters.filter()?, after, filters.limit()?).await?;
    Ok(Json(QuarantinePage { next_cursor: next.map(to_cursor), ..page }))
}

/// What matches, by fingerprint; the largest 200 groups.
#[utoipa::path(get, path = "/quarantine/groups", operation_id = "list_quarantine_groups", tag = "evidence",
    params(Filters, ("by" = Option<GroupBy>, Query, description = "What makes a group; default `fingerprint`.")),
    responses((status = 200, description = "The largest first", body = Page<QuarantineGroup>)))]
async fn groups(
    State(app): State<App>,
    _: Permit<Read>,
    Query(filters): Query<Filters>,
) -> Answer<Json<Page<QuarantineGroup>>> {
    Ok(Json(quarantine::groups(&app, filters.filter()?).await?))
}

/// One quarantined message: every fact but its payload.
#[utoipa::path(get, path = "/quarantine/{id}", operation_id = "get_quarantined_message", tag = "evidence",
    params(("id" = QuarantineId, Path)), responses((status = 200, description = "The message", body = QuarantinedMessage)))]
async fn show(
    State(app): State<App>,
    _: Permit<Read>,
    Path(id): Path<QuarantineId>,
) -> Answer<Json<QuarantinedMessage>> {
    Ok(Json(quarantine::show(&app, id).await?))
}

/// Opens a payload, with a reason; that is an audit entry and counts as inspection.
#[utoipa::path(post, path = "/quarantine/{id}/reveal", operation_id = "reveal_payload", tag = "evidence",
    params(("id" = QuarantineId, Path)), request_body = Reason,
    responses((status = 200, description = "The payload", body = RevealedPayload)))]
async fn reveal(
    State(app): State<App>,
    Path(id): Path<QuarantineId>,
    act: Act<RevealPayload, Reason>,
) -> Answer<Json<RevealedPayload>> {
    // only that it was done is kept for a repeated call, never the payload
    act.run(&app, StatusCode::NO_CONTENT, move |tx, actor, body| {
        Box::pin(async move {
            quarantine::reveal(tx, actor, id, &body.reason).await?;
            Ok(((), None))
        })
    })
    .await?;
    Ok(Json(quarantine::payload(&app, id).await?))
}

/// The whole body as it arrived, for who revealed it before.
#[utoipa::path(get, path = "/quarantine/{id}/payload", operation_id = "download_payload", tag = "evidence",
    params(("id" = QuarantineId, Path)),
    responses((status = 200, description = "The bytes", body = Vec<u8>, content_type = "application/octet-stream")))]
async fn payload(
    State(app): State<App>,
    permit: Permit<Reveal>,
    Path(id): Path<QuarantineId>,
) -> Answer<impl IntoResponse> {
    let body = quarantine::raw_payload(&app, &permit.actor, id).await?;
    let name = HeaderValue::try_from(format!("attachment; filename=\"{id}.bin\"")).map_err(anyhow::Error::from)?;
    Ok((
        [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (header::CONTENT_DISPOSITION, name),
        ],
        body,
    ))
}

/// Says whose an unattributed message is.
#[utoipa::path(post, path = "/quarantine/{id}/assign", operation_id = "assign_message", tag = "evidence",
    params(("id" = QuarantineId, Path)), request_body = Assign,
    responses((status = 204, description = "Assigned")))]
async fn assign(
    State(app): State<App>,
    Path(id): Path<QuarantineId>,
    act: Act<AssignMessage, Assign>,
) -> Answer<Acted> {
    let key = InstallationKey(*app.installation_key);
    act.run(&app, StatusCode::NO_CONTENT, move |tx, actor, body| {
        Box::pin(async move {
            quarantine::assign(tx, actor, &key, id, body.queue_id, &body.reason).await?;
            Ok(((), None))
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_one_place() {
        let at = time::macros::datetime!(2026-12-02 03:14:20.123456 UTC);
        let place = (at, uuid::Uuid::from_u128(7));
        assert_eq!(from_cursor(&to_cursor(place)).unwrap(), place);
        for bad in ["", "abc", "%%%", &"A".repeat(400)] {
            assert!(matches!(from_cursor(bad), Err(Error::BadRequest { code: "bad_cursor", .. })), "{bad}");
        }
    }
}
