//! Listing devices without opening them.

use opencl3::device::{
    CL_DEVICE_AVAILABLE, CL_DEVICE_BOARD_NAME_AMD, CL_DEVICE_COMPILER_AVAILABLE,
    CL_DEVICE_EXTENSIONS, CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_GPU_OVERLAP_NV,
    CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_PARAMETER_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE,
    CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_MEM_BASE_ADDR_ALIGN, CL_DEVICE_NAME,
    CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_PROFILE, CL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_TYPE,
    CL_DEVICE_TYPE_CPU, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, CL_FP_DENORM, CL_FP_ROUND_TO_NEAREST,
};
use opencl3::platform::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION};
use warploom_core::memory::{OPENCL_DEVICE, OPENCL_PINNED};
use warploom_core::{
    Caps, DeviceError, DeviceId, DeviceInfo, DeviceKind, Language, Limits, MemoryKind, Result,
};

use crate::cl::{DeviceHandle, Platform, platforms, sizes};
use crate::error::Failure;
use crate::identity;

/// The kinds of memory every OpenCL device offers.
pub(crate) const KINDS: &[MemoryKind] = &[OPENCL_DEVICE, OPENCL_PINNED];

/// What PoCL calls its platform.
const POCL: &str = "Portable Computing Language";

/// A device that was found, and everything needed to open it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) platform: Platform,
    pub(crate) device: DeviceHandle,
    pub(crate) info: DeviceInfo,
    /// Whatever makes compiled code of one device useless to another.
    pub(crate) fingerprint: String,
    /// May `-cl-fp32-correctly-rounded-divide-sqrt` be given to its compiler?
    pub(crate) rounds_correctly: bool,
    /// Does the driver keep on disk what it compiled, and compile it once more for whoever asks for it?
    pub(crate) keeps_programs: bool,
    /// Does it read declarations of all of OpenCL C in front of each program?
    pub(crate) reads_header: bool,
}

/// Every usable device, in the order of platforms and of devices within them.
///
/// Ordinals count the devices that cannot be used too, so that a card that is taken away by its
/// driver for a while does not rename the others.
pub(crate) fn devices() -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut ordinal = 0;
    let mut refused: Option<Failure> = None;
    let all = platforms().map_err(on_probe)?;
    for platform in all {
        let devices = match platform.devices() {
            Ok(devices) => devices,
            Err(failure) => {
                // One vendor's broken driver must not hide the other's cards.
                let platform = platform.text(CL_PLATFORM_NAME);
                tracing::warn!(%platform, call = failure.call, %failure, "no devices listed");
                refused = Some(failure);
                continue;
            }
        };
        for device in devices {
            found.extend(describe(
                platform,
                device,
                DeviceId::new(crate::ID, ordinal),
            ));
            ordinal += 1;
        }
    }
    match refused {
        Some(failure) if found.is_empty() => Err(on_probe(failure)),
        _ => Ok(found),
    }
}

fn on_probe(failure: Failure) -> DeviceError {
    DeviceError::probe(crate::ID, failure.call, failure)
}

/// What the driver says about a device; `None` when it cannot be used.
fn describe(platform: Platform, device: DeviceHandle, id: DeviceId) -> Option<Found> {
    let (name, version) = (device.text(CL_DEVICE_NAME), device.text(CL_DEVICE_VERSION));
    if !device.flag(CL_DEVICE_AVAILABLE) {
        tracing::debug!(%id, name, "left out: the driver says it is not available");
        return None;
    }
    // Markers and barriers came with 1.2.
    if version_of(&version, "OpenCL ").is_some_and(|version| version < (1, 2)) {
        tracing::debug!(%id, name, version, "left out: OpenCL 1.2 is needed");
        return None;
    }
    let extensions = device.text(CL_DEVICE_EXTENSIONS);
    let has = |extension: &str| extensions.split_whitespace().any(|e| e == extension);

    let platform_name = platform.text(CL_PLATFORM_NAME);
    let platform_version = platform.text(CL_PLATFORM_VERSION);
    let driver = device.text(CL_DRIVER_VERSION);
    let fingerprint = [
        &platform_name,
        &platform_version,
        &device.text(CL_DEVICE_VENDOR),
        &name,
        &version,
        &driver,
    ]
    .map(String::as_str)
    .join("\n");

    let config = device.number(CL_DEVICE_SINGLE_FP_CONFIG).unwrap_or(0);
    let rounds_correctly = config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0;

    let mut info = DeviceInfo::new(id, shown_name(device, &name, has), KINDS);
    info.driver = format!("{platform_version}, driver {driver}");
    info.kind = kind(device, &name);
    info.software = info.kind == DeviceKind::Cpu;
    info.key = identity::key(device, has);
    info.total_memory = device.number(CL_DEVICE_GLOBAL_MEM_SIZE).unwrap_or(0);
    info.free_memory = identity::free_memory(device, has);
    if takes_kernels(device) {
        info.languages = vec![Language::OpenClC];
    }
    info.limits = limits(device);
    info.caps = caps(device, &info, &name, has) | math_caps(config, has);
    Some(Found {
        platform,
        device,
        info,
        fingerprint,
        rounds_correctly,
        keeps_programs: platform_name == POCL,
        reads_header: platform_name == POCL,
    })
}

