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
//!
//! A [`Pipeline`] runs a plan on any device. Stages get their payloads, which see leases on slots
//! during their turn and nothing else:
//!
//! ```
//! use warploom_core::{CheckedDevice, GpuBackend, QueueClass, Space};
//! use warploom_sched::{
//!     Options, Payloads, Pipeline, Resource, RunOptions, Stage, StageGraph, Threads, plan,
//! };
//! # use warploom_testkit::{FakeBackend, FakeDevice};
//! # let backend = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
//! let device = CheckedDevice::new(backend.open(0)?);
//!
//! let mut graph = StageGraph::new();
//! let input = graph.resource(Resource::new("input", Space::Pinned, 1024));
//! let image = graph.resource(Resource::new("image", Space::Device, 1024));
//! let output = graph.resource(Resource::new("output", Space::Pinned, 1024));
//! let read = graph.stage(Stage::host("read").writes(input));
//! let up = graph.stage(Stage::device("up", QueueClass::Upload).reads(input).writes(image));
//! let down = graph.stage(Stage::device("down", QueueClass::Download).reads(image).writes(output));
//! let write = graph.stage(Stage::host("write").reads(output));
//!
//! let payloads = Payloads::new()
//!     .host(read, move |turn| {
//!         let number = turn.batch().first.to_le_bytes()[0];
//!         turn.write(input, |bytes| bytes.fill(number))
//!     })
//!     .device(up, move |turn| {
//!         let (from, to) = (turn.read(input)?, turn.write(image)?);
//!         turn.copy(&from, &to)
//!     })
//!     .device(down, move |turn| {
//!         let (from, to) = (turn.read(image)?, turn.write(output)?);
//!         turn.copy(&from, &to)
//!     })
//!     .host(write, move |turn| {
//!         let number = turn.batch().first.to_le_bytes()[0];
//!         turn.read(output, |bytes| assert_eq!(bytes, [number; 1024]))
//!     });
//!
//! let plan = plan(&graph, &Options::default())?;
//! let options = RunOptions::of(100, 4);
//! let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
//! assert_eq!(pipeline.run()?.generations, 25);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What types prove, and what they do not
//! A lease does not outlive its turn, reading leases cannot be written, and what is held goes back
//! exactly once, on errors and panics too. When a *device* is done with a slot no type can tell:
//! that is what edges are for, and the race detector ([`RunOptions::check_races`]) looks at every
//! use of every slot.
//!
//! # What a failure leaves
//! Everything before the failed generation is finished and delivered, everything that was enqueued
//! is waited for, nothing else is begun, and the first error stays. So whoever makes a claim about
//! the whole (an index, a shape) makes it when [`Pipeline::run`] says that all is well, and not
//! before.
#![forbid(unsafe_code)]

mod exec;
mod model;

pub use exec::*;
pub use model::*;
