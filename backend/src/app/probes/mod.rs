//! Probes: asking for a job's durable effect.

pub mod run;
