//! Operations given as source: the same numbers as their Rust, and clear words where they are wrong.
#![expect(unsafe_code, reason = "the tests vouch for their C")]

use warploom_core::DType;
use warploom_kernels::flow::{CustomInput, CustomOutput, Flow, Number, ValueKind};
use warploom_kernels::gpu::{SourceOp, SourceOpError};
use warploom_kernels::kernel::Target;
use warploom_kernels::program::Program;

use super::case::{Case, image};
use super::devices::agree;
use super::rig::Rig;

const OPENCL: &str = "
__kernel void weigh(__global const float* a, __global const int* b, __global float* out,
    int az, int ay, int ax, int bz, int by, int bx, int nz, int ny, int nx, float w, int k) {
  int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  if (x >= nx || y >= ny || z >= nz) return;
  int at = (z * ny + y) * nx + x;
  out[at] = a[at] * w + (float)(b[x % bx] + k);
}";

const CUDA: &str = "
extern \"C\" __global__ void weigh(const float* a, const int* b, float* out,
    int az, int ay, int ax, int bz, int by, int bx, int nz, int ny, int nx, float w, int k) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  int at = (z * ny + y) * nx + x;
  out[at] = a[at] * w + (float)(b[x % bx] + k);
}";

const WGSL: &str = "
struct Numbers { az: i32, ay: i32, ax: i32, bz: i32, by: i32, bx: i32, nz: i32, ny: i32, nx: i32,
  w: f32, k: i32 }
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<i32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> n: Numbers;
@compute @workgroup_size(8, 4, 2)
fn weigh(@builtin(global_invocation_id) id: vec3<u32>) {
  let p = vec3<i32>(id);
  if (p.x >= n.nx || p.y >= n.ny || p.z >= n.nz) { return; }
  let at = (p.z * n.ny + p.y) * n.nx + p.x;
  out[at] = a[at] * n.w + f32(b[p.x % n.bx] + n.k);
}";

const WEIGHT: f32 = 1.7;
const EXTRA: i32 = -3;

fn reference(inputs: &[CustomInput<'_>], outputs: &mut [CustomOutput<'_>]) {
    let (a, b) = (inputs[0].elements::<f32>(), inputs[1].elements::<i32>());
    let width = inputs[0].kind.dims()[2] as usize;
    for (at, out) in outputs[0].elements::<f32>().iter_mut().enumerate() {
        *out = a[at] * WEIGHT + (b[at % width % b.len()] + EXTRA) as f32;
    }
}

fn weigh() -> SourceOp {
    let op = SourceOp::new("weigh", [8, 4, 2], reference).unwrap();
    op.with_numbers(&[Number::F32(WEIGHT), Number::I32(EXTRA)])
}

fn everywhere() -> SourceOp {
    // SAFETY: parameters as the type says, items beyond the extents return, and the list is read
    // below its length.
    let op = unsafe { weigh().with_c(Target::OpenCl, OPENCL) }.unwrap();
    // SAFETY: the same in the other dialect.
    let op = unsafe { op.with_c(Target::Cuda, CUDA) }.unwrap();
    op.with_wgsl(WGSL).unwrap()
}

fn flow(op: SourceOp, dims: [u64; 3]) -> Flow {
    let mut flow = Flow::new();
    let image = ValueKind::Image(image(DType::F32, dims));
    let list = ValueKind::List {
        dtype: DType::I32,
        length: 5,
    };
    let inputs = [flow.input(image), flow.input(list)];
    // Something before it and something after it.
    let half = flow.map(&inputs[..1], inputs[0], DType::F32, &[], |g, images, _| {
        g.pixel(images[0]) * 0.5
    });
    let weighed = op.add(&mut flow, &[half, inputs[1]], image);
    let root = flow.map(&[weighed], weighed, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]).abs().sqrt()
    });
    flow.output(root);
    flow.output(weighed);
    flow
}

#[test]
fn sources_give_what_their_rust_gives() {
    let shapes = [[1, 13, 70], [3, 5, 9], [1, 1, 1]];
    agree(shapes.map(|dims| Case::new("weigh", flow(everywhere(), dims))));
}

#[test]
fn without_a_source_the_host_does_it() {
    let flow = || flow(weigh(), [1, 13, 70]);
    let rig = Rig::take();
    for other in &rig.others {
        let program = Program::new(&flow(), other.loader.device().info());
        assert_eq!(program.detours(), ["custom"]);
    }
    drop(rig);
    agree([Case::new("weigh by the host", flow()).by_host()]);
}

#[test]
fn what_does_not_compile_is_said_with_the_compiler_s_words() {
    let broken = |text: &str| text.replace("if (", "if if (");
    // SAFETY: it does not compile, so it never runs.
    let op = unsafe { weigh().with_c(Target::OpenCl, &broken(OPENCL)) }.unwrap();
    // SAFETY: it does not compile, so it never runs.
    let op = unsafe { op.with_c(Target::Cuda, &broken(CUDA)) }.unwrap();
    let flow = flow(op.with_wgsl(&broken(WGSL)).unwrap(), [1, 13, 70]);
    let rig = Rig::take();
    for other in &rig.others {
        let program = Program::new(&flow, other.loader.device().info());
        let error = other.loader.load(program).unwrap_err().to_string();
        let id = other.loader.device().info().id.to_string();
        assert!(error.contains("`weigh`") && error.contains(&id), "{error}");
        assert!(error.contains("if"), "the line is quoted: {error}");
    }
}

#[test]
fn what_could_not_work_is_refused_at_once() {
    let none = |_: &[CustomInput<'_>], _: &mut [CustomOutput<'_>]| {};
    let name = SourceOp::new("two words", [1; 3], none).unwrap_err();
    assert!(name.to_string().contains("`two words`"), "{name}");
    for group in [[0, 1, 1], [64, 64, 1], [u32::MAX, 2, 2]] {
        let error = SourceOp::new("weigh", group, none).unwrap_err();
        assert!(error.to_string().contains("1 to 1024"), "{error}");
    }
    let error = weigh().with_wgsl("fn weight() {}").unwrap_err();
    let expected = SourceOpError::NoFunction {
        name: "weigh".into(),
        target: Target::Wgsl,
    };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("`weigh`"), "{error}");
}
