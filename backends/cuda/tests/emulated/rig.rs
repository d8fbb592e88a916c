//! What scenes are made of.

use std::sync::Arc;
use std::time::Duration;

use warploom_core::{
    Arg, CheckedDevice, CheckedQueue, DType, DeviceError, Event, GpuBackend, Grid, Kernel,
    KernelCode, KernelSource, MemoryKind, Param, Queue, QueueDesc, Result, Slice, memory,
};
use warploom_cuda::CudaBackend;

/// `fill` works; each of the others brings its device down.
pub(crate) const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 count) {
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [count];
    setp.ge.u32 %p, %r3, %r4;
    @%p ret;
    ld.param.u32 %r5, [value];
    ld.param.u64 %rd0, [out];
    mul.wide.u32 %rd1, %r3, 4;
    add.u64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r5;
    ret;
}
.visible .entry beyond(.param .u64 out) {
    .reg .b32 %r;
    .reg .b64 %rd;
    mov.u32 %r, 1;
    ld.param.u64 %rd, [out];
    st.global.u32 [%rd + 1048576], %r;
    ret;
}
.visible .entry crooked(.param .u64 out) {
    .reg .b32 %r;
    .reg .b64 %rd;
    mov.u32 %r, 1;
    ld.param.u64 %rd, [out];
    st.global.u32 [%rd + 2], %r;
    ret;
}
.visible .entry trapped(.param .u64 out) {
    trap;
    ret;
}
";

/// Numbers in the buffers of a round.
const COUNT: u32 = 100;

/// What sort of error it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    OutOfMemory,
    Lost,
    Unsupported,
    Driver,
    Build,
    Probe,
    Other,
}

/// The sort of an error.
pub(crate) fn kind(error: &DeviceError) -> Kind {
    match error {
        DeviceError::OutOfMemory { .. } => Kind::OutOfMemory,
        DeviceError::Lost { .. } => Kind::Lost,
        DeviceError::Unsupported { .. } => Kind::Unsupported,
        DeviceError::Driver { .. } => Kind::Driver,
        DeviceError::Build { .. } => Kind::Build,
        DeviceError::Probe { .. } => Kind::Probe,
        _ => Kind::Other,
    }
}

/// The backend without NVRTC, which takes longer to load than a scene to play.
pub(crate) fn backend() -> CudaBackend {
    CudaBackend::load()
        .expect("the emulator loads")
        .with_nvrtc("no-such-nvrtc")
}

pub(crate) fn open(ordinal: u32) -> CheckedDevice {
    CheckedDevice::new(backend().open(ordinal).expect("it opens"))
}

pub(crate) fn queue(device: &CheckedDevice) -> CheckedQueue {
    device.queue(&QueueDesc::named("test")).expect("a queue")
}

pub(crate) fn alloc(device: &CheckedDevice, kind: MemoryKind, bytes: u64) -> Result<Slice> {
    device
        .alloc(kind, bytes)
        .map(|buffer| Slice::whole(&buffer))
}

pub(crate) fn load(device: &CheckedDevice, name: &str) -> Result<Arc<dyn Kernel>> {
    let number = Param::Scalar(DType::U32);
    let params: &[Param] = match name {
        "fill" => &[Param::Write, number, number],
        _ => &[Param::Write],
    };
    // SAFETY: `fill` stays inside its slice, and the emulator catches what the others do.
    let source = unsafe { KernelSource::vouch(name, KernelCode::Ptx(PTX), params, [32, 1, 1]) };
    device.kernel(&source)
}

/// Launches `fill`.
pub(crate) fn fill(
    queue: &mut CheckedQueue,
    kernel: &Arc<dyn Kernel>,
    slice: &Slice,
    value: u32,
) -> Result<()> {
    let count = u32::try_from(slice.len() / 4).expect("scenes have small slices");
    let args = [Arg::from(slice.clone()), value.into(), count.into()];
    queue.launch(kernel, Grid::groups([count.div_ceil(32), 1, 1]), &args)
}

pub(crate) fn content(queue: &mut CheckedQueue, slice: &Slice) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(slice.len()).expect("scenes have small slices")];
    queue.download(slice, &mut bytes)?;
    Ok(bytes)
}

/// What `fill` leaves in a slice of `bytes`.
pub(crate) fn filled(value: u32, bytes: usize) -> Vec<u8> {
    value.to_ne_bytes().repeat(bytes / 4)
}

/// Everything the backend does on a device, from listing it to closing it, and every driver call at
/// least three times on the way. Panics when bytes are wrong.
pub(crate) fn round(backend: &CudaBackend, ordinal: u32) -> Result<()> {
    for _ in 0..3 {
        backend.probe()?;
    }
    let device = CheckedDevice::new(backend.open(ordinal)?);
    let worked = work(&device);
    if let Err(lost @ DeviceError::Lost { .. }) = &worked {
        assert_lost(&device, lost);
    }
    worked
}

/// Everything that a lost device is asked for is answered with its loss.
pub(crate) fn assert_lost(device: &CheckedDevice, lost: &DeviceError) {
    for kind in [memory::CUDA_DEVICE, memory::CUDA_PINNED] {
        assert_eq!(device.alloc(kind, 64).err().as_ref(), Some(lost));
    }
    let desc = QueueDesc::named("late");
    assert_eq!(device.queue(&desc).err().as_ref(), Some(lost));
    assert_eq!(load(device, "fill").err().as_ref(), Some(lost));
    assert_eq!(device.memory().err().as_ref(), Some(lost));
}

/// The work of a round.
pub(crate) fn work(device: &CheckedDevice) -> Result<()> {
    const BYTES: u64 = COUNT as u64 * 4;
    let (mut first, mut second) = (
        device.queue(&QueueDesc::named("first"))?,
        device.queue(&QueueDesc::named("second"))?,
    );
    let mut events: Vec<Arc<dyn Event>> = Vec::new();
    for turn in 1..=3_u32 {
        let fill_kernel = load(device, "fill")?;
        let [a, b] = [
            alloc(device, memory::CUDA_DEVICE, BYTES)?,
            alloc(device, memory::CUDA_DEVICE, BYTES)?,
        ];
        let [p, q] = [
            alloc(device, memory::CUDA_PINNED, BYTES)?,
            alloc(device, memory::CUDA_PINNED, BYTES)?,
        ];
        let bytes = filled(turn * 1000, COUNT as usize * 4);
        first.upload(&bytes, &a)?;
        assert!(content(&mut first, &a)? == bytes, "uploaded and downloaded");
        fill(&mut first, &fill_kernel, &a, turn)?;
        let done = first.record()?;
        second.wait(&done)?;
        second.copy(&a, &b)?;
        second.copy(&b, &p)?;
        second.copy(&p, &q)?;
        let copied = second.record()?;
        copied.wait(Some(Duration::from_mins(1)))?;
        done.wait(None)?;
        assert!(copied.is_done()?);
        // A driver that cannot measure has no time to tell, which is no error.
        let _ = copied.at();
        let mut found = Vec::new();
        q.buffer().with_host(&mut |host| found = host.to_vec())?;
        assert!(found == filled(turn, found.len()), "filled and copied");
        let kept = device.memory()?.ours;
        assert!(kept >= 4 * BYTES, "{kept}");
        events.extend([done, copied]);
    }
    Ok(())
}
