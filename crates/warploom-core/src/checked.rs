//! The one place where calls are validated, so that backends need not.
//!
//! [`CheckedDevice`] and [`CheckedQueue`] wrap what a backend gave and refuse every call that could
//! never have worked, with numbers. A check found inside a backend is a misplaced check.

use std::sync::Arc;

use crate::buffer::{Buffer, Slice};
use crate::device::{Device, DeviceId, DeviceInfo, Limits};
use crate::dtype::DType;
use crate::error::{Result, UsageError, arg_text};
use crate::event::Event;
use crate::kernel::{Kernel, KernelSource, Param};
use crate::memory::{MemoryKind, MemoryUse};
use crate::queue::{Arg, Grid, Queue, QueueDesc};

/// An opened device whose every call is checked. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CheckedDevice {
    device: Arc<dyn Device>,
}

impl CheckedDevice {
    /// Puts checks in front of `device`.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self { device }
    }

    /// The bare device, for code that has checked already.
    pub fn bare(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// What is known about it.
    pub fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// Memory now.
    pub fn memory(&self) -> Result<MemoryUse> {
        self.device.memory()
    }

    /// Allocates `bytes` of `kind`; the content is unspecified.
    pub fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        let info = self.info();
        let device = info.id;
        if !info.memory.contains(&kind) {
            return Err(UsageError::Kind {
                device,
                kind,
                has: info.memory.clone(),
            }
            .into());
        }
        let limit = info.limits.max_alloc;
        if bytes == 0 || bytes > limit {
            return Err(UsageError::Size {
                device,
                kind,
                bytes,
                limit,
            }
            .into());
        }
        self.device.alloc(kind, bytes)
    }

    /// Makes a queue.
    pub fn queue(&self, desc: &QueueDesc) -> Result<CheckedQueue> {
        Ok(CheckedQueue::new(self.device.queue(desc)?, self.info()))
    }

    /// Compiles a kernel.
    pub fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        let info = self.info();
        let (device, kernel) = (info.id, || source.name().to_owned());
        if !info.languages.contains(&source.language()) {
            return Err(UsageError::Language {
                kernel: kernel(),
                language: source.language(),
                takes: info.languages.clone(),
                device,
            }
            .into());
        }
        let mut scalars = source.params().iter().filter_map(|param| param.scalar());
        let passable =
            |dtype: &DType| matches!(dtype, DType::U32 | DType::I32 | DType::F32 | DType::F64);
        if let Some(dtype) = scalars.find(|dtype| !passable(dtype)) {
            return Err(UsageError::Scalar {
                kernel: kernel(),
                dtype,
            }
            .into());
        }
        let slices = source.params().iter().filter(|p| p.is_slice()).count();
        let limit = info.limits.max_slices;
        if slices > limit as usize {
            return Err(UsageError::Slices {
                kernel: kernel(),
                slices,
                limit,
                device,
            }
            .into());
        }
        let (group, limits) = (source.group(), info.limits);
        let items = group.iter().map(|n| u64::from(*n)).product::<u64>();
        let each = (0..3).all(|axis| (1..=limits.max_group[axis]).contains(&group[axis]));
        if !each || items > u64::from(limits.max_group_items) {
            return Err(UsageError::Group {
                kernel: kernel(),
                group,
                limit: limits.max_group,
                items: limits.max_group_items,
                device,
            }
            .into());
        }
        self.device.kernel(source)
    }
}

/// A queue whose every call is checked.
#[derive(Debug)]
pub struct CheckedQueue {
    queue: Box<dyn Queue>,
    device: DeviceId,
    limits: Limits,
}

impl CheckedQueue {
    /// Puts checks in front of `queue`, a queue of the device with this `info`.
    pub fn new(queue: Box<dyn Queue>, info: &DeviceInfo) -> Self {
        Self {
            queue,
            device: info.id,
            limits: info.limits,
        }
    }

    /// The same with something between the checks and the queue: it sees every call that passed them.
    #[must_use]
    pub fn through(self, layer: impl FnOnce(Box<dyn Queue>) -> Box<dyn Queue>) -> Self {
        Self {
            queue: layer(self.queue),
            ..self
        }
    }

