//! A launch as a host kernel sees it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::device::DeviceId;
use crate::dtype::Element;
use crate::error::{DeviceError, Result};
use crate::queue::{Arg, Grid};

/// A kernel written in Rust. It runs once per launch and sees the whole grid; to use many cores it
/// splits its slices with rayon, which runs on the backend's own threads.
#[derive(Clone)]
pub struct HostFn(pub(crate) Arc<dyn Fn(&mut HostCall<'_>) + Send + Sync>);

impl HostFn {
    /// Runs the kernel.
    pub fn call(&self, call: &mut HostCall<'_>) {
        (self.0)(call);
    }
}

impl fmt::Debug for HostFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFn")
    }
}

/// One argument as a host kernel sees it.
#[non_exhaustive]
pub enum HostArg<'a> {
    /// Memory it may read.
    Read(&'a [u8]),
    /// Memory it may read and write.
    Write(&'a mut [u8]),
    /// A number.
    Scalar(Arg),
}

impl fmt::Debug for HostArg<'_> {
    /// The length and not the bytes, of which there may be billions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(bytes) => write!(f, "{} bytes to read", bytes.len()),
            Self::Write(bytes) => write!(f, "{} bytes to write", bytes.len()),
            Self::Scalar(arg) => arg.fmt(f),
        }
    }
}

/// One launch as a host kernel sees it.
#[derive(Debug)]
pub struct HostCall<'a> {
    grid: Grid,
    args: Vec<HostArg<'a>>,
}

impl<'a> HostCall<'a> {
    /// A launch over `args`.
    pub fn new(grid: Grid, args: Vec<HostArg<'a>>) -> Self {
        Self { grid, args }
    }

    /// How many work groups were asked for.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The elements of a slice the kernel reads.
    ///
    /// # Panics
    /// When argument `index` is not such a slice or is not aligned for `T`; the backend turns a
    /// kernel's panic into an error.
    pub fn read<T: Element>(&self, index: usize) -> &'a [T] {
        match self.args.get(index) {
            Some(HostArg::Read(bytes)) => bytemuck::cast_slice(bytes),
            other => panic!("argument {index} is not a slice that is only read: {other:?}"),
        }
    }

    /// The elements of a slice the kernel writes. Takes it out of the call, so that several can be
    /// held at once.
    ///
    /// # Panics
    /// As [`read`](Self::read), and when the argument was taken before.
    pub fn write<T: Element>(&mut self, index: usize) -> &'a mut [T] {
        match self.args.get_mut(index) {
            // A slice that was never taken is never empty.
            Some(HostArg::Write([])) => {
                panic!("argument {index} was taken already");
            }
            Some(HostArg::Write(bytes)) => bytemuck::cast_slice_mut(std::mem::take(bytes)),
            other => panic!("argument {index} is not a slice to write: {other:?}"),
        }
    }

    /// A number.
    ///
    /// # Panics
    /// When argument `index` is not a number of this type.
    pub fn scalar<T: Element>(&self, index: usize) -> T {
        let bytes: &[u8] = match self.args.get(index) {
            Some(HostArg::Scalar(arg)) if arg.dtype() == Some(T::DTYPE) => match arg {
                Arg::U32(value) => bytemuck::bytes_of(value),
                Arg::I32(value) => bytemuck::bytes_of(value),
                Arg::F32(value) => bytemuck::bytes_of(value),
                Arg::F64(value) => bytemuck::bytes_of(value),
                Arg::Slice(_) => unreachable!("a slice has no dtype"),
            },
            other => panic!("argument {index} is not a {}: {other:?}", T::DTYPE),
        };
        bytemuck::pod_read_unaligned(bytes)
    }
}

/// Runs a host kernel, turning a panic into an error of `device`.
pub fn run_caught(
    device: DeviceId,
    name: &str,
    run: &HostFn,
    call: &mut HostCall<'_>,
) -> Result<()> {
    catch_unwind(AssertUnwindSafe(|| run.call(call))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = format!("the kernel panicked: {}", text.unwrap_or("no message"));
        DeviceError::driver(device, name, text)
    })
}
