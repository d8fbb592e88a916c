//! Lists devices without making a context.

use std::ffi::{CStr, c_char, c_int};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use warploom_core::{
    Caps, DeviceId, DeviceInfo, DeviceKind, Language, Limits, Luid, PciAddress, PhysicalKey, Uuid,
};

use crate::driver::Driver;
use crate::error::Status;
use crate::{ID, KINDS};

/// How the names of emulated devices start. A device so called is listed as software.
pub const EMULATED: &str = "Warploom emulated";

/// Slices in one launch: parameters have 4 KiB, of which numbers need some.
const MAX_SLICES: u32 = 256;

/// Kernels may load four words at once, which needs this alignment; the driver itself asks for none.
const SLICE_ALIGN: u32 = 16;

/// How many devices the driver shows to this process.
pub(crate) fn count(driver: &Driver) -> Result<u32, Status> {
    let mut count: c_int = 0;
    // SAFETY: the place for the answer is writable.
    let status = unsafe { driver.cuDeviceGetCount(&raw mut count) };
    if !status.is_ok() {
        return Err(status);
    }
    Ok(u32::try_from(count).unwrap_or(0))
}

/// A device the driver has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    ordinal: u32,
    handle: sys::CUdevice,
}

impl Found {
    /// Device number `ordinal`.
    pub(crate) fn at(driver: &Driver, ordinal: u32) -> Result<Self, Status> {
        let mut handle = 0;
        // A number too large for the driver becomes one it refuses.
        let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: the place for the answer is writable.
        let status = unsafe { driver.cuDeviceGet(&raw mut handle, number) };
        if !status.is_ok() {
            return Err(status);
        }
        Ok(Self { ordinal, handle })
    }

    /// For the calls that make a context.
    pub(crate) fn handle(self) -> sys::CUdevice {
        self.handle
    }

    /// Its compute capability, 75 for 7.5; 0 when the driver does not tell.
    pub(crate) fn capability(self, driver: &Driver) -> u32 {
        let major = self.number(
            driver,
            Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        );
        let minor = self.number(
            driver,
            Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        );
        major.unwrap_or(0) * 10 + minor.unwrap_or(0)
    }

    /// Everything the driver tells. What it does not tell stays unknown: a card that answers half
    /// of the questions is still a card.
    pub(crate) fn describe(self, driver: &Driver, nvrtc: bool) -> DeviceInfo {
        let id = DeviceId::new(ID, self.ordinal);
        let name = self
            .name(driver)
            .unwrap_or_else(|| format!("CUDA device {}", self.ordinal));
        let mut info = DeviceInfo::new(id, name, KINDS);
        let integrated = self.flag(driver, Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED);
        if info.name.starts_with(EMULATED) {
            (info.kind, info.software) = (DeviceKind::Virtual, true);
        } else if integrated {
            info.kind = DeviceKind::Integrated;
        }
        info.driver = version(driver);
        let (uuid, slice) = self.uuid(driver);
        info.key = PhysicalKey {
            pci: self.pci(driver),
            uuid,
            luid: self.luid(driver),
            slice,
        };
        info.total_memory = self.total_memory(driver).unwrap_or(0);
        info.languages = if nvrtc {
            vec![Language::CudaC, Language::Ptx]
        } else {
            vec![Language::Ptx]
        };
        info.caps = self.caps(driver, integrated);
        info.limits = self.limits(driver, info.total_memory);
        info
    }

