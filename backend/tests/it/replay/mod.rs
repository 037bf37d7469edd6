//! Replays on the real broker: what goes out, what is proved, and what never happens twice.

mod afterwards;
mod canaries;
mod expansions;
mod fences;
mod publishing;
mod rig;
mod takeovers;
