//! The frame around every page behind the log-in: rail, top bar, the bars for what can't wait.

mod freeze;
mod rail;
mod topbar;

use crate::{
    api::{Answer, get},
    components::{Icon, icon, problem_page},
    live::{Connection, Live, Topic, keep_fresh, use_live},
};
use domain::{
    api::{Freezes, Session},
    vocabulary::Permission,
};
pub(crate) use freeze::{FreezeDialog, Scope};
use leptos::prelude::*;
use leptos_router::components::Outlet;
use {freeze::FrozenBars, rail::Rail, topbar::TopBar};

/// Who reads this page.
#[derive(Debug, Clone)]
pub(crate) struct Me(pub(crate) Session);

impl Me {
    /// Why the reader can't do what needs `permission`: `needs responder`.
    pub(crate) fn lacks(&self, permission: Permission) -> Option<String> {
        let role = match permission {
            Permission::Respond => "responder",
            Permission::Approve => "approver",
            Permission::Administer => "admin",
            Permission::Reveal => "responder, approver or auditor",
            Permission::Stop => "responder, approver or admin",
            Permission::ExportLog => "auditor",
            Permission::Read | Permission::SendEvents | Permission::Own => "another role",
        };
        (!self.0.permissions.contains(&permission)).then(|| format!("needs {role}"))
    }
}

/// The reader; on every page behind the log-in.
pub(crate) fn use_me() -> Option<Me> {
    use_context::<Me>()
}

/// Every freeze switch that is on, kept fresh.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frozen(pub(crate) RwSignal<Freezes>);

type Known = (Answer<Session>, Answer<Freezes>);

/// Rail, top bar and the page in it.
#[component]
pub(crate) fn Frame() -> impl IntoView {
    let known = Resource::new(
        || (),
        |()| {
            let (session, freezes) = (get::<Session>("/session"), get::<Freezes>("/freeze"));
            async move { (session.await, freezes.await) as Known }
        },
    );
    view! {
        <a class="vh" href="#main">"Skip to content"</a>
        <Suspense>
            {move || Suspend::new(async move {
                let (session, freezes) = known.await;
                match session {
                    Ok(session) => {
                        let none = Freezes { all: None, queues: Vec::new() };
                        view! { <Framed session freezes=freezes.unwrap_or(none) /> }.into_any()
                    }
                    Err(problem) => {
                        view! { <main id="main" class="page">{problem_page(&problem)}</main> }.into_any()
                    }
                }
            })}
        </Suspense>
    }
}

#[component]
fn Framed(session: Session, freezes: Freezes) -> impl IntoView {
    provide_context(Me(session));
    Live::provide();
    let frozen = RwSignal::new(freezes);
    provide_context(Frozen(frozen));
    keep_fresh(frozen, &[Topic::Freeze], || get("/freeze"));
    view! {
        <div class="frame">
            <Rail />
            <TopBar />
            <div class="bars">
                <LostBar />
                <FrozenBars />
            </div>
            <main id="main" class="page">
                <noscript>
                    <p class="banner" data-state="unknown">
                        "Without scripts everything can be read, and reviews can be sent; other buttons stay off, and nothing updates by itself."
                    </p>
                </noscript>
                <Outlet />
            </main>
        </div>
    }
}

/// Says that the page no longer follows, and since when.
#[component]
fn LostBar() -> impl IntoView {
    let live = use_live();
    let clock = crate::clock::use_clock();
    // five seconds of grace: a restart behind a balancer isn't worth an alarm
    let lost = Memo::new(move |_| match live.connection.get() {
        Connection::Lost { since } if (clock.now() - since).whole_seconds() >= 5 => Some(since),
        _ => None,
    });
    move || {
        lost.get().map(|since| {
            let at = domain::api::Timestamp(since);
            view! {
                <div class="alarm" data-state="unknown" role="alert">
                    <strong>{icon(Icon::Off)}"Connection lost"</strong>
                    <span>"What you see is as of "{crate::components::when(at)}", and is tried again without end."</span>
                    <span class="why">"Acts stay possible; the server judges each."</span>
                </div>
            }
        })
    }
}
