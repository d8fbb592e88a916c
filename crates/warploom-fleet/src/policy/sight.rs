//! What the state of a run looks like from outside.

use super::Policy;
use super::slot::{Phase, Slot};
use crate::report::SlotState;

impl Policy {
    /// What a slot is about; one that there is not has nothing left to do.
    pub fn state(&self, slot: usize) -> SlotState {
        let Some(slot) = self.slots.get(slot) else {
            return SlotState::Done;
        };
        let device = &self.devices[slot.device];
        match slot.phase {
            // Workers of a device that gets nothing any more finish what they have.
            Phase::Up if slot.flights.is_empty() => SlotState::Idle,
            Phase::Up => SlotState::Working,
            Phase::Retiring { .. } | Phase::Ending { .. } | Phase::Killed { .. } => {
                SlotState::Ending
            }
            Phase::Lost => SlotState::GivenUp,
            _ if device.is_lost() => SlotState::GivenUp,
            _ if !device.is_fit() => SlotState::Quarantined,
            Phase::Starting { .. } => SlotState::Starting,
            Phase::Empty { .. } if self.wants_workers() => SlotState::Starting,
            Phase::Empty { .. } => SlotState::Done,
        }
    }

    /// How many records are at a slot.
    pub fn under_way(&self, slot: usize) -> u64 {
        self.slots.get(slot).map_or(0, Slot::under_way)
    }

    /// How many records a slot's latest batch had, once there was one.
    pub fn batch(&self, slot: usize) -> Option<u64> {
        self.slots.get(slot)?.batch
    }
}
