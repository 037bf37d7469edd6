//! `/cohorts`: reading, drafting, review, and the doors of a replay.

mod draft;
mod read;
mod replay;
mod review;

use crate::state::App;
use utoipa_axum::router::OpenApiRouter;

/// The body of an act that takes none: nothing, or `{}`.
type Nothing = Option<serde_json::Map<String, serde_json::Value>>;

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(read::routes()).merge(draft::routes()).merge(review::routes()).merge(replay::routes())
}
