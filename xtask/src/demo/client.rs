//! A person at the public API: what a small script of theirs would be.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::services::{password, server::User};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// A signed-in person.
pub(super) struct Person {
    agent: ureq::Agent,
    base_url: String,
    name: String,
    password: String,
}

/// What the API answered.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Answer {
    /// The problem's code, for a refusal.
    pub(super) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("no code")
    }

    /// The body of a success.
    ///
    /// # Errors
    /// With the problem's code and words.
    pub(super) fn done(self) -> Result<Value> {
        if (200..300).contains(&self.status) {
            return Ok(self.body);
        }
        let detail = self.body["detail"].as_str().unwrap_or_default();
        let more: Vec<String> = [&self.body["errors"], &self.body["facts"]]
            .iter()
            .filter(|v| !v.is_null())
            .map(ToString::to_string)
            .collect();
        bail!("{} {}: {detail} {}", self.status, self.code(), more.join(" "))
    }
}

impl Person {
    /// Signs in.
    ///
    /// # Errors
    /// When the server refuses or can't be reached.
    pub(super) fn sign_in(base_url: &str, user: &User) -> Result<Self> {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(30)))
            .http_status_as_error(false)
            .build()
            .new_agent();
        let person =
            Self { agent, base_url: base_url.to_owned(), name: user.username.clone(), password: user.password.clone() };
        let credentials = json!({ "username": person.name, "password": person.password });
        person
            .send("POST", "/session", None, &credentials)?
            .done()
            .with_context(|| format!("{} signs in", person.name))?;
        Ok(person)
    }

    /// Who it is.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reads.
    ///
    /// # Errors
    /// When the server refuses or can't be reached.
    pub(super) fn get(&self, path: &str) -> Result<Value> {
        let mut response = self.agent.get(self.url(path)).call().with_context(|| format!("GET {path}"))?;
        read(&mut response)?.done().with_context(|| format!("{} reads {path}", self.name))
    }

    /// Reads a whole list, page by page.
    ///
    /// # Errors
    /// As [`Person::get`].
    pub(super) fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let after = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
            let page = self.get(&format!("{path}{separator}limit=200{after}"))?;
            items.extend(page["items"].as_array().with_context(|| format!("{path} is no list"))?.iter().cloned());
            cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
            if cursor.is_none() {
                return Ok(items);
            }
        }
    }

    /// Acts, and takes a refusal for an answer; `version` is the one that was seen.
    ///
    /// # Errors
    /// When the server can't be reached.
    pub(super) fn try_act(&self, method: &str, path: &str, version: Option<i64>, body: &Value) -> Result<Answer> {
        self.send(method, path, version, body)
    }

    /// Acts. When the server wants to see the password again first, gives it.
    ///
    /// # Errors
    /// When the server refuses or can't be reached.
    pub(super) fn act(&self, method: &str, path: &str, version: Option<i64>, body: &Value) -> Result<Value> {
        let mut answer = self.send(method, path, version, body)?;
        if answer.code() == "reauthentication_required" {
            self.send("POST", "/session/confirm", None, &json!({ "password": self.password }))?.done()?;
            answer = self.send(method, path, version, body)?;
        }
        answer.done().with_context(|| format!("{}: {method} {path}", self.name))
    }

    fn send(&self, method: &str, path: &str, version: Option<i64>, body: &Value) -> Result<Answer> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(self.url(path))
            .header("origin", &self.base_url)
            .header("content-type", "application/json")
            // one act, one key: nothing here is sent a second time
            .header("idempotency-key", password()?);
        if let Some(version) = version {
            request = request.header("if-match", format!("\"{version}\""));
        }
        let request = request.body(serde_json::to_vec(body)?)?;
        let mut response = self.agent.run(request).with_context(|| format!("{method} {path}"))?;
        read(&mut response)
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.base_url)
    }
}

fn read(response: &mut ureq::http::Response<ureq::Body>) -> Result<Answer> {
    let mut text = Vec::new();
    response.body_mut().as_reader().read_to_end(&mut text)?;
    let body = serde_json::from_slice(&text).unwrap_or_else(|_| String::from_utf8_lossy(&text).into_owned().into());
    Ok(Answer { status: response.status().as_u16(), body })
}

/// Looks until there is an answer.
///
/// # Errors
/// When `limit` passes, or a look fails.
pub(super) fn until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let asked = Instant::now();
    loop {
        if let Some(answer) = look().with_context(|| format!("while waiting until {what}"))? {
            return Ok(answer);
        }
        if asked.elapsed() > limit {
            bail!("waited {} in vain until {what}", crate::say::seconds(limit));
        }
        std::thread::sleep(LOOK);
    }
}