    /// The device it belongs to.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    fn own(&self, call: &'static str, thing: &'static str, owner: DeviceId) -> Result<()> {
        if owner == self.device {
            return Ok(());
        }
        Err(UsageError::Foreign {
            call,
            device: self.device,
            thing,
            owner,
        }
        .into())
    }

    fn slice(&self, call: &'static str, slice: &Slice, given: usize) -> Result<()> {
        self.own(call, "buffer", slice.buffer().device())?;
        if slice.len() == given as u64 {
            return Ok(());
        }
        let (device, given) = (self.device, given as u64);
        Err(UsageError::Length {
            call,
            device,
            given,
            slice: slice.len(),
        }
        .into())
    }

    fn args(&self, kernel: &dyn Kernel, args: &[Arg]) -> Result<(), UsageError> {
        let params = kernel.params();
        if params.len() != args.len() {
            return Err(UsageError::ArgCount {
                kernel: kernel.name().to_owned(),
                wanted: params.len(),
                given: args.len(),
            });
        }
        for (index, (param, arg)) in params.iter().zip(args).enumerate() {
            match (param, arg) {
                (Param::Count { element }, Arg::U32(count)) => {
                    counted(kernel, index, u64::from(*count), u64::from(*element), args)?;
                }
                (Param::Scalar(dtype), _) if arg.dtype() == Some(*dtype) => {}
                (Param::Read | Param::Write | Param::ReadWrite, Arg::Slice(slice)) => {
                    self.slice_arg(kernel, index, slice)?;
                }
                _ => {
                    return Err(UsageError::ArgType {
                        kernel: kernel.name().to_owned(),
                        index,
                        wanted: *param,
                        given: arg_text(arg.dtype()),
                    });
                }
            }
        }
        aliases(kernel, args)
    }

    fn slice_arg(
        &self,
        kernel: &dyn Kernel,
        index: usize,
        slice: &Slice,
    ) -> Result<(), UsageError> {
        let (device, name) = (self.device, || kernel.name().to_owned());
        let owner = slice.buffer().device();
        if owner != device {
            return Err(UsageError::Foreign {
                call: "launch",
                device,
                thing: "buffer",
                owner,
            });
        }
        let kind = slice.buffer().kind();
        if !kind.space().kernel_visible() {
            return Err(UsageError::ArgMemory {
                kernel: name(),
                index,
                kind,
                device,
            });
        }
        let align = self.limits.slice_align;
        if !slice.start().is_multiple_of(u64::from(align)) {
            let start = slice.start();
            return Err(UsageError::ArgAlign {
                kernel: name(),
                index,
                start,
                align,
                device,
            });
        }
        let (bytes, limit) = (slice.len(), self.limits.max_binding);
        if bytes > limit {
            return Err(UsageError::ArgSize {
                kernel: name(),
                index,
                bytes,
                limit,
                device,
            });
        }
        Ok(())
    }
}

/// A count is covered by every slice of the launch.
fn counted(
    kernel: &dyn Kernel,
    index: usize,
    count: u64,
    element: u64,
    args: &[Arg],
) -> Result<(), UsageError> {
    let lengths = args.iter().filter_map(|arg| match arg {
        Arg::Slice(slice) => Some(slice.len()),
        _ => None,
    });
    let holds = lengths.min().unwrap_or(0) / element.max(1);
    if count <= holds {
        return Ok(());
    }
    Err(UsageError::ArgCounted {
        kernel: kernel.name().to_owned(),
        index,
        count,
        holds,
    })
}

/// No slice that is written shares a byte with another argument. WGSL forbids it, `restrict` in
/// generated C assumes it, and the CPU backend hands out Rust slices.
fn aliases(kernel: &dyn Kernel, args: &[Arg]) -> Result<(), UsageError> {
    for (written, arg) in args.iter().enumerate() {
        let Arg::Slice(slice) = arg else { continue };
        if !kernel.params()[written].is_written() {
            continue;
        }
        let shares = |(other, arg): (usize, &Arg)| match arg {
            Arg::Slice(second) if other != written && slice.overlaps(second) => Some(other),
            _ => None,
        };
        if let Some(other) = args.iter().enumerate().find_map(shares) {
            let kernel = kernel.name().to_owned();
            return Err(UsageError::ArgAlias {
                kernel,
                written,
                other,
            });
        }
    }
    Ok(())
}

#[deny(clippy::missing_trait_methods)]
impl Queue for CheckedQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        self.slice("upload", dst, src.len())?;
        self.queue.upload(src, dst)
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        self.slice("download", src, dst.len())?;
        self.queue.download(src, dst)
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        self.own("copy", "buffer", src.buffer().device())?;
        self.own("copy", "buffer", dst.buffer().device())?;
        let device = self.device;
        if src.len() != dst.len() {
            let (given, slice) = (src.len(), dst.len());
            return Err(UsageError::Length {
                call: "copy",
                device,
                given,
                slice,
            }
            .into());
        }
        if src.overlaps(dst) {
            let (src, dst) = (src.range(), dst.range());
            return Err(UsageError::Overlap { device, src, dst }.into());
        }
        self.queue.copy(src, dst)
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        self.own("launch", "kernel", kernel.device())?;
        let limit = self.limits.max_groups;
        if !(0..3).all(|axis| (1..=limit[axis]).contains(&grid.groups[axis])) {
            let (kernel, groups) = (kernel.name().to_owned(), grid.groups);
            return Err(UsageError::Grid {
                kernel,
                groups,
                limit,
                device: self.device,
            }
            .into());
        }
        self.args(&**kernel, args)?;
        self.queue.launch(kernel, grid, args)
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        self.queue.record()
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        self.queue.wait(event)
    }
}
