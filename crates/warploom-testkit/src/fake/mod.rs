//! A backend of scripted devices.
//!
//! Its memory is the host's and its kernels are Rust functions, so everything above the seam runs
//! on it. What makes it useful is what it is told:
//!
//! ```
//! use std::sync::Arc;
//! use warploom_core::{DeviceError, GpuBackend};
//! use warploom_testkit::{FakeBackend, FakeDevice, fake::Call};
//!
//! let fakes = FakeBackend::new("fake").device(
//!     FakeDevice::new("Fake 1000")
//!         .memory(8 << 30)
//!         .pci("0000:41:00.0")
//!         .fail(Call::Alloc, 2, |id| DeviceError::driver(id, "alloc", "on purpose")),
//! );
//! let device = fakes.open(0)?;
//! let kind = device.info().memory[0];
//! assert!(device.alloc(kind, 1 << 10).is_ok());
//! assert!(device.alloc(kind, 1 << 10).is_err());
//! assert_eq!(fakes.calls(0, Call::Alloc), 2);
//! # Ok::<(), DeviceError>(())
//! ```
//!
//! It is as lazy as the contract allows: work starts only when it is submitted, each queue has a
//! thread of its own, and fresh memory holds rubbish. A program that forgets a `record` or an
//! event fails on it. [`FakeDevice::at_once`] is the opposite: every call is done when it returns.

mod backend;
mod buffer;
mod card;
mod device;
mod event;
mod fault;
mod flaw;
mod lane;
mod queue;

pub use backend::{FakeBackend, Probe};
pub(crate) use card::Card;
pub use card::FakeDevice;
pub use fault::Call;
pub(crate) use fault::Fate;
pub use flaw::Flaw;
