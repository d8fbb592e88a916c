//! What a registry knows after it looked: an immutable snapshot.

use serde::{Deserialize, Serialize};

use crate::backend::BackendId;
use crate::device::DeviceId;
use crate::error::list;
use crate::registry::capacity::Capacity;
use crate::registry::error::RegistryError;
use crate::survey::{BackendState, PhysicalDevice, Survey};

/// A snapshot. Whoever holds one keeps it, whatever the registry learns later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// 1 after initialisation, one more for each rescan.
    pub version: u64,
    /// Backends and devices.
    pub survey: Survey,
    /// Pipelines at once, card by card.
    pub capacity: Capacity,
}

/// Which cards pipelines go to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Placement {
    /// All to the first card, as the system this grew from did.
    First,
    /// Evenly by capacity.
    #[default]
    Spread,
}

impl Status {
    /// A snapshot of a machine that was described rather than looked at: to plan for another
    /// machine, or in tests.
    pub fn described(survey: Survey, capacity: Capacity) -> Self {
        Self {
            version: 1,
            survey,
            capacity,
        }
    }

    /// The hardware GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &PhysicalDevice> {
        self.survey.gpus()
    }

    /// The card a user names, `gpu0` or `cuda:0`.
    ///
    /// # Errors
    /// When there is none: with the reason why its backend is not there, or with the names there are.
    pub fn device(&self, name: &str) -> Result<&PhysicalDevice, RegistryError> {
        self.survey.find(name).ok_or_else(|| {
            let id: Option<DeviceId> = name.parse().ok();
            // A driver that is slow or broken is no slip of whoever asks for its device.
            id.and_then(|id| self.unavailable(id.backend))
                .unwrap_or_else(|| self.unknown(name))
        })
    }

    fn unknown(&self, name: &str) -> RegistryError {
        let known = self.survey.devices.iter().flat_map(|device| {
            let faces = device.faces.iter().map(|face| face.id.to_string());
            std::iter::once(device.name.clone()).chain(faces)
        });
        RegistryError::UnknownDevice {
            asked: name.to_owned(),
            known: known.collect(),
        }
    }

    /// Why a backend's devices are not there, if it did not load.
    fn unavailable(&self, backend: BackendId) -> Option<RegistryError> {
        let report = self.survey.backend(backend)?;
        (report.state != BackendState::Loaded).then(|| RegistryError::Unavailable {
            backend,
            state: report.state,
            reason: report.reason.clone().unwrap_or_default(),
        })
    }

    /// Refuses a device that detection did not find, with the reason.
    pub(super) fn reported(&self, id: DeviceId) -> Result<(), RegistryError> {
        match self.unavailable(id.backend) {
            Some(unavailable) => Err(unavailable),
            None => self.device(&id.to_string()).map(drop),
        }
    }

    /// Pipelines at once on a card.
    pub fn max_pipelines(&self, device: &PhysicalDevice) -> u32 {
        let slots = self.capacity.max_pipelines.get(&device.name);
        slots.copied().unwrap_or(1)
    }

    /// A card for each of `pipelines`, all of which need a face of `backend`. More pipelines than
    /// capacity is no error: the surplus waits its turn for a lease.
    ///
    /// # Errors
    /// When no card has that face, with the backend's own reason.
    pub fn place(
        &self,
        pipelines: usize,
        backend: BackendId,
        placement: Placement,
    ) -> Result<Vec<&PhysicalDevice>, RegistryError> {
        let has_face = |device: &&PhysicalDevice| device.face(backend).is_some();
        let mut cards: Vec<_> = self.survey.usable().into_iter().filter(has_face).collect();
        if cards.is_empty() {
            // The backend was asked for by name, so its software devices will do.
            cards = self.survey.devices.iter().filter(has_face).collect();
        }
        let Some(first) = cards.first().copied() else {
            return Err(self.no_device(backend));
        };
        if placement == Placement::First {
            return Ok(vec![first; pipelines]);
        }
        let mut loads = vec![0_u64; cards.len()];
        let placed = (0..pipelines).map(|_| {
            let fullness = |at: usize| {
                // Compared as fractions over a common denominator: load after placing / slots.
                let slots = u64::from(self.max_pipelines(cards[at]).max(1));
                (loads[at] + 1, slots)
            };
            let best = (1..cards.len()).fold(0, |best, at| {
                let ((a, of_a), (b, of_b)) = (fullness(at), fullness(best));
                if u128::from(a) * u128::from(of_b) < u128::from(b) * u128::from(of_a) {
                    at
                } else {
                    best
                }
            });
            loads[best] += 1;
            cards[best]
        });
        Ok(placed.collect())
    }

    fn no_device(&self, backend: BackendId) -> RegistryError {
        let linked = || self.survey.backends.iter().map(|report| report.id);
        match self.survey.backend(backend) {
            None => RegistryError::NotLinked {
                backend: backend.to_string(),
                linked: linked().collect(),
                near: None,
            },
            Some(report) if report.state == BackendState::Loaded => RegistryError::NoDevice {
                backend,
                reason: "its driver is there and lists no device".into(),
            },
            Some(report) => RegistryError::NoDevice {
                backend,
                reason: report.reason.clone().unwrap_or_default(),
            },
        }
    }

    /// What people should hear at once; empty when all is well.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.gpus().next().is_none() {
            let devices: Vec<&str> = self
                .survey
                .devices
                .iter()
                .map(|d| d.name.as_str())
                .collect();
            warnings.push(format!("no GPU was found; there is {}", list(&devices)));
        }
        let broken = |report: &&crate::survey::BackendReport| report.state == BackendState::Broken;
        for report in self.survey.backends.iter().filter(broken) {
            let reason = report.reason.as_deref().unwrap_or("no reason given");
            warnings.push(format!("backend {} is broken: {reason}", report.id));
        }
        warnings.extend(self.survey.notes.iter().cloned());
        warnings
    }
}
