//! In-order command queues.

use std::sync::Arc;

use warploom_core::memory::OPENCL_DEVICE;
use warploom_core::{
    Arg, Buffer, DeviceError, Event, Grid, Kernel, Queue, QueueDesc, Result, Slice,
};

use crate::buffer::{OpenClBuffer, enqueue};
use crate::cl;
use crate::device::Opened;
use crate::error::{Driven, Failure};
use crate::event::OpenClEvent;
use crate::kernel::{Bound, Number, OpenClKernel};

/// A command queue with one owner.
///
/// Copies go through whole buffers, kernels through sub-buffers. The specification wants no two
/// commands to run at once on a buffer and on a part of it, for the sake of contexts whose devices
/// each have a copy; ours have one device and one copy.
#[derive(Debug)]
pub(crate) struct OpenClQueue {
    opened: Arc<Opened>,
    queue: Arc<cl::Queue>,
    /// Shown by `Debug`, nowhere else: OpenCL has no names for queues.
    #[expect(dead_code, reason = "read by the derived Debug")]
    desc: QueueDesc,
    /// Sub-buffers of the launch under way; kept here so that launches do not allocate.
    parts: Vec<Arc<cl::Mem>>,
    /// The end of the last launch, if nothing came after it: in a queue that works in order it stands for
    /// all before it, and a marker would be one more command.
    last: Option<cl::Event>,
}

impl OpenClQueue {
    pub(crate) fn create(opened: Arc<Opened>, desc: &QueueDesc) -> Driven<Self> {
        Ok(Self {
            queue: Arc::new(cl::Queue::create(&opened.context, opened.device)?),
            opened,
            desc: desc.clone(),
            parts: Vec::new(),
            last: None,
        })
    }

    fn buffer<'s>(&self, slice: &'s Slice) -> Result<&'s OpenClBuffer> {
        OpenClBuffer::of(slice.buffer(), &self.opened)
    }

    fn on(&self, failure: Failure) -> DeviceError {
        failure.on(self.opened.id)
    }

    /// Sets argument `index`, or says what is wrong with it.
    fn set_arg(&mut self, kernel: &mut Bound, index: u32, arg: &Arg) -> Result<()> {
        let set = match arg {
            Arg::Slice(slice) => {
                let buffer = self.buffer(slice)?;
                if buffer.is_pinned() {
                    // The host may be looking at it, and a kernel must not write under its eyes.
                    let what = format!("{} as a kernel argument", buffer.kind());
                    return Err(DeviceError::unsupported(self.opened.id, what));
                }
                buffer
                    .part(slice.start(), slice.len())
                    .and_then(|part| match part {
                        None => kernel.kernel.set_mem(index, buffer.mem()),
                        Some(part) => {
                            let set = kernel.kernel.set_mem(index, &part);
                            self.parts.push(part);
                            set
                        }
                    })
            }
            Arg::U32(value) => kernel.set_number(index, Number::Four(value.to_ne_bytes())),
            Arg::I32(value) => kernel.set_number(index, Number::Four(value.to_ne_bytes())),
            Arg::F32(value) => kernel.set_number(index, Number::Four(value.to_ne_bytes())),
            Arg::F64(value) => kernel.set_number(index, Number::Eight(value.to_ne_bytes())),
            other => {
                let what = format!("argument {index} of a sort it does not know: {other:?}");
                return Err(DeviceError::unsupported(self.opened.id, what));
            }
        };
        set.map_err(|failure| self.on(failure))
    }

    fn run(&mut self, kernel: &OpenClKernel, grid: Grid, args: &[Arg]) -> Result<()> {
        let fits = kernel.params().len() == args.len()
            && std::iter::zip(kernel.params(), args)
                .all(|(param, arg)| param.is_slice() == matches!(arg, Arg::Slice(_)));
        if !fits {
            // Callers check this. But a number taken for a buffer, or a buffer left over from the
            // last launch, would make the driver follow a wild pointer.
            let what = format!("kernel `{}` with arguments of other sorts", kernel.name());
            return Err(DeviceError::unsupported(self.opened.id, what));
        }
        let local = kernel.group().map(|items| items as usize);
        let mut global = local;
        for (all, groups) in global.iter_mut().zip(grid.groups) {
            *all = all.saturating_mul(groups as usize);
        }
        let mut code = kernel.lock();
        for (index, arg) in (0..).zip(args) {
            self.set_arg(&mut code, index, arg)?;
        }
        // SAFETY: the source's author vouched that with arguments that fit its declaration, checked
        // above and by the runtime, the code touches only them; the buffers are alive, because
        // `args` and `self.parts` hold them and the runtime keeps them from here on.
        let launched = unsafe { self.queue.run(&mut code.kernel, global, local) };
        let launched = launched.map(|event| self.last = Some(event));
        launched.map_err(|failure| {
            let bytes = args.iter().map(|arg| match arg {
                Arg::Slice(slice) => slice.buffer().bytes(),
                _ => 0,
            });
            failure.using(self.opened.id, OPENCL_DEVICE, bytes.sum())
        })
    }
}

