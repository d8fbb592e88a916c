//! What a machine is doing at one moment: its devices, who holds them, what runs.

use serde::{Deserialize, Serialize};
use warploom_core::{DeviceKind, DeviceLeases, Holder, LeaseCapacity, Status};

use crate::board::{Notice, Phase};

/// A machine at one moment. What people look at with `warploom top`, and scripts as JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Its devices, in the order of the survey.
    pub devices: Vec<MachineDevice>,
    /// What runs, those that started first in front.
    pub runs: Vec<Notice>,
}

/// One device of a machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MachineDevice {
    /// What users call it: `gpu0`.
    pub name: String,
    /// What its driver calls it.
    pub label: String,
    /// What sort of device it is.
    pub kind: DeviceKind,
    /// Is it a processor that plays a GPU?
    pub software: bool,
    /// Its memory in bytes, where that is known.
    pub total_memory: Option<u64>,
    /// Bytes that nobody used when it was last looked at, where that is known.
    pub free_memory: Option<u64>,
    /// What can be leased of it.
    pub capacity: LeaseCapacity,
    /// Who holds it.
    pub held: Vec<Holder>,
    /// Who waits for it, in the order they will be served.
    pub waiting: Vec<Holder>,
    /// Bytes that running processes say they use there; `None` where none says.
    pub used: Option<u64>,
    /// Processes that run there.
    pub runs: usize,
}

impl MachineDevice {
    /// Slots that are held.
    pub fn slots_held(&self) -> u64 {
        self.held
            .iter()
            .map(|holder| u64::from(holder.slots))
            .fold(0, u64::saturating_add)
    }

    /// Bytes that are held.
    pub fn bytes_held(&self) -> u64 {
        self.held
            .iter()
            .map(|holder| holder.bytes)
            .fold(0, u64::saturating_add)
    }
}

impl Machine {
    /// Puts together what was detected, what the ledger says and what is on the board.
    pub fn of(status: &Status, leases: Vec<DeviceLeases>, runs: Vec<Notice>) -> Self {
        let mut leases: Vec<Option<DeviceLeases>> = leases.into_iter().map(Some).collect();
        let devices = status.survey.devices.iter().map(|device| {
            let mut own = leases
                .iter_mut()
                .filter(|of| of.as_ref().is_some_and(|of| of.name == device.name));
            let own = own.next().and_then(Option::take);
            let capacity = own
                .as_ref()
                .map_or(LeaseCapacity { slots: 0, bytes: 0 }, |own| own.capacity);
            let (held, waiting) = own.map_or_else(Default::default, |own| (own.held, own.waiting));
            let faces: Vec<String> = device
                .faces
                .iter()
                .map(|face| face.id.to_string())
                .collect();
            // A run names a device by its card or by the face it uses.
            let here = |run: &&Notice| {
                let mut devices = run.devices.iter();
                devices.any(|used| used.label == device.name || faces.contains(&used.label))
            };
            let users: Vec<&Notice> = runs.iter().filter(here).collect();
            let used = users.iter().flat_map(|run| &run.devices);
            let used = used.filter(|used| used.label == device.name || faces.contains(&used.label));
            MachineDevice {
                name: device.name.clone(),
                label: device.label.clone(),
                kind: device.kind,
                software: device.software,
                total_memory: (device.total_memory > 0).then_some(device.total_memory),
                free_memory: device.free_memory,
                capacity,
                held,
                waiting,
                used: used
                    .filter_map(|used| used.memory)
                    .reduce(u64::saturating_add),
                runs: users.len(),
            }
        });
        Self {
            devices: devices.collect(),
            runs,
        }
    }

    /// Records that all runs together do per second, lately; `None` where none says.
    pub fn rate(&self) -> Option<f64> {
        let rates = self.runs.iter().filter_map(|run| run.rate);
        rates
            .filter(|rate| rate.is_finite())
            .reduce(|sum, rate| sum + rate)
    }

    /// Runs in this phase.
    pub fn in_phase(&self, phase: Phase) -> usize {
        self.runs.iter().filter(|run| run.phase == phase).count()
    }
}
