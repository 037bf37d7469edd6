//! The payload: hidden until a person says why they open it; that is an audit entry, and counts as inspection.

use crate::{
    api::{Acting, Method, act},
    components::{ActButton, ActDialog, Answered, Asked, Outcome},
    format,
    frame::use_me,
};
use domain::{
    api::{QuarantinedMessage, Reason, RevealedPayload},
    vocabulary::{Permission, QuarantineState},
};
use leptos::prelude::*;

/// Masked, then revealed.
#[component]
pub(super) fn Payload(message: RwSignal<QuarantinedMessage>) -> impl IntoView {
    let revealed = RwSignal::new(None::<RevealedPayload>);
    let open = RwSignal::new(false);
    let lacks = use_me().and_then(|me| me.lacks(Permission::Reveal));
    let why_not = Signal::derive(move || {
        lacks.clone().or_else(|| {
            message.with(|message| {
                (message.row.state == QuarantineState::Erased).then(|| "the payload was erased".to_owned())
            })
        })
    });
    let facts = move || {
        message.with(|message| {
            let (size, unit) = format::bytes(message.payload.size_bytes);
            let kind = message.payload.content_type.clone().unwrap_or_else(|| "no content type".to_owned());
            format!("{size} {unit} · {kind}")
        })
    };
    let (id, job) = message.with_untracked(|message| {
        (message.row.id, message.row.job_id.as_ref().map_or_else(|| "no job id".to_owned(), ToString::to_string))
    });
    let asked = || Asked {
        title: "Reveal the payload".to_owned(),
        reason_label: "Reason",
        count: None,
        version: None,
        button: "Reveal 1 payload".to_owned(),
        danger: false,
    };
    let on_submit = move |answered: Answered| {
        let Answered { reason, acting: Acting { key, .. }, .. } = answered;
        let answer = act::<_, RevealedPayload>(
            Method::Post,
            &format!("/quarantine/{id}/reveal"),
            Some(&Reason { reason }),
            Acting { key, version: None },
        );
        Box::pin(async move {
            revealed.set(Some(answer.await?));
            Ok(Outcome::Done)
        }) as _
    };
    view! {
        <div class="filters">
            <span class="dim">{facts}</span>
            <ActButton label="Reveal, with a reason…" why_not on_press=move || open.set(true) />
        </div>
        {move || match revealed.get() {
            Some(payload) => shown(payload).into_any(),
            None => view! {
                <div class="code" tabindex="0" role="region" aria-label="Payload, masked">
                    <span class="masked">"•••••••••••••••••••••••• "<small>"masked until it is revealed"</small></span>
                </div>
                <p class="note">"A cohort can’t be submitted before a person has opened its canary’s payload here."</p>
            }.into_any(),
        }}
        <ActDialog open asked on_submit>
            <p class="lead">"This shows you the payload of "<code>{job.clone()}</code>" as it arrived."</p>
            <p class="note">"Who opened it, when and why goes into the audit log; the payload itself doesn’t."</p>
        </ActDialog>
    }
}

fn shown(payload: RevealedPayload) -> AnyView {
    let cut = payload.truncated.then(|| view! { <p class="note">"Cut: the first 256 KiB are shown."</p> });
    let (text, how) = match (payload.json, payload.text, payload.b64) {
        (Some(json), _, _) => (serde_json::to_string_pretty(&json).unwrap_or_default(), "JSON, laid out"),
        (None, Some(text), _) => (text, "text"),
        (None, None, Some(b64)) => (b64, "bytes that aren’t UTF-8, as base64"),
        (None, None, None) => (String::new(), "an empty body"),
    };
    view! {
        <p class="note">{how}</p>
        <pre class="code wrap" tabindex="0" role="region" aria-label="Payload, revealed">{text}</pre>
        {cut}
    }
    .into_any()
}
