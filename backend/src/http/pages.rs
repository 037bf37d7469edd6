//! The pages: rendered by `frontend` with the API's own router in-process, and their bundle.

use super::csp;
use crate::clock::{Clock, new_id};
use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, header, request::Parts},
    middleware::{self, Next},
    response::Response,
};
use frontend::{App, FormKey, RenderedAt, api::ApiRouter, shell};
use leptos::{nonce::Nonce, prelude::*};
use leptos_axum::{LeptosRoutes as _, generate_route_list, render_app_async_with_context};
use std::path::PathBuf;
use tower_http::services::ServeDir;

/// Every page, `/pkg` from `site_dir`, and the 404 page as fallback.
///
/// `api` answers `/api/v1/…` with sessions already layered on it: pages read through it with the reader's own cookie.
/// Without a `site_dir` pages render and read, and never hydrate.
pub fn pages(api: Router, site_dir: Option<PathBuf>) -> Router {
    let options = LeptosOptions::builder().output_name("frontend").site_pkg_dir("pkg").build();
    let context = move || {
        provide_context(ApiRouter(api.clone()));
        provide_context(RenderedAt(Clock::System.now()));
        provide_context(FormKey(new_id().to_string()));
        // the nonce that the policy names, in place of leptos' own
        if let Some(nonce) = use_context::<Parts>().and_then(|parts| parts.extensions.get::<Nonce>().cloned()) {
            provide_context(nonce);
        }
    };
    let document = {
        let options = options.clone();
        move || shell(options.clone())
    };
    let rendered = Router::new()
        .leptos_routes_with_context(&options, generate_route_list(App), context.clone(), document.clone())
        .fallback(render_app_async_with_context(context, document))
        .with_state(options)
        .layer(middleware::from_fn(|request, next| cached(request, next, "no-store")));
    let served = match site_dir {
        Some(site_dir) => {
            let bundle = ServeDir::new(site_dir.join("pkg")).precompressed_br().precompressed_gzip();
            // names carry no hash: each load asks whether they changed
            let bundle = Router::new()
                .nest_service("/pkg", bundle)
                .layer(middleware::from_fn(|request, next| cached(request, next, "no-cache")));
            rendered.merge(bundle)
        }
        None => rendered,
    };
    served.layer(middleware::from_fn(csp::with_nonce))
}

async fn cached(request: Request, next: Next, how: &'static str) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(how));
    response
}
