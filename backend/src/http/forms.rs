//! Signing in and out without scripts: plain posts that call the same API as everyone and redirect.
//! `review_form` is the other form of that kind.

use super::Form;
use crate::state::App;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Redirect, Response},
    routing::post,
};
use domain::api::{Problem, SignIn};
use http_body_util::BodyExt as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tower::ServiceExt as _;

/// `POST /login` and `POST /logout`, over the API's own router.
pub(super) fn routes(api: Router) -> Router<App> {
    Router::new().route("/login", post(login)).route("/logout", post(logout)).layer(axum::Extension(Api(api)))
}

/// The API's own router.
#[derive(Clone)]
pub(super) struct Api(pub(super) Router);

#[derive(Deserialize)]
struct LoginForm {
    username: String,
    password: String,
    /// Where the person wanted to go: a path of ours.
    #[serde(default)]
    next: String,
}

async fn login(
    State(_): State<App>,
    axum::Extension(Api(api)): axum::Extension<Api>,
    outer: OuterParts,
    Form(form): Form<LoginForm>,
) -> Response {
    let next = if is_own_path(&form.next) { form.next } else { "/".to_owned() };
    let sign_in = SignIn { username: form.username, password: form.password };
    let answer = match serde_json::to_vec(&sign_in) {
        Ok(body) => call(api, outer, Method::POST, "/session", body, HeaderMap::new()).await,
        Err(error) => return crate::error::Error::Internal(error.into()).into_response(),
    };
    if answer.status().is_success() {
        return redirect(&next, answer.headers());
    }
    let code = problem_code(answer).await;
    redirect(&format!("/login?error={}&next={}", encode(&code), encode(&next)), &HeaderMap::new())
}

async fn logout(axum::Extension(Api(api)): axum::Extension<Api>, outer: OuterParts) -> Response {
    let answer = call(api, outer, Method::DELETE, "/session", Vec::new(), HeaderMap::new()).await;
    match answer.status() {
        status if status.is_success() || status == StatusCode::UNAUTHORIZED => redirect("/login", answer.headers()),
        _ => answer,
    }
}

/// The post's own headers and address: the API judges them as it would a script's.
pub(super) struct OuterParts(pub(super) axum::http::request::Parts);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for OuterParts {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.clone()))
    }
}

/// Calls `path` under `/api/v1` as the browser that posted the form, with these headers beside its own.
pub(super) async fn call(
    api: Router,
    OuterParts(outer): OuterParts,
    method: Method,
    path: &str,
    body: Vec<u8>,
    headers: HeaderMap,
) -> Response {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = method;
    match format!("/api/v1{path}").parse() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => return crate::error::Error::NotFound { what: "resource" }.into_response(),
    }
    request.headers_mut().extend(headers);
    for name in [header::COOKIE, header::ORIGIN, header::HeaderName::from_static("sec-fetch-site")] {
        if let Some(value) = outer.headers.get(&name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(address) = outer.extensions.get::<axum::extract::ConnectInfo<std::net::SocketAddr>>() {
        request.extensions_mut().insert(*address);
    }
    match api.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

pub(super) async fn problem_code(answer: Response) -> String {
    let body = answer.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    serde_json::from_slice::<Problem>(&body).map_or_else(|_| "internal_error".to_owned(), |problem| problem.code)
}

pub(super) fn redirect(to: &str, from: &HeaderMap) -> Response {
    let mut response = Redirect::to(to).into_response();
    for cookie in from.get_all(header::SET_COOKIE) {
        response.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
    response
}

/// A path on this server: nothing that a browser would read as another host.
fn is_own_path(next: &str) -> bool {
    next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && next.bytes().all(|b| (0x21..0x7f).contains(&b))
}

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::is_own_path;

    #[test]
    fn only_own_paths_are_gone_to() {
        for own in ["/", "/cohorts/1?tab=plan", "/quarantine?q=%2F"] {
            assert!(is_own_path(own), "{own}");
        }
        for foreign in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "javascript:0", "/a\nb", "/\t/evil"]
        {
            assert!(!is_own_path(foreign), "{foreign}");
        }
    }
}
