//! Somebody with a browser: a cookie jar, and an Origin on every write.

use domain::api::Problem;
use reqwest::{Client, Method, RequestBuilder, header};
use serde::{Serialize, de::DeserializeOwned};

/// Calls the API as one person.
#[derive(Clone)]
pub(crate) struct Person {
    http: Client,
    base_url: String,
    name: String,
}

impl Person {
    pub(crate) fn new(base_url: &str, name: &str) -> Self {
        let http = Client::builder().cookie_store(true).redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { http, base_url: base_url.to_owned(), name: name.to_owned() }
    }

    /// A request to finish by hand; the path is relative to the server's root.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base_url))
    }

    fn api(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, &format!("/api/v1{path}")).header(header::ORIGIN, &self.base_url)
    }

    /// Sends a request that [`Self::request`] began.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Reply {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { who: self.name.clone(), status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.api(Method::GET, path)).await
    }

    /// `POST` without an `Idempotency-Key`: `/session`, `/events`.
    pub(crate) async fn post(&self, path: &str, body: impl Serialize) -> Reply {
        self.send(self.api(Method::POST, path).json(&body)).await
    }

    /// An acting `POST` with a fresh key.
    pub(crate) async fn act(&self, path: &str, body: impl Serialize) -> Reply {
        self.act_with(&fresh_key(), path, body).await
    }

    /// An acting `POST` with this key.
    pub(crate) async fn act_with(&self, key: &str, path: &str, body: impl Serialize) -> Reply {
        self.send(self.api(Method::POST, path).header("idempotency-key", key).json(&body)).await
    }

    /// `PATCH` of a version.
    pub(crate) async fn change(&self, path: &str, version: i64, body: impl Serialize) -> Reply {
        let request = self.api(Method::PATCH, path).header("idempotency-key", fresh_key());
        self.send(request.header(header::IF_MATCH, format!("\"{version}\"")).json(&body)).await
    }

    /// `PUT`, of a version where there is one.
    pub(crate) async fn put(&self, path: &str, version: Option<i64>, body: impl Serialize) -> Reply {
        let mut request = self.api(Method::PUT, path).header("idempotency-key", fresh_key());
        if let Some(version) = version {
            request = request.header(header::IF_MATCH, format!("\"{version}\""));
        }
        self.send(request.json(&body)).await
    }

    /// `DELETE`.
    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(self.api(Method::DELETE, path)).await
    }
}

fn fresh_key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    who: String,
    pub(crate) status: u16,
    pub(crate) headers: header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body of a 2xx as JSON.
    #[track_caller]
    pub(crate) fn ok<T: DeserializeOwned>(self) -> T {
        assert!((200..300).contains(&self.status), "{} was answered {}: {}", self.who, self.status, self.text());
        self.json()
    }

    /// Asserts the status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} was answered: {}", self.who, self.text());
        self
    }

    /// Asserts a problem's status and code, and its form.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Problem {
        let reply = self.is(status);
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        let problem: Problem = reply.json();
        assert_eq!(problem.code, code, "{}", problem.detail);
        assert_eq!(problem.type_uri, format!("/problems/{code}"));
        assert_eq!(problem.status, status);
        assert_eq!(Some(problem.request_id.as_str()), reply.header("x-request-id"));
        problem
    }

    /// One header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}
