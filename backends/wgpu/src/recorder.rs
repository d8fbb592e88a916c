//! What a queue does, behind a lock: other threads may have to submit its list for it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use warploom_core::{DeviceError, Result};

use crate::batch::Batch;
use crate::buffer::Memory;
use crate::chunk::{Chunk, Class, Fill, LARGE};
use crate::context::Context;
use crate::event::WgpuEvent;
use crate::gate::{Knot, Own};
use crate::groups::{Binding, Groups};
use crate::interface::uniform_bytes;
use crate::program::Program;
use crate::stamp::Stamp;
use crate::transfer::{self, GROUP, How, Piece, SPAN, WORD};

/// A list this long is submitted without being asked for, so that it cannot grow for ever.
const MOST_COMMANDS: u32 = 4096;
/// Uploads wait for the device when this much staging is in use.
const MOST_STAGED: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) context: Arc<Context>,
    line: Mutex<Line>,
    /// The pinned buffers of the list. A lock of its own, held for moments only, so that asking
    /// never waits for a submit.
    touches: Mutex<HashSet<u64>>,
    /// Bytes of staging towards the device that wait for it.
    staged: Arc<AtomicU64>,
    /// Bytes of other staging, of which nobody asks.
    other: Arc<AtomicU64>,
}

/// One queue's state.
#[derive(Debug, Default)]
pub(crate) struct Line {
    batch: Batch,
    feed: Option<Fill>,
    staging: Option<Fill>,
    /// The submit after which everything up to now is done.
    last: u64,
    /// The latest event this queue knows.
    mark: Option<(u64, Option<Arc<Stamp>>)>,
    /// What went wrong when another thread submitted the list.
    failure: Option<DeviceError>,
}

impl Recorder {
    pub(crate) fn new(context: &Arc<Context>) -> Arc<Self> {
        let recorder = Arc::new(Self {
            context: Arc::clone(context),
            line: Mutex::default(),
            touches: Mutex::default(),
            staged: Arc::default(),
            other: Arc::default(),
        });
        context.enrol(&recorder);
        recorder
    }

