//! What a device's case works with: a freshly opened device and short words for long calls.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_core::{
    Buffer, CheckedDevice, CheckedQueue, DeviceError, DeviceId, DeviceInfo, Element, Event,
    MemoryKind, Queue, QueueDesc, Slice, UsageError,
};

use crate::case::{Stop, Verdict};
use crate::kernels::{Loaded, Program};
use crate::session::Bench;
use crate::slow::Slow;

/// How long a case waits for something that takes a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A device opened for one case.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    /// What the probe said.
    pub(crate) probed: DeviceInfo,
    pub(crate) device: CheckedDevice,
}

impl Rig {
    pub(crate) fn open(bench: Bench, probed: DeviceInfo) -> Verdict<Self> {
        let device = bench.open(probed.id.ordinal)?;
        Ok(Self {
            bench,
            probed,
            device,
        })
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.probed.id
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// The same device opened once more.
    pub(crate) fn reopen(&self) -> Verdict<CheckedDevice> {
        self.bench.open(self.id().ordinal)
    }

    pub(crate) fn queue(&self) -> Verdict<CheckedQueue> {
        Ok(self.device.queue(&QueueDesc::named("conformance"))?)
    }

    pub(crate) fn queues<const N: usize>(&self) -> Verdict<[CheckedQueue; N]> {
        let made: Vec<CheckedQueue> = (0..N).map(|_| self.queue()).collect::<Verdict<_>>()?;
        made.try_into()
            .map_err(|_| Stop::fail("as many queues as asked for"))
    }

    /// The kind kernels work in.
    pub(crate) fn local(&self) -> Verdict<MemoryKind> {
        let kind = self.info().local_kind();
        kind.ok_or_else(|| Stop::fail("no memory kind that kernels can use"))
    }

    /// The kinds the host can see, the pinned one first.
    pub(crate) fn visible(&self) -> Verdict<Vec<MemoryKind>> {
        let info = self.info();
        let mut kinds: Vec<MemoryKind> = info.memory.clone();
        kinds.retain(|kind| kind.space().host_visible());
        kinds.sort_by_key(|kind| Some(*kind) != info.staging_kind());
        if kinds.is_empty() {
            return Err(Stop::skip("no memory kind is visible to the host"));
        }
        Ok(kinds)
    }

    /// Uninitialised memory kernels can use.
    pub(crate) fn buffer(&self, bytes: u64) -> Verdict<Arc<dyn Buffer>> {
        Ok(self.device.alloc(self.local()?, bytes)?)
    }

    /// Memory kernels can use, with this content.
    pub(crate) fn holding<T: Element>(
        &self,
        queue: &mut dyn Queue,
        values: &[T],
    ) -> Verdict<Slice> {
        self.holding_in(self.local()?, queue, values)
    }

    /// Memory of `kind` with this content.
    pub(crate) fn holding_in<T: Element>(
        &self,
        kind: MemoryKind,
        queue: &mut dyn Queue,
        values: &[T],
    ) -> Verdict<Slice> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let slice = Slice::whole(&self.device.alloc(kind, bytes.len() as u64)?);
        queue.upload(bytes, &slice)?;
        Ok(slice)
    }

    /// `bytes` rounded up to where a kernel's slice may start.
    pub(crate) fn aligned(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(u64::from(self.info().limits.slice_align))
    }

    pub(crate) fn load(&self, program: &'static Program) -> Verdict<Loaded> {
        load(&self.device, program)
    }

    /// A kernel that keeps the device busy for about a tenth of a second.
    pub(crate) fn slow(&self) -> Verdict<Slow> {
        Slow::load(self, &self.device)
    }

    /// The same on another opening.
    pub(crate) fn slow_on(&self, device: &CheckedDevice) -> Verdict<Slow> {
        Slow::load(self, device)
    }
}

pub(crate) fn load(device: &CheckedDevice, program: &'static Program) -> Verdict<Loaded> {
    let kernel = device.kernel(&program.pick(device.info())?)?;
    Ok(Loaded { program, kernel })
}

/// Waits for an event that must come.
#[track_caller]
pub(crate) fn done(event: &Arc<dyn Event>) -> Verdict {
    match event.wait(Some(PATIENCE)) {
        Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Asks again until it is so, for a while.
pub(crate) fn eventually(mut so: impl FnMut() -> Verdict<bool>) -> Verdict<bool> {
    let begun = Instant::now();
    loop {
        if so()? {
            return Ok(true);
        }
        if begun.elapsed() > Duration::from_secs(4) {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The content of a slice.
#[track_caller]
pub(crate) fn content<T: Element>(queue: &mut dyn Queue, slice: &Slice) -> Verdict<Vec<T>> {
    let len = usize::try_from(slice.len()).unwrap_or(usize::MAX) / size_of::<T>();
    let mut values = vec![T::zeroed(); len];
    match queue.download(slice, bytemuck::cast_slice_mut(&mut values)) {
        Ok(()) => Ok(values),
        Err(error) => Err(error.into()),
    }
}

/// Fails with the first difference.
#[track_caller]
pub(crate) fn same<T: Element>(what: &str, got: &[T], want: &[T]) -> Verdict {
    if got.len() != want.len() {
        return Err(Stop::fail(format!(
            "{what}: {} elements instead of {}",
            got.len(),
            want.len()
        )));
    }
    // Bits, not values: a NaN equals itself here.
    if bytemuck::cast_slice::<T, u8>(got) == bytemuck::cast_slice::<T, u8>(want) {
        return Ok(());
    }
    let differs = |at: &usize| bytemuck::bytes_of(&got[*at]) != bytemuck::bytes_of(&want[*at]);
    let wrong = (0..got.len()).filter(differs).count();
    match (0..got.len()).find(differs) {
        None => Ok(()),
        Some(at) => Err(Stop::fail(format!(
            "{what}: element {at} of {} is {:?} instead of {:?}, {wrong} are wrong",
            got.len(),
            got[at],
            want[at]
        ))),
    }
}

/// A part of a buffer that is known to be one.
#[track_caller]
pub(crate) fn part(buffer: &Arc<dyn Buffer>, range: Range<u64>) -> Verdict<Slice> {
    match Slice::new(Arc::clone(buffer), range) {
        Ok(slice) => Ok(slice),
        Err(error) => Err(error.into()),
    }
}

/// Fails unless the call was refused in the way `is` describes.
#[track_caller]
pub(crate) fn refused<T>(
    what: &str,
    result: Result<T, DeviceError>,
    is: fn(&UsageError) -> bool,
) -> Verdict {
    match result {
        Err(DeviceError::Usage(error)) if is(&error) => Ok(()),
        Err(error) => Err(Stop::fail(format!("{what} was refused wrongly: {error}"))),
        Ok(_) => Err(Stop::fail(format!("{what} was accepted"))),
    }
}
