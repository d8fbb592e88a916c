//! Which adapters there are, and what they say about themselves without being opened.

use std::collections::HashSet;

use warploom_core::memory::{WGPU_DEVICE, WGPU_PINNED};
use warploom_core::{Caps, DeviceId, DeviceInfo, DeviceKind, Language, Limits, PciAddress};
use wgpu::{Backend, Backends, DeviceType, Features};

use crate::transfer::WORD;
use crate::{ID, vulkan};

/// A listed device and the adapter to open it with.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) info: DeviceInfo,
    pub(crate) adapter: wgpu::Adapter,
}

/// Never GL and never wgpu's no-op: the first cannot do compute well, the second not at all.
const APIS: Backends = Backends::VULKAN
    .union(Backends::METAL)
    .union(Backends::DX12);

/// Without these an adapter is not listed.
const NEEDED: Features = Features::MAPPABLE_PRIMARY_BUFFERS;

/// Events have a time only when it can be taken between any two commands.
const CLOCK: Features = Features::TIMESTAMP_QUERY.union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

/// What kernels can use beyond plain WGSL.
const EXTRAS: [(Features, Caps); 4] = [
    (Features::SHADER_F16, Caps::F16),
    (Features::SHADER_F64, Caps::F64),
    (Features::SHADER_INT64, Caps::I64),
    (CLOCK, Caps::TIMESTAMPS),
];

/// The features a device is opened with: what its capabilities promise, and nothing else.
pub(crate) fn features(adapter: &wgpu::Adapter) -> Features {
    let has = adapter.features();
    let extras = EXTRAS
        .iter()
        .filter(|(features, _)| has.contains(*features));
    extras.fold(NEEDED, |all, (features, _)| all | *features)
}

/// Lists every card once.
///
/// Ordinals follow hardware before software, then identity, then name; adapters that are equal in
/// all of these keep the driver's order. On Windows a card has a Vulkan and a DX12 adapter; of a
/// model that Vulkan lists, DX12's adapters are left out. Two Vulkan drivers for one card are told
/// by its PCI address, and the first is kept.
pub(crate) fn find() -> Vec<Found> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = APIS;
    // No validation layers, no debug output: a probe must neither load nor print anything more.
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let adapters = pollster::block_on(instance.enumerate_adapters(APIS));
    let mut all: Vec<_> = adapters
        .into_iter()
        .filter(|adapter| adapter.features().contains(NEEDED))
        .map(|adapter| (adapter.get_info(), adapter))
        .collect();
    all.sort_by_key(|(told, _)| rank(told.backend));
    let mut seen = Seen::default();
    let mut found: Vec<_> = all
        .into_iter()
        .filter(|(told, _)| seen.is_new(told))
        .map(|(told, adapter)| describe(&told, adapter))
        .collect();
    found.sort_by(|a, b| {
        let key = |found: &Found| (found.info.software, found.info.key);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.info.name.cmp(&b.info.name))
    });
    for (ordinal, found) in (0..).zip(&mut found) {
        found.info.id = DeviceId::new(ID, ordinal);
    }
    found
}

fn rank(api: Backend) -> u8 {
    match api {
        Backend::Vulkan => 0,
        Backend::Metal => 1,
        _ => 2,
    }
}

/// The hardware that is listed already.
#[derive(Debug, Default)]
struct Seen {
    places: HashSet<PciAddress>,
    models: HashSet<(u32, u32)>,
}

impl Seen {
    fn is_new(&mut self, told: &wgpu::AdapterInfo) -> bool {
        if told.device_type == DeviceType::Cpu {
            return true;
        }
        let model = (told.vendor, told.device);
        if told.backend == Backend::Dx12 {
            return !self.models.contains(&model);
        }
        self.models.insert(model);
        place(told).is_none_or(|place| self.places.insert(place))
    }
}

/// wgpu looks a DX12 adapter's address up by its model, so twins get one address: not to be used.
fn place(told: &wgpu::AdapterInfo) -> Option<PciAddress> {
    let known = told.backend != Backend::Dx12;
    known.then(|| told.device_pci_bus_id.parse().ok()).flatten()
}

fn describe(told: &wgpu::AdapterInfo, adapter: wgpu::Adapter) -> Found {
    // The ordinal is set when the order is known.
    let id = DeviceId::new(ID, 0);
    let mut info = DeviceInfo::new(id, told.name.clone(), &[WGPU_DEVICE, WGPU_PINNED]);
    info.driver = format!("{} {} {}", told.backend, told.driver, told.driver_info);
    info.driver.truncate(info.driver.trim_end().len());
    info.kind = match told.device_type {
        DeviceType::DiscreteGpu => DeviceKind::Discrete,
        DeviceType::IntegratedGpu => DeviceKind::Integrated,
        DeviceType::Cpu => DeviceKind::Cpu,
        DeviceType::VirtualGpu | DeviceType::Other => DeviceKind::Virtual,
    };
    info.software = info.kind == DeviceKind::Cpu;
    let vulkan = vulkan::ask(&adapter);
    info.key = vulkan.key;
    info.total_memory = vulkan.total;
    info.free_memory = vulkan.free;
    info.key.pci = place(told);
    info.languages = vec![Language::Wgsl];
    let features = adapter.features();
    for (needed, cap) in EXTRAS {
        info.caps.set(cap, features.contains(needed));
    }
    let shares = matches!(info.kind, DeviceKind::Integrated | DeviceKind::Cpu);
    info.caps.set(Caps::UNIFIED_MEMORY, shares);
    info.limits = limits(&adapter.limits());
    Found { info, adapter }
}

fn limits(wgpu: &wgpu::Limits) -> Limits {
    // Sizes are rounded up to words, and must still fit.
    let words = |bytes: u64| bytes / WORD * WORD;
    Limits {
        max_alloc: words(wgpu.max_buffer_size),
        max_binding: words(wgpu.max_storage_buffer_binding_size),
        // One binding is for the scalars.
        max_slices: wgpu
            .max_storage_buffers_per_shader_stage
            .min(wgpu.max_bindings_per_bind_group.saturating_sub(1)),
        max_group_items: wgpu.max_compute_invocations_per_workgroup,
        max_group: [
            wgpu.max_compute_workgroup_size_x,
            wgpu.max_compute_workgroup_size_y,
            wgpu.max_compute_workgroup_size_z,
        ],
        max_groups: [wgpu.max_compute_workgroups_per_dimension; 3],
        local_memory: wgpu.max_compute_workgroup_storage_size,
        slice_align: wgpu.min_storage_buffer_offset_alignment,
        ..Limits::default()
    }
}
