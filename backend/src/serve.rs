//! `lazaret serve`: up at once, whatever is down; ends within a deadline.

use crate::{
    config::Config,
    http::{server, starting},
    state::App,
    store::{self, Store},
    workers,
};
use anyhow::Context as _;
use axum::{Router, extract::Request, serve::ListenerExt as _};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// How long streams, requests and workers have to end.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(10);

/// How long until a database that can't be reached is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
/// A setting is unusable: a port that is taken, a malformed address.
pub async fn run(config: Config) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let shutdown = CancellationToken::new();
    let store = Store::connect(&config.database_url)?;
    let listener = bind("LAZARET_LISTEN", config.listen).await?;
    if let Some(address) = config.metrics_listen {
        serve_metrics(bind("LAZARET_METRICS_LISTEN", address).await?, shutdown.clone())?;
    }
    tracing::info!(address = %listener.local_addr()?, base_url = config.base_url, "listening");

    tokio::spawn(cancel_on_signal(shutdown.clone()));
    let waiting: starting::Waiting = Arc::new(Mutex::new("the database is being reached".to_owned()));
    let (whole, meanwhile) = (Arc::new(OnceLock::<Router>::new()), starting::starting(Arc::clone(&waiting)));
    let door = {
        let whole = Arc::clone(&whole);
        Router::new().fallback(async move |request: Request| {
            let router = whole.get().unwrap_or(&meanwhile).clone();
            router.oneshot(request).await.unwrap_or_else(|never| match never {})
        })
    };
    let stop = shutdown.clone();
    let serving = tokio::spawn(
        axum::serve(listener.tap_io(send_at_once), door.into_make_service_with_connect_info::<SocketAddr>())
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .into_future(),
    );

    let mut duties = tokio::task::JoinSet::new();
    if let Some(app) = open(config, store, &waiting, &shutdown).await {
        tracing::info!("the database is reached; serving everything");
        duties.spawn(store::changes::listen(app.store.clone(), app.changes.clone(), shutdown.clone()));
        if app.config.workers {
            let mut workers = workers::start(&app);
            duties.spawn(async move { while workers.join_next().await.is_some() {} });
        }
        // the cell is empty: only this line fills it
        let _ = whole.set(server(app));
    }
    shutdown.cancelled().await;
    let ended = tokio::time::timeout(SHUTDOWN_DEADLINE, async {
        while duties.join_next().await.is_some() {}
        serving.await
    });
    match ended.await {
        Ok(served) => served?.context("serving failed"),
        Err(_) => {
            tracing::warn!("the deadline for stopping passed; what is still open is dropped");
            Ok(())
        }
    }
}

async fn bind(variable: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{variable}: can't listen on {address}"))
}

/// Tries until the database is there; `None` when the process is asked to stop first.
async fn open(config: Arc<Config>, store: Store, waiting: &Mutex<String>, shutdown: &CancellationToken) -> Option<App> {
    loop {
        let error = tokio::select! {
            () = shutdown.cancelled() => return None,
            opened = App::open(Arc::clone(&config), store.clone(), shutdown.clone()) => match opened {
                Ok(app) => return Some(app),
                Err(error) => error,
            },
        };
        let why = format!("{error:#}");
        {
            let mut said = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if *said != why {
                tracing::warn!(error = why, "not ready; trying again every second");
                *said = why;
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return None,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

async fn cancel_on_signal(shutdown: CancellationToken) {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(error) => {
                tracing::error!(%error, "SIGTERM can't be heard; Ctrl-C can");
                std::future::pending().await
            }
        }
    };
    tokio::select! {
        () = terminate => {}
        interrupted = tokio::signal::ctrl_c() => if let Err(error) = interrupted {
            tracing::error!(%error, "Ctrl-C can't be heard");
        }
    }
    tracing::info!("stopping");
    shutdown.cancel();
}

/// An answer's last part doesn't wait for the acknowledgement of the one before it, which a client may delay by 40 ms.
fn send_at_once(stream: &mut TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps Nagle's algorithm");
    }
}

fn serve_metrics(listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder()?;
    let router = Router::new().route("/metrics", axum::routing::get(async move || recorder.render()));
    tokio::spawn(axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).into_future());
    Ok(())
}
