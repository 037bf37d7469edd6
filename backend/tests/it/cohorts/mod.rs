//! Cohorts up to approval, and every command's door.

mod doors;
mod drafts;
mod reviews;
pub(crate) mod ward;
