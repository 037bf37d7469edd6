//! Acting calls: permission, `Idempotency-Key`, `If-Match`, one transaction with its audit entry, and refusals that leave one too.

use super::{auth, problem};
use crate::{
    actor::Actor,
    error::{Error, Result},
    state::App,
    store::{Tx, TxFuture, audit, idempotency},
};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use domain::vocabulary::{Action, Permission};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use std::marker::PhantomData;

/// One acting call of the API, as a type: what it needs and what its audit entry is called.
pub trait ActKind: Send + Sync + 'static {
    /// Who may.
    const PERMISSION: Permission;
    /// What a refusal's entry says was tried; the entry of the deed itself is written by `app`.
    const ACTION: Action;
    /// The kind of thing it acts on; its id is the first path parameter, or `new`.
    const SUBJECT: &'static str;
}

/// Declares acting calls: `act!(CreateQueue: Administer, QueueCreated, "queue");`
#[macro_export]
macro_rules! act {
    ($($name:ident: $permission:ident, $action:ident, $subject:literal;)*) => {$(
        #[doc = concat!("The acting call `", stringify!($name), "`.")]
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name;
        impl $crate::http::ActKind for $name {
            const PERMISSION: domain::vocabulary::Permission = domain::vocabulary::Permission::$permission;
            const ACTION: domain::vocabulary::Action = domain::vocabulary::Action::$action;
            const SUBJECT: &'static str = $subject;
        }
    )*};
}

/// An acting call that was let in: the asker holds the permission, the body parsed, the key is there.
#[derive(Debug)]
pub struct Act<K, B> {
    /// Who acts.
    pub actor: Actor,
    /// What they ask.
    pub body: B,
    if_match: Option<i64>,
    key: idempotency::Key,
    subject_id: String,
    kind: PhantomData<K>,
}

/// What an acting call answers.
#[derive(Debug)]
pub struct Acted(idempotency::Answer);

impl IntoResponse for Acted {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.0.body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(etag) = self.0.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            response.headers_mut().insert(header::ETAG, etag);
        }
        response
    }
}

impl<K: ActKind, B: DeserializeOwned + Send> FromRequest<App> for Act<K, B> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        // read before anything is refused: an unread body costs the connection, and with it the next caller's request
        let bytes = read_body(&parts, Request::from_parts(parts.clone(), body), app).await;
        let actor = auth::actor(&mut parts, app).await?;
        let subject_id = subject_id(&mut parts, app).await;
        if !actor.may(K::PERMISSION) {
            let refusal = auth::missing(K::PERMISSION);
            record_refusal::<K>(app, &actor, &subject_id, &refusal).await;
            return Err(refusal);
        }
        let if_match = if_match(&parts)?;
        let client_key = parts
            .headers
            .get("idempotency-key")
            .and_then(|value| value.to_str().ok())
            .filter(|key| (1..=200).contains(&key.len()))
            .ok_or_else(|| Error::BadRequest {
                code: "idempotency_key_required",
                detail: "Send an Idempotency-Key of 1 to 200 characters; the same call sent again takes the same key."
                    .to_owned(),
            })?
            .to_owned();
        let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
        let bytes = bytes?;
        let request_hash: [u8; 32] =
            Sha256::new().chain_update(if_match.unwrap_or(-1).to_be_bytes()).chain_update(&bytes).finalize().into();
        let body = serde_json::from_slice(if bytes.is_empty() { b"null" } else { &bytes })
            .map_err(|error| problem::bad_json(&error.to_string()))?;
        let key = idempotency::Key { actor: actor.user()?.id, method, path, key: client_key, request_hash };
        Ok(Self { actor, body, if_match, key, subject_id, kind: PhantomData })
    }
}

