//! The texts of the suite's kernels.
//!
//! OpenCL C and CUDA C share a body; a few macros hide how they differ. Every body's last
//! parameter `n` is the number of elements of its shortest slice, and guards each access.

use warploom_core::{DType, HostCall, KernelSource, Language, Param};

use crate::kernels::Program;

const U32: Param = Param::Scalar(DType::U32);
const I32: Param = Param::Scalar(DType::I32);
const F32: Param = Param::Scalar(DType::F32);
const F64: Param = Param::Scalar(DType::F64);

macro_rules! opencl {
    ($body:literal) => {
        concat!(
            "#define KERNEL __kernel\n#define GLOBAL __global\n#define LOCAL __local\n",
            "#define GX ((uint)get_global_id(0))\n#define GY ((uint)get_global_id(1))\n",
            "#define GZ ((uint)get_global_id(2))\n#define LX ((uint)get_local_id(0))\n",
            "#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)\n",
            "#define BITS(x) as_uint(x)\n#define SQRT(x) sqrt(x)\n",
            $body
        )
    };
}

macro_rules! cuda {
    ($body:literal) => {
        concat!(
            "typedef unsigned int uint;\n",
            "#define KERNEL extern \"C\" __global__\n#define GLOBAL\n#define LOCAL __shared__\n",
            "#define GX (blockIdx.x * blockDim.x + threadIdx.x)\n",
            "#define GY (blockIdx.y * blockDim.y + threadIdx.y)\n",
            "#define GZ (blockIdx.z * blockDim.z + threadIdx.z)\n#define LX threadIdx.x\n",
            "#define BARRIER __syncthreads()\n",
            "#define BITS(x) __float_as_uint(x)\n#define SQRT(x) sqrtf(x)\n",
            $body
        )
    };
}

