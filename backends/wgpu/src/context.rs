//! An opened device as everything that belongs to it sees it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use warploom_core::memory::WGPU_PINNED;
use warploom_core::{Account, Caps, DeviceError, DeviceInfo, MemoryKind, MemoryUse, Result};

use crate::batch::Batch;
use crate::buffer::Memory;
use crate::chunk::{Chunk, Class, Pool};
use crate::error::{poll, scoped, text};
use crate::gate::{Gate, Knot, Own};
use crate::groups::Groups;
use crate::interface::Interface;
use crate::mapping::{MapError, serial};
use crate::program::Program;
use crate::recorder::Recorder;
use crate::stamp::{Stamp, Stamps};
use crate::timeline::Timeline;
use crate::{transfer, vulkan};

/// Shared by a device's buffers, queues, kernels and events. Fields drop in order, so whatever was
/// made from the wgpu device goes before it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) info: DeviceInfo,
    /// Tells two openings of one device apart.
    pub(crate) id: u64,
    pub(crate) account: Arc<Account>,
    pub(crate) gate: Gate,
    pub(crate) pool: Arc<Pool>,
    pub(crate) groups: Groups,
    pub(crate) splice: Program,
    /// Offsets of scalars are multiples of this.
    pub(crate) feed_align: u64,
    stamps: Option<Arc<Stamps>>,
    recorders: Mutex<Vec<Weak<Recorder>>>,
    lost: Arc<OnceLock<String>>,
    timeline: Timeline,
    pub(crate) queue: wgpu::Queue,
    pub(crate) device: wgpu::Device,
    adapter: wgpu::Adapter,
}

impl Context {
    pub(crate) fn open(info: DeviceInfo, adapter: wgpu::Adapter) -> Result<Self> {
        Self::open_with(info, adapter, Timeline::new)
    }

