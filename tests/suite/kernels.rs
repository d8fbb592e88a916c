//! One formula in four languages: `y = sqrt(x) / (1 + a x)`, whose bits betray contraction and
//! sloppy division.

use warploom::{DType, KernelCode, KernelSource, Param};

pub(crate) const GROUP: [u32; 3] = [64, 1, 1];
pub(crate) const PARAMS: [Param; 4] = [
    Param::Read,
    Param::Write,
    Param::Scalar(DType::F32),
    Param::Count { element: 4 },
];

const OPENCL: &str = "
__kernel void ratio(__global const float* x, __global float* y, float a, uint n) {
    uint i = get_global_id(0);
    if (i < n) y[i] = sqrt(x[i]) / (1.0f + a * x[i]);
}";

const CUDA: &str = r#"
extern "C" __global__ void ratio(const float* x, float* y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sqrtf(x[i]) / (1.0f + a * x[i]);
}"#;

const WGSL: &str = "
struct Scalars { a: f32, n: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> s: Scalars;
@compute @workgroup_size(64, 1, 1)
fn ratio(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < s.n) { y[id.x] = sqrt(x[id.x]) / (1.0 + s.a * x[id.x]); }
}";

/// The formula in Rust, where every operation is rounded once.
pub(crate) fn expected(x: f32, a: f32) -> f32 {
    x.sqrt() / (1.0 + a * x)
}

pub(crate) fn sources() -> Vec<KernelSource<'static>> {
    let host = KernelSource::host("ratio", &PARAMS, |call| {
        let (x, a) = (call.read::<f32>(0), call.scalar::<f32>(2));
        for (y, x) in call.write::<f32>(1).iter_mut().zip(x) {
            *y = expected(*x, a);
        }
    });
    let wgsl = KernelSource::wgsl("ratio", WGSL, &PARAMS, GROUP);
    // SAFETY: the parameters are the functions' own. Each item touches x[i] and y[i] for i < n only,
    // and n is a `Count`, which no slice falls short of. Only y is written, and nothing loops.
    let opencl =
        unsafe { KernelSource::vouch("ratio", KernelCode::OpenClC(OPENCL), &PARAMS, GROUP) };
    // SAFETY: as above.
    let cuda = unsafe { KernelSource::vouch("ratio", KernelCode::CudaC(CUDA), &PARAMS, GROUP) };
    vec![host, wgsl, opencl, cuda]
}
