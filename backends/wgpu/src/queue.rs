//! Queues: they take calls apart and record them.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use warploom_core::{Arg, Buffer, DeviceError, Event, Grid, Kernel, Queue, Result, Slice};

use crate::buffer::{Memory, WgpuBuffer};
use crate::chunk::{Chunk, LARGE};
use crate::context::Context;
use crate::event::WgpuEvent;
use crate::kernel::WgpuKernel;
use crate::recorder::Recorder;
use crate::transfer::WORD;

#[derive(Debug)]
pub(crate) struct WgpuQueue {
    recorder: Arc<Recorder>,
}

impl WgpuQueue {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        let recorder = Recorder::new(context);
        Self { recorder }
    }

    fn context(&self) -> &Context {
        &self.recorder.context
    }

    /// The memory of a buffer, if it is of this opened device. `CheckedQueue` cannot tell two
    /// openings of one device apart, and wgpu would drop the whole command list over a stranger.
    fn memory<'s>(&self, slice: &'s Slice) -> Result<&'s Arc<Memory>> {
        let buffer: &dyn Buffer = &**slice.buffer();
        let ours = (buffer as &dyn Any).downcast_ref::<WgpuBuffer>();
        match ours {
            Some(ours) if ours.memory.context.id == self.context().id => Ok(&ours.memory),
            _ => Err(self.stranger("buffer")),
        }
    }

    fn stranger(&self, thing: &str) -> DeviceError {
        let what = format!("a {thing} that this opened device did not make");
        DeviceError::unsupported(self.context().info.id, what)
    }
}

impl Queue for WgpuQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        let memory = self.memory(dst)?;
        let mut line = self.recorder.begin()?;
        self.recorder.upload(&mut line, src, memory, dst.start())
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        let memory = self.memory(src)?;
        // Some pieces at a time, so that the device fills one while the host empties another.
        let mut pieces: VecDeque<(Arc<Chunk>, u64, &mut [u8], u64)> = VecDeque::new();
        let finish = |(chunk, phase, dst, index): (Arc<Chunk>, u64, &mut [u8], u64)| {
            self.context().wait(index, None)?;
            // SAFETY: the submit that writes these bytes is done, and nothing else writes to a
            // chunk that is in use here.
            unsafe { chunk.read(phase, dst) };
            Ok(())
        };
        let most = usize::try_from(LARGE - 2 * WORD).expect("a chunk is far smaller than 4 GiB");
        let mut start = src.start();
        for part in dst.chunks_mut(most) {
            let len = part.len() as u64;
            let mut line = self.recorder.begin()?;
            let (chunk, index) = self.recorder.fetch(&mut line, memory, start, len)?;
            drop(line);
            pieces.push_back((chunk, start % WORD, part, index));
            start += len;
            if pieces.len() > 2
                && let Some(piece) = pieces.pop_front()
            {
                finish(piece)?;
            }
        }
        pieces.into_iter().try_for_each(finish)
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        let from = (self.memory(src)?, src.start());
        let to = (self.memory(dst)?, dst.start());
        let mut line = self.recorder.begin()?;
        self.recorder.copy(&mut line, from, to, src.len())
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        let kernel: &dyn Kernel = &**kernel;
        let ours = (kernel as &dyn Any).downcast_ref::<WgpuKernel>();
        let ours = ours.filter(|ours| ours.context.id == self.context().id);
        let kernel = ours.ok_or_else(|| self.stranger("kernel"))?;
        let mut slices = Vec::with_capacity(args.len());
        let mut scalars = Vec::with_capacity(args.len());
        for arg in args {
            match arg {
                Arg::Slice(slice) => {
                    slices.push((self.memory(slice)?, slice.start(), slice.len()));
                }
                Arg::U32(value) => scalars.push(*value),
                Arg::I32(value) => scalars.push(value.cast_unsigned()),
                Arg::F32(value) => scalars.push(value.to_bits()),
                other => {
                    let what = format!("argument {other:?} of kernel `{}`", kernel.name());
                    return Err(DeviceError::unsupported(self.context().info.id, what));
                }
            }
        }
        self.fits(kernel, &slices, scalars.len())?;
        let mut line = self.recorder.begin()?;
        let program = &kernel.program;
        self.recorder
            .launch(&mut line, program, &slices, &scalars, grid.groups)
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        let mut line = self.recorder.begin()?;
        Ok(Arc::new(self.recorder.record(&mut line)?))
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        let mut line = self.recorder.begin()?;
        let ours = (&**event as &dyn Any).downcast_ref::<WgpuEvent>();
        if let Some(ours) = ours.filter(|ours| ours.belongs_to(self.context())) {
            Recorder::follow(&mut line, ours);
            return Ok(());
        }
        // The host is about to sleep; the device need not.
        self.recorder.flush(&mut line)?;
        drop(line);
        event.wait(None)
    }
}

impl WgpuQueue {
    /// What only the WGSL itself tells about its arguments. wgpu would find it out too, and drop
    /// the whole command list over it.
    fn fits(
        &self,
        kernel: &WgpuKernel,
        slices: &[(&Arc<Memory>, u64, u64)],
        scalars: usize,
    ) -> Result<()> {
        let interface = &kernel.program.interface;
        let unfit = |what: String| Err(DeviceError::unsupported(self.context().info.id, what));
        if (slices.len(), scalars) != (interface.slices.len(), interface.scalars) {
            return unfit(format!(
                "kernel `{}` with {} slices and {scalars} scalars",
                kernel.name(),
                slices.len()
            ));
        }
        for (index, ((_, _, len), needed)) in slices.iter().zip(&interface.slices).enumerate() {
            if len.next_multiple_of(WORD) < *needed {
                return unfit(format!(
                    "slice {index} of kernel `{}` with {len} bytes, when its WGSL type has {needed}",
                    kernel.name()
                ));
            }
        }
        Ok(())
    }
}

impl Drop for WgpuQueue {
    fn drop(&mut self) {
        let flushed = self
            .recorder
            .begin()
            .and_then(|mut line| self.recorder.flush(&mut line));
        if let Err(error) = flushed {
            tracing::warn!("a queue was dropped with work that cannot be submitted: {error}");
        }
    }
}
