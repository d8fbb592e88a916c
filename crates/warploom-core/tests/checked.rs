//! Every call that could never work is refused before a backend sees it, with the numbers. The
//! wording is a snapshot: change it knowingly.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod null;

use std::sync::Arc;

use null::NullDevice;
use warploom_core::{
    Arg, Buffer, CheckedDevice, CheckedQueue, Coded, DType, DeviceError, Grid, Kernel, KernelCode,
    KernelSource, Param, Queue, QueueDesc, Result, Slice, memory,
};

const PARAMS: [Param; 3] = [Param::Read, Param::Write, Param::Scalar(DType::U32)];

struct Bench {
    device: CheckedDevice,
    queue: CheckedQueue,
    kernel: Arc<dyn Kernel>,
    a: Arc<dyn Buffer>,
    b: Arc<dyn Buffer>,
    pinned: Arc<dyn Buffer>,
    stranger: Arc<dyn Buffer>,
}

fn bench() -> Bench {
    let device = CheckedDevice::new(NullDevice::open(0));
    let other = CheckedDevice::new(NullDevice::open(1));
    let kernel = device
        .kernel(&KernelSource::host("blur", &PARAMS, |_| {}))
        .unwrap();
    Bench {
        queue: device.queue(&QueueDesc::default()).unwrap(),
        kernel,
        a: device.alloc(memory::CUDA_DEVICE, 8192).unwrap(),
        b: device.alloc(memory::CUDA_DEVICE, 4096).unwrap(),
        pinned: device.alloc(memory::CUDA_PINNED, 4096).unwrap(),
        stranger: other.alloc(memory::CUDA_DEVICE, 4096).unwrap(),
        device,
    }
}

fn part(buffer: &Arc<dyn Buffer>, range: std::ops::Range<u64>) -> Slice {
    Slice::new(Arc::clone(buffer), range).unwrap()
}

impl Bench {
    fn launch(&mut self, groups: [u32; 3], args: &[Arg]) -> Result<()> {
        self.queue.launch(&self.kernel, Grid::groups(groups), args)
    }
}

#[test]
fn i10_every_refusal_says_what_was_asked_with_the_numbers() {
    let mut t = bench();
    let (a, b) = (part(&t.a, 0..4096), part(&t.b, 0..4096));
    let (device, one) = (t.device.clone(), [1, 1, 1]);
    let good = [Arg::from(a.clone()), b.clone().into(), Arg::U32(1)];
    let with = |at: usize, arg: Arg| {
        let mut args = good.clone();
        args[at] = arg;
        args
    };
    t.launch(one, &good).unwrap();

    let stranger = CheckedDevice::new(NullDevice::open(1));
    let foreign = stranger
        .kernel(&KernelSource::host("blur", &PARAMS, |_| {}))
        .unwrap();
    let slices = [Param::Read; 5];
    let counted = [Param::Write, Param::Count { element: 4 }];
    let counting = device
        .kernel(&KernelSource::host("count", &counted, |_| {}))
        .unwrap();
    let fits = [a.clone().into(), Arg::U32(1024)];
    t.queue.launch(&counting, Grid::groups(one), &fits).unwrap();
    let errors: Vec<DeviceError> = vec![
        Slice::new(Arc::clone(&t.a), 5..5).unwrap_err(),
        Slice::new(Arc::clone(&t.a), 8000..9000).unwrap_err(),
        a.part(0..5000).unwrap_err(),
        t.queue.upload(&[0; 10], &a).unwrap_err(),
        t.queue.download(&a, &mut [0; 10]).unwrap_err(),
        t.queue.copy(&a, &part(&t.b, 0..100)).unwrap_err(),
        t.queue
            .copy(&part(&t.a, 0..100), &part(&t.a, 50..150))
            .unwrap_err(),
        t.queue.copy(&part(&t.stranger, 0..4096), &b).unwrap_err(),
        t.queue
            .upload(&[0; 4096], &part(&t.stranger, 0..4096))
            .unwrap_err(),
        t.queue
            .launch(&foreign, Grid::groups(one), &good)
            .unwrap_err(),
        t.launch(one, &good[..2]).unwrap_err(),
        t.launch(one, &with(2, Arg::F32(1.0))).unwrap_err(),
        t.launch(one, &with(0, Arg::I32(1))).unwrap_err(),
        t.launch(one, &with(2, a.clone().into())).unwrap_err(),
        t.launch(one, &with(0, part(&t.a, 8..16).into()))
            .unwrap_err(),
        t.launch(one, &with(0, part(&t.a, 0..8192).into()))
            .unwrap_err(),
        t.launch(one, &with(0, part(&t.b, 0..16).into()))
            .unwrap_err(),
        t.launch(one, &with(0, part(&t.pinned, 0..16).into()))
            .unwrap_err(),
        t.launch(one, &with(0, part(&t.stranger, 0..16).into()))
            .unwrap_err(),
        t.launch([0, 1, 1], &good).unwrap_err(),
        t.launch([1, 1, 11], &good).unwrap_err(),
        t.queue
            .launch(
                &counting,
                Grid::groups(one),
                &[a.clone().into(), Arg::U32(1025)],
            )
            .unwrap_err(),
        device
            .kernel(&KernelSource::host(
                "bytes",
                &[Param::Scalar(DType::U8)],
                |_| {},
            ))
            .unwrap_err(),
        device.alloc(memory::OPENCL_DEVICE, 16).unwrap_err(),
        device.alloc(memory::CUDA_DEVICE, 0).unwrap_err(),
        device.alloc(memory::CUDA_DEVICE, 1 << 20).unwrap_err(),
        device
            .kernel(&KernelSource::wgsl("blur", "", &PARAMS, one))
            .unwrap_err(),
        device
            .kernel(&KernelSource::host("wide", &slices, |_| {}))
            .unwrap_err(),
    ];
    let text: Vec<String> = errors
        .iter()
        .map(|error| {
            let help = error.help().map(|help| format!("\n  = help: {help}"));
            format!(
                "error[{}]: {error}{}",
                error.code(),
                help.unwrap_or_default()
            )
        })
        .collect();
    insta::assert_snapshot!("refusals", text.join("\n"));
}

#[test]
fn a_work_group_must_fit_the_device() {
    let t = bench();
    for group in [[65, 1, 1], [1, 1, 9], [8, 8, 2], [0, 1, 1]] {
        // SAFETY: the code is never compiled: this device keeps host kernels only.
        #[expect(unsafe_code, reason = "only foreign code can state a work group")]
        let source = unsafe { KernelSource::vouch("k", KernelCode::OpenClC(""), &PARAMS, group) };
        let error = t.device.kernel(&source).unwrap_err();
        assert_eq!(error.code().to_string(), "WL0512", "{error}");
    }
}

#[test]
fn readers_may_overlap_and_in_place_work_is_one_argument() {
    let mut t = bench();
    let params = [Param::Read, Param::Read, Param::ReadWrite];
    let kernel = t
        .device
        .kernel(&KernelSource::host("sum", &params, |_| {}))
        .unwrap();
    let a: Arg = part(&t.a, 0..1024).into();
    let args = [
        a.clone(),
        part(&t.a, 512..2048).into(),
        part(&t.b, 0..64).into(),
    ];
    t.queue
        .launch(&kernel, Grid::groups([1; 3]), &args)
        .unwrap();
    let clash = [a.clone(), part(&t.b, 0..64).into(), a];
    assert!(
        t.queue
            .launch(&kernel, Grid::groups([1; 3]), &clash)
            .is_err()
    );
}
