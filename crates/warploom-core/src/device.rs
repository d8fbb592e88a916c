//! A device: one backend's view of a card.

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

use crate::backend::BackendId;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::kernel::{Kernel, KernelSource, Language};
use crate::memory::{MemoryKind, MemoryUse, Space};
use crate::physical::PhysicalKey;
use crate::queue::{Queue, QueueDesc};

/// One backend's name for one of its devices, printed as `cuda:0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DeviceId {
    /// Whose device it is.
    pub backend: BackendId,
    /// The backend's own number for it, counted from 0.
    pub ordinal: u32,
}

impl DeviceId {
    /// Device `ordinal` of `backend`.
    pub const fn new(backend: BackendId, ordinal: u32) -> Self {
        Self { backend, ordinal }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.backend, self.ordinal))
    }
}

/// Why a text is not a [`DeviceId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a device: write backend and number, such as `cuda:0`")]
pub struct DeviceIdError {
    text: String,
}

impl FromStr for DeviceId {
    type Err = DeviceIdError;
    fn from_str(text: &str) -> std::result::Result<Self, DeviceIdError> {
        let parse = || {
            let (backend, ordinal) = text.split_once(':')?;
            // `parse` alone would take `+1`.
            let digits = ordinal.bytes().all(|c| c.is_ascii_digit());
            Some(Self::new(
                backend.parse().ok()?,
                ordinal.parse().ok().filter(|_| digits)?,
            ))
        };
        parse().ok_or_else(|| DeviceIdError {
            text: text.to_owned(),
        })
    }
}

impl Serialize for DeviceId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What sort of hardware it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DeviceKind {
    /// A card with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU given by a hypervisor, or an emulated one.
    Virtual,
    /// The processor.
    Cpu,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Cpu => "cpu",
        })
    }
}

bitflags! {
    /// What a device can do beyond the contract's minimum. A new ability is a new bit.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    pub struct Caps: u32 {
        /// 64-bit floats in kernels.
        const F64 = 1;
        /// 16-bit floats in kernels.
        const F16 = 1 << 1;
        /// 64-bit integers in kernels.
        const I64 = 1 << 2;
        /// [`Event::at`](crate::Event::at) answers with a device clock.
        const TIMESTAMPS = 1 << 3;
        /// Work on several queues really overlaps.
        const CONCURRENT_QUEUES = 1 << 4;
        /// Copies overlap with kernels.
        const COPY_OVERLAP = 1 << 5;
        /// Strict math is bit-exact: no contraction, correctly rounded division and square root.
        const STRICT_MATH = 1 << 6;
        /// Host and device share one memory.
        const UNIFIED_MEMORY = 1 << 7;
    }
}

/// The sizes a launch or an allocation must respect. The defaults are what every known device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Largest single allocation, in bytes.
    pub max_alloc: u64,
    /// Largest slice a kernel argument may span, in bytes.
    pub max_binding: u64,
    /// Slices in one launch.
    pub max_slices: u32,
    /// Items of a work group, in all.
    pub max_group_items: u32,
    /// Items of a work group, per dimension.
    pub max_group: [u32; 3],
    /// Work groups of a launch, per dimension.
    pub max_groups: [u32; 3],
    /// Memory shared by a work group, in bytes.
    pub local_memory: u32,
    /// A kernel argument's slice starts at a multiple of this many bytes.
    pub slice_align: u32,
    /// Multiprocessors, compute units or cores.
    pub compute_units: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_alloc: u64::MAX,
            max_binding: u64::MAX,
            max_slices: 8,
            max_group_items: 256,
            max_group: [256, 256, 64],
            max_groups: [65_535; 3],
            local_memory: 16 << 10,
            slice_align: 256,
            compute_units: 1,
        }
    }
}

