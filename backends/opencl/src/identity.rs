//! Which card a device is, as far as its driver tells.
//!
//! The reading of each vendor's bytes is a function of those bytes alone, so that it is tested
//! without the vendor's card.

use opencl3::device::{
    CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, CL_DEVICE_LUID_KHR, CL_DEVICE_LUID_VALID_KHR,
    CL_DEVICE_PCI_BUS_ID_NV, CL_DEVICE_PCI_BUS_INFO_KHR, CL_DEVICE_PCI_SLOT_ID_NV,
    CL_DEVICE_TOPOLOGY_AMD, CL_DEVICE_UUID_KHR,
};
use opencl3::types::cl_device_info;
use warploom_core::{Luid, PciAddress, PhysicalKey, Uuid};

use crate::cl::{DeviceHandle, number, sizes};

/// Undocumented by NVIDIA and missing in the bindings, but answered by its drivers.
const CL_DEVICE_PCI_DOMAIN_ID_NV: cl_device_info = 0x400A;

/// The extensions whose vendors' numbers are asked for. The same number may mean something else to
/// another vendor, so those questions are put only to drivers that announce the extension; Khronos
/// numbers are unique and are put to all.
pub(crate) const NV: &str = "cl_nv_device_attribute_query";
pub(crate) const AMD: &str = "cl_amd_device_attribute_query";

/// Every identity the driver tells. A question it does not know is no answer, never an error.
pub(crate) fn key(device: DeviceHandle, has: impl Fn(&str) -> bool) -> PhysicalKey {
    let khronos = || pci_khr(&device.bytes(CL_DEVICE_PCI_BUS_INFO_KHR)?);
    let nvidia = || {
        let word = |property| device.number(property).and_then(|n| u32::try_from(n).ok());
        has(NV).then_some(())?;
        pci_nv(
            word(CL_DEVICE_PCI_BUS_ID_NV)?,
            word(CL_DEVICE_PCI_SLOT_ID_NV)?,
            word(CL_DEVICE_PCI_DOMAIN_ID_NV),
        )
    };
    let amd = || {
        has(AMD).then_some(())?;
        pci_amd(&device.bytes(CL_DEVICE_TOPOLOGY_AMD)?)
    };
    let luid_valid = device.flag(CL_DEVICE_LUID_VALID_KHR);
    PhysicalKey {
        pci: khronos().or_else(nvidia).or_else(amd),
        uuid: device.bytes(CL_DEVICE_UUID_KHR).as_deref().and_then(uuid),
        luid: luid_valid
            .then(|| device.bytes(CL_DEVICE_LUID_KHR))
            .flatten()
            .as_deref()
            .and_then(luid),
        // OpenCL does not tell.
        slice: false,
    }
}

/// Free bytes as AMD tells them, without a context.
pub(crate) fn free_memory(device: DeviceHandle, has: impl Fn(&str) -> bool) -> Option<u64> {
    has(AMD).then_some(())?;
    free_amd(&device.bytes(CL_DEVICE_GLOBAL_FREE_MEMORY_AMD)?)
}

/// `cl_khr_pci_bus_info`: four words.
fn pci_khr(bytes: &[u8]) -> Option<PciAddress> {
    let words: Vec<u64> = bytes.chunks_exact(4).filter_map(number).collect();
    let [domain, bus, device, function] = words[..] else {
        return None;
    };
    pci(domain, bus, device, function)
}

/// NVIDIA's slot is device and function in one, as in the configuration space. Old drivers do not
/// know the domain and have it in the upper bits of the bus.
fn pci_nv(bus: u32, slot: u32, domain: Option<u32>) -> Option<PciAddress> {
    let domain = domain.unwrap_or(bus >> 8);
    pci(
        domain.into(),
        (bus & 0xff).into(),
        (slot >> 3).into(),
        (slot & 7).into(),
    )
}

/// AMD's topology: a word that is 1 for `PCIe`, 17 bytes unused, then bus, device and function. There
/// is no domain in it; AMD's drivers that know more answer the Khronos question.
fn pci_amd(bytes: &[u8]) -> Option<PciAddress> {
    const PCIE: u64 = 1;
    if bytes.len() != 24 || number(&bytes[..4]) != Some(PCIE) {
        return None;
    }
    pci(0, bytes[21].into(), bytes[22].into(), bytes[23].into())
}

