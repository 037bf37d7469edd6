//! What the probe's rows must show: one line per expectation.

use crate::{
    components::{Icon, icon, use_hydrated},
    format,
};
use domain::api::{ExpectOp, Expectation};
use leptos::prelude::*;

/// One line being edited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    id: usize,
    pointer: RwSignal<String>,
    op: RwSignal<String>,
    value: RwSignal<String>,
    from_evidence: RwSignal<bool>,
}

impl Line {
    fn new(id: usize, one: &Expectation) -> Self {
        let op = match one.op {
            ExpectOp::Eq => "eq",
            ExpectOp::Gte => "gte",
            ExpectOp::Exists => "exists",
        };
        let value = match (&one.from_evidence, &one.value) {
            (Some(pointer), _) => pointer.clone(),
            (None, Some(value)) => format::json(value),
            (None, None) => String::new(),
        };
        Self {
            id,
            pointer: RwSignal::new(one.pointer.clone()),
            op: RwSignal::new(op.to_owned()),
            value: RwSignal::new(value),
            from_evidence: RwSignal::new(one.from_evidence.is_some()),
        }
    }

    fn get(self) -> Expectation {
        let text = self.value.get();
        let op = match self.op.get().as_str() {
            "gte" => ExpectOp::Gte,
            "exists" => ExpectOp::Exists,
            _ => ExpectOp::Eq,
        };
        let evidence = self.from_evidence.get() && op != ExpectOp::Exists;
        Expectation {
            pointer: self.pointer.get().trim().to_owned(),
            op,
            // a bare word is a string; numbers, booleans and quoted text are themselves
            value: (!evidence && op != ExpectOp::Exists)
                .then(|| serde_json::from_str(&text).unwrap_or_else(|_| serde_json::Value::String(text.clone()))),
            from_evidence: evidence.then(|| text.trim().to_owned()),
        }
    }
}

/// The lines being edited.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    lines: RwSignal<Vec<Line>>,
    next: StoredValue<usize>,
}

impl Lines {
    pub(super) fn new(expect: &[Expectation]) -> Self {
        let lines = expect.iter().enumerate().map(|(id, one)| Line::new(id, one)).collect::<Vec<_>>();
        let next = StoredValue::new(lines.len());
        Self { lines: RwSignal::new(lines), next }
    }

    /// The expectations that the lines make, tracked.
    pub(super) fn get(self) -> Vec<Expectation> {
        self.lines.get().into_iter().map(Line::get).filter(|one| !one.pointer.is_empty()).collect()
    }

    /// Lines for these, in place of what was.
    pub(super) fn put(self, expect: &[Expectation]) {
        self.lines.set(Vec::new());
        for one in expect {
            self.push(one);
        }
    }

    fn add(self) {
        self.push(&Expectation { pointer: "/0".to_owned(), op: ExpectOp::Exists, value: None, from_evidence: None });
    }

    fn push(self, one: &Expectation) {
        let id = self.next.get_value();
        self.next.set_value(id + 1);
        self.lines.update(|lines| lines.push(Line::new(id, one)));
    }
}

/// The lines.
#[component]
pub(super) fn Expectations(lines: Lines) -> impl IntoView {
    let hydrated = use_hydrated();
    view! {
        <table class="table by-card">
            <thead>
                <tr>
                    <th scope="col">"In the probe’s rows"</th>
                    <th scope="col">"must"</th>
                    <th scope="col">"Value, or pointer into the message"</th>
                    <th scope="col">"From the message"</th>
                    <th scope="col"><span class="vh">"Act"</span></th>
                </tr>
            </thead>
            <tbody>
                <For each=move || lines.lines.get() key=|line| line.id let:line>
                    <tr>
                        <td class="lead"><input class="input mono" aria-label="Pointer into the rows" placeholder="/0/status" prop:value=line.pointer on:input=move |event| line.pointer.set(event_target_value(&event)) /></td>
                        <td>
                            <select class="input" aria-label="How to compare" prop:value=line.op on:change=move |event| line.op.set(event_target_value(&event))>
                                <option value="eq" selected=line.op.get_untracked() == "eq">"be equal to"</option>
                                <option value="gte" selected=line.op.get_untracked() == "gte">"be at least"</option>
                                <option value="exists" selected=line.op.get_untracked() == "exists">"exist"</option>
                            </select>
                        </td>
                        <td class="pair"><input class="input mono" aria-label="Value" disabled=move || line.op.get() == "exists" prop:value=line.value on:input=move |event| line.value.set(event_target_value(&event)) /></td>
                        <td>
                            <label class="check"><input type="checkbox" disabled=move || line.op.get() == "exists" prop:checked=line.from_evidence on:change=move |event| line.from_evidence.set(event_target_checked(&event)) />"pointer"</label>
                        </td>
                        <td><button class="copy" type="button" aria-label="Remove this expectation" on:click=move |_| lines.lines.update(|all| all.retain(|one| *one != line))>{icon(Icon::Close)}</button></td>
                    </tr>
                </For>
            </tbody>
        </table>
        <div class="acts"><button class="button" type="button" disabled=move || !hydrated.get() on:click=move |_| lines.add()>"Add an expectation"</button></div>
    }
}
