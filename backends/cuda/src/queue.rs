//! Ordered work on a device: a stream, and what its calls need.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, MutexGuard};

use warploom_core::{
    Arg, Buffer, DeviceError, DeviceId, Event, Grid, Kernel, Param, Queue, QueueDesc, Result, Slice,
};

use crate::buffer::{CudaBuffer, Site, Uses, note};
use crate::device::Opened;
use crate::driver::Driver;
use crate::error::Status;
use crate::event::CudaEvent;
use crate::kernel::CudaKernel;
use crate::lane::{Keep, Lane};
use crate::staging::{HALF, Staging};

/// A queue of a CUDA device.
#[derive(Debug)]
pub(crate) struct CudaQueue {
    opened: Arc<Opened>,
    lane: Arc<Lane>,
    staging: Staging,
    label: String,
}

impl CudaQueue {
    pub(crate) fn new(opened: &Arc<Opened>, desc: &QueueDesc) -> Result<Self> {
        let lane = Lane::new(opened.context())?;
        opened.watch(&lane);
        Ok(Self {
            opened: Arc::clone(opened),
            lane,
            staging: Staging::default(),
            label: desc.label.clone(),
        })
    }

    fn device(&self) -> DeviceId {
        self.opened.context().id()
    }

    fn buffer<'a>(&self, slice: &'a Slice) -> Result<&'a CudaBuffer> {
        let buffer: &dyn Any = &**slice.buffer();
        buffer.downcast_ref().ok_or_else(|| {
            let what = format!("a buffer of {}", slice.buffer().device());
            DeviceError::unsupported(self.device(), what)
        })
    }

    /// Uploads without page-locked memory: the driver stages, and waiting frees the source.
    fn upload_unstaged(&mut self, src: &[u8], dst: &Slice, to: Site) -> Result<()> {
        let from = Site::Host(src.as_ptr().cast_mut());
        // SAFETY: `src` is borrowed until the stream has been waited for, below, whatever the
        // call answers; the copy only reads it.
        let copy =
            |driver: &Driver, stream| unsafe { transfer(driver, to, from, src.len(), stream) };
        let queued = self.lane.enqueue([keep_buffer(dst)], copy);
        let done = self.lane.sync();
        queued.and(done)
    }
}

/// One asynchronous copy, by where the bytes are.
///
/// # Safety
/// Both sites have `bytes` bytes, which stay allocated until the copy is done. A host site that is
/// written is not looked at before; one that is read is not changed before.
unsafe fn transfer(
    driver: &Driver,
    to: Site,
    from: Site,
    bytes: usize,
    stream: cudarc::driver::sys::CUstream,
) -> Status {
    match (to, from) {
        // SAFETY: as this function's own conditions, which are the driver's.
        (Site::Device(to), Site::Host(from)) => unsafe {
            driver.cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream)
        },
        // SAFETY: as above.
        (Site::Host(to), Site::Device(from)) => unsafe {
            driver.cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream)
        },
        // SAFETY: as above.
        (Site::Device(to), Site::Device(from)) => unsafe {
            driver.cuMemcpyDtoDAsync_v2(to, from, bytes, stream)
        },
        // Unified addressing: the driver knows pinned addresses as its own.
        // SAFETY: as above.
        (Site::Host(to), Site::Host(from)) => unsafe {
            driver.cuMemcpyAsync(address(to), address(from), bytes, stream)
        },
    }
}

/// A host address as the driver counts them.
fn address(host: *mut u8) -> u64 {
    host.expose_provenance() as u64
}

fn keep_buffer(slice: &Slice) -> Keep {
    Arc::clone(slice.buffer()) as Keep
}

fn size(slice: &Slice) -> usize {
    // A copy that fits no address space fits no buffer either; the driver refuses it.
    usize::try_from(slice.len()).unwrap_or(usize::MAX)
}