/// AMD calls its devices by their instruction set (`gfx1100`) and has the card's name elsewhere.
fn shown_name(device: DeviceHandle, name: &str, has: impl Fn(&str) -> bool) -> String {
    let board = if has(identity::AMD) {
        device.text(CL_DEVICE_BOARD_NAME_AMD)
    } else {
        String::new()
    };
    if board.is_empty() {
        name.to_owned()
    } else {
        board
    }
}

fn kind(device: DeviceHandle, name: &str) -> DeviceKind {
    let bits = device.number(CL_DEVICE_TYPE).unwrap_or(0);
    if is_software(bits, name) {
        DeviceKind::Cpu
    } else if device.flag(CL_DEVICE_HOST_UNIFIED_MEMORY) {
        DeviceKind::Integrated
    } else {
        DeviceKind::Discrete
    }
}

/// Does a processor play this device? Runtimes layered over Vulkan call software renderers GPUs.
fn is_software(kind_bits: u64, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    kind_bits & CL_DEVICE_TYPE_CPU != 0
        || ["llvmpipe", "swiftshader"]
            .iter()
            .any(|software| name.contains(software))
}

/// A device may come without a compiler, or with one that is too old.
fn takes_kernels(device: DeviceHandle) -> bool {
    let version = device.text(CL_DEVICE_OPENCL_C_VERSION);
    let recent = version_of(&version, "OpenCL C ").is_none_or(|version| version >= (1, 2));
    device.flag(CL_DEVICE_COMPILER_AVAILABLE) && recent
}

