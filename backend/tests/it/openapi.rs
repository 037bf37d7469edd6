//! The API's description, as it is committed: a change of it is a change of the contract, and is seen in review.

use crate::harness::TestApp;
use serde_json::Value;

/// `INSTA_UPDATE=always cargo nextest run -p lazaret -E 'test(openapi)'` writes it anew.
#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_the_committed_one() {
    let app = TestApp::start().await;
    let document: Value = app.nobody().get("/openapi.json").await.ok();
    insta::assert_json_snapshot!("openapi", document);
}
