//! How many workers each device gets.

use warploom_core::{BackendId, DeskDevice, DeviceInfo, Registry};
use warploom_plan::ExecutionPlan;

use super::Crew;
use crate::attempt::taken;
use crate::error::RunFailure;
use crate::folder::AboutDevice;
use crate::settings::Settings;

/// How many workers each device gets.
pub(super) fn staff(
    crew: &Crew,
    registry: &Registry,
    settings: &Settings,
    chosen: &[(DeviceInfo, ExecutionPlan)],
    items: u64,
) -> Result<Vec<usize>, RunFailure> {
    let desk = registry.desk()?;
    let each = chosen.iter().map(|(info, plan)| {
        let mut lent = desk.devices().iter();
        let lent = lent.find(|one| one.name == plan.device.name);
        let bytes = taken(plan, settings, items);
        let fitting = lent.map_or(1, |one| fitting(info, one, bytes));
        crew.workers.unwrap_or(fitting)
    });
    Ok(each.collect())
}

pub(super) fn about_devices(
    chosen: &[(DeviceInfo, ExecutionPlan)],
    staff: &[usize],
) -> Vec<AboutDevice> {
    let devices = chosen.iter().zip(staff);
    let devices = devices.map(|((info, _), workers)| AboutDevice {
        label: info.id.to_string(),
        name: info.name.clone(),
        id: info.id.to_string(),
        workers: u32::try_from(*workers).unwrap_or(u32::MAX),
    });
    devices.collect()
}

/// How many workers a device is good for: while one is at the end of its stages another fills the gap, and
/// more than two would only take memory. The processor, also where it plays a GPU, is at work with all its
/// cores for one.
fn fitting(info: &DeviceInfo, lent: &DeskDevice, bytes: u64) -> usize {
    const MOST: u64 = 2;
    if info.id.backend == BackendId::CPU || lent.only_when_named {
        return 1;
    }
    let room = lent.capacity.bytes.checked_div(bytes).unwrap_or(MOST);
    let most = room.min(lent.capacity.slots.into()).clamp(1, MOST);
    usize::try_from(most).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_core::{DeviceId, LeaseCapacity};

    fn workers(backend: &'static str, is_spare: bool, slots: u32, room: u64, bytes: u64) -> usize {
        let id = DeviceId::new(BackendId::new(backend), 0);
        let info = DeviceInfo::new(id, "a card", &[]);
        let mut lent = DeskDevice::new("gpu0", "key", LeaseCapacity { slots, bytes: room });
        lent.only_when_named = is_spare;
        fitting(&info, &lent, bytes)
    }

    #[test]
    fn a_gpu_has_two_workers_if_there_is_room_for_both() {
        assert_eq!(workers("cuda", false, 8, 8 << 30, 1 << 30), 2);
        // Exactly enough for two is enough, a byte less is not.
        assert_eq!(workers("cuda", false, 8, 200, 100), 2);
        assert_eq!(workers("cuda", false, 8, 199, 100), 1);
        assert_eq!(workers("opencl", false, 1, 8 << 30, 1), 1);
        // What takes no memory of it is limited by slots alone.
        assert_eq!(workers("wgpu", false, 2, 0, 0), 2);
    }

    #[test]
    fn there_is_one_at_least_and_the_processor_has_no_more() {
        // One that does not fit waits for its lease, and says so.
        assert_eq!(workers("cuda", false, 0, 10, 100), 1);
        assert_eq!(workers("cpu", false, 8, 8 << 30, 1), 1);
        assert_eq!(workers("opencl", true, 8, 8 << 30, 1), 1);
    }
}
