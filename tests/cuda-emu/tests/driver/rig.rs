//! What scenes have in common.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};

pub(crate) use warploom_cuda_emu::driver::ffi::{Handle, In, Out, Text, TextRoom};
pub(crate) use warploom_cuda_emu::driver::{Status, api};

/// Every variable the emulator reads; scenes begin without them.
pub(crate) const VARIABLES: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "WARPLOOM_EMU_DEVICES",
    "WARPLOOM_EMU_DRIVER",
    "WARPLOOM_EMU_FAIL",
    "WARPLOOM_EMU_JITTER",
    "WARPLOOM_EMU_LOG",
    "WARPLOOM_EMU_LOSE",
    "WARPLOOM_EMU_PINNED",
    "WARPLOOM_EMU_SEED",
    "WARPLOOM_EMU_WORKERS",
];

/// Makes a driver call and gives its status.
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        #[allow(unused_unsafe, reason = "functions that are not emulated look at no argument")]
        // SAFETY: the scene gives pointers to values of its own that live through the call, or
        // null, or numbers the driver must refuse before it follows them.
        let code = unsafe { $crate::rig::api::$name($($arg),*) };
        $crate::rig::Status::new(code)
    }};
}

/// Makes a driver call that must succeed.
macro_rules! ok {
    ($name:ident($($arg:expr),* $(,)?)) => {
        assert_eq!(cu!($name($($arg),*)), $crate::rig::Status::SUCCESS, stringify!($name))
    };
}

/// Makes a driver call that must succeed, and gives the value it writes to its first argument.
macro_rules! made {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let mut value = Default::default();
        ok!($name($crate::rig::Out::new(&raw mut value), $($arg),*));
        value
    }};
}

pub(crate) use {cu, made, ok};

/// Starts the driver and makes the primary context of a device current.
pub(crate) fn enter(device: i32) -> Handle {
    ok!(cuInit(0));
    let context: Handle = made!(cuDevicePrimaryCtxRetain(device));
    ok!(cuCtxSetCurrent(context));
    context
}

pub(crate) fn alloc(bytes: usize) -> u64 {
    made!(cuMemAlloc_v2(bytes))
}

/// Page-locked memory with some content.
pub(crate) fn pinned(content: &[u8]) -> u64 {
    let place: u64 = made!(cuMemHostAlloc(content.len(), 0));
    poke(place, content);
    place
}

/// The place of host memory.
pub(crate) fn host(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

pub(crate) fn host_mut(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr().expose_provenance() as u64
}

/// Writes to page-locked memory.
pub(crate) fn poke(place: u64, bytes: &[u8]) {
    let target = std::ptr::with_exposed_provenance_mut(usize::try_from(place).unwrap());
    // SAFETY: the scene allocated as many bytes there, and the driver touches them at most through
    // raw pointers.
    unsafe { std::ptr::copy(bytes.as_ptr(), target, bytes.len()) };
}

/// Reads page-locked memory.
pub(crate) fn peek(place: u64, bytes: usize) -> Vec<u8> {
    let source = std::ptr::with_exposed_provenance::<u8>(usize::try_from(place).unwrap());
    let mut content = vec![0; bytes];
    // SAFETY: as above.
    unsafe { std::ptr::copy(source, content.as_mut_ptr(), bytes) };
    content
}

/// Reads device memory when all work of the context is done.
pub(crate) fn download(address: u64, bytes: usize) -> Vec<u8> {
    ok!(cuCtxSynchronize());
    let mut content = vec![0; bytes];
    ok!(cuMemcpyDtoH_v2(host_mut(&mut content), address, bytes));
    content
}

/// Writes device memory, and waits until it is there.
pub(crate) fn upload(address: u64, content: &[u8]) {
    ok!(cuMemcpyHtoD_v2(address, host(content), content.len()));
    ok!(cuCtxSynchronize());
}

pub(crate) fn stream(flags: u32) -> Handle {
    made!(cuStreamCreate(flags))
}

pub(crate) fn event() -> Handle {
    made!(cuEventCreate(0))
}

/// Blocking, and not.
pub(crate) const BLOCKING: u32 = 0;
pub(crate) const NON_BLOCKING: u32 = 1;

/// The null handle.
pub(crate) const DEFAULT: Handle = Handle::NULL;

/// A stream that stands still until it is let go.
pub(crate) struct Gate {
    open: Sender<()>,
    reached: Receiver<()>,
}

struct Bars {
    open: Receiver<()>,
    reached: Sender<()>,
}

impl Gate {
    /// Closes the stream behind what it has so far.
    pub(crate) fn close(stream: Handle) -> Self {
        let (open, opened) = channel();
        let (reach, reached) = channel();
        let bars = Box::new(Bars {
            open: opened,
            reached: reach,
        });
        let bars = Box::into_raw(bars).cast::<c_void>();
        ok!(cuLaunchHostFunc(stream, Some(hold), bars));
        Self { open, reached }
    }

    /// Waits until the stream stands.
    pub(crate) fn wait(&self) {
        self.reached.recv().expect("the stream comes here");
    }

    /// Lets the stream go on.
    pub(crate) fn open(self) {
        self.open
            .send(())
            .expect("the stream stands or will come here");
    }
}

unsafe extern "C" fn hold(bars: *mut c_void) {
    // SAFETY: `Gate::close` made it of such a box, for this one call.
    let bars = unsafe { Box::from_raw(bars.cast::<Bars>()) };
    let _ = bars.reached.send(());
    let _ = bars.open.recv();
}

/// The description of the last fault.
pub(crate) fn last_fault() -> String {
    let mut text = vec![0_u8; 4096];
    let room = TextRoom::new(text.as_mut_ptr().cast());
    // SAFETY: the room has as many bytes as is told.
    let length = unsafe { api::warploomEmuLastFault(room, text.len()) };
    text.truncate(length);
    String::from_utf8(text).expect("reports are text")
}
