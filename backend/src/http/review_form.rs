//! Reviewing without scripts: a plain post that calls the same API as everyone and redirects back to the cohort.

use super::forms::{Api, OuterParts, call, encode, problem_code, redirect};
use super::{Form, Path};
use crate::{error::Error, state::App};
use axum::{
    Router,
    http::{HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use domain::{
    api::{Approve, Comment, ConfirmSession},
    ids::CohortId,
};
use serde::{Deserialize, Serialize};

/// `POST /cohorts/{id}/review`, over the API's own router.
pub(super) fn routes(api: Router) -> Router<App> {
    Router::new().route("/cohorts/{id}/review", post(review)).layer(axum::Extension(Api(api)))
}

#[derive(Deserialize)]
struct ReviewForm {
    act: Decision,
    /// Hidden: the digest that the reviewer saw.
    plan_digest: String,
    /// Hidden: the version that the reviewer saw.
    version: i64,
    /// Hidden: one key for this rendering of the form.
    idempotency_key: String,
    /// In the reviewer's words.
    comment: String,
    /// Hidden: the size that the form showed.
    size: i64,
    /// The typed count; an approval of more than one message needs that size.
    #[serde(default)]
    count: String,
    /// Signs in again, where the last sign-in is too old for an approval.
    #[serde(default)]
    password: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Approve,
    RequestChanges,
    Reject,
}

async fn review(
    axum::Extension(Api(api)): axum::Extension<Api>,
    Path(id): Path<CohortId>,
    OuterParts(mut outer): OuterParts,
    Form(form): Form<ReviewForm>,
) -> Response {
    let refused = |code: &str| redirect(&format!("/cohorts/{id}?refused={}", encode(code)), &HeaderMap::new());
    let typed: String = form.count.chars().filter(char::is_ascii_digit).collect();
    if form.act == Decision::Approve && form.size > 1 && typed.parse() != Ok(form.size) {
        return refused("count_mismatch");
    }
    let mut cookies = HeaderMap::new();
    if !form.password.is_empty() {
        let Ok(body) = body_of(&ConfirmSession { password: form.password }) else { return unwritable() };
        let outer_parts = OuterParts(outer.clone());
        let answer = call(api.clone(), outer_parts, Method::POST, "/session/confirm", body, HeaderMap::new()).await;
        if !answer.status().is_success() {
            return refused(&problem_code(answer).await);
        }
        cookies = answer.headers().clone();
        // the session's id may have changed with the sign-in
        if let Some(fresh) = cookies.get(header::SET_COOKIE).and_then(session_pair) {
            outer.headers.insert(header::COOKIE, fresh);
        }
    }
    let (act, body) = match form.act {
        Decision::Approve => ("approve", body_of(&Approve { plan_digest: form.plan_digest, comment: form.comment })),
        Decision::RequestChanges => ("request-changes", body_of(&Comment { comment: form.comment })),
        Decision::Reject => ("reject", body_of(&Comment { comment: form.comment })),
    };
    let (Ok(body), Some(acting)) = (body, acting(&form.idempotency_key, form.version)) else { return unwritable() };
    let answer = call(api, OuterParts(outer), Method::POST, &format!("/cohorts/{id}/{act}"), body, acting).await;
    if answer.status().is_success() {
        redirect(&format!("/cohorts/{id}"), &cookies)
    } else {
        let to = format!("/cohorts/{id}?refused={}", encode(&problem_code(answer).await));
        redirect(&to, &cookies)
    }
}

fn body_of<B: Serialize>(body: &B) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(body)
}

fn acting(key: &str, version: i64) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", HeaderValue::from_str(key).ok()?);
    headers.insert(header::IF_MATCH, HeaderValue::from_str(&format!("\"{version}\"")).ok()?);
    Some(headers)
}

fn unwritable() -> Response {
    Error::invalid("/idempotency_key", "the form's hidden fields were changed").into_response()
}

/// `name=value` of a `Set-Cookie`, as a `Cookie` header.
fn session_pair(set_cookie: &HeaderValue) -> Option<HeaderValue> {
    let pair = set_cookie.to_str().ok()?.split(';').next()?;
    HeaderValue::from_str(pair).ok()
}
