//! The same kernel on every device: y = a x + y, written once for each language a driver takes.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use anyhow::{Context, ensure};
use warploom::{
    Arg, CheckedDevice, DType, Grid, KernelCode, KernelSource, Options, Param, Queue, QueueDesc,
    Slice, registry,
};

const N: u32 = 1 << 20;
const GROUP: [u32; 3] = [64, 1, 1];
/// What the kernel does with each argument: x, y, a, n.
const PARAMS: [Param; 4] = [
    Param::Read,
    Param::ReadWrite,
    Param::Scalar(DType::F32),
    Param::Count { element: 4 },
];

const OPENCL: &str = "
__kernel void saxpy(__global const float* x, __global float* y, float a, uint n) {
    uint i = get_global_id(0);
    if (i < n) y[i] = a * x[i] + y[i];
}";

const CUDA: &str = r#"
extern "C" __global__ void saxpy(const float* x, float* y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"#;

const WGSL: &str = "
struct Scalars { a: f32, n: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> s: Scalars;
@compute @workgroup_size(64, 1, 1)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < s.n) { y[id.x] = s.a * x[id.x] + y[id.x]; }
}";

/// Every version of the kernel. A device picks the one in a language it takes.
fn sources() -> Vec<KernelSource<'static>> {
    let host = KernelSource::host("saxpy", &PARAMS, |call| {
        let (x, a) = (call.read::<f32>(0), call.scalar::<f32>(2));
        for (y, x) in call.write::<f32>(1).iter_mut().zip(x) {
            *y += a * x;
        }
    });
    let wgsl = KernelSource::wgsl("saxpy", WGSL, &PARAMS, GROUP);
    // SAFETY: the parameters are the functions' own. Both touch x[i] and y[i] only for i < n, and
    // n is a `Count`: a launch whose slices hold fewer elements is refused. Only y is written, and
    // neither loops.
    let opencl =
        unsafe { KernelSource::vouch("saxpy", KernelCode::OpenClC(OPENCL), &PARAMS, GROUP) };
    // SAFETY: as above.
    let cuda = unsafe { KernelSource::vouch("saxpy", KernelCode::CudaC(CUDA), &PARAMS, GROUP) };
    vec![host, wgsl, opencl, cuda]
}

fn main() -> anyhow::Result<()> {
    let status = registry().setup(&Options::default())?;
    for face in status
        .survey
        .devices
        .iter()
        .flat_map(|device| &device.faces)
    {
        run(&registry().open(face.id)?)?;
        println!(
            "{:10} {:32} {N} values right",
            face.id.to_string(),
            face.name
        );
    }
    Ok(())
}

fn run(device: &CheckedDevice) -> anyhow::Result<()> {
    let info = device.info();
    let local = info.local_kind().context("no memory for kernels")?;
    let sources = sources();
    let source = info.pick(&sources).context("no version in its language")?;
    let kernel = device.kernel(source)?;

    // Small whole numbers, so that every order of rounding gives the same floats.
    let value = |i: u32| f32::from(u16::try_from(i % 1000).unwrap_or_default());
    let x: Vec<f32> = (0..N).map(value).collect();
    let y: Vec<f32> = (0..N).map(|i| value(i / 7)).collect();
    let bytes = u64::from(N) * 4;
    let (on_x, on_y) = (device.alloc(local, bytes)?, device.alloc(local, bytes)?);

    let mut queue = device.queue(&QueueDesc::named("saxpy"))?;
    queue.upload(bytemuck::cast_slice(&x), &Slice::whole(&on_x))?;
    queue.upload(bytemuck::cast_slice(&y), &Slice::whole(&on_y))?;
    let args = [
        Arg::Slice(Slice::whole(&on_x)),
        Arg::Slice(Slice::whole(&on_y)),
        Arg::F32(2.0),
        Arg::U32(N),
    ];
    let grid = Grid::cover([u64::from(N), 1, 1], GROUP);
    queue.launch(&kernel, grid, &args)?;
    queue.record()?.wait(Some(Duration::from_mins(1)))?;

    let mut result = vec![0_f32; x.len()];
    queue.download(&Slice::whole(&on_y), bytemuck::cast_slice_mut(&mut result))?;
    let right = result
        .iter()
        .zip(x.iter().zip(&y))
        .all(|(r, (x, y))| r.to_bits() == (2.0 * x + y).to_bits());
    ensure!(right, "{} computed something else", info.id);
    Ok(())
}