impl Queue for OpenClQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        self.last = None;
        let buffer = self.buffer(dst)?;
        enqueue(&self.queue, [buffer; 2], || {
            self.queue.write(buffer.mem(), dst.start(), src)
        })
        .map_err(|failure| failure.using(self.opened.id, buffer.kind(), buffer.bytes()))
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        self.last = None;
        let buffer = self.buffer(src)?;
        enqueue(&self.queue, [buffer; 2], || {
            self.queue.read(buffer.mem(), src.start(), dst)
        })
        .map_err(|failure| failure.using(self.opened.id, buffer.kind(), buffer.bytes()))
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        self.last = None;
        let (from, to) = (self.buffer(src)?, self.buffer(dst)?);
        enqueue(&self.queue, [from, to], || {
            let (from, to) = ((from.mem(), src.start()), (to.mem(), dst.start()));
            self.queue.copy(from, to, src.len())
        })
        .map_err(|failure| failure.using(self.opened.id, to.kind(), to.bytes()))
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        let kernel = OpenClKernel::of(&**kernel, &self.opened)?;
        let launched = self.run(kernel, grid, args);
        self.parts.clear();
        launched
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        let marker = match self.last.take() {
            Some(last) => last,
            None => self.queue.marker().map_err(|failure| self.on(failure))?,
        };
        self.queue.flush().map_err(|failure| self.on(failure))?;
        Ok(Arc::new(OpenClEvent::new(Arc::clone(&self.opened), marker)))
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        let Some(marker) = OpenClEvent::of(&**event, &self.opened) else {
            // The host will sleep; what is queued so far may as well run.
            self.queue.flush().map_err(|failure| self.on(failure))?;
            return event.wait(None);
        };
        // That work before it has failed is better told now than by whatever comes later.
        event.is_done()?;
        self.last = None;
        // Its queue was flushed when it was recorded, so it will come. The barrier is needed even
        // when it has come: it is what makes the bytes visible to this queue.
        let barrier = self.queue.barrier(marker);
        barrier.map(drop).map_err(|failure| self.on(failure))
    }
}

impl Drop for OpenClQueue {
    fn drop(&mut self) {
        // A release submits too; but a visitor of a pinned buffer may hold the queue for a moment.
        if let Err(failure) = self.queue.flush() {
            tracing::debug!(call = failure.call, %failure, "the last commands may not run");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_failed_is_not_queued_behind() {
        let Some(opened) = Opened::first() else {
            return;
        };
        let event = cl::Event::by_hand(&opened.context);
        event.end(-5);
        let event: Arc<dyn Event> = Arc::new(OpenClEvent::new(Arc::clone(&opened), event));
        let mut queue = OpenClQueue::create(opened, &QueueDesc::default()).unwrap();
        assert!(queue.wait(&event).is_err());
        queue.record().unwrap().wait(None).unwrap();
    }

    // That work behind an event fails with it cannot be tried here: `PoCL` 3.1 aborts the process
    // when an event fails that commands wait for.
    #[test]
    fn the_device_waits_for_an_event_and_the_host_does_not() {
        // A device that works on the caller's thread cannot wait for what the caller does next.
        let Some(opened) = Opened::first_with(warploom_core::Caps::CONCURRENT_QUEUES) else {
            return;
        };
        let cause = Arc::new(OpenClEvent::new(
            Arc::clone(&opened),
            cl::Event::by_hand(&opened.context),
        ));
        let mut queue = OpenClQueue::create(opened, &QueueDesc::default()).unwrap();
        let event: Arc<dyn Event> = Arc::<OpenClEvent>::clone(&cause);
        queue.wait(&event).unwrap();
        let behind = queue.record().unwrap();
        assert!(!behind.is_done().unwrap());
        cause.end(0);
        let soon = Some(std::time::Duration::from_mins(1));
        behind.wait(soon).unwrap();
    }
}