/// An address, unless the numbers cannot be one. All zeros is the root of the bus, never a card,
/// and what a driver gives that does not know.
fn pci(domain: u64, bus: u64, device: u64, function: u64) -> Option<PciAddress> {
    if device > 31 || function > 7 || (domain, bus, device, function) == (0, 0, 0, 0) {
        return None;
    }
    Some(PciAddress {
        domain: domain.try_into().ok()?,
        bus: bus.try_into().ok()?,
        device: device.try_into().ok()?,
        function: function.try_into().ok()?,
    })
}

/// Zeros are what a driver gives that has no UUID; taken as one they would unite strangers.
fn uuid(bytes: &[u8]) -> Option<Uuid> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    (bytes != [0; 16]).then_some(Uuid(bytes))
}

fn luid(bytes: &[u8]) -> Option<Luid> {
    let bytes: [u8; 8] = bytes.try_into().ok()?;
    (bytes != [0; 8]).then_some(Luid(bytes))
}

/// KiB free in all, then KiB of the largest free block on some drivers.
fn free_amd(bytes: &[u8]) -> Option<u64> {
    sizes(bytes).first()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: [u32; 4]) -> Vec<u8> {
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    fn text(address: Option<PciAddress>) -> Option<String> {
        address.map(|a| a.to_string())
    }

    #[rstest::rstest]
    #[case([0, 0x41, 0, 0], Some("0000:41:00.0"))]
    #[case([0x10000, 0xc1, 0x1f, 7], Some("10000:c1:1f.7"))]
    #[case([0, 0, 2, 0], Some("0000:00:02.0"))]
    #[case([0, 0, 0, 0], None)]
    #[case([0, 0x100, 0, 0], None)]
    #[case([0, 1, 32, 0], None)]
    #[case([0, 1, 0, 8], None)]
    #[case([u32::MAX; 4], None)]
    fn khronos_addresses(#[case] given: [u32; 4], #[case] address: Option<&str>) {
        assert_eq!(text(pci_khr(&words(given))).as_deref(), address);
    }

    #[test]
    fn khronos_addresses_have_sixteen_bytes() {
        assert_eq!(pci_khr(&words([0; 4])[..12]), None);
        assert_eq!(pci_khr(&[0; 20]), None);
        assert_eq!(pci_khr(&[]), None);
    }

    #[rstest::rstest]
    #[case(0x41, 0, Some(0), Some("0000:41:00.0"))]
    #[case(0x41, 0x0a, Some(1), Some("0001:41:01.2"))]
    #[case(0x0141, 0, None, Some("0001:41:00.0"))]
    #[case(0x41, 0x100, Some(0), None)]
    fn nvidia_addresses(
        #[case] bus: u32,
        #[case] slot: u32,
        #[case] domain: Option<u32>,
        #[case] address: Option<&str>,
    ) {
        assert_eq!(text(pci_nv(bus, slot, domain)).as_deref(), address);
    }

    #[test]
    fn amd_addresses() {
        let mut bytes = [0xaa_u8; 24];
        bytes[..4].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[21..].copy_from_slice(&[0xc3, 0, 1]);
        assert_eq!(text(pci_amd(&bytes)).as_deref(), Some("0000:c3:00.1"));
        assert_eq!(pci_amd(&bytes[..23]), None);
        bytes[0] = 2;
        assert_eq!(pci_amd(&bytes), None, "not PCIe");
    }

    #[test]
    fn identities_of_zeros_or_odd_lengths_are_none() {
        assert_eq!(uuid(&[0; 16]), None);
        assert_eq!(uuid(&[1; 15]), None);
        assert_eq!(uuid(&[1; 16]), Some(Uuid([1; 16])));
        assert_eq!(luid(&[0; 8]), None);
        assert_eq!(luid(&[2; 8]), Some(Luid([2; 8])));
        assert_eq!(luid(&[2; 9]), None);
    }

    #[test]
    fn amd_tells_free_memory_in_kibibytes() {
        let mut bytes = 1024_usize.to_ne_bytes().to_vec();
        assert_eq!(free_amd(&bytes), Some(1 << 20));
        bytes.extend(512_usize.to_ne_bytes());
        assert_eq!(free_amd(&bytes), Some(1 << 20));
        assert_eq!(free_amd(&[]), None);
        assert_eq!(free_amd(&usize::MAX.to_ne_bytes()), None);
    }
}
