//! What can be asked of a desk, and what is refused before anybody waits.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::book::Label;
use super::cancel::CancelToken;
use super::error::LeaseError;

/// How much of a device can be leased in all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LeaseCapacity {
    /// How many slots there are: leases that may run side by side, when each takes one.
    pub slots: u32,
    /// How many bytes of device memory there are to give.
    pub bytes: u64,
}

impl LeaseCapacity {
    fn covers(self, slots: u32, bytes: u64) -> bool {
        slots <= self.slots && bytes <= self.bytes
    }
}

/// One physical device, as a desk knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DeskDevice {
    /// What people call it in this process: `gpu0`.
    pub name: String,
    /// What every process on the machine calls it: `pci-0000-41-00.0`. It names the ledger's file,
    /// so it is made of letters, digits, `.`, `-` and `_`.
    pub key: String,
    /// What this process thinks can be leased of it.
    pub capacity: LeaseCapacity,
    /// Is it kept for requests that name it?
    pub only_when_named: bool,
}

/// The longest key: a file name of 255 bytes has to hold a process, a random number and this.
const MAX_KEY: usize = 128;

impl DeskDevice {
    /// A device that can be leased.
    pub fn new(name: impl Into<String>, key: impl Into<String>, capacity: LeaseCapacity) -> Self {
        Self {
            name: name.into(),
            key: key.into(),
            capacity,
            only_when_named: false,
        }
    }

    /// The same, but not for requests that take any device: for a processor that plays a GPU beside
    /// a real one.
    #[must_use]
    pub fn only_when_named(self) -> Self {
        Self {
            only_when_named: true,
            ..self
        }
    }

    fn check(&self) -> Result<(), LeaseError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let usable = self.key.starts_with(|c: char| c.is_ascii_alphanumeric())
            && self.key.chars().all(plain)
            && self.key.len() <= MAX_KEY;
        if usable {
            return Ok(());
        }
        Err(LeaseError::Device {
            name: self.name.clone(),
            why: format!(
                "its key `{}` cannot name a file: 1 to {MAX_KEY} letters, digits, `.`, `-`, `_` \
                 are needed, the first a letter or digit",
                self.key
            ),
        })
    }
}

/// Refuses devices that could not be told apart.
pub(crate) fn check_devices(devices: &[DeskDevice]) -> Result<(), LeaseError> {
    let (mut names, mut keys) = (HashSet::new(), HashSet::new());
    for device in devices {
        device.check()?;
        let twice = if names.insert(&device.name) {
            (!keys.insert(&device.key)).then(|| format!("its key `{}`", device.key))
        } else {
            Some("its name".to_owned())
        };
        if let Some(what) = twice {
            return Err(LeaseError::Device {
                name: device.name.clone(),
                why: format!("{what} is in the list twice"),
            });
        }
    }
    Ok(())
}

/// What somebody wants: slots and bytes on one of some devices.
///
/// A new request is for any device, waits as long as it takes and cannot be called off.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    slots: u32,
    bytes: u64,
    /// In the order of preference; empty is any.
    devices: Vec<String>,
    deadline: Option<Duration>,
    cancel: Option<CancelToken>,
    label: Label,
}

impl LeaseRequest {
    /// Asks for `slots` and `bytes` of any device: of the least loaded one that has them, or else
    /// of the first that gets them.
    pub fn new(slots: u32, bytes: u64) -> Self {
        Self {
            slots,
            bytes,
            devices: Vec::new(),
            deadline: None,
            cancel: None,
            label: Label::new(""),
        }
    }

    /// Only on these devices, the dearest first. When none is free the request queues at each of
    /// them and takes the first it gets. Devices too small for it are left out, unless all are.
    #[must_use]
    pub fn on<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.devices = names.into_iter().map(Into::into).collect();
        self
    }

    /// Gives up after this long; zero is "now or never".
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Gives up as soon as `token` is called off.
    #[must_use]
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }

    /// What it is for, shown to whoever waits behind it. 63 bytes of it are kept.
    #[must_use]
    pub fn label(mut self, text: &str) -> Self {
        self.label = Label::new(text);
        self
    }

    /// The devices it names, in order of preference; none is any.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(crate) fn cancel(&self) -> Option<&CancelToken> {
        self.cancel.as_ref()
    }

    /// The request, checked against the devices there are.
    ///
    /// # Errors
    /// When it can never be granted, whatever the others do.
    pub(crate) fn check(&self, devices: &[DeskDevice]) -> Result<Ask, LeaseError> {
        if self.slots == 0 {
            return Err(LeaseError::ZeroSlots {
                label: self.label.as_str().to_owned(),
            });
        }
        let asked = self.places(devices)?;
        let serves = |&at: &usize| devices[at].capacity.covers(self.slots, self.bytes);
        let places: Vec<usize> = asked.iter().copied().filter(serves).collect();
        if places.is_empty() {
            return Err(self.too_big(&asked, devices));
        }
        Ok(Ask {
            slots: self.slots,
            bytes: self.bytes,
            label: self.label,
            any: self.devices.is_empty(),
            places,
        })
    }

    /// The devices the request names, by index, each once.
    fn places(&self, devices: &[DeskDevice]) -> Result<Vec<usize>, LeaseError> {
        let unknown = |asked: &str| LeaseError::UnknownDevice {
            asked: asked.to_owned(),
            known: devices.iter().map(|device| device.name.clone()).collect(),
        };
        if self.devices.is_empty() {
            let open = |at: &usize| !devices[*at].only_when_named;
            let places: Vec<usize> = (0..devices.len()).filter(open).collect();
            return if places.is_empty() {
                Err(unknown("any"))
            } else {
                Ok(places)
            };
        }
        let mut places = Vec::with_capacity(self.devices.len());
        for name in &self.devices {
            let at = devices.iter().position(|device| device.name == *name);
            let at = at.ok_or_else(|| unknown(name))?;
            if !places.contains(&at) {
                places.push(at);
            }
        }
        Ok(places)
    }

    /// Says by how much the request passes the device that comes nearest to it.
    fn too_big(&self, asked: &[usize], devices: &[DeskDevice]) -> LeaseError {
        let enough: Vec<String> = devices
            .iter()
            .filter(|device| device.capacity.covers(self.slots, self.bytes))
            .map(|device| device.name.clone())
            .collect();
        let most = |key: fn(LeaseCapacity) -> u64| {
            move |&&at: &&usize| (key(devices[at].capacity), std::cmp::Reverse(at))
        };
        let with_slots = |&&at: &&usize| devices[at].capacity.slots >= self.slots;
        let roomy = asked.iter().filter(with_slots);
        if let Some(&at) = roomy.max_by_key(most(|capacity| capacity.bytes)) {
            return LeaseError::TooManyBytes {
                device: devices[at].name.clone(),
                asked: self.bytes,
                capacity: devices[at].capacity.bytes,
                enough,
            };
        }
        let widest = asked.iter().max_by_key(most(|c| c.slots.into()));
        let widest = widest.map(|&at| &devices[at]);
        LeaseError::TooManySlots {
            device: widest.map(|device| device.name.clone()).unwrap_or_default(),
            asked: self.slots,
            capacity: widest.map_or(0, |device| device.capacity.slots),
            enough,
        }
    }
}

/// A request that can be granted, by index of device.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) slots: u32,
    pub(crate) bytes: u64,
    pub(crate) label: Label,
    /// May the order of `places` be changed?
    pub(crate) any: bool,
    /// At least one, each once.
    pub(crate) places: Vec<usize>,
}
