//! The frame around every page behind the log-in: rail, top bar, the bars for what can't wait.

mod freeze;
mod rail;
mod topbar;

use crate::{
    api::{Answer, get},
    clock::use_clock,
    components::{Done, DoneLine, Icon, icon, problem_page, when_ago},
    format::sentence,
    live::{Connection, Live, use_live},
};
use domain::{
    api::{Freezes, Session, Timestamp},
    vocabulary::Permission,
};
pub(crate) use freeze::{FreezeDialog, Scope};
use leptos::prelude::*;
use leptos_router::components::Outlet;
use {
    freeze::{Frozen, FrozenBars},
    rail::Rail,
    topbar::TopBar,
};

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
        <a class="vh skip" href="#main">"Skip to content"</a>
        <Suspense>
            {move || Suspend::new(async move {
                let (session, freezes) = known.await;
                match session {
                    Ok(session) => view! { <Framed session freezes /> }.into_any(),
                    Err(problem) => {
                        view! { <main id="main" class="page">{problem_page(&problem)}</main> }.into_any()
                    }
                }
            })}
        </Suspense>
    }
}

#[component]
fn Framed(session: Session, freezes: Answer<Freezes>) -> impl IntoView {
    provide_context(Me(session));
    Live::provide();
    Done::provide();
    Frozen::provide(freezes);
    view! {
        <div class="frame">
            <Rail />
            <TopBar />
            <div class="bars">
                <LostBar />
                <FrozenBars />
            </div>
            <main id="main" class="page" tabindex="-1">
                <noscript>
                    <p class="banner" data-state="unknown">
                        "Without scripts everything can be read, and reviews can be sent; other buttons stay off, and nothing updates by itself."
                    </p>
                </noscript>
                <DoneLine />
                <Outlet />
            </main>
        </div>
    }
}

/// Says that the page no longer follows, or can't read what it follows, and since when.
#[component]
fn LostBar() -> impl IntoView {
    let live = use_live();
    let clock = use_clock();
    // five seconds of grace: a restart behind a balancer isn't worth an alarm
    let lost = Memo::new(move |_| match (live.connection.get(), live.blind()) {
        (Connection::Lost { since }, blind) if (clock.now() - since).whole_seconds() >= 5 => {
            let since = blind.map_or(since, |(as_of, _)| as_of.min(since));
            Some(("Connection lost", since, "It is tried again every two seconds.".to_owned()))
        }
        (_, Some((as_of, why))) => Some(("Not up to date", as_of, why)),
        _ => None,
    });
    move || {
        lost.get().map(|(heading, since, why)| {
            view! {
                <div class="alarm" data-state="unknown" role="alert">
                    <strong>{icon(Icon::Off)}{heading}</strong>
                    <span>"What you see is as of "{when_ago(Timestamp(since))}". "{sentence(&why)}</span>
                    <span class="why">"Acts stay possible; the server judges each."</span>
                </div>
            }
        })
    }
}