/// Takes the right to issue calls on both buffers, in one order for all threads, so that two
/// copies in opposite directions cannot hold each other's.
fn uses_of<'a>(a: &'a CudaBuffer, b: &'a CudaBuffer) -> [Option<MutexGuard<'a, Uses>>; 2] {
    if std::ptr::eq(a, b) {
        return [a.uses(), None];
    }
    let (first, second) = if std::ptr::from_ref(a) < std::ptr::from_ref(b) {
        (a, b)
    } else {
        (b, a)
    };
    let first = first.uses();
    [first, second.uses()]
}

/// The arguments of a launch in the form the driver reads: one word each, of which it takes as
/// many bytes as the kernel's parameter has.
fn words(args: &[Arg], queue: &CudaQueue) -> Result<Vec<u64>> {
    args.iter()
        .map(|arg| {
            Ok(match arg {
                Arg::Slice(slice) => match queue.buffer(slice)?.site(slice.start()) {
                    Site::Device(address) => address,
                    Site::Host(_) => {
                        let what = "kernels on pinned memory";
                        return Err(DeviceError::unsupported(queue.device(), what));
                    }
                },
                Arg::U32(value) => first_bytes(value.to_ne_bytes()),
                Arg::I32(value) => first_bytes(value.to_ne_bytes()),
                Arg::F32(value) => first_bytes(value.to_ne_bytes()),
                Arg::F64(value) => value.to_bits(),
                other => {
                    let what = format!("a kernel argument such as {other:?}");
                    return Err(DeviceError::unsupported(queue.device(), what));
                }
            })
        })
        .collect()
}

/// A word that starts with these bytes in memory, whatever the byte order.
fn first_bytes(bytes: [u8; 4]) -> u64 {
    let mut word = [0; 8];
    word[..4].copy_from_slice(&bytes);
    u64::from_ne_bytes(word)
}

