//! The typed client of `/api/v1`, the same on both sides: on the server it calls the API's router in-process with
//! the reader's own cookie, in the browser it uses `fetch`. Permissions are checked in one place, the API.

use domain::api::{Page, Problem};
#[cfg(feature = "ssr")]
use leptos::prelude::use_context;
use serde::{Serialize, de::DeserializeOwned};

/// What the API answers.
pub type Answer<T> = Result<T, Problem>;

/// The API's router, handed to each page by the server.
#[cfg(feature = "ssr")]
#[derive(Clone)]
pub struct ApiRouter(pub axum::Router);

/// What an acting call carries beside its body.
#[derive(Debug, Clone)]
pub(crate) struct Acting {
    /// One per intention: kept on a retry, so that a lost answer can't act twice.
    pub(crate) key: String,
    /// The version that the person saw, for objects that people edit.
    pub(crate) version: Option<i64>,
}

/// The method of an acting call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Patch,
}

impl Method {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }
}

struct Call {
    method: Method,
    path: String,
    acting: Option<Acting>,
    body: Option<String>,
}

/// Reads `path` under `/api/v1`. Takes what it needs from the context before it returns, so it may be awaited anywhere.
pub(crate) fn get<T: DeserializeOwned>(path: &str) -> impl Future<Output = Answer<T>> + Send + use<T> {
    Here::of_context().get(path)
}

/// Where calls come from: the reader's request on the server, nothing in the browser. Taken from the context once, it
/// also makes calls after an await.
#[derive(Clone)]
pub(crate) struct Here {
    #[cfg(feature = "ssr")]
    router: Option<ApiRouter>,
    #[cfg(feature = "ssr")]
    parts: Option<http::request::Parts>,
    #[cfg(feature = "ssr")]
    response: Option<leptos_axum::ResponseOptions>,
}

impl Here {
    /// Of the page being rendered.
    pub(crate) fn of_context() -> Self {
        Self {
            #[cfg(feature = "ssr")]
            router: use_context(),
            #[cfg(feature = "ssr")]
            parts: use_context(),
            #[cfg(feature = "ssr")]
            response: use_context(),
        }
    }

    /// Reads `path` under `/api/v1`.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> impl Future<Output = Answer<T>> + Send + use<T> {
        let answer = send(self.clone(), Call { method: Method::Get, path: path.to_owned(), acting: None, body: None });
        async move { decode(answer.await) }
    }

    /// Reads a list below `/api/v1` until `wanted` rows are there or it ends, over as many pages as that takes.
    pub(crate) fn rows<T: DeserializeOwned + Send>(
        &self,
        path: String,
        wanted: usize,
    ) -> impl Future<Output = Answer<Page<T>>> + Send + use<T> {
        let here = self.clone();
        async move {
            let mut page = here.get::<Page<T>>(&path).await?;
            while page.items.len() < wanted {
                let Some(cursor) = page.next_cursor.take() else { break };
                let joint = if path.contains('?') { '&' } else { '?' };
                let next = here.get::<Page<T>>(&format!("{path}{joint}cursor={}", encode(&cursor))).await?;
                page.items.extend(next.items);
                page.next_cursor = next.next_cursor;
                page.total = next.total;
            }
            Ok(page)
        }
    }
}

/// [`Here::rows`] from the context.
pub(crate) fn rows<T: DeserializeOwned + Send>(
    path: String,
    wanted: usize,
) -> impl Future<Output = Answer<Page<T>>> + Send + use<T> {
    Here::of_context().rows(path, wanted)
}

/// As many rows as there are.
pub(crate) const ALL: usize = usize::MAX;

/// Acts on `path` under `/api/v1`.
pub(crate) fn act<B: Serialize, T: DeserializeOwned>(
    method: Method,
    path: &str,
    body: Option<&B>,
    acting: Acting,
) -> impl Future<Output = Answer<T>> + Send + use<B, T> {
    let body = body.map(serde_json::to_string).transpose();
    let call = body.map(|body| Call { method, path: path.to_owned(), acting: Some(acting), body });
    let answer = call.map(|call| send(Here::of_context(), call));
    async move {
        match answer {
            Ok(answer) => decode(answer.await),
            Err(error) => Err(local_problem("request_unwritable", format!("The request can't be written: {error}."))),
        }
    }
}

/// An unguessable `Idempotency-Key` for one intention. Empty on the server, which never acts.
pub(crate) fn new_key() -> String {
    #[cfg(feature = "hydrate")]
    {
        let mut bytes = [0u8; 16];
        if let Some(crypto) = web_sys::window().and_then(|window| window.crypto().ok()) {
            // `getRandomValues` works where `randomUUID` doesn't: also on plain http
            let _ = crypto.get_random_values_with_u8_array(&mut bytes);
        }
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }
    #[cfg(not(feature = "hydrate"))]
    {
        String::new()
    }
}

/// A query string from pairs; empty values are left out. With its `?`, or nothing.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let joined = pairs
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", encode(&value)))
        .collect::<Vec<_>>()
        .join("&");
    if joined.is_empty() { joined } else { format!("?{joined}") }
}

