//! Points in queues.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use crate::error::Result;

/// A point in a queue: done when everything submitted before it is done.
pub trait Event: Any + fmt::Debug + Send + Sync {
    /// Is it reached? Never blocks.
    ///
    /// # Errors
    /// When the work before it failed; then it stays an error.
    fn is_done(&self) -> Result<bool>;

    /// Blocks the host until it is reached, at most `timeout`.
    ///
    /// # Errors
    /// [`DeviceError::Timeout`](crate::DeviceError::Timeout) when the time is up (the work goes
    /// on and the event stays usable), or the failure of the work before it.
    fn wait(&self, timeout: Option<Duration>) -> Result<()>;

    /// When it was reached, on the device's own clock; `None` before that, or without a clock.
    /// Only differences between events of one opened device mean anything.
    fn at(&self) -> Option<Duration>;
}
