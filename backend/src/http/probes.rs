//! `/probes`: defining them.

use super::{Act, Acted, Answer, Json, Path, Permit, auth::Read};
use crate::{act, app::probe_definitions, state::App, store};
use axum::{extract::State, http::StatusCode};
use domain::api::{Probe, PutProbe};
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    Put: Administer, ProbeChanged, "probe";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, put))
}

/// A probe.
#[utoipa::path(get, path = "/probes/{name}", operation_id = "get_probe", tag = "probes",
    params(("name" = String, Path)), responses((status = 200, description = "The probe", body = Probe)))]
async fn show(State(app): State<App>, _: Permit<Read>, Path(name): Path<String>) -> Answer<Json<Probe>> {
    Ok(Json(store::probes::get(app.store.pool(), &name).await?))
}

/// Defines or changes a probe; `If-Match` where it exists.
#[utoipa::path(put, path = "/probes/{name}", operation_id = "put_probe", tag = "probes",
    params(("name" = String, Path)), request_body = PutProbe,
    responses((status = 200, description = "Defined", body = Probe)))]
async fn put(State(app): State<App>, Path(name): Path<String>, act: Act<Put, PutProbe>) -> Answer<Acted> {
    let seen = act.seen();
    act.run(&app, StatusCode::OK, move |tx, actor, put| {
        Box::pin(async move {
            let probe = probe_definitions::put(tx, actor, &name, seen, put).await?;
            let version = probe.version;
            Ok((probe, Some(version)))
        })
    })
    .await
}
