//! Scenes in which something runs out, breaks or is refused.

use std::time::Duration;

use warploom_core::{
    DType, DeviceError, GpuBackend, Grid, KernelCode, KernelSource, Language, Param, Queue,
    QueueDesc, memory,
};
use warploom_cuda::CudaBackend;

use crate::rig::{PTX, device_memory, load, open, pinned_memory, queue};

pub(crate) fn memory_of_dropped_buffers_is_found_again() {
    const PIECE: usize = 40 << 20;
    let device = open(0);
    let mut queue = queue(&device);
    let number = Param::Scalar(DType::U32);
    let fill = load(&device, "fill", &[Param::Write, number, number]);
    for round in 0..4_u32 {
        // 64 MiB hold one piece: the last one must be let go of, although no call was made on
        // the queue since, and although nobody waited.
        let piece = device_memory(&device, PIECE);
        let args = [piece.clone().into(), round.into(), 100_u32.into()];
        queue
            .launch(&fill, Grid::groups([2, 1, 1]), &args)
            .expect("a launch");
    }
    let kept = device_memory(&device, PIECE);
    let error = device
        .alloc(memory::CUDA_DEVICE, PIECE as u64)
        .expect_err("no room");
    assert_eq!(
        error.to_string(),
        "cuda:0 has no room for 40.0 MiB of cuda.device, 24.0 MiB free"
    );
    // Code and queues need room as well.
    let rest = device_memory(&device, 24 << 20);
    // SAFETY: it does not load.
    let source = unsafe { KernelSource::vouch("fill", KernelCode::Ptx(PTX), &[], [1; 3]) };
    let no_room = |asked| DeviceError::OutOfMemory {
        device: device.info().id,
        kind: memory::CUDA_DEVICE,
        asked,
        free: Some(0),
    };
    let error = device.kernel(&source).expect_err("no room");
    assert_eq!(error, no_room(PTX.len() as u64 + 1));
    let error = device.queue(&QueueDesc::default()).expect_err("no room");
    assert_eq!(error, no_room(0));
    drop((kept, rest));
    device_memory(&device, PIECE);
}

pub(crate) fn a_lost_device_stays_lost() {
    let device = open(0);
    let mut queue = queue(&device);
    let crash = load(&device, "crash", &[]);
    let slice = device_memory(&device, 64);
    let pinned = pinned_memory(&device, 64);
    let before = queue.record().expect("an event");
    before.wait(None).expect("nothing was wrong yet");
    queue
        .launch(&crash, Grid::groups([1, 1, 1]), &[])
        .expect("a launch");
    queue.copy(&slice, &pinned).expect("a copy");
    let after = queue.record().expect("an event");
    let lost = after.wait(None).expect_err("the kernel crashed");
    assert_eq!(
        lost.to_string(),
        "cuda:0 was lost in cuEventSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700); \
         launched last, latest first: `crash`"
    );
    assert_eq!(after.is_done(), Err(lost.clone()));
    assert_eq!(after.at(), None);
    assert_eq!(before.is_done(), Ok(true), "what was done stays done");
    assert_eq!(device.memory(), Err(lost.clone()));
    assert_eq!(queue.upload(&[0; 64], &slice), Err(lost.clone()));
    assert_eq!(queue.record().err(), Some(lost.clone()));
    assert_eq!(pinned.buffer().with_host(&mut |_| ()), Err(lost.clone()));
    assert_eq!(device.alloc(memory::CUDA_DEVICE, 1).err(), Some(lost));
    // Everything is dropped here; the driver complains of what leaks.
}

pub(crate) fn waits_end_in_time() {
    let device = open(0);
    let mut queue = queue(&device);
    let (a, b) = (device_memory(&device, 64), device_memory(&device, 64));
    for _ in 0..500 {
        queue.copy(&a, &b).expect("a copy");
    }
    let event = queue.record().expect("an event");
    // The driver does less than one piece of work per question, so this one cannot be reached.
    let error = event.wait(Some(Duration::ZERO)).expect_err("too early");
    assert_eq!(
        error,
        DeviceError::Timeout {
            device: device.info().id,
            waited: Duration::ZERO
        }
    );
    assert!(matches!(
        event.wait(Some(Duration::from_millis(3))),
        Err(DeviceError::Timeout { .. })
    ));
    event.wait(Some(Duration::from_mins(10))).expect("in time");
    event.wait(Some(Duration::ZERO)).expect("reached for good");
    event.wait(None).expect("reached for good");
}

pub(crate) fn bad_code_is_refused_with_words() {
    let device = open(0);
    let build = |name, code, group| {
        // SAFETY: none of these loads.
        let source = unsafe { KernelSource::vouch(name, code, &[], group) };
        device.bare().kernel(&source).expect_err("it does not load")
    };
    let error = build("fill", KernelCode::Ptx("not PTX"), [1; 3]);
    assert_eq!(
        error.to_string(),
        "kernel `fill` did not compile on cuda:0\n\
         CUDA_ERROR_INVALID_PTX (218)\nptxas fatal: no entry"
    );
    let error = build("absent", KernelCode::Ptx(PTX), [1; 3]);
    assert!(
        error.to_string().contains("no kernel of this name"),
        "{error}"
    );
    let error = build("fi\0ll", KernelCode::Ptx(PTX), [1; 3]);
    assert!(
        error.to_string().contains("no kernel of this name"),
        "{error}"
    );
    let error = build("fill", KernelCode::Ptx(PTX), [1024, 1, 1]);
    assert!(
        error.to_string().contains("whose registers allow 512"),
        "{error}"
    );
    let error = build("fill", KernelCode::OpenClC(""), [1; 3]);
    assert_eq!(
        error.to_string(),
        "cuda:0 does not support OpenCL C kernels"
    );
}

/// Code that does not compile.
const BAD: &str = "extern \"C\" __global__ void bad() { nonsense(1); }";

/// CUDA C through a real NVRTC; the driver then takes PTX, or only machine code.
pub(crate) fn compiled(nvrtc: &str, name: &str) {
    let backend = CudaBackend::load().expect("loaded").with_nvrtc(nvrtc);
    let device = backend.open(0).expect("it opens");
    assert_eq!(device.info().languages, [Language::CudaC, Language::Ptx]);
    let code = format!("extern \"C\" __global__ void {name}(float* out) {{ out[0] = 1; }}");
    // SAFETY: it is never launched.
    let source =
        unsafe { KernelSource::vouch(name, KernelCode::CudaC(&code), &[Param::Write], [32, 1, 1]) };
    let kernel = device.kernel(&source).expect("it compiles and loads");
    assert_eq!((kernel.name(), kernel.device()), (name, device.info().id));
    // SAFETY: it does not compile.
    let source = unsafe { KernelSource::vouch(name, KernelCode::CudaC(BAD), &[], [32, 1, 1]) };
    let error = device.kernel(&source).expect_err("it does not compile");
    assert!(
        matches!(&error, DeviceError::Build { log, .. } if log.contains("nonsense")),
        "{error}"
    );
    // Without NVRTC there is no CUDA C.
    let without = CudaBackend::load()
        .expect("loaded")
        .with_nvrtc("no-such-nvrtc.so");
    let device = without.open(0).expect("it opens");
    assert_eq!(device.info().languages, [Language::Ptx]);
    let error = device.kernel(&source).expect_err("nothing compiles it");
    assert_eq!(
        error.to_string(),
        "cuda:0 does not support CUDA C kernels: NVRTC is not installed (looked for no-such-nvrtc.so)"
    );
}
