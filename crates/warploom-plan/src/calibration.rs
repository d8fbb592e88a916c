//! What was measured of devices, as files keep it.
//!
//! Measuring is [`Loader::calibrate`](warploom_kernels::program::Loader::calibrate); where files are is
//! the caller's to say. A file may be torn, older, another program's or about another machine: what
//! cannot be relied on is refused here, with the reason, and a plan then goes by guesses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warploom_core::{DeviceInfo, Survey};
use warploom_kernels::fuse::Speed;

/// The version of the format.
const VERSION: u32 = 1;

/// The most bytes a file may have: a thousand devices have fewer.
const MOST: usize = 1 << 20;

/// One device and what was measured of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Measured {
    /// What it was called then (`cuda:0`), for people: numbers change when cards are added.
    pub device: String,
    /// What makes it this device under this driver; see [`identity`].
    pub identity: String,
    /// What it does in a second.
    pub speed: Speed,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// What was measured, of any number of devices.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Calibration {
    /// The version of the format.
    pub version: u32,
    /// In order of their names.
    pub devices: Vec<Measured>,
}

/// Why a text is no calibration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Not JSON, or not of this form.
    #[error("it is no calibration, or not all of one: {why}")]
    Form {
        /// What the reader met.
        why: String,
    },
    /// Of another version.
    #[error("it has version {found}, and this program writes {VERSION}")]
    Version {
        /// What it says.
        found: u32,
    },
    /// Numbers that no device has.
    #[error("the speeds of {device} are none that a device has")]
    Numbers {
        /// Whose.
        device: String,
    },
    /// Far too long.
    #[error("it has {bytes} bytes, {MOST} at most")]
    TooLong {
        /// How many.
        bytes: usize,
    },
}

/// What makes a device this one, under this driver: another driver may be faster, and a number alone
/// is given to another card when one is added.
pub fn identity(info: &DeviceInfo) -> String {
    let key = match (info.key.pci, info.key.uuid, info.key.luid) {
        _ if info.key.slice || info.key.pci.is_none() && info.key.uuid.is_some() => {
            info.key.uuid.map(|uuid| uuid.to_string())
        }
        (Some(pci), _, _) => Some(pci.to_string()),
        (None, _, Some(luid)) => Some(luid.to_string()),
        (None, _, None) => None,
    };
    let key = key.unwrap_or_else(|| info.id.ordinal.to_string());
    let units = info.limits.compute_units;
    let (backend, name, driver) = (info.id.backend, &info.name, &info.driver);
    format!("{backend} {key}, {name}, {units} units, {driver}")
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            version: VERSION,
            devices: Vec::new(),
        }
    }
}

impl Calibration {
    /// Adds a device, in place of what was known of it.
    pub fn add(&mut self, info: &DeviceInfo, speed: Speed, at: u64) {
        let identity = identity(info);
        self.devices.retain(|device| device.identity != identity);
        self.devices.push(Measured {
            device: info.id.to_string(),
            identity,
            speed,
            at,
        });
        self.devices.sort_by(|a, b| a.device.cmp(&b.device));
    }

    /// Adds all of another, in place of what was known of its devices.
    pub fn merge(&mut self, other: Self) {
        for device in other.devices {
            self.devices.retain(|own| own.identity != device.identity);
            self.devices.push(device);
        }
        self.devices.sort_by(|a, b| a.device.cmp(&b.device));
    }

    /// The text of a file.
    ///
    /// # Panics
    /// Never: all of it can be written as JSON.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("numbers and texts are all there is") + "\n"
    }

    /// What a file says.
    ///
    /// # Errors
    /// When it is not one that [`Calibration::to_json`] could have written, whole.
    pub fn from_json(text: &str) -> Result<Self, CalibrationError> {
        if text.len() > MOST {
            return Err(CalibrationError::TooLong { bytes: text.len() });
        }
        let form = |error: serde_json::Error| CalibrationError::Form {
            why: error.to_string(),
        };
        // The version first: another one may look otherwise.
        let any: serde_json::Value = serde_json::from_str(text).map_err(form)?;
        let found = any.get("version").and_then(serde_json::Value::as_u64);
        if let Some(found) = found.and_then(|found| u32::try_from(found).ok())
            && found != VERSION
        {
            return Err(CalibrationError::Version { found });
        }
        let read: Self = serde_json::from_value(any).map_err(form)?;
        match read.devices.iter().find(|it| !it.speed.is_plausible()) {
            Some(wrong) => Err(CalibrationError::Numbers {
                device: wrong.device.clone(),
            }),
            None => Ok(read),
        }
    }

    /// What was measured of one device, and when.
    pub fn measured(&self, info: &DeviceInfo) -> Option<&Measured> {
        let identity = identity(info);
        let mut devices = self.devices.iter();
        devices.find(|device| device.identity == identity)
    }

    /// How fast one device is, if it was measured.
    pub fn of(&self, info: &DeviceInfo) -> Option<Speed> {
        self.measured(info).map(|device| device.speed)
    }

    /// What was measured of the devices that are there, by their names now: what
    /// [`Options::calibration`](crate::Options::calibration) takes.
    pub fn speeds(&self, survey: &Survey) -> BTreeMap<String, Speed> {
        let faces = survey.devices.iter().flat_map(|card| &card.faces);
        let known = faces.filter_map(|face| Some((face.id.to_string(), self.of(face)?)));
        known.collect()
    }
}