impl Queue for CudaQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        let buffer = self.buffer(dst)?;
        if buffer.is_pinned() {
            // The host writes it itself, when all work before this is done.
            self.lane.sync()?;
            return buffer.with_host(&mut |bytes| bytes[dst.host_range()].copy_from_slice(src));
        }
        let mut at = dst.start();
        for piece in src.chunks(HALF) {
            let to = buffer.site(at);
            let staged = self.staging.put(self.opened.context(), &self.lane, piece)?;
            let Some(from) = staged else {
                let rest = usize::try_from(at - dst.start()).unwrap_or(src.len());
                return self.upload_unstaged(&src[rest..], dst, to);
            };
            let (from, memory) = (Site::Host(from.at.cast_mut()), from.memory);
            // SAFETY: the device side is inside `dst`, which the lane keeps; the staged bytes
            // stay in place until the copy is done, as `put` promises, because the lane keeps
            // their memory as well.
            let copy = |driver: &Driver, stream| unsafe {
                transfer(driver, to, from, piece.len(), stream)
            };
            self.lane.enqueue([keep_buffer(dst), memory], copy)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        let buffer = self.buffer(src)?;
        if buffer.is_pinned() {
            self.lane.sync()?;
            return buffer.with_host(&mut |bytes| dst.copy_from_slice(&bytes[src.host_range()]));
        }
        let (to, from) = (Site::Host(dst.as_mut_ptr()), buffer.site(src.start()));
        // SAFETY: `dst` is borrowed exclusively until the stream has been waited for, below,
        // whatever the call answers; the lane keeps the buffer.
        let copy =
            |driver: &Driver, stream| unsafe { transfer(driver, to, from, dst.len(), stream) };
        let queued = self.lane.enqueue([keep_buffer(src)], copy);
        let done = self.lane.sync();
        queued.and(done)
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        let (from, to) = (self.buffer(src)?, self.buffer(dst)?);
        let mut uses = uses_of(from, to);
        let (from, to) = (from.site(src.start()), to.site(dst.start()));
        // `CheckedQueue` compares the lengths; the shorter keeps a bare queue inside host memory.
        let bytes = size(src).min(size(dst));
        // SAFETY: both sides are inside their buffers, which the lane keeps; the host does not
        // look at pinned bytes while `uses` is locked, nor before the call noted there is done.
        let copy = |driver: &Driver, stream| unsafe { transfer(driver, to, from, bytes, stream) };
        let queued = self
            .lane
            .enqueue([keep_buffer(src), keep_buffer(dst)], copy);
        // Noted even when the call failed, for the reason that `enqueue` gives.
        let issued = self.lane.issued();
        for uses in uses.iter_mut().flatten() {
            note(uses, &self.lane, issued);
        }
        queued
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        let any: &dyn Any = &**kernel;
        let Some(cuda) = any.downcast_ref::<CudaKernel>() else {
            let what = format!("kernel `{}` of {}", kernel.name(), kernel.device());
            return Err(DeviceError::unsupported(self.device(), what));
        };
        let fits = |(param, arg): (&Param, &Arg)| param.scalar() == arg.dtype();
        if args.len() != cuda.params().len() || !cuda.params().iter().zip(args).all(fits) {
            // `CheckedQueue` says it better; here it keeps the driver from reading past the list,
            // and numbers from being taken for addresses.
            let what = format!("these {} arguments for `{}`", args.len(), cuda.name());
            return Err(DeviceError::unsupported(self.device(), what));
        }
        let mut words = words(args, self)?;
        let mut params: Vec<*mut c_void> = words
            .iter_mut()
            .map(|word| std::ptr::from_mut(word).cast())
            .collect();
        let buffers = args.iter().filter_map(|arg| match arg {
            Arg::Slice(slice) => Some(keep_buffer(slice)),
            _ => None,
        });
        let keep = buffers.chain([Arc::clone(kernel) as Keep]);
        let ([x, y, z], [bx, by, bz]) = (grid.groups, cuda.group());
        let function = cuda.function();
        let call = |driver: &Driver, stream| {
            // SAFETY: the function's module lives as long as the kernel, which the lane keeps, as
            // it does the buffers; `params` points to one word for each argument, which the
            // driver copies before it returns; that the arguments are those of the function and
            // that the code stays inside its slices was vouched for with the source.
            unsafe {
                driver.cuLaunchKernel(
                    function,
                    x,
                    y,
                    z,
                    bx,
                    by,
                    bz,
                    0,
                    stream,
                    params.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            }
        };
        self.opened.context().launching(cuda.shared_name());
        self.lane.enqueue(keep, call)
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        let base = self.opened.clock().base();
        let point = self.lane.mark()?;
        self.opened.clock().offer(&point);
        Ok(Arc::new(CudaEvent::new(point, base)))
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        let any: &dyn Any = &**event;
        let Some(cuda) = any.downcast_ref::<CudaEvent>() else {
            return event.wait(None);
        };
        let point = cuda.point();
        // SAFETY: the event is alive and the stream is the lane's; the driver allows events of
        // other devices.
        let call =
            |driver: &Driver, stream| unsafe { driver.cuStreamWaitEvent(stream, point.raw(), 0) };
        // The manual lets the event go at once; keeping it costs nothing.
        self.lane.enqueue([Arc::clone(point) as Keep], call)
    }
}

impl Drop for CudaQueue {
    fn drop(&mut self) {
        // Tried twice, because of what follows when it fails.
        let Err(error) = self.lane.sync().or_else(|_| self.lane.sync()) else {
            return;
        };
        tracing::debug!(queue = self.label, %error, "a queue ended with an error");
        if !matches!(error, DeviceError::Lost { .. }) {
            // Nobody knows whether its work is done, so nothing it uses may be freed. The lane is
            // left behind; what events prove to be done is still let go of when memory is short.
            std::mem::forget(Arc::clone(&self.lane));
        }
    }
}