/// Everything a driver tells about a device without being opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The backend's name for it.
    pub id: DeviceId,
    /// What the driver calls it.
    pub name: String,
    /// Driver or API version, for people and bug reports.
    pub driver: String,
    /// What sort of hardware it is.
    pub kind: DeviceKind,
    /// Does a processor pretend to be this device (`PoCL`, lavapipe, an emulator)? Such devices
    /// are listed last and used only when asked for or when nothing else is there.
    pub software: bool,
    /// Every identity the driver tells.
    pub key: PhysicalKey,
    /// The kinds of memory this device offers; the first that kernels can use is its own.
    pub memory: Vec<MemoryKind>,
    /// Its memory in bytes; 0 when unknown.
    pub total_memory: u64,
    /// Free memory in bytes, where the driver tells without a context.
    pub free_memory: Option<u64>,
    /// Kernel languages it takes, best first.
    pub languages: Vec<Language>,
    /// What it can do.
    pub caps: Caps,
    /// What it cannot exceed.
    pub limits: Limits,
}

impl DeviceInfo {
    /// A hardware device of which nothing but a name and its memory kinds is known yet.
    pub fn new(id: DeviceId, name: impl Into<String>, memory: &[MemoryKind]) -> Self {
        Self {
            id,
            name: name.into(),
            driver: String::new(),
            kind: DeviceKind::Discrete,
            software: false,
            key: PhysicalKey::default(),
            memory: memory.to_vec(),
            total_memory: 0,
            free_memory: None,
            languages: Vec::new(),
            caps: Caps::empty(),
            limits: Limits::default(),
        }
    }

    /// A device played by the processor.
    pub fn software(id: DeviceId, name: impl Into<String>, memory: &[MemoryKind]) -> Self {
        Self {
            kind: DeviceKind::Cpu,
            software: true,
            ..Self::new(id, name, memory)
        }
    }

    /// The kind its kernels work in.
    pub fn local_kind(&self) -> Option<MemoryKind> {
        self.memory
            .iter()
            .copied()
            .find(|kind| kind.space().kernel_visible())
    }

    /// The kind to stage bytes through on the way from and to the host: pinned memory where there
    /// is some, else whatever the host can see.
    pub fn staging_kind(&self) -> Option<MemoryKind> {
        let pinned = self
            .memory
            .iter()
            .copied()
            .find(|kind| kind.space() == Space::Pinned);
        pinned.or_else(|| {
            self.memory
                .iter()
                .copied()
                .find(|kind| kind.space().host_visible())
        })
    }

    /// The first of `sources` in a language this device takes, in the device's order of liking.
    pub fn pick<'s, 'a>(&self, sources: &'s [KernelSource<'a>]) -> Option<&'s KernelSource<'a>> {
        self.languages
            .iter()
            .find_map(|l| sources.iter().find(|s| s.language() == *l))
    }
}

/// An opened device. Dropping the last handle to it, its buffers, queues and kernels closes it.
///
/// Implementers report only what callers could not foresee; callers go through
/// [`CheckedDevice`](crate::CheckedDevice), which refuses the rest.
pub trait Device: Any + fmt::Debug + Send + Sync {
    /// What was probed, refined by what only an open device knows.
    fn info(&self) -> &DeviceInfo;

    /// Memory now.
    fn memory(&self) -> Result<MemoryUse>;

    /// Allocates `bytes` of `kind`; the content is unspecified.
    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>>;

    /// Makes a queue.
    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>>;

    /// Compiles a kernel.
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("cuda:0", true)]
    #[case("my-fpga:12", true)]
    #[case("cuda", false)]
    #[case("cuda:", false)]
    #[case("cuda:-1", false)]
    #[case("cuda:+1", false)]
    #[case("cuda:true", false)]
    #[case(":0", false)]
    #[case("cuda:99999999999", false)]
    fn device_ids_parse(#[case] text: &str, #[case] good: bool) {
        let parsed = text.parse::<DeviceId>();
        assert_eq!(parsed.is_ok(), good);
        if let Ok(id) = parsed {
            assert_eq!(id.to_string(), text);
        }
    }
}