impl<K: ActKind, B: Send + 'static> Act<K, B> {
    /// The version that the asker saw.
    ///
    /// # Errors
    /// 428 when the call names none.
    pub fn if_match(&self) -> Result<i64> {
        self.if_match.ok_or(Error::PreconditionRequired)
    }

    /// The version that the asker saw, where they named one: for acts that a version may but needn't guard.
    #[must_use]
    pub const fn seen(&self) -> Option<i64> {
        self.if_match
    }

    /// Does it once, in one transaction: `work` changes the state and writes its audit entry through `app`.
    /// A repeated call gets the first answer; a refusal leaves an entry of its own.
    ///
    /// # Errors
    /// The work's.
    pub async fn run<T, F>(self, app: &App, status: StatusCode, work: F) -> Result<Acted>
    where
        T: Serialize + Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx, &'t Actor, B) -> TxFuture<'t, (T, Option<i64>)> + Send + 'static,
    {
        let Self { actor, body, key, subject_id, .. } = self;
        let refused_actor = actor.clone();
        let outcome = app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    if let Some(first) = idempotency::take(tx, &key).await? {
                        return Ok(first);
                    }
                    let (value, version) = work(tx, &actor, body).await?;
                    let answer = idempotency::Answer {
                        status: status.as_u16(),
                        etag: version.map(|version| format!("\"{version}\"")),
                        body: serde_json::to_vec(&value).map_err(|error| Error::Internal(error.into()))?,
                    };
                    idempotency::answer(tx, &key, &answer).await?;
                    Ok(answer)
                })
            })
            .await;
        if let Err(error) = &outcome {
            record_refusal::<K>(app, &refused_actor, &subject_id, error).await;
        }
        outcome.map(Acted)
    }

    /// Writes a refusal that was found before the transaction (a pre-flight at the broker, say) and gives it back.
    pub async fn refuse(&self, app: &App, error: Error) -> Error {
        record_refusal::<K>(app, &self.actor, &self.subject_id, &error).await;
        error
    }
}

/// A refusal is an entry of its own, in a transaction of its own: the refused one was rolled back.
async fn record_refusal<K: ActKind>(app: &App, actor: &Actor, subject_id: &str, error: &Error) {
    let Some(code) = error.refusal_code() else { return };
    let (actor, entry) = (actor.clone(), audit::Entry::new(K::ACTION, K::SUBJECT, subject_id));
    let written = app.store.tx(move |tx| Box::pin(async move { audit::refused(tx, &actor, entry, code).await })).await;
    if let Err(error) = written {
        tracing::error!(%error, code, "a refusal could not be written to the audit trail");
    }
}

async fn subject_id(parts: &mut Parts, app: &App) -> String {
    use axum::extract::{FromRequestParts as _, RawPathParams};
    match RawPathParams::from_request_parts(parts, app).await {
        Ok(params) => params.iter().next().map_or_else(|| "new".to_owned(), |(_, value)| value.to_owned()),
        Err(_) => "new".to_owned(),
    }
}

fn if_match(parts: &Parts) -> Result<Option<i64>> {
    let Some(value) = parts.headers.get(header::IF_MATCH) else { return Ok(None) };
    value.to_str().ok().and_then(|text| text.strip_prefix('"')?.strip_suffix('"')?.parse().ok()).map(Some).ok_or_else(
        || Error::BadRequest {
            code: "bad_if_match",
            detail: "If-Match is a version in quotes, like \"3\".".to_owned(),
        },
    )
}

async fn read_body(parts: &Parts, request: Request, app: &App) -> Result<Bytes> {
    let json = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        value.split(';').next().is_some_and(|mime| mime.trim().eq_ignore_ascii_case("application/json"))
    });
    let bytes = Bytes::from_request(request, app)
        .await
        .map_err(|rejection| problem::unread(rejection.status(), rejection.body_text(), problem::bad_json))?;
    if json || bytes.is_empty() {
        Ok(bytes)
    } else {
        Err(Error::BadRequest { code: "not_json", detail: "Send Content-Type: application/json.".to_owned() })
    }
}