    /// The queue's state, for its owner.
    pub(crate) fn begin(&self) -> Result<MutexGuard<'_, Line>> {
        self.context.alive()?;
        let mut line = self.lock();
        match line.failure.take() {
            None => Ok(line),
            Some(failure) => Err(failure),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touches(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.touches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits the list if it touches `memory`; called by any thread.
    ///
    /// It must not wait for a buffer while it has the queue's state: whoever holds the buffer may
    /// be about to use the queue. So it first gets hold of all buffers of the list, then of the
    /// state if that is free, and otherwise lets go and tries again.
    pub(crate) fn flush_for(&self, memory: &Memory) -> Result<()> {
        let gate = &self.context.gate;
        loop {
            let touches: Vec<u64> = self.touches().iter().copied().collect();
            if !touches.contains(&memory.id) {
                return Ok(());
            }
            let loan = gate.lend(&touches).map_err(|Knot| self.context.knot())?;
            let line = match self.line.try_lock() {
                Ok(line) => Some(line),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut line) = line
                && line.batch.pinned().all(|id| touches.contains(&id))
            {
                let flushed = self.flush_as(&mut line, Own::Pass);
                if let Err(error) = &flushed {
                    // The owner learns of it with its next call.
                    line.failure = Some(error.clone());
                }
                return flushed.map(|_| ());
            }
            drop(loan);
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// Submits what is recorded, and answers with the number of the submit to wait for.
    pub(crate) fn flush(&self, line: &mut Line) -> Result<u64> {
        // Refused before anything is lost: the list stays, and can be submitted later.
        if self.context.gate.holds(line.batch.pinned()) {
            return Err(self.context.knot());
        }
        self.flush_as(line, Own::Refuse)
    }

    fn flush_as(&self, line: &mut Line, own: Own) -> Result<u64> {
        if line.batch.commands() == 0 {
            return Ok(line.last);
        }
        let submitted = self.context.submit(std::mem::take(&mut line.batch), own);
        // Either the submit is known to the pinned buffers now, or it never happens.
        self.touches().clear();
        line.last = submitted?;
        Ok(line.last)
    }

    fn flush_when_long(&self, line: &mut Line) -> Result<()> {
        if line.batch.commands() >= MOST_COMMANDS {
            self.flush(line)?;
        }
        Ok(())
    }

    fn keep(&self, line: &mut Line, memory: &Arc<Memory>) {
        if line.batch.keep(memory) {
            self.touches().insert(memory.id);
        }
    }

    /// Marks this point and submits everything before it.
    pub(crate) fn record(&self, line: &mut Line) -> Result<WgpuEvent> {
        let context = &self.context;
        let event = |index, stamp| WgpuEvent::new(context, index, stamp);
        if line.batch.commands() == 0 {
            // Nothing happened since: the same point needs no submit of its own.
            match &line.mark {
                Some((index, stamp)) if *index == line.last => {
                    return Ok(event(*index, stamp.clone()));
                }
                _ if !context.has_clock() => return Ok(event(line.last, None)),
                _ => {}
            }
        }
        let stamp = context.stamp();
        if let Some(stamp) = &stamp {
            line.batch.stamp(&context.device, stamp);
        }
        let index = self.flush(line)?;
        line.mark = Some((index, stamp.clone()));
        Ok(event(index, stamp))
    }

    /// What this queue does from now on comes after `event`: it will be submitted later, so all
    /// there is to do is to remember the point for an event that is recorded without any work.
    pub(crate) fn follow(line: &mut Line, event: &WgpuEvent) {
        if event.index() >= line.last {
            line.last = event.index();
            line.mark = Some((event.index(), event.stamp()));
        }
    }

    pub(crate) fn launch(
        &self,
        line: &mut Line,
        program: &Program,
        slices: &[(&Arc<Memory>, u64, u64)],
        scalars: &[u32],
        groups: [u32; 3],
    ) -> Result<()> {
        let context = &self.context;
        let bindings: Vec<_> = slices
            .iter()
            .map(|(memory, start, len)| Binding {
                buffer: memory.buffer(),
                id: memory.id,
                start: *start,
                // Storage is bound in whole words, and every buffer ends with one.
                len: len.next_multiple_of(WORD),
            })
            .collect();
        let (feed, offset) = self.feed(line, scalars)?;
        let group = self.group(program, &bindings, feed.as_deref())?;
        for (memory, ..) in slices {
            memory.bound();
            self.keep(line, memory);
        }
        line.batch
            .launch(&context.device, program, &group, offset, groups);
        self.flush_when_long(line)
    }

    fn group(
        &self,
        program: &Program,
        bindings: &[Binding<'_>],
        feed: Option<&Chunk>,
    ) -> Result<wgpu::BindGroup> {
        let context = &self.context;
        let key = Groups::key(program.id, feed.map_or(0, |feed| feed.id), bindings);
        if let Some(group) = context.groups.find(&key) {
            return Ok(group);
        }
        let group = program.bind(&context.device, bindings, feed.map(|feed| &feed.buffer));
        let group = group.map_err(|error| context.failed("create_bind_group", &error))?;
        context.alive()?;
        context.groups.keep(key, &group);
        Ok(group)
    }

    /// Puts scalars where the next launch reads them.
    fn feed(&self, line: &mut Line, scalars: &[u32]) -> Result<(Option<Arc<Chunk>>, Option<u32>)> {
        if scalars.is_empty() {
            return Ok((None, None));
        }
        let bytes = uniform_bytes(scalars.len());
        let align = self.context.feed_align;
        let (chunk, at) = self.place(&mut line.feed, Class::Feed, bytes, align, 0)?;
        // SAFETY: `place` gives out bytes of a chunk once, and the chunk comes back to the pool only
        // when all submits that read from it are done.
        unsafe { chunk.write(at, bytemuck::cast_slice(scalars)) };
        line.batch.keep_chunk(&chunk);
        let offset = u32::try_from(at).expect("a feed is far smaller than 4 GiB");
        Ok((Some(chunk), Some(offset)))
    }

    pub(crate) fn upload(
        &self,
        line: &mut Line,
        src: &[u8],
        dst: &Arc<Memory>,
        start: u64,
    ) -> Result<()> {
        let mut start = start;
        // Room for bringing staging into step with the destination.
        let most = usize::try_from(LARGE - 4 * WORD).expect("a chunk is far smaller than 4 GiB");
        for part in src.chunks(most) {
            if self.staged.load(Ordering::Relaxed) > MOST_STAGED {
                let last = self.flush(line)?;
                self.context.wait(last, None)?;
                self.context.reap()?;
            }
            self.keep(line, dst);
            let bytes = part.len() as u64;
            let (chunk, at) =
                self.place(&mut line.staging, Class::Up, bytes, 4 * WORD, start % WORD)?;
            // SAFETY: as in `feed`.
            unsafe { chunk.write(at, part) };
            line.batch.keep_chunk(&chunk);
            let from = End {
                buffer: &chunk.buffer,
                id: chunk.id,
            };
            let to = End {
                buffer: dst.buffer(),
                id: dst.id,
            };
            self.transfer(line, from, at, to, start, bytes)?;
            start += bytes;
            if src.len() > most {
                // The device works on this piece while the host fills the next.
                self.flush(line)?;
            }
        }
        self.flush_when_long(line)
    }

    pub(crate) fn copy(
        &self,
        line: &mut Line,
        (src, from): (&Arc<Memory>, u64),
        (dst, to): (&Arc<Memory>, u64),
        len: u64,
    ) -> Result<()> {
        self.keep(line, src);
        self.keep(line, dst);
        let source = End {
            buffer: src.buffer(),
            id: src.id,
        };
        let target = End {
            buffer: dst.buffer(),
            id: dst.id,
        };
        self.transfer(line, source, from, target, to, len)?;
        self.flush_when_long(line)
    }

    /// Starts reading the words around `len` bytes into staging, and submits.
    pub(crate) fn fetch(
        &self,
        line: &mut Line,
        src: &Arc<Memory>,
        start: u64,
        len: u64,
    ) -> Result<(Arc<Chunk>, u64)> {
        let first = start / WORD * WORD;
        let bytes = (start + len).next_multiple_of(WORD) - first;
        let chunk = Arc::new(self.context.chunk(Class::Down, bytes, &self.other)?);
        self.keep(line, src);
        line.batch.keep_chunk(&chunk);
        let encoder = line.batch.encoder(&self.context.device);
        encoder.copy_buffer_to_buffer(src.buffer(), first, &chunk.buffer, 0, bytes);
        Ok((chunk, self.flush(line)?))
    }

    /// Room for `bytes` in the current chunk of a class, or in a new one.
    fn place(
        &self,
        current: &mut Option<Fill>,
        class: Class,
        bytes: u64,
        align: u64,
        offset: u64,
    ) -> Result<(Arc<Chunk>, u64)> {
        if let Some(fill) = current
            && let Some(at) = fill.place(bytes, align, offset)
        {
            return Ok((Arc::clone(&fill.chunk), at));
        }
        let gauge = match class {
            Class::Up => &self.staged,
            Class::Feed | Class::Down => &self.other,
        };
        let mut fill = Fill::new(self.context.chunk(class, bytes + offset, gauge)?);
        let at = fill.place(bytes, align, offset);
        let at = at.expect("a new chunk has the room it was asked for");
        let chunk = Arc::clone(&fill.chunk);
        *current = Some(fill);
        Ok((chunk, at))
    }

    fn transfer(
        &self,
        line: &mut Line,
        src: End<'_>,
        from: u64,
        dst: End<'_>,
        to: u64,
        len: u64,
    ) -> Result<()> {
        for piece in transfer::plan(from, to, len, src.id == dst.id) {
            match piece.how {
                How::Words => {
                    let encoder = line.batch.encoder(&self.context.device);
                    let Piece {
                        src: at,
                        dst: to,
                        len,
                        ..
                    } = piece;
                    encoder.copy_buffer_to_buffer(src.buffer, at, dst.buffer, to, len);
                }
                How::Bytes => self.splice(line, src, dst, piece)?,
            }
        }
        Ok(())
    }

    /// Copies bytes with a kernel, in windows that the device can bind.
    fn splice(&self, line: &mut Line, src: End<'_>, dst: End<'_>, piece: Piece) -> Result<()> {
        let context = &self.context;
        let limits = context.info.limits;
        let align = u64::from(limits.slice_align).max(WORD);
        let most = limits.max_binding.saturating_sub(align + 2 * WORD);
        let most = SPAN.min(most / WORD * WORD).max(WORD);
        let mut done = 0;
        while done < piece.len {
            let len = most.min(piece.len - done);
            let (source, from) = src.window(piece.src + done, len, align);
            let (target, to) = dst.window(piece.dst + done, len, align);
            let words = (to % WORD + len).div_ceil(WORD);
            let small = |n: u64| u32::try_from(n).expect("a span is far smaller than 4 GiB");
            let (feed, offset) = self.feed(line, &[small(from), small(to), small(len)])?;
            // These windows hardly ever come again, so their groups are not kept.
            let feed = feed.as_ref().map(|feed| &feed.buffer);
            let group = context
                .splice
                .bind(&context.device, &[source, target], feed);
            let group = group.map_err(|e| context.failed("create_bind_group", &e))?;
            let groups = [small(words).div_ceil(GROUP), 1, 1];
            line.batch
                .launch(&context.device, &context.splice, &group, offset, groups);
            done += len;
        }
        Ok(())
    }
}

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
struct End<'a> {
    buffer: &'a wgpu::Buffer,
    id: u64,
}

impl<'a> End<'a> {
    /// The words around `len` bytes from `at` on, from a multiple of `align`, and where in them the
    /// bytes start.
    fn window(self, at: u64, len: u64, align: u64) -> (Binding<'a>, u64) {
        let start = at / align * align;
        let binding = Binding {
            buffer: self.buffer,
            id: self.id,
            start,
            len: (at + len).next_multiple_of(WORD) - start,
        };
        (binding, at - start)
    }
}
