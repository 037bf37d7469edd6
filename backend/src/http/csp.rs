//! The content security policy of pages: nothing inline runs or styles without this response's nonce.

use axum::{
    extract::Request,
    http::{HeaderValue, header},
    middleware::Next,
    response::Response,
};
use leptos::nonce::Nonce;

/// Makes a nonce for the request (as an extension, for the renderer) and sets the policy on its response.
pub(super) async fn with_nonce(mut request: Request, next: Next) -> Response {
    let nonce = Nonce::new();
    request.extensions_mut().insert(nonce.clone());
    let mut response = next.run(request).await;
    if let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// `strict-dynamic` lets the one script with the nonce load the bundle; `wasm-unsafe-eval` lets it be compiled.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic' 'wasm-unsafe-eval'; \
         style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::policy;

    #[test]
    fn nothing_inline_runs_without_the_nonce() {
        let policy = policy("abc");
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{policy}");
        assert!(policy.contains("script-src 'nonce-abc' 'strict-dynamic' 'wasm-unsafe-eval';"), "{policy}");
    }
}