/// Percent-encodes one query value or path segment.
pub(crate) fn encode(value: &str) -> String {
    percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Where a reader without a session goes: back here after logging in.
pub(crate) fn login_path(here: &str) -> String {
    if here == "/" { "/login".to_owned() } else { format!("/login?next={}", encode(here)) }
}

fn decode<T: DeserializeOwned>(answer: Answer<(u16, String)>) -> Answer<T> {
    let (status, body) = answer?;
    let body = if body.is_empty() { "null" } else { &body };
    if (200..300).contains(&status) {
        return serde_json::from_str(body)
            .map_err(|error| local_problem("answer_unreadable", format!("The answer can't be read: {error}.")));
    }
    Err(serde_json::from_str::<Problem>(body).unwrap_or_else(|_| Problem {
        status,
        ..local_problem("answer_unreadable", format!("The server answered {status} without saying why."))
    }))
}

fn local_problem(code: &str, detail: String) -> Problem {
    Problem {
        type_uri: format!("/problems/{code}"),
        title: "No answer".to_owned(),
        status: 0,
        detail,
        code: code.to_owned(),
        request_id: String::new(),
        errors: Vec::new(),
        facts: None,
    }
}

#[cfg(feature = "ssr")]
fn send(here: Here, call: Call) -> impl Future<Output = Answer<(u16, String)>> + Send {
    use axum::body::Body;
    use http::{StatusCode, header};
    use http_body_util::BodyExt as _;
    use std::net::SocketAddr;
    use tower::ServiceExt as _;

    let Here { router, parts, response } = here;
    async move {
        let Some(router) = router else {
            return Err(local_problem("no_api", "This page was rendered without an API.".to_owned()));
        };
        let mut request = http::Request::builder().method(call.method.as_str()).uri(format!("/api/v1{}", call.path));
        request = request.header(header::ACCEPT, "application/json");
        if let Some(acting) = &call.acting {
            request = request.header("idempotency-key", &acting.key);
            if let Some(version) = acting.version {
                request = request.header(header::IF_MATCH, format!("\"{version}\""));
            }
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let mut here = None;
        if let Some(parts) = parts {
            if let Some(cookie) = parts.headers.get(header::COOKIE) {
                request = request.header(header::COOKIE, cookie);
            }
            if let Some(id) = parts.headers.get("x-request-id") {
                request = request.header("x-request-id", id);
            }
            if let Some(peer) = parts.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
                request = request.extension(*peer);
            }
            here = parts.uri.path_and_query().map(ToString::to_string);
        }
        let request = request
            .body(Body::from(call.body.unwrap_or_default()))
            .map_err(|error| local_problem("request_unwritable", format!("The request can't be written: {error}.")))?;
        let answer = match router.0.oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(|error| local_problem("answer_cut", format!("The answer was cut short: {error}.")))?
            .to_bytes();
        if status == StatusCode::UNAUTHORIZED
            && let Some(response) = response
            && let Ok(location) = http::HeaderValue::from_str(&login_path(here.as_deref().unwrap_or("/")))
        {
            response.set_status(StatusCode::SEE_OTHER);
            response.insert_header(header::LOCATION, location);
        }
        Ok((status.as_u16(), String::from_utf8_lossy(&body).into_owned()))
    }
}

#[cfg(feature = "hydrate")]
fn send(_: Here, call: Call) -> impl Future<Output = Answer<(u16, String)>> + Send {
    use gloo_net::http::RequestBuilder;
    use send_wrapper::SendWrapper;

    let unreachable = |error: gloo_net::Error| {
        local_problem(
            "server_unreachable",
            format!("The server can't be reached ({error}). Nothing is known of the outcome; trying again is safe."),
        )
    };
    SendWrapper::new(async move {
        let method = match call.method {
            Method::Get => gloo_net::http::Method::GET,
            Method::Post => gloo_net::http::Method::POST,
            Method::Patch => gloo_net::http::Method::PATCH,
        };
        debug_assert_eq!(method.as_str(), call.method.as_str());
        let mut request = RequestBuilder::new(&format!("/api/v1{}", call.path)).method(method);
        request = request.header("accept", "application/json");
        if let Some(acting) = &call.acting {
            request = request.header("idempotency-key", &acting.key);
            if let Some(version) = acting.version {
                request = request.header("if-match", &format!("\"{version}\""));
            }
        }
        let request = match call.body {
            Some(body) => request.header("content-type", "application/json").body(body),
            None => request.build(),
        }
        .map_err(unreachable)?;
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let body = answer.text().await.map_err(unreachable)?;
        if status == 401
            && let Some(location) = web_sys::window().map(|window| window.location())
        {
            let here = format!("{}{}", location.pathname().unwrap_or_default(), location.search().unwrap_or_default());
            // a document load: the log-in page is the server's
            let _ = location.set_href(&login_path(&here));
        }
        Ok((status, body))
    })
}

#[cfg(not(any(feature = "ssr", feature = "hydrate")))]
fn send(_: Here, _: Call) -> impl Future<Output = Answer<(u16, String)>> + Send {
    async { Err(local_problem("no_api", "Built without a side.".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_leave_out_what_is_empty_and_encode_the_rest() {
        let pairs = [("q", "50 % off".to_owned()), ("state", String::new()), ("queue", "a/b".to_owned())];
        assert_eq!(query(pairs), "?q=50%20%25%20off&queue=a%2Fb");
        assert_eq!(query([("q", String::new())]), "");
    }

    #[test]
    fn the_way_back_survives_the_login() {
        assert_eq!(login_path("/"), "/login");
        assert_eq!(login_path("/cohorts?state=draft"), "/login?next=%2Fcohorts%3Fstate%3Ddraft");
    }

    #[test]
    fn a_refusal_without_a_body_still_is_a_problem() {
        let problem = decode::<()>(Ok((502, "<html>".to_owned()))).unwrap_err();
        assert_eq!((problem.status, problem.code.as_str()), (502, "answer_unreadable"));
        assert_eq!(decode::<()>(Ok((204, String::new()))), Ok(()));
    }
}
