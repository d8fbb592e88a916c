//! What only Vulkan itself tells: identities, heaps, and when a submit is done.

use std::fmt;
use std::time::Duration;

use ash::vk;
use warploom_core::{Luid, PhysicalKey, Uuid};
use wgpu::hal::api::Vulkan;

/// What Vulkan tells about a device beyond wgpu's words.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) key: PhysicalKey,
    /// The largest heap of the device's own.
    pub(crate) total: u64,
    /// What is free of it, where the driver keeps a budget.
    pub(crate) free: Option<u64>,
}

/// Asks without opening the device; of other APIs' devices Vulkan tells nothing.
pub(crate) fn ask(adapter: &wgpu::Adapter) -> Told {
    ask_vulkan(adapter).unwrap_or_default()
}

fn ask_vulkan(adapter: &wgpu::Adapter) -> Option<Told> {
    // SAFETY: the adapter is only read, and destroyed by nobody here.
    let adapter = unsafe { adapter.as_hal::<Vulkan>() }?;
    let physical = adapter.raw_physical_device();
    let shared = adapter.shared_instance();
    let instance = shared.raw_instance();
    let capabilities = adapter.physical_device_capabilities();
    let mut told = Told::default();
    // The queries with a chain of structures are part of 1.1, on both sides.
    let chained = shared.instance_api_version() >= vk::API_VERSION_1_1
        && capabilities.properties().api_version >= vk::API_VERSION_1_1;
    if chained {
        let mut id = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
        // SAFETY: the instance is alive inside `adapter`, the device is one of its own, and the
        // chain holds one structure of Vulkan 1.1, which both support.
        unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
        told.key.uuid = Some(Uuid(id.device_uuid)).filter(|uuid| uuid.0 != [0; 16]);
        if id.device_luid_valid == vk::TRUE {
            told.key.luid = Some(Luid(id.device_luid));
        }
    }
    // SAFETY: as above; this query takes no chain.
    let heaps = unsafe { instance.get_physical_device_memory_properties(physical) };
    let local = heaps.memory_heaps_as_slice().iter().enumerate();
    let local = local.filter(|(_, heap)| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    if let Some((index, heap)) = local.max_by_key(|(_, heap)| heap.size) {
        told.total = heap.size;
        if chained && capabilities.supports_extension(ash::ext::memory_budget::NAME) {
            let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
            let mut properties =
                vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
            // SAFETY: as above; the chain's structure belongs to an extension the device has.
            unsafe { instance.get_physical_device_memory_properties2(physical, &mut properties) };
            let (budget, usage) = (budget.heap_budget[index], budget.heap_usage[index]);
            told.free = Some(budget.saturating_sub(usage));
        }
    }
    Some(told)
}

/// A timeline semaphore that every submit signals with its number.
///
/// It must be dropped before the `wgpu::Device` it was made from, after all submits that signal it
/// are done or the device is lost.
pub(crate) struct Semaphore {
    raw: vk::Semaphore,
    device: ash::Device,
}

impl Semaphore {
    /// `None` when the device is not a Vulkan device, or too old a one.
    pub(crate) fn new(device: &wgpu::Device) -> Option<Self> {
        // SAFETY: the device is only read and used to make an object, and destroyed by nobody here.
        let device = unsafe { device.as_hal::<Vulkan>() }?;
        let instance = device.shared_instance();
        let physical = device.raw_physical_device();
        // SAFETY: the instance is alive inside `device`, and the device is one of its own.
        let properties = unsafe {
            instance
                .raw_instance()
                .get_physical_device_properties(physical)
        };
        // Timeline semaphores are a mandatory part of 1.2, and wgpu switches them on there.
        if instance.instance_api_version().min(properties.api_version) < vk::API_VERSION_1_2 {
            return None;
        }
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let raw_device = device.raw_device().clone();
        // SAFETY: the device is alive, and its timeline feature is on (above).
        let raw = unsafe { raw_device.create_semaphore(&info, None) }.ok()?;
        Some(Self {
            raw,
            device: raw_device,
        })
    }

    /// The next submit signals `value`.
    pub(crate) fn sign(&self, queue: &wgpu::Queue, value: u64) {
        // SAFETY: the queue is only told to signal, and destroyed by nobody here.
        if let Some(queue) = unsafe { queue.as_hal::<Vulkan>() } {
            queue.add_signal_semaphore(self.raw, Some(value));
        }
    }

    /// Takes [`sign`](Self::sign) back; `true` when no submit has used it.
    pub(crate) fn unsign(&self, queue: &wgpu::Queue) -> bool {
        // SAFETY: as for `sign`.
        let queue = unsafe { queue.as_hal::<Vulkan>() };
        queue.is_some_and(|queue| queue.remove_signal_semaphore(self.raw))
    }

    pub(crate) fn reached(&self) -> Result<u64, String> {
        // SAFETY: the semaphore lives as long as `self`, and the device longer (type's comment).
        let value = unsafe { self.device.get_semaphore_counter_value(self.raw) };
        value.map_err(|error| format!("vkGetSemaphoreCounterValue: {error}"))
    }

    /// Blocks until `value` is reached; `false` when the time is up before.
    pub(crate) fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool, String> {
        let (semaphores, values) = ([self.raw], [value]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let nanos = timeout.map_or(u64::MAX, |t| {
            u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)
        });
        // SAFETY: the semaphore lives as long as `self`, the device longer (type's comment), and
        // the arrays outlive the call.
        match unsafe { self.device.wait_semaphores(&info, nanos) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(error) => Err(format!("vkWaitSemaphores: {error}")),
        }
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: the device is alive and no unfinished submit signals it (type's comment).
        unsafe { self.device.destroy_semaphore(self.raw, None) };
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}