/// `OpenCL 3.0 PoCL …` → `(3, 0)`; the specification fixes the form.
fn version_of(text: &str, prefix: &str) -> Option<(u32, u32)> {
    let number = text.strip_prefix(prefix)?.split_whitespace().next()?;
    let (major, minor) = number.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn limits(device: DeviceHandle) -> Limits {
    let known = Limits::default();
    let word = |property, otherwise: u32| device.number(property).map_or(otherwise, saturated);
    let max_alloc = device
        .number(CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        .unwrap_or(known.max_alloc);
    let groups = device.bytes(CL_DEVICE_MAX_WORK_ITEM_SIZES);
    let align_bits = word(CL_DEVICE_MEM_BASE_ADDR_ALIGN, known.slice_align * 8);
    Limits {
        max_alloc,
        max_binding: max_alloc,
        max_slices: max_slices(word(CL_DEVICE_MAX_PARAMETER_SIZE, 1024)),
        max_group_items: word(CL_DEVICE_MAX_WORK_GROUP_SIZE, known.max_group_items),
        max_group: max_group(&sizes(&groups.unwrap_or_default()), known.max_group),
        max_groups: [u32::MAX; 3],
        local_memory: word(CL_DEVICE_LOCAL_MEM_SIZE, known.local_memory),
        slice_align: (align_bits / 8).max(16),
        compute_units: word(CL_DEVICE_MAX_COMPUTE_UNITS, known.compute_units),
    }
}

fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn max_group(told: &[u64], otherwise: [u32; 3]) -> [u32; 3] {
    match told {
        [x, y, z, ..] => [*x, *y, *z].map(saturated),
        _ => otherwise,
    }
}

/// OpenCL limits the bytes of all arguments together. A pointer has eight; half of the room is
/// left for numbers.
fn max_slices(parameter_bytes: u32) -> u32 {
    (parameter_bytes / 8 / 2).clamp(8, 64)
}

fn math_caps(config: u64, has: impl Fn(&str) -> bool) -> Caps {
    // Bit-exact results also need the usual rounding and small numbers that are not flushed to 0.
    let exact = CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT | CL_FP_ROUND_TO_NEAREST | CL_FP_DENORM;
    let mut caps = Caps::empty();
    caps.set(Caps::STRICT_MATH, config & exact == exact);
    caps.set(Caps::F64, has("cl_khr_fp64"));
    caps.set(Caps::F16, has("cl_khr_fp16"));
    caps
}

fn caps(device: DeviceHandle, info: &DeviceInfo, name: &str, has: impl Fn(&str) -> bool) -> Caps {
    // 64-bit integers are optional in the embedded profile only.
    let full = device.text(CL_DEVICE_PROFILE) == "FULL_PROFILE" || has("cles_khr_int64");
    let queues = overlaps_queues(info, name);
    // Copies share the queues' fate; NVIDIA also tells whether there is an engine for them, and a
    // GPU without memory of its own has none.
    let copies = match info.kind {
        DeviceKind::Integrated => false,
        _ if has(identity::NV) => device.flag(CL_DEVICE_GPU_OVERLAP_NV),
        _ => true,
    };
    let mut caps = Caps::TIMESTAMPS;
    caps.set(Caps::I64, full);
    caps.set(Caps::CONCURRENT_QUEUES, queues);
    caps.set(Caps::COPY_OVERLAP, queues && copies);
    caps.set(
        Caps::UNIFIED_MEMORY,
        device.flag(CL_DEVICE_HOST_UNIFIED_MEMORY),
    );
    caps
}

/// OpenCL has no question for this. GPUs do it. `PoCL`'s `basic` driver runs every command on the
/// caller's thread, and a processor needs a second core to run a second queue.
fn overlaps_queues(info: &DeviceInfo, name: &str) -> bool {
    info.kind != DeviceKind::Cpu
        || info.limits.compute_units > 1 && name != "basic" && !name.starts_with("basic-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("OpenCL 3.0 PoCL HSTR: basic", "OpenCL ", Some((3, 0)))]
    #[case("OpenCL C 1.2 PoCL", "OpenCL C ", Some((1, 2)))]
    #[case("OpenCL 1.1", "OpenCL ", Some((1, 1)))]
    #[case("OpenCL C 1.2", "OpenCL ", None)]
    #[case("", "OpenCL ", None)]
    #[case("OpenCL x.y", "OpenCL ", None)]
    fn versions(#[case] text: &str, #[case] prefix: &str, #[case] version: Option<(u32, u32)>) {
        assert_eq!(version_of(text, prefix), version);
    }

    #[test]
    fn processors_in_disguise_are_software() {
        assert!(is_software(CL_DEVICE_TYPE_CPU, "pthread-skylake"));
        assert!(is_software(CL_DEVICE_TYPE_CPU | 4, "Oclgrind Simulator"));
        assert!(is_software(4, "llvmpipe (LLVM 15.0.6, 256 bits)"));
        assert!(!is_software(4, "NVIDIA T4"));
        assert!(!is_software(8, "an accelerator"));
    }

    #[test]
    fn queues_overlap_where_something_can_run_them() {
        let id = DeviceId::new(crate::ID, 0);
        let mut cpu = DeviceInfo::software(id, "", KINDS);
        cpu.limits.compute_units = 2;
        assert!(overlaps_queues(&cpu, "pthread-skylake"));
        assert!(!overlaps_queues(&cpu, "basic-skylake"));
        assert!(!overlaps_queues(&cpu, "basic"));
        cpu.limits.compute_units = 1;
        assert!(!overlaps_queues(&cpu, "pthread-skylake"));
        let gpu = DeviceInfo::new(id, "", KINDS);
        assert!(overlaps_queues(&gpu, "gfx1100"));
    }

    #[test]
    fn strict_math_needs_all_of_it() {
        let strict = |config| math_caps(config, |_| false).contains(Caps::STRICT_MATH);
        let all = CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT | CL_FP_ROUND_TO_NEAREST | CL_FP_DENORM;
        assert!(strict(all));
        assert!(!strict(all & !CL_FP_DENORM));
        assert!(!strict(all & !CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT));
        assert!(!strict(0));
        assert!(math_caps(0, |e| e == "cl_khr_fp64").contains(Caps::F64));
    }

    #[test]
    fn odd_limits_are_tamed() {
        assert_eq!(max_slices(1024), 64);
        assert_eq!(max_slices(256), 16);
        assert_eq!(max_slices(0), 8);
        assert_eq!(max_slices(u32::MAX), 64);
        assert_eq!(max_group(&[1 << 40, 5, 6, 7], [1; 3]), [u32::MAX, 5, 6]);
        assert_eq!(max_group(&[4096], [1, 2, 3]), [1, 2, 3]);
    }
}
