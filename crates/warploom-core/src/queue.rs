//! Ordered work on a device.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::buffer::Slice;
use crate::dtype::DType;
use crate::error::Result;
use crate::event::Event;
use crate::kernel::Kernel;

/// What a queue is for. A hint: backends with one hardware queue ignore it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct QueueDesc {
    /// Shown in traces.
    pub label: String,
    /// The sort of work it will carry.
    pub class: QueueClass,
    /// How many threads its kernels may use, on a device whose kernels are threads'; 0 is all of them.
    pub threads: u32,
}

impl QueueDesc {
    /// A queue called `label` for any work.
    pub fn named(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            class: QueueClass::default(),
            threads: 0,
        }
    }

    /// The same for one sort of work.
    #[must_use]
    pub fn with_class(self, class: QueueClass) -> Self {
        Self { class, ..self }
    }

    /// The same with kernels on so many threads at most; 0 is all of them. Queues with a part each do not
    /// wait for each other's threads.
    #[must_use]
    pub fn with_threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }
}

/// The sort of work a queue carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum QueueClass {
    /// Kernels, and anything else.
    #[default]
    Compute,
    /// Copies towards the device.
    Upload,
    /// Copies towards the host.
    Download,
}

/// How many work groups a launch has; the size of one is the kernel's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Grid {
    /// Work groups in x, y, z.
    pub groups: [u32; 3],
}

impl Grid {
    /// Exactly these work groups.
    pub const fn groups(groups: [u32; 3]) -> Self {
        Self { groups }
    }

    /// The fewest groups of `group` items that cover `items` in each dimension. Saturates; a
    /// count above a device's limit is refused at launch.
    pub fn cover(items: [u64; 3], group: [u32; 3]) -> Self {
        let mut groups = [0; 3];
        for axis in 0..3 {
            let count = items[axis].div_ceil(u64::from(group[axis].max(1)));
            groups[axis] = u32::try_from(count).unwrap_or(u32::MAX);
        }
        Self { groups }
    }
}

/// A kernel argument.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// Memory.
    Slice(Slice),
    /// A number.
    U32(u32),
    /// A number.
    I32(i32),
    /// A number.
    F32(f32),
    /// A number; not every device takes it.
    F64(f64),
}

impl Arg {
    /// The number's type, or `None` for memory.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Self::Slice(_) => None,
            Self::U32(_) => Some(DType::U32),
            Self::I32(_) => Some(DType::I32),
            Self::F32(_) => Some(DType::F32),
            Self::F64(_) => Some(DType::F64),
        }
    }
}

macro_rules! arg_from {
    ($($variant:ident($type:ty)),*) => {$(
        impl From<$type> for Arg {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}
arg_from!(Slice(Slice), U32(u32), I32(i32), F32(f32), F64(f64));

/// Ordered work on a device, with one owner.
///
/// Calls on one queue take effect in order. Order between queues exists only through events.
/// Accesses that no event orders may see stale or mixed bytes, never undefined behaviour.
///
/// # After a failure
/// - A *call* that answers an error was not queued. What was queued before it is as it was; a refused
///   call ([`UsageError`](crate::UsageError)) leaves the queue as usable as before.
/// - When queued *work* fails, what this queue did before it stays done. Every event recorded
///   after it on this queue is that error, for good. Later work of this queue may or may not run,
///   what it writes means nothing, and later calls may answer the error at once: such a queue is
///   not repaired but dropped, which ends in time like any drop.
/// - Other queues, and queues made later, are not harmed, unless the error says that the device is
///   lost.
/// - A queue that waits for an event that failed never hangs over it. Whether `wait` refuses, or
///   later work fails with it, or runs on whatever bytes are there, is not said: not every driver
///   passes failures on. So whoever hands out a result asks the events of all work that
///   it came from, and not of the last alone.
pub trait Queue: Any + fmt::Debug + Send {
    /// Writes `src`; it is free for reuse on return. Any byte offset and length is allowed.
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()>;

    /// Reads into `dst`; it is full on return, after all earlier work of this queue.
    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()>;

    /// Copies between buffers of this device, pinned ones included, without blocking the host.
    /// Any byte offset and length is allowed.
    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()>;

    /// Runs a kernel, without blocking the host.
    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()>;

    /// Marks this point and submits everything before it. Work that is never followed by a
    /// `record`, a `download` or the queue's drop may never start.
    fn record(&mut self) -> Result<Arc<dyn Event>>;

    /// Later work on this queue starts after `event`. An event of the same backend is waited for
    /// by the device, any other by the host.
    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()>;
}
