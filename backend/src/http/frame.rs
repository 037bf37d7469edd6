//! What surrounds every request: its id and span, headers, and what becomes of a panic.

use super::problem::REQUEST_ID;
use crate::error::Error;
use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, Response, header},
    middleware::{self, Next},
    response::IntoResponse,
};
use std::{any::Any, time::Instant};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Gives the request an id (or keeps the caller's), a span, and a line in the log when it is answered.
/// A page's call of the API in-process is already inside one: it keeps that, also when another task goes on with it.
pub(super) async fn request(mut request: Request, next: Next) -> Response<Body> {
    if let Ok(id) = REQUEST_ID.try_with(Clone::clone) {
        return REQUEST_ID.scope(id, next.run(request)).await;
    }
    let id = request
        .headers()
        .get(REQUEST_ID_HEADER)
        .and_then(|value| value.to_str().ok())
        .filter(|id| {
            (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        })
        .map_or_else(|| crate::clock::new_id().to_string(), ToOwned::to_owned);
    let header = HeaderValue::try_from(&id).ok();
    if let Some(header) = &header {
        // a page that calls the API from another task hands the id on by this header
        request.headers_mut().insert(REQUEST_ID_HEADER, header.clone());
    }
    let span =
        tracing::info_span!("request", request_id = %id, method = %request.method(), path = request.uri().path());
    let began = Instant::now();
    REQUEST_ID
        .scope(
            id,
            async move {
                let mut response = next.run(request).await;
                tracing::debug!(status = response.status().as_u16(), ms = began.elapsed().as_millis(), "answered");
                metrics::histogram!("lazaret_http_seconds").record(began.elapsed().as_secs_f64());
                if let Some(header) = header {
                    response.headers_mut().insert(REQUEST_ID_HEADER, header);
                }
                response
            }
            .instrument(span),
        )
        .await
}

type OnPanic = fn(Box<dyn Any + Send>) -> Response<Body>;

/// A handler's panic is a defect, answered as one.
pub(super) fn catch_panics() -> CatchPanicLayer<OnPanic> {
    CatchPanicLayer::custom(on_panic)
}

fn on_panic(panic: Box<dyn Any + Send>) -> Response<Body> {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Error::Internal(anyhow::anyhow!("a handler panicked: {what}")).into_response()
}

/// The API's answers are nobody's to keep.
pub(super) async fn api_headers(request: Request, next: Next) -> Response<Body> {
    let mut response = next.run(request).await;
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// On every answer; pages have named a policy of their own by then.
async fn security_headers(request: Request, next: Next) -> Response<Body> {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    response
}

/// Around the whole server.
pub(super) fn outermost(router: Router) -> Router {
    router.layer(catch_panics()).layer(middleware::from_fn(security_headers)).layer(middleware::from_fn(request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::request_id;
    use axum::{body::to_bytes, routing::get};
    use std::{future::poll_fn, sync::Arc, task::Poll};
    use tokio::sync::Notify;
    use tower::ServiceExt as _;

    /// Pages are rendered by several tasks: one begins a call of the API, another may end it.
    #[tokio::test]
    async fn a_call_that_another_task_goes_on_with_keeps_its_request_id() {
        let go = Arc::new(Notify::new());
        let waiting = go.clone();
        let handler = move || async move {
            waiting.notified().await;
            request_id()
        };
        let router = Router::new().route("/", get(handler)).layer(middleware::from_fn(super::request));
        let mut call = Box::pin(router.oneshot(Request::new(Body::empty())));
        let begun = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending()));
        assert!(REQUEST_ID.scope("the-page".to_owned(), begun).await);
        go.notify_one();
        let answer = call.await.unwrap();
        assert_eq!(to_bytes(answer.into_body(), 64).await.unwrap(), "the-page");
    }
}
