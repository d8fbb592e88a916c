//! The opened processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use warploom_core::host::FnKernel;
use warploom_core::memory::HOST;
use warploom_core::{
    Account, Buffer, Device, DeviceError, DeviceId, DeviceInfo, Kernel, KernelSource, MemoryKind,
    MemoryUse, Queue, QueueDesc, Result,
};

use crate::buffer::CpuBuffer;
use crate::error::no_thread;
use crate::probe::Machine;
use crate::queue::{CpuQueue, thread_name};

/// Threads for kernels, and how many queues want them or have them.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) threads: ThreadPool,
    queues: AtomicUsize,
}

/// A queue among those that want threads, until it is dropped.
#[derive(Debug)]
#[must_use = "the queue is no longer counted when this is dropped"]
pub(crate) struct Place<'a>(&'a Pool);

impl Pool {
    pub(crate) fn enter(&self) -> Place<'_> {
        self.queues.fetch_add(1, Ordering::Relaxed);
        Place(self)
    }

    /// Does a queue besides the one that asks want threads?
    pub(crate) fn is_wanted(&self) -> bool {
        self.queues.load(Ordering::Relaxed) > 1
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.queues.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a device's queues share: threads and a clock.
#[derive(Debug)]
pub(crate) struct Core {
    id: DeviceId,
    pool: Arc<Pool>,
    threads: usize,
    opened: Instant,
}

impl Core {
    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    /// Where the kernels of a queue run: on all threads, or on some of its own if it may not use all.
    pub(crate) fn pool(&self, desc: &QueueDesc) -> Result<Arc<Pool>> {
        match usize::try_from(desc.threads) {
            Ok(threads) if threads > 0 && threads < self.threads => {
                pool(self.id, threads, &format!("{} kernel", desc.label))
            }
            _ => Ok(Arc::clone(&self.pool)),
        }
    }

    /// Time since the device was opened.
    pub(crate) fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}

fn pool(device: DeviceId, threads: usize, name: &str) -> Result<Arc<Pool>> {
    let name = thread_name(name);
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |index| format!("{name} {index}"))
        .build()
        .map_err(|error| no_thread(device, &format!("{threads} kernel threads"), error))?;
    Ok(Arc::new(Pool {
        threads: pool,
        queues: AtomicUsize::new(0),
    }))
}

/// The opened processor.
#[derive(Debug)]
pub(crate) struct CpuDevice {
    info: DeviceInfo,
    core: Arc<Core>,
    account: Arc<Account>,
}

impl CpuDevice {
    /// Starts `threads` threads for kernels. `limit` is the most its buffers may hold.
    pub(crate) fn open(info: DeviceInfo, threads: usize, limit: u64) -> Result<Self> {
        let id = info.id;
        let core = Arc::new(Core {
            id,
            pool: pool(id, threads, "cpu kernel")?,
            threads,
            opened: Instant::now(),
        });
        let account = Account::new(limit);
        Ok(Self {
            info,
            core,
            account,
        })
    }

    fn free(&self) -> Option<u64> {
        let left = self.account.left();
        Machine::now().free.map(|free| free.min(left))
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUse> {
        Ok(MemoryUse {
            total: self.info.total_memory,
            free: self.free(),
            ours: self.account.held(),
        })
    }

    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        if kind != HOST {
            return Err(DeviceError::unsupported(
                self.info.id,
                format!("{kind} memory"),
            ));
        }
        let buffer = CpuBuffer::alloc(self.info.id, &self.account, bytes, || self.free())?;
        Ok(Arc::new(buffer))
    }

    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        Ok(Box::new(CpuQueue::start(Arc::clone(&self.core), desc)?))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        FnKernel::load(self.info.id, source)
    }
}
