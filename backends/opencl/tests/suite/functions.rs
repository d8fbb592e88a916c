//! Functions of OpenCL C, which some drivers are given shorter declarations of than their own.

use std::fmt::Write as _;

use warploom_core::{KernelCode, KernelSource, Param, Queue, Slice};

use crate::rig::{Rig, each, grid, read};

const ONE: &[&str] = &[
    "fabs", "sqrt", "rsqrt", "floor", "ceil", "rint", "round", "trunc", "exp", "exp2", "log",
    "log2", "log10", "log1p", "sin", "cos", "tan", "atan", "tanh",
];
const TWO: &[&str] = &[
    "min", "max", "pow", "fmin", "fmax", "fmod", "atan2", "hypot",
];
const THREE: &[&str] = &["clamp", "fma", "mad"];
const CHANGES: &[&str] = &["add", "sub", "min", "max", "and", "or", "xor", "xchg"];
const ITEMS: u32 = 64;

/// A kernel that calls all of them, and how many numbers each of its items makes.
fn calls_of_all(more: &str) -> (String, usize) {
    let numbers = |a: &str, b: &str, c: &str| {
        let mut results: Vec<String> = Vec::new();
        results.extend(ONE.iter().map(|name| format!("(float){name}({a})")));
        results.extend(TWO.iter().map(|name| format!("(float){name}({a}, {b})")));
        results.extend(
            THREE
                .iter()
                .map(|name| format!("(float){name}({a}, {b}, {c})")),
        );
        results
    };
    let mut results = numbers("x", "y", "z");
    let double = numbers("(double)x", "(double)y", "(double)z");
    for (kind, one) in [("int", "i"), ("uint", "u")] {
        for name in ["min", "max"] {
            results.push(format!("(float){name}({one}, ({kind})7)"));
        }
        results.push(format!("(float)clamp({one}, ({kind})3, ({kind})9)"));
        for name in CHANGES {
            for space in ["own", "shared"] {
                results.push(format!(
                    "(float)atomic_{name}(&{space}_{one}[at], ({kind})5)"
                ));
            }
        }
        results.push(format!(
            "(float)atomic_cmpxchg(&own_{one}[at], ({kind})5, ({kind})6)"
        ));
    }
    for place in [
        "global_id",
        "local_id",
        "group_id",
        "global_size",
        "local_size",
        "num_groups",
    ] {
        results.push(format!("(float)get_{place}(0)"));
    }
    let each = results.len() + double.len();
    let mut text =
        String::from("#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n");
    text +=
        "__kernel void calls(__global float *out, __global int *own_i, __global uint *own_u) {\n";
    text += "  __local int shared_i[64]; __local uint shared_u[64];\n";
    text += "  const int at = get_local_id(0), i = at; const uint u = at;\n";
    text += "  shared_i[at] = 3; shared_u[at] = 4; own_i[at] = at; own_u[at] = at;\n";
    text += "  barrier(CLK_LOCAL_MEM_FENCE);\n";
    text += "  const float x = 0.37f * at + 0.01f, y = 3.5f - 0.11f * at, z = 0.25f * at;\n";
    for (place, result) in results.iter().enumerate() {
        let _ = writeln!(text, "  out[at * {each} + {place}] = {result};");
    }
    text += "#ifdef cl_khr_fp64\n";
    for (place, result) in (results.len()..).zip(&double) {
        let _ = writeln!(text, "  out[at * {each} + {place}] = {result};");
    }
    text += "#endif\n";
    text += more;
    text += "}\n";
    (text, each)
}

fn run(rig: &Rig, text: &str, each: usize) -> Vec<u32> {
    let params = [Param::Write, Param::ReadWrite, Param::ReadWrite];
    // SAFETY: each of the 64 items stays in its part of buffers that are made for 64.
    let source =
        unsafe { KernelSource::vouch("calls", KernelCode::OpenClC(text), &params, [ITEMS, 1, 1]) };
    let kernel = rig.device.kernel(&source).unwrap();
    let out = rig.filled(&vec![0_u32; ITEMS as usize * each]);
    let (own_i, own_u) = (
        rig.buffer(4 * u64::from(ITEMS)),
        rig.buffer(4 * u64::from(ITEMS)),
    );
    let args = [
        out.clone().into(),
        Slice::whole(&own_i).into(),
        Slice::whole(&own_u).into(),
    ];
    let mut queue = rig.queue();
    queue.launch(&kernel, grid(ITEMS), &args).unwrap();
    read(&mut queue, &out)
}

#[test]
fn declarations_of_ours_mean_what_those_of_the_driver_mean() {
    each(|rig| {
        let (short, each) = calls_of_all("");
        // Nothing of ours declares this one, so that all declarations are the driver's.
        let (whole, _) = calls_of_all("  if (x > 1e30f) out[0] = smoothstep(x, y, z);\n");
        let (short, whole) = (run(rig, &short, each), run(rig, &whole, each));
        assert!(short.iter().any(|bits| *bits != 0));
        assert_eq!(short, whole);
    });
}

#[test]
fn functions_of_vectors_are_there() {
    each(|rig| {
        let text = "__kernel void calls(__global float *out, __global int *i, __global uint *u) {\n\
            float4 four = (float4)(1.0f, 4.0f, 9.0f, 16.0f);\n\
            out[get_global_id(0)] = dot(sqrt(four), (float4)(1.0f)) + convert_float(i[0] = u[0] = 0);\n}\n";
        assert_eq!(run(rig, text, 1), [10_f32.to_bits(); ITEMS as usize]);
    });
}
