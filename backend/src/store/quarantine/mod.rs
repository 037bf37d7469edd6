//! What the vault holds, as people read it.

mod detail;
mod list;

pub use detail::*;
pub use list::*;
