//! Pipelines in, plans or refusals out, on machines that are only described.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod ancestor;
mod assignment;
mod batch;
mod calibration;
mod check;
mod fallback;
mod fuzz;
mod host;
mod in_place;
mod judge;
mod language;
mod machine;
mod memory;
mod messages;
mod params;
mod patterns;
mod placement_refusals;
mod plans;
mod refusals;
mod settings;
mod steady;
mod texts;
mod tiles;
mod values;
