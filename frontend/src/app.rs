//! The routes. Every page is rendered whole on the server (`SsrMode::Async`), so that it reads without scripts.

use crate::{
    clock::Clock,
    components::Hydrated,
    frame::Frame,
    pages::{
        AuditPage, CohortPage, CohortsPage, LoginPage, MessagePage, NotFoundPage, QuarantinePage, UnsavedDrafts,
        WatchPage,
    },
};
use leptos::prelude::*;
use leptos_meta::provide_meta_context;
use leptos_router::{
    SsrMode,
    components::{ParentRoute, Route, Router, Routes},
    path,
};

/// Every page of Lazaret.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    Clock::provide();
    UnsavedDrafts::provide();
    let hydrated = RwSignal::new(false);
    provide_context(Hydrated(hydrated));
    Effect::new(move |_| {
        hydrated.set(true);
        mark_hydrated();
    });

    view! {
        <Router>
            <Routes fallback=NotFoundPage>
                <Route path=path!("/login") view=LoginPage ssr=SsrMode::Async />
                <ParentRoute path=path!("") view=Frame ssr=SsrMode::Async>
                    <Route path=path!("/") view=WatchPage ssr=SsrMode::Async />
                    <Route path=path!("/quarantine") view=QuarantinePage ssr=SsrMode::Async />
                    <Route path=path!("/quarantine/:id") view=MessagePage ssr=SsrMode::Async />
                    <Route path=path!("/cohorts") view=CohortsPage ssr=SsrMode::Async />
                    <Route path=path!("/cohorts/:id") view=CohortPage ssr=SsrMode::Async />
                    <Route path=path!("/audit") view=AuditPage ssr=SsrMode::Async />
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// `<html data-hydrated>`: from here on every button works.
fn mark_hydrated() {
    #[cfg(feature = "hydrate")]
    if let Some(root) = web_sys::window().and_then(|window| window.document()?.document_element()) {
        // fails only for a name that isn't one
        let _ = root.set_attribute("data-hydrated", "");
    }
}
