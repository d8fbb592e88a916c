//! Leases on the devices a registry found.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::lease::{DeskDevice, LeaseCapacity, LeaseDesk, LeaseError, default_ledger_dir};
use crate::registry::capacity::CapacityPolicy;
use crate::registry::status::Status;

/// Among whom leases are agreed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LeaseScope {
    /// Every process of this machine that uses the common directory.
    #[default]
    Machine,
    /// Every process that uses this directory.
    Folder(PathBuf),
    /// The threads of this process.
    Process,
}

/// The desk that belongs to a status. Kept as long as the devices stay the same, so that a rescan
/// does not forget who holds what.
#[derive(Debug, Default)]
pub(super) struct Lending {
    desk: Mutex<Option<(LeaseScope, LeaseDesk)>>,
}

impl Lending {
    pub(super) fn desk(
        &self,
        scope: &LeaseScope,
        status: &Status,
    ) -> Result<LeaseDesk, LeaseError> {
        let mut kept = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let devices = devices(status);
        if let Some((of, desk)) = &*kept
            && of == scope
            && desk.devices() == devices
        {
            return Ok(desk.clone());
        }
        let desk = match scope {
            LeaseScope::Machine => LeaseDesk::shared(devices, &default_ledger_dir())?,
            LeaseScope::Folder(path) => LeaseDesk::shared(devices, path)?,
            LeaseScope::Process => LeaseDesk::local(devices)?,
        };
        *kept = Some((scope.clone(), desk.clone()));
        Ok(desk)
    }
}

/// Every device with what may be promised of it. Processors that play GPUs share the memory and the
/// cores of the real one, so they are given only when named, as long as there is anything else.
fn devices(status: &Status) -> Vec<DeskDevice> {
    let mut usable = status.survey.usable();
    if usable.iter().any(|device| device.name == "cpu") {
        usable.retain(|device| !device.software || device.name == "cpu");
    }
    let device = |device: &crate::survey::PhysicalDevice| {
        let bytes = match (device.total_memory, status.capacity.policy) {
            // Nobody knows how much there is; then only slots can limit.
            (0, _) => u64::MAX,
            (total, CapacityPolicy::Memory(need)) => need.promised(total),
            (total, CapacityPolicy::Threads) => total,
        };
        let slots = status.max_pipelines(device);
        let capacity = LeaseCapacity { slots, bytes };
        let desk = DeskDevice::new(&device.name, device.ledger_key(), capacity);
        if usable.iter().any(|other| other.name == device.name) {
            desk
        } else {
            desk.only_when_named()
        }
    };
    status.survey.devices.iter().map(device).collect()
}