    fn caps(self, driver: &Driver, integrated: bool) -> Caps {
        let mut caps = Caps::F64 | Caps::I64 | Caps::TIMESTAMPS | Caps::STRICT_MATH;
        let copies = self.number(driver, Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
        caps.set(Caps::F16, self.capability(driver) >= 53);
        caps.set(
            Caps::CONCURRENT_QUEUES,
            self.flag(driver, Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS),
        );
        caps.set(Caps::COPY_OVERLAP, copies.is_some_and(|count| count > 0));
        caps.set(Caps::UNIFIED_MEMORY, integrated);
        caps
    }

    fn limits(self, driver: &Driver, total_memory: u64) -> Limits {
        let usual = Limits::default();
        let number = |attribute, usual| {
            let value = self.number(driver, attribute);
            value.filter(|value| *value > 0).unwrap_or(usual)
        };
        // An unknown size refuses nothing.
        let most = if total_memory == 0 {
            u64::MAX
        } else {
            total_memory
        };
        Limits {
            max_alloc: most,
            max_binding: most,
            max_slices: MAX_SLICES,
            max_group_items: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                usual.max_group_items,
            ),
            max_group: [
                number(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                    usual.max_group[0],
                ),
                number(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                    usual.max_group[1],
                ),
                number(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
                    usual.max_group[2],
                ),
            ],
            max_groups: [
                number(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                    usual.max_groups[0],
                ),
                number(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                    usual.max_groups[1],
                ),
                number(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
                    usual.max_groups[2],
                ),
            ],
            local_memory: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
                usual.local_memory,
            ),
            slice_align: SLICE_ALIGN,
            compute_units: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                usual.compute_units,
            ),
        }
    }

    fn number(self, driver: &Driver, attribute: Attribute) -> Option<u32> {
        let mut value: c_int = 0;
        // SAFETY: the device is the driver's, and the place for the answer is writable.
        let status = unsafe { driver.cuDeviceGetAttribute(&raw mut value, attribute, self.handle) };
        status.is_ok().then(|| u32::try_from(value).ok()).flatten()
    }

    fn flag(self, driver: &Driver, attribute: Attribute) -> bool {
        self.number(driver, attribute)
            .is_some_and(|value| value != 0)
    }

    fn name(self, driver: &Driver) -> Option<String> {
        let mut text = [0 as c_char; 256];
        // One less, so that the text ends in a NUL whatever the driver does.
        let room: c_int = 255;
        // SAFETY: the device is the driver's, and `text` has room for what is told.
        let status = unsafe { driver.cuDeviceGetName(text.as_mut_ptr(), room, self.handle) };
        let bytes = text.map(byte);
        let name = CStr::from_bytes_until_nul(&bytes).ok()?;
        status.is_ok().then(|| name.to_string_lossy().into_owned())
    }

    fn total_memory(self, driver: &Driver) -> Option<u64> {
        let mut bytes = 0_usize;
        // SAFETY: the device is the driver's, and the place for the answer is writable.
        let status = unsafe { driver.cuDeviceTotalMem_v2(&raw mut bytes, self.handle) };
        status.is_ok().then_some(bytes as u64)
    }

    /// CUDA has no attribute for the function; GPUs are function 0 (their sound device is 1).
    fn pci(self, driver: &Driver) -> Option<PciAddress> {
        let small = |attribute| u8::try_from(self.number(driver, attribute)?).ok();
        Some(PciAddress {
            domain: self.number(driver, Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            bus: small(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            device: small(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
            function: 0,
        })
    }

    /// What the device calls itself, and whether it is a slice of a card. For a MIG instance the
    /// second version of the call gives the instance's own UUID, the first its card's.
    fn uuid(self, driver: &Driver) -> (Option<Uuid>, bool) {
        let mut answer = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the device is the driver's, and the place for the answer is writable.
        let second = unsafe { driver.cuDeviceGetUuid_v2(&raw mut answer, self.handle) };
        let own = uuid(second, answer);
        // SAFETY: as above.
        let first = unsafe { driver.cuDeviceGetUuid(&raw mut answer, self.handle) };
        let card = uuid(first, answer);
        let slice = own.is_some() && card.is_some() && own != card;
        (own.or(card), slice)
    }

    /// Windows numbers its adapters; elsewhere the call does not exist or answers nothing.
    fn luid(self, driver: &Driver) -> Option<Luid> {
        if !cfg!(windows) {
            return None;
        }
        let (mut luid, mut nodes) = ([0 as c_char; 8], 0);
        // SAFETY: the device is the driver's, and both places are writable.
        let status =
            unsafe { driver.cuDeviceGetLuid(luid.as_mut_ptr(), &raw mut nodes, self.handle) };
        if !status.is_some_and(Status::is_ok) {
            return None;
        }
        let bytes = luid.map(byte);
        (bytes != [0; 8]).then_some(Luid(bytes))
    }
}

/// A `c_char` is signed on some processors and not on others.
fn byte(c: c_char) -> u8 {
    let [byte] = c.to_ne_bytes();
    byte
}

/// `CUDA 12.4`, the newest the driver supports.
fn version(driver: &Driver) -> String {
    let mut version: c_int = 0;
    // SAFETY: the place for the answer is writable.
    let status = unsafe { driver.cuDriverGetVersion(&raw mut version) };
    if !status.is_ok() {
        return "CUDA".into();
    }
    format!("CUDA {}.{}", version / 1000, version % 1000 / 10)
}

/// The answer, if the call was there and went well. All zeros is how some virtual devices say that
/// they have none.
fn uuid(status: Option<Status>, answer: sys::CUuuid) -> Option<Uuid> {
    let bytes = answer.bytes.map(byte);
    (status.is_some_and(Status::is_ok) && bytes != [0; 16]).then_some(Uuid(bytes))
}
