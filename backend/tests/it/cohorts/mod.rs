//! Cohorts up to approval, and every command's door.

mod doors;
mod drafts;
mod reviews;
mod ward;
