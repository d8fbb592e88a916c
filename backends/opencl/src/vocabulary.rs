//! The functions of OpenCL C that kernels usually call, for compilers that read all of its declarations anew
//! for every program.
//!
//! `PoCL` puts Clang's header in front of each program: 16,000 lines, which are parsed each time one is compiled,
//! and read each time one is loaded whose code is known. Measured with a kernel of one line, that is 63 of 75 ms
//! of the one and 12 of 17 ms of the other. A macro that the header takes for a sign that it was read already
//! leaves it out; what is below stands for it, for single numbers. A program that calls anything else does not
//! compile so, and is compiled with the header.

use std::ffi::{CStr, CString};

/// `options` with what makes the header believe that it was read, and without warnings: `PoCL` writes how many there
/// were to the standard error of whoever compiles, and what they say is read by nobody where a program compiles.
pub(crate) fn options(options: &CStr) -> CString {
    const READ: &[u8] = b" -w -D_OPENCL_H_";
    let all = [options.to_bytes(), READ].concat();
    CString::new(all).unwrap_or_else(|_| options.to_owned())
}

/// `text` with declarations of its own in front.
pub(crate) fn declared(text: &str) -> String {
    format!("{FUNCTIONS}{text}")
}

/// Names that begin with `WL_` belong to us, and are gone where a program begins.
const FUNCTIONS: &str = "\
#define WL_PURE __attribute__((overloadable, const))
#define WL_PLACE(name) size_t WL_PURE name(uint);
#define WL_ONE(type, name) type WL_PURE name(type);
#define WL_TWO(type, name) type WL_PURE name(type, type);
#define WL_THREE(type, name) type WL_PURE name(type, type, type);
#define WL_ORDERED(type) WL_TWO(type, min) WL_TWO(type, max) WL_THREE(type, clamp)
#define WL_REAL(type) WL_ORDERED(type) WL_ONE(type, fabs) WL_ONE(type, sqrt) WL_ONE(type, rsqrt) \
WL_ONE(type, floor) WL_ONE(type, ceil) WL_ONE(type, rint) WL_ONE(type, round) WL_ONE(type, trunc) \
WL_ONE(type, exp) WL_ONE(type, exp2) WL_ONE(type, log) WL_ONE(type, log2) WL_ONE(type, log10) WL_ONE(type, log1p) \
WL_ONE(type, sin) WL_ONE(type, cos) WL_ONE(type, tan) WL_ONE(type, atan) WL_ONE(type, tanh) \
WL_TWO(type, pow) WL_TWO(type, fmin) WL_TWO(type, fmax) WL_TWO(type, fmod) WL_TWO(type, atan2) WL_TWO(type, hypot) \
WL_THREE(type, fma) WL_THREE(type, mad)
#define WL_CHANGE(name, type, space) type __attribute__((overloadable)) name(volatile space type*, type);
#define WL_ATOMIC(type, space) WL_CHANGE(atomic_add, type, space) WL_CHANGE(atomic_sub, type, space) \
WL_CHANGE(atomic_min, type, space) WL_CHANGE(atomic_max, type, space) WL_CHANGE(atomic_and, type, space) \
WL_CHANGE(atomic_or, type, space) WL_CHANGE(atomic_xor, type, space) WL_CHANGE(atomic_xchg, type, space) \
type __attribute__((overloadable)) atomic_cmpxchg(volatile space type*, type, type);
WL_PLACE(get_global_id) WL_PLACE(get_local_id) WL_PLACE(get_group_id)
WL_PLACE(get_global_size) WL_PLACE(get_local_size) WL_PLACE(get_num_groups)
WL_ORDERED(int) WL_ORDERED(uint) WL_REAL(float)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
WL_REAL(double)
#pragma OPENCL EXTENSION cl_khr_fp64 : disable
#endif
WL_ATOMIC(int, __global) WL_ATOMIC(uint, __global) WL_ATOMIC(int, __local) WL_ATOMIC(uint, __local)
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
#undef WL_PURE
#undef WL_PLACE
#undef WL_ONE
#undef WL_TWO
#undef WL_THREE
#undef WL_ORDERED
#undef WL_REAL
#undef WL_CHANGE
#undef WL_ATOMIC
";

#[cfg(test)]
mod tests {
    use super::{declared, options};
    use crate::cl;
    use crate::device::OpenClDevice;

    #[test]
    fn options_are_kept() {
        assert_eq!(options(c"-a -b").to_str(), Ok("-a -b -w -D_OPENCL_H_"));
    }

    /// What `text` comes to in the way without the header, where a driver reads one.
    fn built(text: &str) -> Option<bool> {
        let mut found = crate::probe::devices().unwrap_or_default().into_iter();
        let Some(found) = found.find(|found| found.reads_header) else {
            println!("skipped: no driver here reads a header");
            return None;
        };
        let device = found.device;
        let opened = OpenClDevice::open(found, None).expect("the device opens");
        let program = cl::Program::from_source(opened.context(), &declared(text));
        let program = program.expect("the text is taken");
        Some(program.build(device, &options(c"-cl-std=CL1.2")).is_ok())
    }

    #[test]
    fn usual_kernels_need_no_header_and_others_are_told_apart() {
        let usual = "__kernel void k(__global float *a, __local uint *b) {\n\
            const size_t at = get_global_id(0);\n\
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
            a[at] = fma(sqrt(a[at]), as_float(as_int(2.0f)), pow(a[at], exp(2.0f)));\n\
            atomic_add(&b[0], max(b[1], 3u));\n}\n";
        let rare = "__kernel void k(__global float4 *a) { a[0] = sin(a[1]); }";
        if let (Some(usual), Some(rare)) = (built(usual), built(rare)) {
            assert!(usual, "this should be enough");
            assert!(!rare, "nothing declares functions of vectors");
        }
    }
}
