//! The server under test, and people who use it.
//!
//! ```ignore
//! #[tokio::test(flavor = "multi_thread")]
//! async fn a_queue_is_watched() {
//!     let app = TestApp::start().await;                 // its own database, its own port, nothing else running
//!     let root = app.admin().await;                     // signed in; also viewer, responder (mara), approver (jon),
//!                                                       // second_approver (lee), auditor (ada), emitter (feed)
//!     let vhost = app.vhost().await;                    // its own virtual host at the broker
//!     let broker = app.register_broker(&vhost).await;   // through `POST /brokers`
//!     let queue: Queue = root.act("/queues", json!({"broker_id": broker, "vhost": vhost.name, …})).await.ok();
//!     root.change(&format!("/queues/{}", queue.id), queue.version, json!({…})).await.ok::<Queue>();
//!     app.viewer().await.act("/queues", json!({})).await.problem(403, "missing_permission");
//! }
//! ```
//!
//! * Paths are relative to `/api/v1`. [`Person::act`] posts with a fresh `Idempotency-Key`.
//! * [`TestApp::start_with_workers`] runs the background duties too; [`TestApp::app`] is the server's own state, for
//!   stepping a duty by hand or reading the database (`app.app.store.pool()`, as `lazaret_app`; [`TestApp::owner`] for the rest).
//! * The database is a clone of a template that is made once per schema; database and virtual host go when the test ends.
//! * Wait for a condition with [`eventually`], never by sleeping.

mod broker;
mod database;
mod person;

pub(crate) use broker::Vhost;
pub(crate) use person::{Person, Reply};

use database::Database;
use domain::{
    api::Broker,
    ids::{BrokerId, UserId},
    vocabulary::Role,
};
use lazaret::{
    config::{Config, PasswordCost},
    http::server,
    state::App,
    store::{self, Store},
    workers,
};
use serde_json::json;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Everybody's password.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Cheap: tests sign in often.
const PASSWORD_COST: PasswordCost = PasswordCost { memory_kib: 64, passes: 1 };

/// People of the template: name, roles, machine.
const PEOPLE: [(&str, &[Role], bool); 7] = [
    ("vera", &[Role::Viewer], false),
    ("mara", &[Role::Responder], false),
    ("jon", &[Role::Approver], false),
    ("lee", &[Role::Approver], false),
    ("ada", &[Role::Auditor], false),
    ("root", &[Role::Admin], false),
    ("feed", &[Role::Emitter], true),
];

/// A server of its own; see the module's head.
pub(crate) struct TestApp {
    /// The server's own state.
    pub(crate) app: App,
    /// `http://127.0.0.1:PORT`.
    pub(crate) base_url: String,
    owner: sqlx::PgPool,
    _workers: tokio::task::JoinSet<()>,
    // dropped in this order: the server stops before its database goes
    _stop: DropGuard,
    _database: Database,
}

impl TestApp {
    /// API, pages, and the listener for changes.
    pub(crate) async fn start() -> Self {
        Self::start_as(false).await
    }

    /// The same with the background duties.
    pub(crate) async fn start_with_workers() -> Self {
        Self::start_as(true).await
    }

    async fn start_as(workers: bool) -> Self {
        let database = Database::clone_template().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = listener.local_addr().unwrap();
        let config = Config {
            listen,
            database_url: database.app_url(),
            site_dir: None,
            base_url: format!("http://{listen}"),
            metrics_listen: None,
            workers,
            process_name: format!("test-{listen}"),
            password_cost: PASSWORD_COST,
        };
        let stop = CancellationToken::new();
        let store = Store::connect(&config.database_url).unwrap();
        let app = App::open(Arc::new(config), store, stop.clone()).await.unwrap();
        let router = server(app.clone()).into_make_service_with_connect_info::<SocketAddr>();
        let until = stop.clone();
        tokio::spawn(
            axum::serve(listener, router).with_graceful_shutdown(async move { until.cancelled().await }).into_future(),
        );
        tokio::spawn(store::changes::listen(app.store.clone(), app.changes.clone(), stop.clone()));
        Self {
            base_url: format!("http://{listen}"),
            owner: database.owner_pool(),
            _workers: if workers { workers::start(&app) } else { tokio::task::JoinSet::new() },
            app,
            _stop: stop.drop_guard(),
            _database: database,
        }
    }

    /// The database as its owner: for what the application role may not do or see.
    pub(crate) fn owner(&self) -> &sqlx::PgPool {
        &self.owner
    }

    /// Nobody: no session.
    pub(crate) fn nobody(&self) -> Person {
        Person::new(&self.base_url, "nobody")
    }

    /// Signs somebody in, in a browser of their own.
    pub(crate) async fn sign_in(&self, username: &str) -> Person {
        let person = Person::new(&self.base_url, username);
        person.post("/session", json!({ "username": username, "password": PASSWORD })).await.is(201);
        person
    }

    /// Reads.
    pub(crate) async fn viewer(&self) -> Person {
        self.sign_in("vera").await
    }

    /// Drafts, starts, stops.
    pub(crate) async fn responder(&self) -> Person {
        self.sign_in("mara").await
    }

    /// Agrees.
    pub(crate) async fn approver(&self) -> Person {
        self.sign_in("jon").await
    }

    /// Agrees too.
    pub(crate) async fn second_approver(&self) -> Person {
        self.sign_in("lee").await
    }

    /// Reads payloads and the log.
    pub(crate) async fn auditor(&self) -> Person {
        self.sign_in("ada").await
    }

    /// Brokers, queues, people.
    pub(crate) async fn admin(&self) -> Person {
        self.sign_in("root").await
    }

    /// A machine that sends events.
    pub(crate) async fn emitter(&self) -> Person {
        self.sign_in("feed").await
    }

    /// Somebody's id.
    pub(crate) async fn id_of(&self, username: &str) -> UserId {
        let id = sqlx::query_scalar("SELECT id FROM users WHERE username = $1").bind(username).fetch_one(&self.owner);
        UserId(id.await.unwrap())
    }

    /// A new account with these roles, made by nobody; sign in with [`Self::sign_in`].
    pub(crate) async fn hire(&self, username: &str, roles: &[Role]) -> UserId {
        database::add_person(&self.owner, username, roles, false).await
    }

    /// A virtual host of this test's own.
    pub(crate) async fn vhost(&self) -> Vhost {
        Vhost::create().await
    }

    /// Registers the test broker, through the API.
    pub(crate) async fn register_broker(&self, vhost: &Vhost) -> BrokerId {
        let body = json!({
            "name": format!("broker of {}", vhost.name), "amqp_url": vhost.amqp_address(),
            "management_url": vhost.management_address(), "credentials": vhost.credentials(),
        });
        self.admin().await.act("/brokers", body).await.ok::<Broker>().id
    }

    /// How many audit entries there are, refusals' counts included.
    pub(crate) async fn audit_count(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM audit_entries").fetch_one(&self.owner).await.unwrap()
    }
}

/// Asks until the answer is `Some`, for at most 20 s.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let asking = async {
        loop {
            if let Some(value) = ask().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap_or_else(|_| panic!("never: {what}"))
}
