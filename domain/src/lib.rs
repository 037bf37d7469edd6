//! Lazaret's rules and wire types: pure, without I/O, clock or runtime. Builds for wasm32.
//!
//! A rule is a function of facts that are handed in; where a fact is missing the answer is `unknown`,
//! and unknown never moves a message.

pub mod amqp;
pub mod api;
pub mod canary;
pub mod canonical;
pub mod cohort;
pub mod death;
pub mod decide;
pub mod draft;
pub mod eligibility;
pub mod fingerprint;
pub mod governor;
pub mod headers;
pub mod ids;
pub mod item;
pub mod keyed;
pub mod kind;
pub mod lease;
pub mod permissions;
pub mod plan;
pub mod preflight;
pub mod recheck;
pub mod refusal;
pub mod strip;
pub mod vocabulary;
