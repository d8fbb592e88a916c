//! The primary context of a device: every call enters through it, and it remembers a loss.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;
use warploom_core::{DeviceError, DeviceId, MemoryKind, Result, memory};

use crate::driver::Driver;
use crate::error::{Status, code};
use crate::handle::Foreign;

/// How many kernels are named when one of them brought the device down.
const SUSPECTS: usize = 4;

/// A retained primary context. Everything made in it holds it, so it ends last.
#[derive(Debug)]
pub(crate) struct Context {
    driver: &'static Driver,
    id: DeviceId,
    device: sys::CUdevice,
    handle: Foreign<sys::CUctx_st>,
    spare: Mutex<Vec<Foreign<sys::CUevent_st>>>,
    held: AtomicU64,
    /// Names of the kernels launched last, the latest first, each once.
    launched: Mutex<VecDeque<Arc<str>>>,
    lost: OnceLock<DeviceError>,
}

impl Context {
    /// Retains the primary context of `device`, making it if there is none.
    pub(crate) fn retain(
        driver: &'static Driver,
        id: DeviceId,
        device: sys::CUdevice,
    ) -> Result<Arc<Self>> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: `device` came from `cuDeviceGet`, and the place for the answer is writable.
        let status = unsafe { driver.cuDevicePrimaryCtxRetain(&raw mut handle, device) };
        if !status.is_ok() {
            return Err(status.error(driver, id));
        }
        Ok(Arc::new(Self {
            driver,
            id,
            device,
            handle: Foreign::new(handle),
            spare: Mutex::default(),
            held: AtomicU64::new(0),
            launched: Mutex::default(),
            lost: OnceLock::new(),
        }))
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    /// Makes the context current on this thread; the driver's calls may follow.
    ///
    /// # Errors
    /// The loss that was seen before, with the call that saw it.
    pub(crate) fn enter(&self) -> Result<&'static Driver> {
        if let Some(lost) = self.lost.get() {
            return Err(lost.clone());
        }
        self.check_call(self.bind())?;
        Ok(self.driver)
    }

    /// The same for destructors: a lost device still has its handles given back.
    pub(crate) fn enter_to_free(&self) -> Option<&'static Driver> {
        self.bind().is_ok().then_some(self.driver)
    }

    fn bind(&self) -> Status {
        // SAFETY: the context is retained until `self` is dropped.
        unsafe { self.driver.cuCtxSetCurrent(self.handle.raw()) }
    }

    /// The error of a call, if it has one. A loss is remembered.
    pub(crate) fn check(&self, status: Status) -> Result<()> {
        if status.code() == code::OUT_OF_MEMORY {
            // A stream, a launch or an event needs some memory too; the driver does not say how
            // much. Callers that know what they asked for look at the status first.
            tracing::debug!(device = %self.id, call = status.call(), "no room");
            return Err(self.no_room(memory::CUDA_DEVICE, 0));
        }
        self.check_call(status)
    }

    /// The same for calls that need no memory, of which `check` itself makes use.
    fn check_call(&self, status: Status) -> Result<()> {
        if status.is_ok() {
            return Ok(());
        }
        if !status.is_lost() {
            return Err(status.error(self.driver, self.id));
        }
        // The first report says most; all later calls repeat it.
        let lost = self.lost.get_or_init(|| {
            let mut message = self.driver.explain(status);
            if status.blames_kernels() {
                message += &self.suspects();
            }
            let error = DeviceError::lost(self.id, status.call(), message);
            tracing::error!(device = %self.id, %error, "device lost");
            error
        });
        Err(lost.clone())
    }

    /// Remembers a kernel that is about to be launched.
    pub(crate) fn launching(&self, name: &Arc<str>) {
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        if launched.front().is_some_and(|last| last == name) {
            return;
        }
        launched.retain(|other| other != name);
        launched.truncate(SUSPECTS - 1);
        launched.push_front(Arc::clone(name));
    }

    /// The driver tells of a kernel's fault at some later call, and never whose it was. These are
    /// the names to begin with.
    fn suspects(&self) -> String {
        let launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<String> = launched.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            return String::new();
        }
        format!("; launched last, latest first: {}", names.join(", "))
    }

    /// For destructors, which cannot report: says in the log what was not given back.
    pub(crate) fn check_freed(&self, status: Status) {
        if !status.is_ok() && self.lost.get().is_none() {
            let error = status.error(self.driver, self.id);
            tracing::warn!(device = %self.id, %error, "the driver kept something");
        }
    }

    /// Free and total memory of the device, counting every process.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let driver = self.enter()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: a context is current, and both places are writable.
        let status = unsafe { driver.cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        self.check_call(status)?;
        Ok((free as u64, total as u64))
    }

    /// There is no room for `asked` bytes of `kind`.
    pub(crate) fn no_room(&self, kind: MemoryKind, asked: u64) -> DeviceError {
        // Nobody counts the host's lockable memory.
        let counted = (kind == memory::CUDA_DEVICE).then(|| self.memory());
        DeviceError::OutOfMemory {
            device: self.id,
            kind,
            asked,
            free: counted.and_then(Result::ok).map(|(free, _)| free),
        }
    }

    /// What buffers hold, of any kind.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn hold(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// An event that was used before, or a new one. Reuse is allowed even while a stream still
    /// waits for its earlier state: the manual says a wait keeps the state it found.
    pub(crate) fn take_event(&self) -> Result<Foreign<sys::CUevent_st>> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(event) = spare {
            return Ok(event);
        }
        let driver = self.enter()?;
        let mut event = std::ptr::null_mut();
        // Blocking sync: a host that waits sleeps. Timing stays on, for `Event::at`.
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        // SAFETY: a context is current, and the place for the answer is writable.
        let status = unsafe { driver.cuEventCreate(&raw mut event, flags) };
        self.check(status)?;
        Ok(Foreign::new(event))
    }

    pub(crate) fn return_event(&self, event: Foreign<sys::CUevent_st>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(event);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let spare = std::mem::take(self.spare.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let Some(driver) = self.enter_to_free() {
            for event in spare {
                // SAFETY: the event was made in this context, and nobody else has it.
                let status = unsafe { driver.cuEventDestroy_v2(event.raw()) };
                self.check_freed(status);
            }
        }
        // SAFETY: retained once, in `retain`, and released once, here.
        let status = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.device) };
        self.check_freed(status);
    }
}
