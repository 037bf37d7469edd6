//! Log in: a plain form, posted to the server with or without scripts.

use crate::components::wordmark;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The way in.
#[component]
pub(crate) fn LoginPage() -> impl IntoView {
    let query = use_query_map();
    let param = move |name: &'static str| query.with_untracked(|query| query.get(name)).unwrap_or_default();
    let next = param("next");
    let failed = match param("error").as_str() {
        "" => None,
        "wrong_credentials" | "no_session" => Some("Name or password is wrong."),
        "too_many_requests" => Some("Too many tries. Wait a minute, then try again."),
        "bad_origin" => Some("The form came from another site, so it was refused."),
        "database_unavailable" => Some("The database can’t be reached. Nothing is lost; try again."),
        _ => Some("The server couldn’t log you in."),
    };
    let invalid = failed.is_some().then_some("true");
    view! {
        <Title text="Log in · Lazaret" />
        <div class="login">
            <aside class="flag" aria-label="About the flag">
                <blockquote>"“My vessel is healthy and I request free pratique.”"</blockquote>
                <p class="long">
                    "Signal flag Q, plain yellow. A lazaret is the station where a ship waited, watched and recorded, until it was given permission to come back in."
                </p>
            </aside>
            <main id="main">
                <form method="post" action="/login">
                    <h1 class="vh">"Log in to Lazaret"</h1>
                    {wordmark()}
                    <input type="hidden" name="next" value=next />
                    <div class="field">
                        <label for="username">"Name"</label>
                        <input class="input" id="username" name="username" autocomplete="username" required autofocus />
                    </div>
                    <div class="field">
                        <label for="password">"Password"</label>
                        <input
                            class="input"
                            id="password"
                            name="password"
                            type="password"
                            autocomplete="current-password"
                            required
                            aria-invalid=invalid
                            aria-describedby="login-error"
                        />
                        <span class="error" id="login-error" role="alert">{failed}</span>
                    </div>
                    <button class="button primary wide" type="submit">"Log in"</button>
                    <p class="note">"Times are UTC."</p>
                </form>
            </main>
        </div>
    }
}
