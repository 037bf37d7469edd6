//! Evidence, as people read it: the list, one message, its payload with a reason, whose it is.

mod message;

pub use message::show;

use crate::{
    actor::Actor,
    app::custody,
    error::{Error, Result},
    state::App,
    store::{
        self, Tx, audit,
        events::Classified,
        quarantine::{self, Filter},
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    api::{Facet, Page, QuarantineGroup, QuarantinePage, RevealedPayload, Total, TotalRelation},
    ids::{QuarantineId, QueueId},
    keyed::InstallationKey,
    vocabulary::Action,
};
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

/// The most of a payload that a reveal shows, bytes.
const PREVIEW_BYTES: usize = 256 * 1024;
/// The most groups that are listed.
const GROUPS: i64 = 200;
/// Filters that have a facet.
const FACETS: [&str; 5] = ["queue", "state", "error_class", "worker_version", "kind"];

/// A place in the list: after the row that arrived then, with that id.
pub type After = (OffsetDateTime, Uuid);

/// A page of the list with its facets, all of one moment; each facet counts under all other filters.
///
/// # Errors
/// The database's.
pub async fn list(
    app: &App,
    filter: Filter,
    after: Option<After>,
    limit: i64,
) -> Result<(QuarantinePage, Option<After>)> {
    app.store
        .tx(move |tx| {
            Box::pin(async move {
                store::one_moment(tx).await?;
                let mut items = quarantine::page(tx, &filter, after, limit + 1).await?;
                let more = i64::try_from(items.len()).unwrap_or(i64::MAX) > limit;
                items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let next = items.last().filter(|_| more).map(|row| (row.arrived_at.0, row.id.0));
                let total = Total { value: quarantine::count(tx, &filter).await?, relation: TotalRelation::Eq };
                let mut facets = Vec::with_capacity(FACETS.len());
                for name in FACETS {
                    let values = quarantine::facet(tx, &without(&filter, name), name).await?;
                    facets.push(Facet { name: name.to_owned(), values });
                }
                Ok((QuarantinePage { items, next_cursor: None, total, facets }, next))
            })
        })
        .await
}

/// The filter without the one that a facet is for.
fn without(filter: &Filter, name: &str) -> Filter {
    let mut others = filter.clone();
    match name {
        "queue" => others.queue.clear(),
        "state" => others.state.clear(),
        "error_class" => others.error_class.clear(),
        "worker_version" => others.worker_version.clear(),
        _ => others.kind.clear(),
    }
    others
}

/// The groups of what matches, of one moment.
///
/// # Errors
/// The database's.
pub async fn groups(app: &App, filter: Filter) -> Result<Page<QuarantineGroup>> {
    app.store
        .tx(move |tx| {
            Box::pin(async move {
                store::one_moment(tx).await?;
                let items = quarantine::groups(tx, &filter, GROUPS).await?;
                let value = quarantine::count_groups(tx, &filter).await?;
                Ok(Page { items, next_cursor: None, total: Total { value, relation: TotalRelation::Eq } })
            })
        })
        .await
}

/// Writes that a person opens a payload, and why. What they then see comes by [`payload`]: it must not be kept with the
/// call's answer.
///
/// # Errors
/// `NotFound`, a bad reason, 409 `payload_erased`; the database's.
pub async fn reveal(tx: &mut Tx, actor: &Actor, id: QuarantineId, reason: &str) -> Result<()> {
    let reason = super::reasons::given(reason, "/reason")?;
    quarantine::to_assign(tx, id).await?;
    if quarantine::properties(&mut **tx, id).await?.is_none() {
        return Err(Error::refused("payload_erased", "This payload was erased; its history stays."));
    }
    audit::done(tx, actor, audit::Entry::new(Action::PayloadRevealed, "quarantine", id).because(reason)).await?;
    store::notify(tx, "quarantine", Some(id.0)).await?;
    Ok(())
}

/// A revealed payload's preview.
///
/// # Errors
/// 409 `payload_erased`; the database's.
pub async fn payload(app: &App, id: QuarantineId) -> Result<RevealedPayload> {
    let body = quarantine::body(app.store.pool(), id)
        .await?
        .ok_or_else(|| Error::refused("payload_erased", "This payload was erased; its history stays."))?;
    Ok(preview(&body))
}

fn preview(body: &[u8]) -> RevealedPayload {
    let truncated = body.len() > PREVIEW_BYTES;
    let mut cut = body.len().min(PREVIEW_BYTES);
    let is_text = std::str::from_utf8(body).is_ok();
    while is_text && cut < body.len() && body[cut] & 0xc0 == 0x80 {
        cut -= 1;
    }
    let shown = &body[..cut];
    let text = is_text.then(|| String::from_utf8_lossy(shown).into_owned());
    RevealedPayload {
        size_bytes: i64::try_from(body.len()).unwrap_or(i64::MAX),
        b64: text.is_none().then(|| STANDARD.encode(shown)),
        json: if truncated { None } else { serde_json::from_slice(body).ok() },
        text,
        truncated,
    }
}

/// The whole body, for a person who revealed it before.
///
/// # Errors
/// `NotFound`, 409 `reveal_first`, `payload_erased`; the database's.
pub async fn raw_payload(app: &App, actor: &Actor, id: QuarantineId) -> Result<Vec<u8>> {
    quarantine::facts(app.store.pool(), id).await?;
    let me = actor.user()?.id;
    if !quarantine::inspections(app.store.pool(), id).await?.iter().any(|inspection| inspection.by.id == me) {
        return Err(Error::refused("reveal_first", "Reveal the payload with a reason first; the download then works."));
    }
    quarantine::body(app.store.pool(), id)
        .await?
        .ok_or_else(|| Error::refused("payload_erased", "This payload was erased; its history stays."))
}

/// Gives an unattributed message to a queue: it is read anew by that queue's mapping.
///
/// # Errors
/// `NotFound`, a bad reason, 409 `already_attributed`, 422 for a queue elsewhere; the database's.
pub async fn assign(
    tx: &mut Tx,
    actor: &Actor,
    key: &InstallationKey,
    id: QuarantineId,
    queue_id: QueueId,
    reason: &str,
) -> Result<()> {
    let reason = super::reasons::given(reason, "/reason")?;
    let row = quarantine::to_assign(tx, id).await?;
    if row.queue_id.is_some() {
        return Err(Error::refused(
            "already_attributed",
            "This message has its queue; only unattributed ones are assigned.",
        ));
    }
    let queue = quarantine::queue_beside(tx, id, queue_id)
        .await?
        .ok_or_else(|| Error::invalid("/queue_id", "no watched queue of this message's broker and virtual host"))?;
    let (properties, _) = quarantine::properties(&mut **tx, id)
        .await?
        .ok_or_else(|| Error::refused("payload_erased", "This payload was erased; its history stays."))?;
    let report = queue.headers.read(&properties);
    let class = report.error_class.as_deref().map(custody::class_of);
    let text = report.error_text.as_deref();
    let judged =
        custody::judge(key, Some(&queue), class.as_deref(), text, row.death_reason.as_deref().map(str::as_bytes));
    let (text, version) = (text.map(custody::text_of), report.worker_version.as_deref().map(custody::class_of));
    let classified = Classified {
        error_class: class.as_deref().unwrap_or_default(),
        error_text: text.as_deref(),
        worker_version: version.as_deref(),
        kind: judged.kind,
        fingerprint: judged.fingerprint.hash.to_string(),
        normalised_text: judged.normalised_text(),
    };
    let by = actor.user()?.id;
    quarantine::assign(tx, id, &queue, by, &report, custody::enqueued_at(&report), &classified).await?;
    let entry = audit::Entry::new(Action::MessageAssigned, "quarantine", id)
        .after(json!({ "queue": { "id": queue.id, "name": queue.name } }))
        .because(reason);
    audit::done(tx, actor, entry).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_says_what_it_shows() {
        let empty = preview(b"");
        assert_eq!((empty.size_bytes, empty.text.as_deref(), empty.truncated), (0, Some(""), false));
        let json = preview(br#"{"a":"x\u0000y"}"#);
        assert_eq!(json.json, Some(json!({"a": "x\0y"})));
        let bytes = preview(b"\xc3\x28");
        assert_eq!((bytes.text, bytes.b64.as_deref(), bytes.json), (None, Some("wyg="), None));
        let long = preview("é".repeat(PREVIEW_BYTES).as_bytes());
        assert!(long.truncated && long.json.is_none());
        assert_eq!(long.text.map(|text| text.len()), Some(PREVIEW_BYTES));
        let odd = preview(format!("a{}", "é".repeat(PREVIEW_BYTES)).as_bytes());
        assert_eq!(odd.text.map(|text| text.len()), Some(PREVIEW_BYTES - 1), "not in the middle of a character");
    }
}
