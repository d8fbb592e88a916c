//! The texts of the suite's kernels.
//!
//! OpenCL C and CUDA C share a body; a few macros hide how they differ. Every body's last
//! parameter `n` is the number of elements of its shortest slice, and guards each access.

mod plain;
mod special;
mod wrong;

use warploom_core::{DType, HostCall, Param};

pub(crate) use plain::{AFFINE, BLEND, NUMBERS, PLACES, SAXPY};
pub(crate) use special::{DOUBLE, EIGHT, EXACT, LONG, SPIN, TURN, exact};
pub(crate) use wrong::{CROWDED, HUGE, broken};

use crate::kernels::Program;

const U32: Param = Param::Scalar(DType::U32);
/// How many elements of four bytes the shortest slice has.
const N4: Param = Param::Count { element: 4 };
/// How many elements of eight bytes the shortest slice has.
const N8: Param = Param::Count { element: 8 };
const I32: Param = Param::Scalar(DType::I32);
const F32: Param = Param::Scalar(DType::F32);
const F64: Param = Param::Scalar(DType::F64);

/// All that a device is meant to run.
pub(crate) const ALL: &[&Program] = &[
    AFFINE, BLEND, DOUBLE, EIGHT, EXACT, LONG, NUMBERS, PLACES, SAXPY, SPIN, TURN,
];

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

use {cuda, opencl, program};

/// Items a launch asks for along x, in groups of 64, but no more than `n`.
fn line(call: &HostCall<'_>, n: u32) -> usize {
    (call.grid().groups[0] as usize * 64).min(n as usize)
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn the_list_has_every_program() {
        let files = [include_str!("plain.rs"), include_str!("special.rs")];
        let definitions = files.map(|text| text.matches("\nprogram! {").count());
        assert_eq!(ALL.len(), definitions.iter().sum::<usize>());
    }
}
