//! Kernels that read, write and take numbers.

use warploom_core::Param;

use super::{F32, I32, N4, U32, cuda, line, opencl, program};
use crate::kernels::Program;

program! {
    /// `y = a * x + y`.
    SAXPY, "saxpy", [Param::Read, Param::ReadWrite, F32, N4], [64, 1, 1], f32,
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
    AFFINE, "affine", [Param::ReadWrite, U32, U32, N4], [64, 1, 1], u32,
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
    BLEND, "blend", [Param::Read, U32, Param::Read, Param::Write, N4], [64, 1, 1], u32,
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
    PLACES, "places", [Param::Write, U32, U32, N4], [4, 4, 4], u32,
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
    NUMBERS, "numbers", [Param::Write, U32, I32, F32, F32, I32, U32, N4], [64, 1, 1], u32,
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
