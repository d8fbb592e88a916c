//! Kernels for what not every device does alike: wide types, exact floats, shared memory, time.

use warploom_core::Param;

use super::{F64, N4, N8, U32, cuda, line, opencl, program};
use crate::kernels::Program;

program! {
    /// `v = v * a + b` in 64 bits.
    DOUBLE, "doubles", [Param::ReadWrite, F64, F64, N8], [64, 1, 1], f64,
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
    /// `v = v * v + 1` in 64 bits, wrapping.
    LONG, "longs", [Param::ReadWrite, N8], [64, 1, 1], u64,
    c: "#ifdef __OPENCL_VERSION__
        #define ULONG ulong
        #else
        #define ULONG unsigned long long
        #endif
        KERNEL void longs(GLOBAL ULONG* v, uint n) {
            uint i = GX;
            if (i < n) v[i] = v[i] * v[i] + 1;
        }",
    wgsl: None,
    host: |call| {
        let n = line(call, call.scalar(1));
        for v in call.write::<u64>(0).iter_mut().take(n) {
            *v = v.wrapping_mul(*v).wrapping_add(1);
        }
    }
}

program! {
    /// Takes as long as it is told: every item stirs a number `rounds` times eight times, then
    /// item `last` writes `tag` to the second word.
    SPIN, "spin", [Param::ReadWrite, U32, U32, U32, N4], [64, 1, 1], u32,
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
    TURN, "turn", [Param::ReadWrite, N4], [64, 1, 1], u32,
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
     Param::Write, N4], [64, 1, 1], u32,
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
    EXACT, "exact", [Param::Read, Param::Read, Param::Read, Param::Write, U32, N4], [64, 1, 1], f32,
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
