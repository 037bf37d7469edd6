//! `GET /stream`: small "changed" notes; the reader reads again. Ends with the session, and when the process stops.

use super::{Answer, Permit, Query, auth::Read};
use crate::{
    error::Error,
    state::App,
    store::{SESSIONS_TOPIC, changes::EVERYTHING, sessions},
};
use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use domain::{api::Changed, ids::UserId, vocabulary::Permission};
use futures::Stream;
use serde::Deserialize;
use std::{collections::VecDeque, convert::Infallible, time::Duration};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Topics that a stream may ask for.
const TOPICS: [&str; 5] = ["queues", "quarantine", "cohorts", "audit", "freeze"];

/// How often a stream looks whether its session still lives, whatever it heard.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(stream))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamQuery {
    /// `queues`, `quarantine`, `cohorts`, `audit`, `freeze`; may be repeated; all where absent.
    #[serde(default)]
    topics: Vec<String>,
}

/// Notes of what changed. After a gap (`Last-Event-ID`) each topic is told once to be read again.
#[utoipa::path(get, path = "/stream", operation_id = "stream", tag = "stream", params(StreamQuery),
    responses((status = 200, description = "Server-sent events named `changed`", content_type = "text/event-stream", body = Changed)))]
async fn stream(
    State(app): State<App>,
    permit: Permit<Read>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let user = permit.actor.user()?;
    if let Some(unknown) = query.topics.iter().find(|topic| !TOPICS.contains(&topic.as_str())) {
        return Err(Error::invalid("topics", format!("`{unknown}` is none of {}", TOPICS.join(", "))));
    }
    let asked = |topic: &&str| query.topics.is_empty() || query.topics.iter().any(|asked| asked == topic);
    let topics: Vec<&'static str> = TOPICS.into_iter().filter(asked).collect();
    let pending = if headers.contains_key("last-event-id") { all(&topics) } else { VecDeque::new() };
    let reader = Reader {
        changes: app.changes.subscribe(),
        user_id: user.id,
        credential_id: user.credential_id.clone(),
        topics,
        pending,
        app,
    };
    let notes = futures::stream::unfold(reader, async |mut reader| {
        let note = reader.next().await?;
        let event = Event::default().event("changed").id(crate::clock::new_id().to_string());
        // a note is a topic and an id: it always is JSON
        let event = event.json_data(&note).unwrap_or_default();
        Some((Ok(event), reader))
    });
    Ok(Sse::new(notes).keep_alive(KeepAlive::new().interval(LOOK_EVERY)))
}

struct Reader {
    app: App,
    changes: Receiver<Changed>,
    user_id: UserId,
    credential_id: String,
    topics: Vec<&'static str>,
    pending: VecDeque<Changed>,
}

impl Reader {
    /// The next note; `None` ends the stream.
    async fn next(&mut self) -> Option<Changed> {
        loop {
            if let Some(note) = self.pending.pop_front() {
                return Some(note);
            }
            let heard = tokio::select! {
                () = self.app.shutdown.cancelled() => return None,
                heard = tokio::time::timeout(LOOK_EVERY, self.changes.recv()) => heard,
            };
            match heard {
                Err(_) => self.is_welcome().await.then_some(())?,
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Err(RecvError::Lagged(_))) => self.pending = all(&self.topics),
                Ok(Ok(note)) if note.topic == SESSIONS_TOPIC => {
                    if note.id.is_none_or(|id| id == self.user_id.0) {
                        self.is_welcome().await.then_some(())?;
                    }
                }
                Ok(Ok(note)) if note.topic == EVERYTHING => {
                    // notes were lost: one of them may have been about this session
                    self.is_welcome().await.then_some(())?;
                    self.pending = all(&self.topics);
                }
                Ok(Ok(note)) if self.topics.contains(&note.topic.as_str()) => return Some(note),
                Ok(Ok(_)) => {}
            }
        }
    }

    /// Whether the session lives and may still read. While the database can't be asked the stream stays.
    async fn is_welcome(&self) -> bool {
        let alive = sessions::is_alive(&self.app.store, &self.credential_id).await.unwrap_or(true);
        let standing = crate::store::users::standing(self.app.store.pool(), self.user_id).await;
        let may_read = match standing {
            Ok(standing) => standing.is_some_and(|user| domain::permissions::allows(&user.roles, Permission::Read)),
            Err(_) => true,
        };
        alive && may_read
    }
}

fn all(topics: &[&str]) -> VecDeque<Changed> {
    topics.iter().map(|topic| Changed { topic: (*topic).to_owned(), id: None }).collect()
}
