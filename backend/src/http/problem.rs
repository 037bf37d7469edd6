//! Errors as RFC 9457 problems, and extractors whose rejections are problems too.

use crate::error::Error;
use axum::{
    extract::{FromRequest, FromRequestParts, Request, rejection::JsonRejection},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use domain::api::{FieldError, Problem};
use serde::de::DeserializeOwned;

tokio::task_local! {
    /// The id of the request being answered; set by the outermost layer.
    pub static REQUEST_ID: String;
}

/// The id of the request being answered.
#[must_use]
pub fn request_id() -> String {
    REQUEST_ID.try_with(Clone::clone).unwrap_or_default()
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut facts = None;
        let mut errors = Vec::new();
        let (status, code, detail) = match self {
            Self::Invalid { code, detail, fields } => {
                errors = fields;
                (StatusCode::UNPROCESSABLE_ENTITY, code, detail)
            }
            Self::Refused { code, detail, facts: why } => {
                facts = why;
                (StatusCode::CONFLICT, code, detail)
            }
            Self::WrongCredentials => {
                (StatusCode::UNAUTHORIZED, "wrong_credentials", "The name or the password is wrong.".to_owned())
            }
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "no_session", "Sign in first.".to_owned()),
            Self::Forbidden { code, detail } => (StatusCode::FORBIDDEN, code, detail),
            Self::NotFound { what } => (StatusCode::NOT_FOUND, "not_found", format!("There is no such {what}.")),
            Self::PreconditionRequired => (
                StatusCode::PRECONDITION_REQUIRED,
                "version_required",
                "Send If-Match with the version you saw.".to_owned(),
            ),
            Self::Stale { now } => (
                StatusCode::PRECONDITION_FAILED,
                "stale_version",
                format!("It was changed meanwhile; the version is {now} now."),
            ),
            Self::TooMany { retry_after_s } => {
                let mut response = problem(
                    StatusCode::TOO_MANY_REQUESTS,
                    "too_many_requests",
                    "Too many requests.".to_owned(),
                    vec![],
                    None,
                );
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
                return response;
            }
            Self::TooLarge { detail } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail),
            Self::BadRequest { code, detail } => (StatusCode::BAD_REQUEST, code, detail),
            Self::Unavailable { code, detail } => (StatusCode::SERVICE_UNAVAILABLE, code, detail),
            Self::Internal(cause) if holds_a_character_that_text_cant(&cause) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_request",
                "the request holds a character that can't be kept as text (NUL)".to_owned(),
            ),
            Self::Internal(cause) => {
                tracing::error!(error = format!("{cause:#}"), "a request failed by a defect");
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal_error",
                    "Lazaret failed here; the request id finds it in the log.".to_owned(),
                )
            }
        };
        problem(status, code, detail, errors, facts)
    }
}

/// Postgres' `text` and `jsonb` refuse NUL (22021, 22P05): a reader's fault, not a defect.
fn holds_a_character_that_text_cant(cause: &anyhow::Error) -> bool {
    cause
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .and_then(|error| error.code().map(|code| matches!(&*code, "22021" | "22P05")))
        .unwrap_or(false)
}

fn problem(
    status: StatusCode,
    code: &str,
    detail: String,
    errors: Vec<FieldError>,
    facts: Option<serde_json::Value>,
) -> Response {
    let body = Problem {
        type_uri: format!("/problems/{code}"),
        title: sentence(code),
        status: status.as_u16(),
        detail,
        code: code.to_owned(),
        request_id: request_id(),
        errors,
        facts,
    };
    let mut response = (status, axum::Json(body)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

/// What an unknown route under `/api/v1` answers.
pub(super) async fn no_such_route() -> Error {
    Error::NotFound { what: "route" }
}

/// What a known route answers to a method that it doesn't have; axum adds `Allow`.
pub(super) async fn method_not_allowed() -> Response {
    let detail = "This route has no such method; Allow lists those it has.".to_owned();
    problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail, vec![], None)
}

/// `plan_digest_mismatch` → `Plan digest mismatch`.
fn sentence(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// JSON in and out; a bad body is a problem.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: serde::Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Error;
    async fn from_request(request: Request, _: &S) -> Result<Self, Error> {
        read_json(request).await
    }
}

/// Reads a request's body as JSON.
pub(super) async fn read_json<T: DeserializeOwned>(request: Request) -> Result<Json<T>, Error> {
    match axum::Json::from_request(request, &()).await {
        Ok(axum::Json(value)) => Ok(Json(value)),
        Err(JsonRejection::MissingJsonContentType(_)) => {
            Err(Error::BadRequest { code: "not_json", detail: "Send Content-Type: application/json.".to_owned() })
        }
        Err(other) => Err(unread(other.status(), other.body_text(), bad_json)),
    }
}

/// Why a body wasn't taken: it is too large, or what `bad` makes of the reason.
pub(super) fn unread(status: StatusCode, detail: String, bad: impl FnOnce(&str) -> Error) -> Error {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => Error::TooLarge { detail },
        _ => bad(&detail),
    }
}

/// 422 for a body that isn't the JSON wanted.
pub(super) fn bad_json(detail: &str) -> Error {
    Error::Invalid {
        code: "invalid_request",
        detail: "the body isn't the JSON that this call takes".to_owned(),
        fields: vec![FieldError { pointer: String::new(), detail: detail.to_owned() }],
    }
}

/// A posted form; a bad one is a problem.
#[derive(Debug)]
pub struct Form<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Form<T> {
    type Rejection = Error;
    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        match axum::Form::from_request(request, state).await {
            Ok(axum::Form(form)) => Ok(Self(form)),
            Err(other) => Err(unread(other.status(), other.body_text(), |why| Error::invalid("", why))),
        }
    }
}

/// Query parameters; bad ones are a problem. A list of values repeats the name.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        serde_html_form::from_str(parts.uri.query().unwrap_or_default()).map(Self).map_err(|error| Error::Invalid {
            code: "invalid_request",
            detail: "the query has bad parameters".to_owned(),
            fields: vec![FieldError { pointer: "?".to_owned(), detail: error.to_string() }],
        })
    }
}

/// Path parameters; what doesn't parse names nothing, so it is 404.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        axum::extract::Path::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Path(value)| Self(value))
            .map_err(|_| Error::NotFound { what: "resource" })
    }
}