macro_rules! program {
    (
        $(#[$doc:meta])*
        $constant:ident, $name:literal, [$($param:expr),*], $group:expr, $element:ty,
        c: $c:literal, wgsl: $wgsl:expr, host: $host:expr
    ) => {
        $(#[$doc])*
        pub(crate) const $constant: &Program = &Program {
            name: $name,
            params: &[$($param),*],
            group: $group,
            element: size_of::<$element>() as u64,
            opencl: opencl!($c),
            cuda: cuda!($c),
            wgsl: $wgsl,
            host: $host,
        };
    };
}

/// Items a launch asks for along x, in groups of 64, but no more than `n`.
fn line(call: &HostCall<'_>, n: u32) -> usize {
    (call.grid().groups[0] as usize * 64).min(n as usize)
}

program! {
    /// `y = a * x + y`.
    SAXPY, "saxpy", [Param::Read, Param::ReadWrite, F32, U32], [64, 1, 1], f32,
    c: "KERNEL void saxpy(GLOBAL const float* x, GLOBAL float* y, float a, uint n) {
            uint i = GX;
            if (i < n) y[i] = a * x[i] + y[i];
        }",
    wgsl: Some("
        struct Numbers { a: f32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<uniform> numbers: Numbers;
        @compute @workgroup_size(64, 1, 1)
        fn saxpy(@builtin(global_invocation_id) at: vec3<u32>) {
            let i = at.x;
            if (i < numbers.n) { y[i] = numbers.a * x[i] + y[i]; }
        }"),
    host: |call| {
        let n = line(call, call.scalar(3));
        let (x, y, a) = (call.read::<f32>(0), call.write::<f32>(1), call.scalar::<f32>(2));
        for (y, x) in y.iter_mut().zip(x).take(n) {
            *y += a * x;
        }
    }
}

program! {
    /// `v = v * m + a`, wrapping; the order of two such launches shows in the result.
    AFFINE, "affine", [Param::ReadWrite, U32, U32, U32], [64, 1, 1], u32,
    c: "KERNEL void affine(GLOBAL uint* v, uint m, uint a, uint n) {
            uint i = GX;
            if (i < n) v[i] = v[i] * m + a;
        }",
    wgsl: Some("
        struct Numbers { m: u32, a: u32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> v: array<u32>;
        @group(0) @binding(1) var<uniform> numbers: Numbers;
        @compute @workgroup_size(64, 1, 1)
        fn affine(@builtin(global_invocation_id) at: vec3<u32>) {
            let i = at.x;
            if (i < numbers.n) { v[i] = v[i] * numbers.m + numbers.a; }
        }"),
    host: |call| {
        let n = line(call, call.scalar(3));
        let (m, a) = (call.scalar::<u32>(1), call.scalar::<u32>(2));
        for v in call.write::<u32>(0).iter_mut().take(n) {
            *v = v.wrapping_mul(m).wrapping_add(a);
        }
    }
}

program! {
    /// `out = 3 * a + b + k`, with its number between the slices.
    BLEND, "blend", [Param::Read, U32, Param::Read, Param::Write, U32], [64, 1, 1], u32,
    c: "KERNEL void blend(GLOBAL const uint* a, uint k, GLOBAL const uint* b, GLOBAL uint* out, uint n) {
            uint i = GX;
            if (i < n) out[i] = a[i] * 3u + b[i] + k;
        }",
    wgsl: Some("
        struct Numbers { k: u32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @group(0) @binding(2) var<storage, read_write> result: array<u32>;
        @group(0) @binding(3) var<uniform> numbers: Numbers;
        @compute @workgroup_size(64, 1, 1)
        fn blend(@builtin(global_invocation_id) at: vec3<u32>) {
            let i = at.x;
            if (i < numbers.n) { result[i] = a[i] * 3u + b[i] + numbers.k; }
        }"),
    host: |call| {
        let n = line(call, call.scalar(4));
        let (a, k, b) = (call.read::<u32>(0), call.scalar::<u32>(1), call.read::<u32>(2));
        let out = call.write::<u32>(3);
        for ((out, a), b) in out.iter_mut().zip(a).zip(b).take(n) {
            *out = a.wrapping_mul(3).wrapping_add(*b).wrapping_add(k);
        }
    }
}

program! {
    /// Each item writes its own coordinates.
    PLACES, "places", [Param::Write, U32, U32, U32], [4, 4, 4], u32,
    c: "KERNEL void places(GLOBAL uint* out, uint w, uint h, uint n) {
            uint x = GX, y = GY, z = GZ;
            uint i = (z * h + y) * w + x;
            if (x < w && y < h && i < n) out[i] = x + (y << 11) + (z << 22);
        }",
    wgsl: Some("
        struct Numbers { w: u32, h: u32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> result: array<u32>;
        @group(0) @binding(1) var<uniform> numbers: Numbers;
        @compute @workgroup_size(4, 4, 4)
        fn places(@builtin(global_invocation_id) at: vec3<u32>) {
            let i = (at.z * numbers.h + at.y) * numbers.w + at.x;
            if (at.x < numbers.w && at.y < numbers.h && i < numbers.n) {
                result[i] = at.x + (at.y << 11u) + (at.z << 22u);
            }
        }"),
    host: |call| {
        let (w, h, n) = (call.scalar::<u32>(1), call.scalar::<u32>(2), call.scalar::<u32>(3));
        let [gx, gy, gz] = call.grid().groups.map(|groups| groups * 4);
        let out = call.write::<u32>(0);
        for z in 0..gz {
            for y in 0..gy.min(h) {
                for x in 0..gx.min(w) {
                    let i = (z * h + y) * w + x;
                    if i < n {
                        out[i as usize] = x + (y << 11) + (z << 22);
                    }
                }
            }
        }
    }
}

program! {
    /// The bits of six numbers of three types.
    NUMBERS, "numbers", [Param::Write, U32, I32, F32, F32, I32, U32, U32], [64, 1, 1], u32,
    c: "KERNEL void numbers(GLOBAL uint* out, uint a, int b, float c, float d, int e, uint f, uint n) {
            if (GX == 0 && n >= 6) {
                out[0] = a; out[1] = (uint)b; out[2] = BITS(c);
                out[3] = BITS(d); out[4] = (uint)e; out[5] = f;
            }
        }",
    wgsl: Some("
        struct Numbers { a: u32, b: i32, c: f32, d: f32, e: i32, f: u32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> result: array<u32>;
        @group(0) @binding(1) var<uniform> given: Numbers;
        @compute @workgroup_size(64, 1, 1)
        fn numbers(@builtin(global_invocation_id) at: vec3<u32>) {
            if (at.x == 0u && given.n >= 6u) {
                result[0] = given.a;
                result[1] = bitcast<u32>(given.b);
                result[2] = bitcast<u32>(given.c);
                result[3] = bitcast<u32>(given.d);
                result[4] = bitcast<u32>(given.e);
                result[5] = given.f;
            }
        }"),
    host: |call| {
        let bits = [
            call.scalar::<u32>(1),
            call.scalar::<i32>(2).cast_unsigned(),
            call.scalar::<f32>(3).to_bits(),
            call.scalar::<f32>(4).to_bits(),
            call.scalar::<i32>(5).cast_unsigned(),
            call.scalar::<u32>(6),
        ];
        if call.scalar::<u32>(7) >= 6 {
            call.write::<u32>(0)[..6].copy_from_slice(&bits);
        }
    }
}

program! {
    /// `v = v * a + b` in 64 bits.
    DOUBLE, "doubles", [Param::ReadWrite, F64, F64, U32], [64, 1, 1], f64,
    c: "
        #ifdef __OPENCL_VERSION__
        #pragma OPENCL EXTENSION cl_khr_fp64 : enable
        #endif
        KERNEL void doubles(GLOBAL double* v, double a, double b, uint n) {
            uint i = GX;
            if (i < n) v[i] = v[i] * a + b;
        }",
    wgsl: None,
    host: |call| {
        let n = line(call, call.scalar(3));
        let (a, b) = (call.scalar::<f64>(1), call.scalar::<f64>(2));
        for v in call.write::<f64>(0).iter_mut().take(n) {
            *v = *v * a + b;
        }
    }
}

program! {
    /// Takes as long as it is told: every item stirs a number `rounds` times eight times, then
    /// item `last` writes `tag` to the second word.
    SPIN, "spin", [Param::ReadWrite, U32, U32, U32, U32], [64, 1, 1], u32,
    c: "#define STIR x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        KERNEL void spin(GLOBAL uint* v, uint rounds, uint last, uint tag, uint n) {
            uint x = GX * 2u + 1u;
            for (uint i = 0; i < rounds; i++) { STIR STIR STIR STIR STIR STIR STIR STIR }
            /* Never zero, which no compiler knows: so every item has to stir. */
            if (n >= 2u && (x == 0u || GX == last)) { v[0] = x; v[1] = tag; }
        }",
    wgsl: Some("
        struct Numbers { rounds: u32, last: u32, tag: u32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> v: array<u32>;
        @group(0) @binding(1) var<uniform> numbers: Numbers;
        fn stir(old: u32) -> u32 {
            var x = old;
            x ^= x << 13u;
            x ^= x >> 17u;
            x ^= x << 5u;
            return x;
        }
        @compute @workgroup_size(64, 1, 1)
        fn spin(@builtin(global_invocation_id) at: vec3<u32>) {
            var x = at.x * 2u + 1u;
            for (var i = 0u; i < numbers.rounds; i++) {
                x = stir(stir(stir(stir(stir(stir(stir(stir(x))))))));
            }
            if (numbers.n >= 2u && (x == 0u || at.x == numbers.last)) {
                v[0] = x;
                v[1] = numbers.tag;
            }
        }"),
    host: |call| {
        let (rounds, tag) = (call.scalar::<u32>(1), call.scalar::<u32>(3));
        let mut x = 1u32;
        for _ in 0..u64::from(rounds) * u64::from(call.grid().groups[0]) * 8 {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
        if let [first, second, ..] = call.write::<u32>(0) {
            (*first, *second) = (x, tag);
        }
    }
}

program! {
    /// Each work group turns its part around in memory the group shares.
    TURN, "turn", [Param::ReadWrite, U32], [64, 1, 1], u32,
    c: "KERNEL void turn(GLOBAL uint* v, uint n) {
            LOCAL uint tile[64];
            uint i = GX, l = LX;
            uint start = i - l;
            uint here = start < n ? min(n - start, 64u) : 0u;
            if (l < here) tile[l] = v[i];
            BARRIER;
            if (l < here) v[i] = tile[here - 1u - l];
        }",
    wgsl: Some("
        struct Numbers { n: u32 }
        @group(0) @binding(0) var<storage, read_write> v: array<u32>;
        @group(0) @binding(1) var<uniform> numbers: Numbers;
        var<workgroup> tile: array<u32, 64>;
        @compute @workgroup_size(64, 1, 1)
        fn turn(
            @builtin(global_invocation_id) at: vec3<u32>,
            @builtin(local_invocation_id) inside: vec3<u32>,
        ) {
            let l = inside.x;
            let start = at.x - l;
            var here = 0u;
            if (start < numbers.n) { here = min(numbers.n - start, 64u); }
            if (l < here) { tile[l] = v[at.x]; }
            workgroupBarrier();
            if (l < here) { v[at.x] = tile[here - 1u - l]; }
        }"),
    host: |call| {
        let n = line(call, call.scalar(1));
        for part in call.write::<u32>(0)[..n].chunks_mut(64) {
            part.reverse();
        }
    }
}

program! {
    /// The sum of seven slices, each with its own weight: eight slices in one launch.
    EIGHT, "eight",
    [Param::Read, Param::Read, Param::Read, Param::Read, Param::Read, Param::Read, Param::Read,
     Param::Write, U32], [64, 1, 1], u32,
    c: "KERNEL void eight(GLOBAL const uint* a, GLOBAL const uint* b, GLOBAL const uint* c,
                          GLOBAL const uint* d, GLOBAL const uint* e, GLOBAL const uint* f,
                          GLOBAL const uint* g, GLOBAL uint* out, uint n) {
            uint i = GX;
            if (i < n) out[i] = a[i] + 2u * b[i] + 3u * c[i] + 4u * d[i] + 5u * e[i] + 6u * f[i] + 7u * g[i];
        }",
    wgsl: Some("
        struct Numbers { n: u32 }
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @group(0) @binding(2) var<storage, read_write> c: array<u32>;
        @group(0) @binding(3) var<storage, read_write> d: array<u32>;
        @group(0) @binding(4) var<storage, read_write> e: array<u32>;
        @group(0) @binding(5) var<storage, read_write> f: array<u32>;
        @group(0) @binding(6) var<storage, read_write> g: array<u32>;
        @group(0) @binding(7) var<storage, read_write> result: array<u32>;
        @group(0) @binding(8) var<uniform> numbers: Numbers;
        @compute @workgroup_size(64, 1, 1)
        fn eight(@builtin(global_invocation_id) at: vec3<u32>) {
            let i = at.x;
            if (i < numbers.n) {
                result[i] = a[i] + 2u * b[i] + 3u * c[i] + 4u * d[i] + 5u * e[i] + 6u * f[i] + 7u * g[i];
            }
        }"),
    host: |call| {
        let n = line(call, call.scalar(8));
        let inputs = [0, 1, 2, 3, 4, 5, 6].map(|index| call.read::<u32>(index));
        for (i, out) in call.write::<u32>(7).iter_mut().enumerate().take(n) {
            *out = (1..).zip(inputs).fold(0u32, |sum, (weight, input)| {
                sum.wrapping_add(input[i].wrapping_mul(weight))
            });
        }
    }
}

program! {
    /// `a * b + c`, `a / b` or the root of `a`, as told.
    EXACT, "exact", [Param::Read, Param::Read, Param::Read, Param::Write, U32, U32], [64, 1, 1], f32,
    c: "KERNEL void exact(GLOBAL const float* a, GLOBAL const float* b, GLOBAL const float* c,
                          GLOBAL float* out, uint op, uint n) {
            uint i = GX;
            if (i < n) out[i] = op == 0u ? a[i] * b[i] + c[i] : (op == 1u ? a[i] / b[i] : SQRT(a[i]));
        }",
    wgsl: Some("
        struct Numbers { op: u32, n: u32 }
        @group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> b: array<f32>;
        @group(0) @binding(2) var<storage, read_write> c: array<f32>;
        @group(0) @binding(3) var<storage, read_write> result: array<f32>;
        @group(0) @binding(4) var<uniform> numbers: Numbers;
        @compute @workgroup_size(64, 1, 1)
        fn exact(@builtin(global_invocation_id) at: vec3<u32>) {
            let i = at.x;
            if (i < numbers.n) {
                if (numbers.op == 0u) { result[i] = a[i] * b[i] + c[i]; }
                else if (numbers.op == 1u) { result[i] = a[i] / b[i]; }
                else { result[i] = sqrt(a[i]); }
            }
        }"),
    host: |call| {
        let n = line(call, call.scalar(5));
        let (a, b, c) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
        let op = call.scalar::<u32>(4);
        for (i, out) in call.write::<f32>(3).iter_mut().enumerate().take(n) {
            *out = exact(op, a[i], b[i], c[i]);
        }
    }
}

/// What [`EXACT`] computes, in Rust, whose floats are exact by definition.
#[expect(
    clippy::suboptimal_flops,
    reason = "the subject is what happens without fusing"
)]
pub(crate) fn exact(op: u32, a: f32, b: f32, c: f32) -> f32 {
    match op {
        0 => a * b + c,
        1 => a / b,
        _ => a.sqrt(),
    }
}

/// A text that no compiler of `language` accepts.
pub(crate) fn broken(language: Language) -> Option<KernelSource<'static>> {
    const BROKEN: &Program = &Program {
        name: "broken",
        params: &[Param::Write, U32],
        group: [64, 1, 1],
        element: 4,
        opencl: opencl!("KERNEL void broken(GLOBAL uint* v, uint n) { v[0] = undeclared_thing; }"),
        cuda: cuda!("KERNEL void broken(GLOBAL uint* v, uint n) { v[0] = undeclared_thing; }"),
        wgsl: Some(
            "@group(0) @binding(0) var<storage, read_write> v: array<u32>;
             @compute @workgroup_size(64, 1, 1) fn broken() { v[0] = undeclared_thing; }",
        ),
        host: |_| {},
    };
    // Host code that does not compile does not get here.
    BROKEN
        .source(language)
        .filter(|_| language != Language::Host)
}
