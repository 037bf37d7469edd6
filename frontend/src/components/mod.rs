//! What pages are made of. Small pieces are functions; those with behaviour are components.

mod act;
mod dialog;
mod done;
mod held_list;
mod icon;
mod id;
mod json_fields;
mod loading;
mod number;
mod problem;
mod state;
mod when;

pub(crate) use act::{ActButton, Hydrated, use_hydrated};
pub(crate) use dialog::{ActDialog, Answered, Asked, Outcome, outcome};
pub(crate) use done::{Done, DoneLine};
pub(crate) use held_list::{HeldList, MoreRows, NewRows};
pub(crate) use icon::{Icon, icon, toned, wordmark};
pub(crate) use id::{copy, id_link};
pub(crate) use json_fields::{differences, fields_of};
pub(crate) use loading::{Beside, empty, loaded};
pub(crate) use number::{none, num, optional, reading, unknown};
pub(crate) use problem::{banner, problem_page, set_status};
pub(crate) use state::{Badge, state, tag};
pub(crate) use when::{ago, when, when_ago};

use leptos::prelude::*;

/// One line of `.facts`.
pub(crate) fn fact(name: &'static str, value: impl IntoView) -> AnyView {
    view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.into_any()
}
