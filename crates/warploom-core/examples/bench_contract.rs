//! What the contract itself costs: the survey of many devices, and the checks in front of a launch
//! on a device that does nothing. `cargo xtask bench contract` runs it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../tests/null/mod.rs"]
mod null;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use null::{NULL, NullDevice};
use warploom_core::{
    Arg, BackendId, CheckedDevice, DType, DeviceError, DeviceId, DeviceInfo, Grid, KernelSource,
    Param, PciAddress, PhysicalKey, Queue, QueueDesc, Slice, Survey, Uuid, memory,
};

/// The best of `rounds`, in nanoseconds per call: what the code costs when nothing else runs.
fn best_ns(rounds: u32, calls: u32, mut call: impl FnMut()) -> f64 {
    let round = |_| {
        let started = Instant::now();
        (0..calls).for_each(|_| call());
        started.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}

/// Sixteen cards, each seen by four backends that number them differently.
fn sixty_four() -> Vec<DeviceInfo> {
    let backends = ["cuda", "opencl", "wgpu", "metal"].map(BackendId::new);
    let device = |(at, backend): (u8, BackendId)| {
        let ordinal = u32::from(at ^ backend.as_str().len().to_le_bytes()[0]);
        let id = DeviceId::new(backend, ordinal);
        let mut info = DeviceInfo::new(id, "Synthetic Card 9000", &[memory::CUDA_DEVICE]);
        let pci = PciAddress {
            domain: 0,
            bus: at,
            device: 0,
            function: 0,
        };
        info.key = PhysicalKey {
            pci: Some(pci),
            uuid: Some(Uuid([at; 16])),
            ..PhysicalKey::default()
        };
        info
    };
    let all = (0..16_u8).flat_map(|at| backends.map(|backend| (at, backend)));
    all.map(device).collect()
}

fn main() -> Result<(), DeviceError> {
    let devices = sixty_four();
    let survey = best_ns(20, 20, || {
        black_box(Survey::unite(Vec::new(), black_box(devices.clone())));
    });
    println!("survey_64_devices_us {:.1}", survey / 1e3);

    let bare = NullDevice::open(0);
    let device = CheckedDevice::new(Arc::clone(&bare));
    let params = [
        Param::Read,
        Param::Read,
        Param::Write,
        Param::Scalar(DType::U32),
    ];
    let kernel = device.kernel(&KernelSource::host("null", &params, |_| {}))?;
    let buffer = device.alloc(memory::CUDA_DEVICE, 4096)?;
    let slice = |from: u64| Slice::new(Arc::clone(&buffer), from..from + 1024);
    let args = [
        slice(0)?.into(),
        slice(1024)?.into(),
        slice(2048)?.into(),
        Arg::U32(7),
    ];
    let grid = Grid::groups([16, 16, 1]);
    let mut plain = bare.queue(&QueueDesc::default())?;
    let mut checked = device.queue(&QueueDesc::default())?;
    let without = best_ns(50, 20_000, || {
        black_box(plain.launch(black_box(&kernel), grid, black_box(&args))).ok();
    });
    let with = best_ns(50, 20_000, || {
        black_box(checked.launch(black_box(&kernel), grid, black_box(&args))).ok();
    });
    assert_eq!(kernel.device().backend, NULL);
    println!("bare_launch_ns {without:.1}");
    println!("checked_launch_ns {with:.1}");
    Ok(())
}