    pub(crate) fn open_with(
        info: DeviceInfo,
        adapter: wgpu::Adapter,
        timeline: impl FnOnce(&wgpu::Device) -> Timeline,
    ) -> Result<Self> {
        let id = info.id;
        let limits = adapter.limits();
        let feed_align = u64::from(limits.min_uniform_buffer_offset_alignment.max(16));
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: crate::probe::features(&adapter),
            required_limits: limits,
            // Pools are above this backend: blocks of its own would only hide memory from others.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) =
            opened.map_err(|error| DeviceError::driver(id, "request_device", error))?;
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            // Every call that can fail is in a scope, so this is a bug of ours; wgpu would panic.
            tracing::error!(device = %id, "{}", text(&error));
        }));
        let lost = Arc::new(OnceLock::new());
        let told = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            // Only the first reason counts.
            let _ = told.set(format!("{reason:?}: {message}"));
        });
        let interface = Interface {
            slices: vec![transfer::WORD; 2],
            scalars: 3,
        };
        let splice = Program::build(&device, "splice", transfer::SPLICE, interface);
        let splice = splice
            .map_err(|error| DeviceError::driver(id, "create_compute_pipeline", text(&error)))?;
        let stamps = info.caps.contains(Caps::TIMESTAMPS);
        Ok(Self {
            id: serial(),
            account: Account::new(info.total_memory),
            gate: Gate::default(),
            pool: Arc::default(),
            groups: Groups::default(),
            splice,
            feed_align,
            stamps: stamps.then(|| Stamps::new(&queue)),
            recorders: Mutex::default(),
            lost,
            timeline: timeline(&device),
            info,
            queue,
            device,
            adapter,
        })
    }

    /// Fails when the device is lost.
    pub(crate) fn alive(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(message) => Err(DeviceError::lost(self.info.id, "an earlier call", message)),
        }
    }

    fn lose(&self, call: &str, message: String) -> DeviceError {
        let message = self.lost.get_or_init(|| message);
        DeviceError::lost(self.info.id, call, message)
    }

    /// An error of wgpu as ours. Losing the device makes other errors, which then do not count.
    pub(crate) fn failed(&self, call: &str, error: &wgpu::Error) -> DeviceError {
        match self.alive() {
            Err(lost) => lost,
            Ok(()) => DeviceError::driver(self.info.id, call, text(error)),
        }
    }

    pub(crate) fn out_of_memory(
        &self,
        kind: MemoryKind,
        asked: u64,
        free: Option<u64>,
    ) -> DeviceError {
        DeviceError::OutOfMemory {
            device: self.info.id,
            kind,
            asked,
            free,
        }
    }

    pub(crate) fn unmapped(&self, kind: MemoryKind, asked: u64, error: &MapError) -> DeviceError {
        match error {
            MapError::Wgpu(wgpu::Error::OutOfMemory { .. }) => {
                self.out_of_memory(kind, asked, self.free())
            }
            MapError::Wgpu(error) => self.failed("create_buffer", error),
            MapError::Address => {
                DeviceError::unsupported(self.info.id, "memory that is coherent with the host's")
            }
        }
    }

    /// Free memory now, where the driver tells.
    fn free(&self) -> Option<u64> {
        vulkan::ask(&self.adapter).free
    }

    pub(crate) fn memory(&self) -> Result<MemoryUse> {
        self.reap()?;
        Ok(MemoryUse {
            total: self.info.total_memory,
            free: self.free(),
            ours: self.account.held(),
        })
    }

    /// Lets go of everything that only finished work needed, wgpu's share included.
    pub(crate) fn reap(&self) -> Result<()> {
        self.alive()?;
        let reached = self.reached()?;
        self.gate.reap(reached);
        poll(&self.device).map_err(|message| self.lose("poll", message))?;
        // The poll may have told.
        self.alive()
    }

    fn reached(&self) -> Result<u64> {
        let reached = self.timeline.reached(&self.device);
        reached.map_err(|message| self.lose("a question for progress", message))
    }

    /// Is submit `index` done?
    pub(crate) fn is_reached(&self, index: u64) -> Result<bool> {
        let reached = self.timeline.is_reached(&self.device, index);
        reached.map_err(|message| self.lose("a question for progress", message))
    }

    /// Waits for submit `index`; `false` when the time is up before.
    pub(crate) fn wait(&self, index: u64, timeout: Option<Duration>) -> Result<bool> {
        let done = self.timeline.wait(&self.device, index, timeout);
        done.map_err(|message| self.lose("a wait", message))
    }

    /// A query for an event, where the device has a clock.
    pub(crate) fn stamp(&self) -> Option<Arc<Stamp>> {
        self.stamps.as_ref()?.take(&self.device)
    }

    /// Has the device a clock?
    pub(crate) fn has_clock(&self) -> bool {
        self.stamps.is_some()
    }

    /// Staging of a class; `gauge` counts its bytes while it is in use.
    pub(crate) fn chunk(&self, class: Class, bytes: u64, gauge: &Arc<AtomicU64>) -> Result<Chunk> {
        let chunk = self.pool.take(&self.device, class, bytes, gauge);
        chunk.map_err(|error| self.unmapped(WGPU_PINNED, bytes, &error))
    }

    /// Makes a queue's command list known to [`flush_users`](Self::flush_users).
    pub(crate) fn enrol(&self, recorder: &Arc<Recorder>) {
        let mut recorders = self
            .recorders
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        recorders.retain(|known| known.strong_count() > 0);
        recorders.push(Arc::downgrade(recorder));
    }

    /// Submits every list that touches pinned buffer `memory`.
    pub(crate) fn flush_users(&self, memory: &Memory) -> Result<()> {
        let recorders: Vec<_> = {
            let known = self
                .recorders
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            known.iter().filter_map(Weak::upgrade).collect()
        };
        recorders
            .iter()
            .try_for_each(|recorder| recorder.flush_for(memory))
    }

    pub(crate) fn knot(&self) -> DeviceError {
        DeviceError::unsupported(
            self.info.id,
            "waiting for a pinned buffer inside the `with_host` that lends it",
        )
    }

    /// Submits a list, and answers with the submit's number.
    pub(crate) fn submit(&self, batch: Batch, own: Own) -> Result<u64> {
        self.alive()?;
        let sealed = scoped(&self.device, || batch.seal());
        let sealed = sealed.map_err(|error| self.failed("finish", &error))?;
        let pinned: Vec<_> = sealed.pinned.iter().map(|memory| memory.id).collect();
        let entry = self.gate.enter(&pinned, own).map_err(|Knot| self.knot())?;
        let index = entry.number();
        let submitted = self.timeline.submit(&self.queue, index, || {
            scoped(&self.device, || self.queue.submit(sealed.commands)).map(|_| ())
        });
        if !submitted.map_err(|error| self.failed("submit", &error))? {
            return Err(self.lose("submit", "it takes no more work".into()));
        }
        // Only the other clock needs this question.
        self.alive()?;
        for memory in &sealed.pinned {
            memory.used_by(index);
        }
        entry.made(sealed.cargo);
        self.gate.reap(self.reached()?);
        Ok(index)
    }

    /// Fills a new pinned buffer with zeros; see [`Mapped::new`](crate::mapping::Mapped::new).
    pub(crate) fn clear(&self, buffer: &wgpu::Buffer) -> Result<u64> {
        self.submit(Batch::clearing(&self.device, buffer), Own::Refuse)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // The semaphore must outlast the submits that signal it. wgpu waits too, a moment later.
        let last = self.gate.submitted();
        if self.alive().is_ok() && self.wait(last, None).is_err() {
            tracing::warn!(device = %self.info.id, "lost while closing");
        }
        self.gate.reap(u64::MAX);
    }
}
