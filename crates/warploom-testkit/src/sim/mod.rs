//! A simulated device: virtual time, any order that events allow, memory that shows what was read
//! too early or written too soon.
//!
//! Nothing happens by itself: time passes when somebody waits. An operation takes as long as its
//! [`Pace`] says, or something random. While it runs, what it writes holds rubbish; half of what it
//! reads is read when it begins and half when it ends. So two operations on the same bytes that
//! overlap leave a trace in the bytes, and whether they overlap depends on the seed.
//!
//! ```
//! use warploom_core::{CheckedDevice, GpuBackend, Queue, QueueDesc, Slice};
//! use warploom_testkit::{FakeDevice, sim::Sim};
//!
//! let sim = Sim::new(FakeDevice::new("Simulated"), 7);
//! let device = CheckedDevice::new(sim.open(0)?);
//! let buffer = device.alloc(device.info().memory[0], 8)?;
//! let mut queue = device.queue(&QueueDesc::named("one"))?;
//! queue.upload(&[1; 8], &Slice::whole(&buffer))?;
//! let event = queue.record()?;
//! assert!(!event.is_done()?);
//! event.wait(None)?;
//! assert!(sim.now() > std::time::Duration::ZERO);
//! # Ok::<(), warploom_core::DeviceError>(())
//! ```
//!
//! [`Sim::scripted`] takes every decision from a script instead, and [`explore`] runs all of them.

mod backend;
mod buffer;
mod choice;
mod device;
mod engine;
mod event;
mod memory;
mod queue;

pub use backend::{Operation, Pace, Sim, SimBuilder};
pub use choice::{Script, explore};
pub use engine::{Lane, Stepped};
