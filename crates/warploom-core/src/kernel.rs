//! Code for devices, and who vouches for it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::DeviceId;
use crate::dtype::DType;
use crate::host::HostFn;

/// What a kernel is written in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Language {
    /// CUDA C++, compiled by NVRTC.
    CudaC,
    /// NVIDIA's assembly text.
    Ptx,
    /// OpenCL C 1.2.
    OpenClC,
    /// WebGPU's shading language.
    Wgsl,
    /// A Rust function.
    Host,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CudaC => "CUDA C",
            Self::Ptx => "PTX",
            Self::OpenClC => "OpenCL C",
            Self::Wgsl => "WGSL",
            Self::Host => "host code",
        })
    }
}

/// The code itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum KernelCode<'a> {
    /// CUDA C++ with an `extern "C" __global__` function of the kernel's name.
    CudaC(&'a str),
    /// PTX with an `.entry` of the kernel's name.
    Ptx(&'a str),
    /// OpenCL C with a `__kernel` function of the kernel's name.
    OpenClC(&'a str),
    /// WGSL with a `@compute` function of the kernel's name; see [`KernelSource::wgsl`].
    Wgsl(&'a str),
    /// A Rust function.
    Host(HostFn),
}

/// What a kernel does with one argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Param {
    /// Memory it only reads.
    Read,
    /// Memory it only writes.
    Write,
    /// Memory it reads and writes.
    ReadWrite,
    /// A number.
    Scalar(DType),
    /// A `u32` that counts elements of this many bytes and never exceeds what the shortest slice
    /// of the launch holds: a launch that says otherwise is refused. It is what lets the author
    /// of a C kernel vouch that an index below it is in bounds.
    Count {
        /// Bytes of one element.
        element: u32,
    },
}

impl Param {
    /// Is it memory?
    pub fn is_slice(self) -> bool {
        self.scalar().is_none()
    }

    /// The type of the number it is; `None` for memory.
    pub fn scalar(self) -> Option<DType> {
        match self {
            Self::Scalar(dtype) => Some(dtype),
            Self::Count { .. } => Some(DType::U32),
            Self::Read | Self::Write | Self::ReadWrite => None,
        }
    }

    /// Is it memory the kernel may change?
    pub fn is_written(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// How floating-point code may be changed by a compiler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Math {
    /// As written: no contraction, correctly rounded division and square root where the device
    /// can. The same bits on every strict backend.
    #[default]
    Strict,
    /// Whatever is fast.
    Fast,
}

/// A kernel that someone vouches for: its code, its parameters and its work-group size.
///
/// The unsafety of foreign code is settled here, once, by whoever wrote it, and the proof travels
/// in the type. So loading and launching are safe, and no crate above the backends needs `unsafe`.
#[derive(Clone, Debug)]
pub struct KernelSource<'a> {
    name: &'a str,
    code: KernelCode<'a>,
    params: &'a [Param],
    group: [u32; 3],
    math: Math,
}

impl<'a> KernelSource<'a> {
    /// A Rust function. Safe: it gets slices, not pointers.
    pub fn host(
        name: &'a str,
        params: &'a [Param],
        run: impl Fn(&mut crate::HostCall<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self::from_parts(
            name,
            KernelCode::Host(HostFn(Arc::new(run))),
            params,
            [1, 1, 1],
        )
    }

    /// WGSL. Safe: accesses are bounds-checked by the shader compiler.
    ///
    /// Group 0 holds the slices in order of `params` at bindings 0, 1, …, each declared
    /// `var<storage, read_write>` whatever its direction (so that slices of one buffer can meet in
    /// one launch). When there are scalars, the next binding is a `var<uniform>` struct with them
    /// in order, four bytes each. `group` must equal the `@workgroup_size`.
    pub fn wgsl(name: &'a str, code: &'a str, params: &'a [Param], group: [u32; 3]) -> Self {
        Self::from_parts(name, KernelCode::Wgsl(code), params, group)
    }

    /// Code in any language, on the caller's word. Arguments arrive in the order of `params`:
    /// slices as pointers to their first byte, numbers by value.
    ///
    /// # Safety
    /// * `params` are the function's own parameters, in number, order and type.
    /// * For every grid and every argument list that fits `params`, the code touches only the
    ///   slices it is given, writes only those declared written, and ends. A C kernel is not told
    ///   how long its slices are unless by a [`Param::Count`], so one without can touch nothing
    ///   but first elements.
    #[expect(
        unsafe_code,
        reason = "the one place where foreign code enters; see the type's comment"
    )]
    pub unsafe fn vouch(
        name: &'a str,
        code: KernelCode<'a>,
        params: &'a [Param],
        group: [u32; 3],
    ) -> Self {
        Self::from_parts(name, code, params, group)
    }

    fn from_parts(
        name: &'a str,
        code: KernelCode<'a>,
        params: &'a [Param],
        group: [u32; 3],
    ) -> Self {
        Self {
            name,
            code,
            params,
            group,
            math: Math::default(),
        }
    }

    /// The same kernel compiled under other floating-point rules.
    #[must_use]
    pub fn with_math(self, math: Math) -> Self {
        Self { math, ..self }
    }

    /// The function's name in the code.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The code.
    pub fn code(&self) -> &KernelCode<'a> {
        &self.code
    }

    /// What it does with each argument.
    pub fn params(&self) -> &'a [Param] {
        self.params
    }

    /// Items of a work group in x, y, z. Host kernels do not look at it.
    pub fn group(&self) -> [u32; 3] {
        self.group
    }

    /// Its floating-point rules.
    pub fn math(&self) -> Math {
        self.math
    }

    /// What it is written in.
    pub fn language(&self) -> Language {
        match self.code {
            KernelCode::CudaC(_) => Language::CudaC,
            KernelCode::Ptx(_) => Language::Ptx,
            KernelCode::OpenClC(_) => Language::OpenClC,
            KernelCode::Wgsl(_) => Language::Wgsl,
            KernelCode::Host(_) => Language::Host,
        }
    }
}

/// A kernel compiled for one opened device.
pub trait Kernel: Any + fmt::Debug + Send + Sync {
    /// The function's name.
    fn name(&self) -> &str;

    /// What it does with each argument.
    fn params(&self) -> &[Param];

    /// Items of a work group.
    fn group(&self) -> [u32; 3];

    /// The device it was compiled for.
    fn device(&self) -> DeviceId;
}
