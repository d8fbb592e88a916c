//! How a device likes its work cut.

use warploom_core::{Caps, DeviceInfo, DeviceKind, Language};

use crate::kernel::Target;

/// How a device likes its work cut. Chosen by measurement, not by taste.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuning {
    /// The language.
    pub target: Target,
    /// Pixels in a row that one work item computes. A compiler for processors turns the loop over
    /// them into vector code; a GPU has its lanes side by side already.
    pub run: u32,
    /// Rows that one work item computes side by side where it goes along x: running values wait
    /// for themselves, and several have more to do meanwhile.
    pub rows: u32,
    /// Items of a work group for work over pixels, in x, y, z.
    pub group: [u32; 3],
    /// Items of a one-dimensional work group for reductions.
    pub lanes: u32,
    /// Can it compute in `f64`, natively or in pairs?
    pub wide: bool,
}

impl Tuning {
    /// How this device likes it; `None` when it takes host code, or nothing we write.
    pub fn of(info: &DeviceInfo) -> Option<Self> {
        let target = info.languages.iter().find_map(|language| match language {
            Language::CudaC => Some(Target::Cuda),
            Language::OpenClC => Some(Target::OpenCl),
            Language::Wgsl => Some(Target::Wgsl),
            _ => None,
        })?;
        let wide = target == Target::Wgsl || info.caps.contains(Caps::F64);
        let processor = info.kind == DeviceKind::Cpu && target == Target::OpenCl;
        let tuning = if processor {
            Self::processor()
        } else {
            Self::gpu(target)
        };
        Some(Self { wide, ..tuning })
    }

    /// How a GPU likes it, with `f64`.
    pub fn gpu(target: Target) -> Self {
        Self {
            target,
            run: 1,
            rows: 1,
            group: [32, 4, 1],
            lanes: 128,
            wide: true,
        }
    }

    /// How a processor behind OpenCL likes it, with `f64`.
    pub fn processor() -> Self {
        Self {
            target: Target::OpenCl,
            run: 64,
            rows: 4,
            group: [1, 1, 1],
            lanes: 1,
            wide: true,
        }
    }
}
