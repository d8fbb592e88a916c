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
        let processor = info.kind == DeviceKind::Cpu && target == Target::OpenCl;
        Some(Self {
            target,
            run: if processor { 64 } else { 1 },
            group: if processor { [1, 1, 1] } else { [32, 4, 1] },
            lanes: if processor { 1 } else { 128 },
            wide: target == Target::Wgsl || info.caps.contains(Caps::F64),
        })
    }
}
