//! An operation of your own in each device's language, held against a function in Rust.
#![expect(
    unsafe_code,
    reason = "C can reach anywhere, and whoever writes it vouches that it does not"
)]
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use anyhow::ensure;
use warploom::kernels::ImageType;
use warploom::kernels::flow::{CustomInput, CustomOutput, Flow, Number, ValueKind};
use warploom::kernels::gpu::{SourceOp, SourceOpError};
use warploom::kernels::kernel::Target;
use warploom::kernels::program::{Loader, Program};
use warploom::{CheckedDevice, DType, Math, Options, registry};

const WIDTH: u64 = 640;
const HEIGHT: u64 = 480;
const GAIN: f32 = 0.75;

const OPENCL: &str = "
__kernel void slope(__global const ushort* a, __global float* out,
                    int az, int ay, int ax, int nz, int ny, int nx, float gain) {
  int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  if (x >= nx || y >= ny || z >= nz) return;
  int row = (z * ny + y) * nx;
  float left = a[row + max(x - 1, 0)], right = a[row + min(x + 1, nx - 1)];
  out[row + x] = (right - left) * gain;
}
";

const CUDA: &str = r#"
extern "C" __global__ void slope(const unsigned short* a, float* out,
                                 int az, int ay, int ax, int nz, int ny, int nx, float gain) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  int row = (z * ny + y) * nx;
  float left = a[row + max(x - 1, 0)], right = a[row + min(x + 1, nx - 1)];
  out[row + x] = (right - left) * gain;
}
"#;

const WGSL: &str = "
struct Numbers { az: i32, ay: i32, ax: i32, nz: i32, ny: i32, nx: i32, gain: f32 }
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> n: Numbers;
fn pixel(at: i32) -> f32 { return f32((a[at / 2] >> u32(16 * (at % 2))) & 0xffffu); }
@compute @workgroup_size(32, 4, 1)
fn slope(@builtin(global_invocation_id) id: vec3<u32>) {
  let x = i32(id.x);
  if (x >= n.nx || i32(id.y) >= n.ny || i32(id.z) >= n.nz) { return; }
  let row = (i32(id.z) * n.ny + i32(id.y)) * n.nx;
  out[row + x] = (pixel(row + min(x + 1, n.nx - 1)) - pixel(row + max(x - 1, 0))) * n.gain;
}
";

/// How steeply a `u16` image rises along x.
fn reference(inputs: &[CustomInput<'_>], outputs: &mut [CustomOutput<'_>]) {
    let width = usize::try_from(inputs[0].kind.dims()[2]).unwrap_or(usize::MAX);
    let rows = inputs[0].elements::<u16>().chunks(width);
    for (row, out) in rows.zip(outputs[0].elements::<f32>().chunks_mut(width)) {
        for (x, out) in out.iter_mut().enumerate() {
            let [left, right] = [x.saturating_sub(1), (x + 1).min(width - 1)];
            *out = (f32::from(row[right]) - f32::from(row[left])) * GAIN;
        }
    }
}

fn slope() -> Result<SourceOp, SourceOpError> {
    let op = SourceOp::new("slope", [32, 4, 1], reference)?.with_numbers(&[Number::F32(GAIN)]);
    // SAFETY: it has the parameters of such a kernel, for one input and one output of the same
    // extents; items beyond these return, and neighbours are kept inside the row.
    let op = unsafe { op.with_c(Target::OpenCl, OPENCL) }?;
    // SAFETY: the same, in the other dialect.
    let op = unsafe { op.with_c(Target::Cuda, CUDA) }?;
    op.with_wgsl(WGSL)
}

fn run(device: &CheckedDevice, pixels: &[u16]) -> anyhow::Result<Vec<f32>> {
    let plane = ImageType::plane(DType::U16, HEIGHT, WIDTH);
    let mut flow = Flow::new();
    let image = flow.input(ValueKind::Image(plane));
    let gives = ValueKind::Image(plane.with_dtype(DType::F32));
    let steep = slope()?.add(&mut flow, &[image], gives);
    flow.output(steep);
    let program = Program::new(&flow, device.info());
    let loaded = Loader::new(device.clone(), Math::Strict).load(program)?;
    let results = loaded.run(device, &[bytemuck::cast_slice(pixels)])?;
    Ok(bytemuck::pod_collect_to_vec(&results[0]))
}

fn main() -> anyhow::Result<()> {
    let status = registry().setup(&Options::default())?;
    let pixels: Vec<u16> = (0..WIDTH * HEIGHT)
        .map(|at| u16::try_from((at * 7919) % 4096))
        .collect::<Result<_, _>>()?;
    let mut expected: Option<Vec<f32>> = None;
    let devices = status.survey.devices.iter();
    for face in devices.flat_map(|device| &device.faces) {
        let result = run(&registry().open(face.id)?, &pixels)?;
        println!(
            "{:10} {:32} pixel 1 rises by {}",
            face.id.to_string(),
            face.name,
            result[1]
        );
        let expected = expected.get_or_insert_with(|| result.clone());
        ensure!(*expected == result, "{} gives other numbers", face.id);
    }
    Ok(())
}
