//! A virtual host of the test's own on the shared broker.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

/// A virtual host; deleted with this value.
pub(crate) struct Vhost {
    /// Its name.
    pub(crate) name: String,
    user: String,
    password: String,
    amqp_address: String,
    management_address: String,
    credentials: tempfile::NamedTempFile,
}

impl Vhost {
    pub(crate) async fn create() -> Self {
        let (user, password, amqp_address) = split(&env("LAZARET_TEST_AMQP_URL"));
        let vhost = Self {
            name: format!("test-{}", uuid::Uuid::new_v4().simple()),
            credentials: tempfile::NamedTempFile::new().unwrap(),
            user,
            password,
            amqp_address,
            management_address: env("LAZARET_TEST_MANAGEMENT_URL"),
        };
        std::fs::write(vhost.credentials.path(), format!("{}:{}", vhost.user, vhost.password)).unwrap();
        vhost.manage(reqwest::Method::PUT, &format!("/api/vhosts/{}", vhost.path_segment()), None).await;
        let permissions = format!("/api/permissions/{}/{}", vhost.path_segment(), vhost.user);
        let all = json!({ "configure": ".*", "write": ".*", "read": ".*" });
        vhost.manage(reqwest::Method::PUT, &permissions, Some(all)).await;
        vhost
    }

    /// `amqp://host:port`.
    pub(crate) fn amqp_address(&self) -> &str {
        &self.amqp_address
    }

    /// `http://host:port`.
    pub(crate) fn management_address(&self) -> &str {
        &self.management_address
    }

    /// Where the credentials are kept, as `POST /brokers` takes it.
    pub(crate) fn credentials(&self) -> String {
        format!("file:{}", self.credentials.path().display())
    }

    /// `amqp://user:password@host:port/vhost`, for the test's own traffic.
    pub(crate) fn amqp_url(&self) -> String {
        let address = self.amqp_address.trim_start_matches("amqp://");
        format!("amqp://{}:{}@{address}/{}", self.user, self.password, self.path_segment())
    }

    /// A connection of the test's own.
    pub(crate) async fn connect(&self) -> lapin::Connection {
        lapin::Connection::connect(&self.amqp_url(), lapin::ConnectionProperties::default()).await.unwrap()
    }

    /// Its name in a management address.
    pub(crate) fn path_segment(&self) -> String {
        utf8_percent_encode(&self.name, NON_ALPHANUMERIC).to_string()
    }

    /// Calls the broker's management API; panics on anything but 2xx.
    pub(crate) async fn manage(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<serde_json::Value>,
    ) -> serde_json::Value {
        let request = reqwest::Client::new()
            .request(method, format!("{}{path}", self.management_address))
            .basic_auth(&self.user, Some(&self.password));
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path} was answered {status}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        let url = format!("{}/api/vhosts/{}", self.management_address, self.path_segment());
        let (user, password) = (self.user.clone(), self.password.clone());
        on_another_thread(async move {
            let request = reqwest::Client::new().delete(url).basic_auth(user, Some(password));
            // a test that stopped its broker has no virtual host left to delete
            drop(request.send().await);
        });
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} isn't set; `cargo xtask test integration` sets it"))
}

/// User, password, and the address without them.
fn split(url: &str) -> (String, String, String) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (credentials, address) = rest.rsplit_once('@').unwrap();
    let (user, password) = credentials.split_once(':').unwrap();
    (user.to_owned(), password.to_owned(), format!("{scheme}://{}", address.trim_end_matches('/')))
}

/// Cleans up from a `Drop`: on a runtime of its own, waiting for the end.
pub(super) fn on_another_thread(work: impl Future<Output = ()> + Send + 'static) {
    let cleaning = std::thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    });
    if cleaning.join().is_err() && !std::thread::panicking() {
        panic!("cleaning up failed");
    }
}
