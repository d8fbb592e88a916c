//! The scheduler: from who reads and writes what to queues, slots and waits that cannot deadlock.
//!
//! Stages are payload only. Ordering belongs to the resources between them: a slot is not read
//! before it is written, and not written again before all have read it. [`plan`] derives from a
//! [`StageGraph`] the queues, the slots, the [`Edge`]s and the waits, proves that nothing waits for
//! itself, and says what limits the rate.
//!
//! ```
//! use std::time::Duration;
//! use warploom_core::{QueueClass, Space};
//! use warploom_sched::{Options, Resource, Stage, StageGraph, plan};
//!
//! let mut graph = StageGraph::new();
//! let staging = graph.resource(Resource::new("staging", Space::Pinned, 1 << 20));
//! let image = graph.resource(Resource::new("image", Space::Device, 1 << 20));
//! let ms = Duration::from_millis;
//! graph.stage(Stage::host("read").writes(staging).taking(ms(3)));
//! graph.stage(Stage::device("upload", QueueClass::Upload).reads(staging).writes(image).taking(ms(2)));
//! graph.stage(Stage::device("blur", QueueClass::Compute).updates(image).taking(ms(5)));
//! let plan = plan(&graph, &Options::default())?;
//! assert_eq!(plan.queues().len(), 2);
//! // The slower of the two that use the image sets the pace; two slots let the other overlap.
//! assert_eq!(plan.slots(image), 2);
//! assert_eq!(plan.period().map(|period| period.nanos()), Some(5e6));
//! # Ok::<(), warploom_sched::PlanError>(())
//! ```
#![forbid(unsafe_code)]

mod exec;
mod model;

pub use exec::*;
pub use model::*;
