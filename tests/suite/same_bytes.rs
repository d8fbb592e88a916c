//! I6: the same input gives the same bytes on every strict device.

use std::time::Duration;

use warploom::{Arg, Caps, CheckedDevice, Grid, Options, Queue, QueueDesc, Slice, registry};

use crate::kernels;

const N: u32 = 10_007;
const A: f32 = 0.731;

pub(crate) fn inputs() -> Vec<f32> {
    let value = |i: u32| f32::from_bits(0x3000_0000 + i.wrapping_mul(2_654_435_761) % 0x1800_0000);
    (0..N).map(value).collect()
}

/// Runs the formula on a device.
pub(crate) fn run(device: &CheckedDevice, x: &[f32]) -> Vec<f32> {
    let info = device.info();
    let sources = kernels::sources();
    let kernel = device.kernel(info.pick(&sources).unwrap()).unwrap();
    let (local, bytes) = (info.local_kind().unwrap(), u64::from(N) * 4);
    let (from, to) = (
        device.alloc(local, bytes).unwrap(),
        device.alloc(local, bytes).unwrap(),
    );
    let mut queue = device.queue(&QueueDesc::named("ratio")).unwrap();
    queue
        .upload(bytemuck::cast_slice(x), &Slice::whole(&from))
        .unwrap();
    let args = [
        Slice::whole(&from).into(),
        Slice::whole(&to).into(),
        Arg::F32(A),
        Arg::U32(N),
    ];
    let grid = Grid::cover([u64::from(N), 1, 1], kernels::GROUP);
    queue.launch(&kernel, grid, &args).unwrap();
    queue
        .record()
        .unwrap()
        .wait(Some(Duration::from_mins(1)))
        .unwrap();
    let mut y = vec![0_f32; x.len()];
    queue
        .download(&Slice::whole(&to), bytemuck::cast_slice_mut(&mut y))
        .unwrap();
    y
}

/// Steps between two floats of one sign.
fn ulps(a: f32, b: f32) -> u32 {
    a.to_bits().abs_diff(b.to_bits())
}

pub(crate) fn check(device: &CheckedDevice, y: &[f32], x: &[f32]) {
    let id = device.info().id;
    let strict = device.info().caps.contains(Caps::STRICT_MATH);
    let worst = x
        .iter()
        .zip(y)
        .map(|(x, y)| ulps(kernels::expected(*x, A), *y))
        .max()
        .unwrap();
    // WGSL allows 2.5 ulp for the division, and the square root may be one off before it.
    let allowed = if strict { 0 } else { 4 };
    assert!(
        worst <= allowed,
        "{id} is {worst} ulp off, {allowed} are allowed"
    );
}

#[test]
fn i6_every_strict_device_gives_the_same_bits() {
    let status = registry().setup(&Options::default()).unwrap();
    let x = inputs();
    for face in status
        .survey
        .devices
        .iter()
        .flat_map(|device| &device.faces)
    {
        let device = registry().open(face.id).unwrap();
        check(&device, &run(&device, &x), &x);
        eprintln!("{} ({}) agrees", face.id, face.name);
    }
}
