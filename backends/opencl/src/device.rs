//! An opened device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warploom_core::memory::OPENCL_PINNED;
use warploom_core::{
    Account, Buffer, Caps, CodeCache, Device, DeviceError, DeviceId, DeviceInfo, DeviceKind,
    Kernel, KernelSource, MemoryKind, MemoryUse, Queue, QueueDesc, Result,
};

use crate::buffer::OpenClBuffer;
use crate::cl;
use crate::compiler::Compiler;
use crate::error::{Driven, Failure};
use crate::identity;
use crate::kernel::OpenClKernel;
use crate::probe::{Found, KINDS};
use crate::queue::OpenClQueue;

/// What everything made from one opened device shares. Two openings of one card are strangers:
/// their contexts differ, and so objects of one are refused by the other.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: DeviceId,
    pub(crate) device: cl::DeviceHandle,
    /// For short work of our own that must not wait behind a user's: first touches and mappings.
    /// One thread at a time: with several in one queue, PoCL's `basic` device comes to a
    /// standstill inside the driver.
    service: Mutex<cl::Queue>,
    pub(crate) context: cl::Context,
}

impl Opened {
    /// The queue for work of our own, as long as the answer is held.
    pub(crate) fn service(&self) -> MutexGuard<'_, cl::Queue> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Opened {
    /// The first device there is, for tests that look inside; says so when there is none.
    pub(crate) fn first() -> Option<Arc<Self>> {
        Self::first_with(Caps::empty())
    }

    /// The first device that can do `caps`.
    pub(crate) fn first_with(caps: Caps) -> Option<Arc<Self>> {
        let found = crate::probe::devices().unwrap_or_default();
        let found = found
            .into_iter()
            .find(|found| found.info.caps.contains(caps));
        let Some(found) = found else {
            println!("skipped: no OpenCL device with {caps:?}");
            return None;
        };
        let device = OpenClDevice::open(found, None).expect("the device opens");
        Some(device.opened)
    }
}

/// An OpenCL device with a context of its own.
#[derive(Debug)]
pub(crate) struct OpenClDevice {
    opened: Arc<Opened>,
    info: DeviceInfo,
    /// The device's memory.
    account: Arc<Account>,
    /// Host memory beside a device with memory of its own: counted, not limited.
    beside: Arc<Account>,
    compiler: Compiler,
}

impl OpenClDevice {
    pub(crate) fn open(found: Found, cache: Option<CodeCache>) -> Result<Self> {
        let id = found.info.id;
        let create = || {
            let context = cl::Context::create(found.platform, found.device)?;
            Ok(Opened {
                id,
                device: found.device,
                service: Mutex::new(cl::Queue::create(&context, found.device)?),
                context,
            })
        };
        let opened = create().map_err(|failure: Failure| failure.on(id))?;
        tracing::debug!(device = %id, name = found.info.name, "opened");
        Ok(Self {
            opened: Arc::new(opened),
            account: Account::new(found.info.total_memory),
            beside: Account::new(0),
            compiler: Compiler::new(
                found.fingerprint,
                found.rounds_correctly,
                found.reads_header,
                cache,
            ),
            info: found.info,
        })
    }

    #[cfg(test)]
    pub(crate) fn context(&self) -> &cl::Context {
        &self.opened.context
    }

    /// Free bytes as the driver tells; only AMD's does.
    fn free(&self) -> Option<u64> {
        // A driver that answered during the probe is one that knows the question.
        self.info.free_memory?;
        identity::free_memory(self.opened.device, |extension| extension == identity::AMD)
    }

    /// Makes a buffer and touches it. Runtimes put off allocating until a buffer is used; one
    /// byte written brings most of them to it, so that a full device is found here and not in
    /// the middle of a pipeline.
    fn touched(&self, bytes: u64, on_host: bool) -> Driven<cl::Mem> {
        let context = &self.opened.context;
        let is_processor = self.info.kind == DeviceKind::Cpu && !on_host;
        let paged = is_processor.then(|| cl::Mem::on_pages(context, bytes));
        let mem = match paged.flatten() {
            Some(mem) => mem?,
            None => cl::Mem::create(context, bytes, on_host)?,
        };
        self.opened.service().write(&mem, 0, &[0])?.wait()?;
        Ok(mem)
    }
}

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUse> {
        Ok(MemoryUse {
            total: self.info.total_memory,
            free: self.free(),
            ours: self.account.held() + self.beside.held(),
        })
    }

    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        let device = self.opened.id;
        if !KINDS.contains(&kind) {
            return Err(DeviceError::unsupported(device, kind.name()));
        }
        let full = |free| DeviceError::OutOfMemory {
            device,
            kind,
            asked: bytes,
            free,
        };
        let on_host = kind == OPENCL_PINNED;
        // Pinned memory is the host's; where that is the device's too, it counts.
        let account = if on_host && !self.info.caps.contains(Caps::UNIFIED_MEMORY) {
            &self.beside
        } else {
            &self.account
        };
        let booking = account.book(bytes).map_err(|left| full(Some(left)))?;
        let mem = self.touched(bytes, on_host).map_err(|failure| {
            if failure.is_no_room() {
                full(self.free())
            } else {
                failure.on(device)
            }
        })?;
        let opened = Arc::clone(&self.opened);
        Ok(Arc::new(OpenClBuffer::new(
            opened, mem, kind, bytes, booking,
        )))
    }

    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        let queue = OpenClQueue::create(Arc::clone(&self.opened), desc);
        Ok(Box::new(
            queue.map_err(|failure| failure.on(self.opened.id))?,
        ))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        let program = self.compiler.program(&self.opened, source)?;
        let opened = Arc::clone(&self.opened);
        Ok(Arc::new(OpenClKernel::create(opened, program, source)?))
    }
}
