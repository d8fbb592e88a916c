//! Building blocks for backends whose memory is the host's: the CPU, fakes, and your first one.

mod call;
mod heap;
mod kernel;

use std::time::Duration;

use crate::error::Result;
use crate::event::Event;

pub use call::{HostArg, HostCall, HostFn, run_caught};
pub use heap::{HostBuffer, HostHeap, copy_now};
pub use kernel::FnKernel;

/// An event that was reached when it was made, at the given time.
#[derive(Clone, Copy, Debug)]
pub struct Ready(pub Duration);

impl Event for Ready {
    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }
    fn wait(&self, _timeout: Option<Duration>) -> Result<()> {
        Ok(())
    }
    fn at(&self) -> Option<Duration> {
        Some(self.0)
    }
}
