//! Contexts: what streams, memory and modules of a process on a device belong to.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::device::Device;
use super::ffi::Handle;
use super::handle;
use super::health::{Health, Trouble};
use super::lane::{Job, Kind, Lane, Ticket};
use super::machine::Machine;
use super::status::{Result, Status};
use super::stream::Stream;

/// Device memory a context takes for itself.
pub(crate) const CONTEXT_BYTES: u64 = 8 << 20;

/// A context. Whoever still holds it after its end is told so.
#[derive(Debug)]
pub(crate) struct Context {
    handle: Handle,
    device: Arc<Device>,
    flags: AtomicU32,
    health: Arc<Health>,
    ended: AtomicBool,
    /// Held while a job is submitted, so that the order between streams is one order.
    lanes: Mutex<Vec<Arc<Lane>>>,
    /// The default stream of old, once it is used.
    legacy: Mutex<Option<Arc<Stream>>>,
    /// Contexts whose memory kernels of this one reach.
    peers: RwLock<HashSet<Handle>>,
    limits: Mutex<BTreeMap<u32, usize>>,
    heap: Heap,
}

impl Context {
    /// A context on a device that has the memory for it.
    pub(crate) fn open(machine: &Machine, device: &Arc<Device>, flags: u32) -> Result<Arc<Self>> {
        device.check()?;
        device.budget().take(CONTEXT_BYTES)?;
        let context = Arc::new(Self {
            handle: handle::fresh(),
            device: Arc::clone(device),
            flags: AtomicU32::new(flags),
            health: Health::new(device),
            ended: AtomicBool::new(false),
            lanes: Mutex::default(),
            legacy: Mutex::default(),
            peers: RwLock::default(),
            limits: Mutex::default(),
            heap: Heap::default(),
        });
        machine.contexts.insert(context.handle, &context);
        Ok(context)
    }

    /// Waits for all work, and ends everything that belongs to the context.
    pub(crate) fn end(self: &Arc<Self>, machine: &Machine) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        self.drain();
        let ours = |context: &Arc<Self>| Arc::ptr_eq(context, self);
        machine.streams.remove_all(|stream| ours(stream.context()));
        machine.events.remove_all(|event| ours(event.context()));
        machine
            .functions
            .remove_all(|function| ours(function.module().context()));
        machine.modules.remove_all(|module| ours(module.context()));
        let blocks = machine
            .memory
            .living(|block| block.context() == self.handle);
        for block in blocks {
            machine.end_block(block.base);
        }
        self.device.settle();
        // It holds the context, which would never be dropped.
        *self.legacy.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for lane in self.lock_lanes().iter() {
            lane.close();
        }
        self.device.budget().give(CONTEXT_BYTES);
        let _ = machine.contexts.remove(self.handle);
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(crate) fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    pub(crate) fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// The error every call answers, if there is one.
    pub(crate) fn check(&self) -> Result {
        self.check_open()?;
        self.health.check()
    }

    /// The same for calls that a fault does not hinder.
    pub(crate) fn check_open(&self) -> Result {
        if self.ended.load(Ordering::SeqCst) {
            return Err(Status::CONTEXT_IS_DESTROYED);
        }
        Ok(())
    }

    /// Ends the use of the context by a fault.
    pub(crate) fn fail(&self, trouble: &Trouble) {
        self.health.fail(trouble);
    }

    fn lock_lanes(&self) -> MutexGuard<'_, Vec<Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new lane of this context.
    pub(crate) fn open_lane(&self, kind: Kind) -> Arc<Lane> {
        let (number, jitter) = Machine::next_lane();
        let lane = Lane::new(kind, number, jitter, &self.health);
        let mut lanes = self.lock_lanes();
        lanes.retain(|lane| !lane.is_over());
        lanes.push(Arc::clone(&lane));
        lane
    }

    /// The default stream of old.
    pub(crate) fn legacy(self: &Arc<Self>) -> Arc<Stream> {
        let mut legacy = self.legacy.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = legacy.get_or_insert_with(|| Stream::new(self, Kind::Legacy, 0));
        Arc::clone(stream)
    }

    /// Adds a job to a lane, behind what the rules of default streams put before it.
    pub(crate) fn submit(&self, lane: &Arc<Lane>, job: Job) -> Ticket {
        let lanes = self.lock_lanes();
        let before = match lane.kind() {
            Kind::Legacy => Some(Kind::Blocking),
            Kind::Blocking => Some(Kind::Legacy),
            Kind::NonBlocking => None,
        };
        let others = lanes.iter().filter(|other| Some(other.kind()) == before);
        let after = others.filter_map(Lane::last).collect();
        lane.push(after, job)
    }

    /// What is still to be done when a lane is waited for: with the legacy default stream, also the
    /// work of the streams it waits for.
    pub(crate) fn pending(&self, lane: &Arc<Lane>) -> Vec<Ticket> {
        if lane.kind() != Kind::Legacy {
            return lane.last().into_iter().collect();
        }
        let lanes = self.lock_lanes();
        let blocking = lanes
            .iter()
            .filter(|other| other.kind() != Kind::NonBlocking);
        blocking.filter_map(Lane::last).collect()
    }

    /// Waits for all streams, whatever comes of it.
    pub(crate) fn drain(&self) {
        let tickets: Vec<Ticket> = self.lock_lanes().iter().filter_map(Lane::last).collect();
        for ticket in tickets {
            ticket.wait();
        }
    }

    /// Waits for all streams.
    pub(crate) fn synchronise(&self) -> Result {
        self.drain();
        self.settle();
        self.check()
    }

    /// Somebody waited: see [`Device::settle`].
    pub(crate) fn settle(&self) {
        self.device.settle();
    }

    pub(crate) fn has_peer(&self, context: Handle) -> bool {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.contains(&context)
    }

    /// `false` when it was one already.
    pub(crate) fn add_peer(&self, context: Handle) -> bool {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.insert(context)
    }

    /// `false` when it was none.
    pub(crate) fn remove_peer(&self, context: Handle) -> bool {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.remove(&context)
    }

    /// `CUlimit`: stack of a thread, buffer of `printf`, heap, and three about caches.
    pub(crate) fn limit(&self, which: u32) -> Result<usize> {
        let usual = match which {
            0 => 1 << 10,
            1 => 1 << 20,
            2 => return Ok(self.heap.limit()),
            5 => 128,
            6 => 0,
            _ => return Err(Status::UNSUPPORTED_LIMIT),
        };
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(limits.get(&which).copied().unwrap_or(usual))
    }

    pub(crate) fn set_limit(&self, which: u32, value: usize) -> Result {
        self.limit(which)?;
        if which == 2 {
            self.heap.set_limit(value);
            return Ok(());
        }
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.insert(which, value);
        Ok(())
    }
}

/// Memory that kernels allocate for themselves.
#[derive(Debug)]
pub(crate) struct Heap {
    limit: AtomicU64,
    used: AtomicU64,
}

impl Default for Heap {
    fn default() -> Self {
        Self {
            limit: AtomicU64::new(CONTEXT_BYTES),
            used: AtomicU64::new(0),
        }
    }
}

impl Heap {
    fn limit(&self) -> usize {
        usize::try_from(self.limit.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes as u64, Ordering::Relaxed);
    }

    /// `false` when there is no room.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let add = |used: u64| used.checked_add(bytes).filter(|after| *after <= limit);
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.is_ok()
    }

    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
