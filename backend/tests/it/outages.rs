//! The program itself, `lazaret serve`: with its database away at the start and in mid run, and when it is told to stop.

use crate::harness::{PASSWORD, Person, TestApp, eventually};
use domain::api::{Problem, Session};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};
use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// The way to the database; closing it cuts every connection and refuses new ones.
struct Way {
    port: u16,
    to: (String, u16),
    open: Option<JoinHandle<()>>,
}

impl Way {
    /// Closed, on a port that was free.
    async fn to(database: &PgConnectOptions) -> Self {
        let port = free_port().await;
        Self { port, to: (database.get_host().to_owned(), database.get_port()), open: None }
    }

    async fn open(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        let to = self.to.clone();
        self.open = Some(tokio::spawn(async move {
            // dropped with this task, and every connection with it
            let mut connections = JoinSet::new();
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                let to = to.clone();
                connections.spawn(async move {
                    let mut to = TcpStream::connect(to).await.unwrap();
                    // either end may go first
                    let _ = copy_bidirectional(&mut from, &mut to).await;
                });
            }
        }));
    }

    async fn close(&mut self) {
        let open = self.open.take().unwrap();
        open.abort();
        assert!(open.await.unwrap_err().is_cancelled());
    }
}

async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// `lazaret serve`; killed when it is dropped.
struct Serving {
    process: Child,
    base_url: String,
}

impl Serving {
    async fn start(database: PgConnectOptions) -> Self {
        let listen = format!("127.0.0.1:{}", free_port().await);
        let process = Command::new(env!("CARGO_BIN_EXE_lazaret"))
            .arg("serve")
            .env("DATABASE_URL", database.to_url_lossy().as_str())
            .env("LAZARET_LISTEN", &listen)
            .env_remove("LAZARET_BASE_URL")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, base_url: format!("http://{listen}") }
    }

    fn person(&self) -> Person {
        Person::new(&self.base_url, "vera")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // it may have ended
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What `GET path` answers, outside the API.
async fn look(person: &Person, path: &str) -> (u16, String) {
    let reply = person.send(person.request(Method::GET, path)).await;
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
    assert!(reply.header("content-security-policy").is_some_and(|policy| policy.contains("frame-ancestors 'none'")));
    (reply.status, reply.text())
}

async fn until_ready(person: &Person) {
    eventually("ready", || async { (look(person, "/readyz").await.0 == 200).then_some(()) }).await;
}

fn says_that_the_database_is_away(problem: &Problem) {
    assert!(!problem.detail.is_empty() && !problem.detail.contains("postgres://"), "{}", problem.detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_said_and_waited_for() {
    let app = TestApp::start().await;
    let database: PgConnectOptions = app.app.config.database_url.parse().unwrap();
    let mut way = Way::to(&database).await;
    let serving = Serving::start(database.host("127.0.0.1").port(way.port)).await;
    let vera = serving.person();

    // away at the start
    eventually("listening", || async { vera.request(Method::GET, "/healthz").send().await.ok() }).await;
    assert_eq!(look(&vera, "/healthz").await, (200, "ok".to_owned()));
    let (status, ready) = look(&vera, "/readyz").await;
    let ready: Value = serde_json::from_str(&ready).unwrap();
    assert_eq!((status, &ready["ready"], &ready["checks"][0]["name"]), (503, &json!(false), &json!("database")));
    let (status, page) = look(&vera, "/cohorts").await;
    assert!(status == 503 && page.contains("Lazaret is starting"), "{status} {page}");
    let sign_in = json!({ "username": "vera", "password": PASSWORD });
    says_that_the_database_is_away(&vera.post("/session", &sign_in).await.problem(503, "database_unavailable"));

    way.open().await;
    until_ready(&vera).await;
    vera.post("/session", &sign_in).await.is(201);
    assert_eq!(look(&vera, "/cohorts").await.0, 200);

    // away in mid run
    way.close().await;
    assert_eq!(look(&vera, "/readyz").await.0, 503);
    assert_eq!(look(&vera, "/healthz").await.0, 200);
    says_that_the_database_is_away(&vera.get("/cohorts").await.problem(503, "database_unavailable"));
    let act = vera.act("/freeze", json!({ "reason": "while it is away" })).await;
    says_that_the_database_is_away(&act.problem(503, "database_unavailable"));
    let (status, page) = look(&vera, "/cohorts").await;
    assert!(status == 503 && page.contains("database_unavailable"), "{status} {page}");

    way.open().await;
    until_ready(&vera).await;
    assert_eq!(vera.get("/session").await.ok::<Session>().user.username, "vera", "the session outlives the outage");
}

/// T11: open streams don't hold the process.
#[tokio::test(flavor = "multi_thread")]
async fn open_streams_end_with_the_process() {
    let app = TestApp::start().await;
    let mut serving = Serving::start(app.app.config.database_url.parse().unwrap()).await;
    let vera = serving.person();
    eventually("listening", || async { vera.request(Method::GET, "/healthz").send().await.ok() }).await;
    until_ready(&vera).await;
    vera.post("/session", json!({ "username": "vera", "password": PASSWORD })).await.is(201);
    let mut streams = Vec::new();
    for _ in 0..5 {
        let stream = vera.request(Method::GET, "/api/v1/stream").send().await.unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }

    let told = Instant::now();
    let pid = serving.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = eventually("ended", || {
        let ended = serving.process.try_wait().unwrap();
        async move { ended }
    });
    let status = ended.await;
    assert!(status.success(), "{status}");
    // with none of them cut off by the deadline of 10 s
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
    for mut stream in streams {
        while stream.chunk().await.expect("a stream ends whole").is_some() {}
    }
}
