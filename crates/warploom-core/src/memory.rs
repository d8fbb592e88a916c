//! Where bytes live: [`MemoryKind`] is a value for plans, [`MemoryType`] its marker in Rust types.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::backend::BackendId;
use crate::name::Name;

/// Who can see a memory kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Space {
    /// Ordinary process memory; only the CPU backend's kernels can use it.
    Host,
    /// Host memory a device can copy from and to on its own, so that copies overlap with work.
    Pinned,
    /// The device's own memory; the host cannot see it.
    Device,
    /// One memory that host and kernels both see.
    Shared,
}

impl Space {
    /// Can the host look into such a buffer with [`Buffer::with_host`](crate::Buffer::with_host)?
    pub fn host_visible(self) -> bool {
        self != Space::Device
    }

    /// Can a kernel of the owning backend use such a buffer as an argument?
    pub fn kernel_visible(self) -> bool {
        self != Space::Pinned
    }
}

/// A kind of memory, named `backend.place`: `cuda.device`, `opencl.pinned`; `host` is the CPU's.
///
/// Equality is by name and space. Aliases are the names people know from elsewhere; they resolve
/// to the kind but never print, so a plan speaks one language.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct MemoryKind {
    name: Name,
    space: Space,
    #[serde(skip)]
    aliases: &'static [&'static str],
}

impl MemoryKind {
    /// A kind without aliases.
    pub const fn new(name: &str, space: Space) -> Self {
        Self {
            name: Name::new(name),
            space,
            aliases: &[],
        }
    }

    /// The same kind, found under further names too.
    #[must_use]
    pub const fn with_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The kind's own name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Who can see it.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Further names that resolve to it.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// The backend that owns this kind: the part before the dot. `host` belongs to `cpu`.
    pub fn backend(&self) -> BackendId {
        let owner = self
            .name()
            .split_once('.')
            .map_or(self.name(), |(backend, _)| backend);
        if owner == "host" {
            BackendId::CPU
        } else {
            BackendId::new(owner)
        }
    }

    /// Must a GPU be there for this kind to exist?
    pub fn needs_gpu(&self) -> bool {
        self.backend() != BackendId::CPU
    }
}

impl PartialEq for MemoryKind {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.space) == (other.name, other.space)
    }
}
impl Eq for MemoryKind {}
impl Hash for MemoryKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, self.space).hash(state);
    }
}
impl PartialOrd for MemoryKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for MemoryKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.name, self.space).cmp(&(other.name, other.space))
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.name, f)
    }
}

impl fmt::Debug for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", self.name, self.space)
    }
}

/// A memory kind as a type, so that a hand-written chain of steps fails to compile where the
/// memory differs: `Array<f32, CudaDevice>` is not `Array<f32, Host>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a kind of memory",
    note = "use a marker such as `Host`, `CudaDevice`, `OpenClDevice` or `WgpuDevice`, or implement `MemoryType` for your own"
)]
pub trait MemoryType: Copy + fmt::Debug + Send + Sync + 'static {
    /// The kind this type stands for.
    const KIND: MemoryKind;
}

macro_rules! well_known {
    ($($(#[$doc:meta])* $marker:ident = $constant:ident, $name:literal, $space:ident, $aliases:expr;)*) => {
        $(
            #[doc = concat!("The kind `", $name, "`.")]
            pub const $constant: MemoryKind =
                MemoryKind::new($name, Space::$space).with_aliases(&$aliases);

            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
            pub struct $marker;
            impl MemoryType for $marker {
                const KIND: MemoryKind = $constant;
            }
        )*

        /// The kinds of the backends that come with Warploom, whether linked in or not. A name in
        /// this list whose backend is missing is a different mistake from an unknown name, and
        /// gets a different answer.
        pub const WELL_KNOWN: &[MemoryKind] = &[$($constant),*];
    };
}

well_known! {
    /// Ordinary process memory, where the CPU backend works.
    Host = HOST, "host", Host, ["numpy", "cpu"];
    /// Memory of a CUDA device.
    CudaDevice = CUDA_DEVICE, "cuda.device", Device,
        ["cupy", "torch", "pytorch", "tensorflow", "jax", "cuda"];
    /// Page-locked host memory a CUDA device copies from and to by itself.
    CudaPinned = CUDA_PINNED, "cuda.pinned", Pinned, [];
    /// Memory of an OpenCL device.
    OpenClDevice = OPENCL_DEVICE, "opencl.device", Device,
        ["pyclesperanto", "pyopencl", "opencl"];
    /// Host memory an OpenCL runtime allocated for fast copies.
    OpenClPinned = OPENCL_PINNED, "opencl.pinned", Pinned, [];
    /// Memory of a Vulkan, Metal or DX12 device reached through wgpu.
    WgpuDevice = WGPU_DEVICE, "wgpu.device", Device, ["wgpu", "webgpu"];
    /// Mappable staging memory of a wgpu device.
    WgpuPinned = WGPU_PINNED, "wgpu.pinned", Pinned, [];
}

/// What a device says about its memory right now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryUse {
    /// All there is, in bytes; 0 when the API does not tell.
    pub total: u64,
    /// What the driver calls free, counting every process; `None` when the API does not tell.
    pub free: Option<u64>,
    /// What buffers of this opened device hold.
    pub ours: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_knows_its_backend() {
        assert_eq!(CUDA_DEVICE.backend(), BackendId::new("cuda"));
        assert_eq!(HOST.backend(), BackendId::CPU);
        assert!(!HOST.needs_gpu());
        assert!(OPENCL_PINNED.needs_gpu());
    }

    #[test]
    fn aliases_are_not_part_of_identity() {
        assert_eq!(MemoryKind::new("cuda.device", Space::Device), CUDA_DEVICE);
        let text = serde_json::to_string(&CUDA_DEVICE).unwrap();
        assert_eq!(text, r#"{"name":"cuda.device","space":"device"}"#);
        assert_eq!(
            serde_json::from_str::<MemoryKind>(&text).unwrap(),
            CUDA_DEVICE
        );
    }

    #[test]
    fn no_alias_is_given_twice() {
        let mut all: Vec<&str> = WELL_KNOWN
            .iter()
            .flat_map(|k| {
                k.aliases()
                    .iter()
                    .copied()
                    .chain([k.name.as_str().to_owned().leak() as &str])
            })
            .collect();
        let before = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}
