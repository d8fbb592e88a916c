//! One opening of a fake device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use warploom_core::host::FnKernel;
use warploom_core::{
    Buffer, Device, DeviceError, DeviceId, DeviceInfo, Kernel, KernelCode, KernelSource,
    MemoryKind, MemoryUse, Queue, QueueDesc, Result, Space,
};

use super::buffer::FakeBuffer;
use super::card::Card;
use super::fault::Call;
use super::flaw::Flaw;
use super::lane::Lane;
use super::queue::FakeQueue;

/// What a device, its queues, buffers and events share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) card: Arc<Card>,
    pub(crate) ours: AtomicU64,
    flaw: Option<Flaw>,
    opened: Instant,
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// Held by a lane while it works, when queues only pretend to overlap.
    pub(crate) turn: Mutex<()>,
}

impl Shared {
    pub(crate) fn id(&self) -> DeviceId {
        self.card.info.id
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The device's clock.
    pub(crate) fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Starts everything that was queued and not started.
    pub(crate) fn submit_all(&self) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|lane| lane.strong_count() > 0);
        let live: Vec<Arc<Lane>> = lanes.iter().filter_map(Weak::upgrade).collect();
        drop(lanes);
        for lane in live {
            lane.submit();
        }
    }
}

/// An opened fake device.
#[derive(Debug)]
pub(crate) struct Opened(Arc<Shared>);

impl Opened {
    pub(crate) fn new(card: Arc<Card>, flaw: Option<Flaw>) -> Self {
        Self(Arc::new(Shared {
            card,
            ours: AtomicU64::new(0),
            flaw,
            opened: Instant::now(),
            lanes: Mutex::default(),
            turn: Mutex::default(),
        }))
    }

    fn limit(&self) -> u64 {
        if self.0.has(Flaw::Overcommits) {
            return u64::MAX;
        }
        self.0.card.info.total_memory
    }
}

impl Device for Opened {
    fn info(&self) -> &DeviceInfo {
        &self.0.card.info
    }

    fn memory(&self) -> Result<MemoryUse> {
        if let Some(lost) = self.0.card.lost() {
            return Err(lost);
        }
        let (total, used) = (self.0.card.info.total_memory, self.0.card.used());
        let ours = if self.0.has(Flaw::TwinsShareCount) {
            used
        } else {
            self.0.ours.load(Ordering::SeqCst)
        };
        Ok(MemoryUse {
            total,
            free: Some(total.saturating_sub(used)),
            ours,
        })
    }

    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        self.0.card.enter(Call::Alloc)?;
        // Pinned memory is the host's, of which a fake knows no end.
        if kind.space() == Space::Device
            && let Err(free) = self.0.card.take(bytes, self.limit())
        {
            let mut device = self.0.id();
            device.ordinal += u32::from(self.0.has(Flaw::ErrorsMisname));
            return Err(DeviceError::OutOfMemory {
                device,
                kind,
                asked: bytes,
                free: Some(free),
            });
        }
        Ok(Arc::new(FakeBuffer::new(&self.0, kind, bytes)))
    }

    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        self.0.card.enter(Call::Queue)?;
        let lane = Arc::new(Lane::start(&self.0)?);
        let mut lanes = self.0.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.push(Arc::downgrade(&lane));
        Ok(Box::new(FakeQueue::new(&self.0, lane, desc.class)))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        self.0.card.enter(Call::Kernel)?;
        if self.0.has(Flaw::KernelNameless)
            && let KernelCode::Host(run) = source.code()
        {
            let run = run.clone();
            let nameless = KernelSource::host("", source.params(), move |call| run.call(call));
            return FnKernel::load(self.0.id(), &nameless);
        }
        FnKernel::load(self.0.id(), source)
    }
}
