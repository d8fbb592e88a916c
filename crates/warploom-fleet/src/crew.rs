//! What a fleet is made of: a program and devices.

use std::ffi::OsString;
use std::path::PathBuf;

use warploom_core::{DeviceInfo, LeaseRequest};

use crate::mask::{Mask, Stack};

/// The program that workers are: usually this one, with an argument that makes its `main` call
/// [`serve`](crate::worker::serve).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl Program {
    /// A program.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// The program that runs now, found again even if its file has been replaced meanwhile.
    pub fn this() -> Self {
        Self::new("/proc/self/exe")
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a variable to what workers inherit.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }
}

/// A device of a fleet.
#[derive(Clone, Debug)]
pub struct FleetDevice {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) ordinal: Option<u32>,
    /// What tells it from others of its kind, if anything does.
    pub(crate) identity: String,
    pub(crate) mask: Mask,
    pub(crate) workers: usize,
    pub(crate) lease: Option<LeaseRequest>,
}

impl FleetDevice {
    /// A device with one worker, which nothing hides from others.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            model: id.clone(),
            id,
            ordinal: None,
            identity: String::new(),
            mask: Mask::inherit(),
            workers: 1,
            lease: None,
        }
    }

    /// A device as this process sees it, for workers that find it with [`Assigned::find`](crate::Assigned).
    ///
    /// CUDA devices are shown to their workers by UUID, and nothing else is. Others, which no variable of their
    /// own hides, are found by the workers: by PCI address or UUID where the driver tells them, else by their
    /// number. Those workers keep all variables as they are, because to remove one would show devices that were
    /// not given to this process.
    pub fn of(info: &DeviceInfo) -> Self {
        let uuid = info.key.uuid.filter(|_| info.id.backend.as_str() == "cuda");
        let named = uuid.map(|uuid| {
            let sort = if info.key.slice { "MIG" } else { "GPU" };
            format!("{sort}-{uuid}")
        });
        let device = Self {
            identity: identity(info),
            ..Self::new(info.id.to_string()).model(&info.name)
        };
        match named {
            Some(name) => device.mask(Mask::named(Stack::Cuda, name)),
            None => device.ordinal(info.id.ordinal),
        }
    }

    /// What it is called.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its PCI address, where the fleet got it by [`of`](Self::of) and its driver tells one.
    pub fn pci(&self) -> Option<&str> {
        pci(&self.identity)
    }

    /// Its model: devices of one model have room for the same batches.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Its place among the devices that a process sees, where no variable hides the others.
    #[must_use]
    pub fn ordinal(mut self, ordinal: u32) -> Self {
        self.ordinal = Some(ordinal);
        self
    }

    /// The variables that show it, and it alone, to its workers.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// How many workers share it.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// What each of its workers has to lease before it is started, of the desk that the fleet is given.
    #[must_use]
    pub fn lease(mut self, request: LeaseRequest) -> Self {
        self.lease = Some(request);
        self
    }
}

/// What tells a device from others of its kind, as every process that sees it would say.
pub(crate) fn identity(info: &DeviceInfo) -> String {
    let key = &info.key;
    let parts = [
        key.pci.map(|pci| pci.to_string()),
        key.uuid.map(|uuid| uuid.to_string()),
        Some(info.name.clone()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

/// The PCI address in what tells a device from others, if it is there.
pub(crate) fn pci(identity: &str) -> Option<&str> {
    let first = identity.split(' ').next()?;
    let parts = first.split([':', '.']);
    (parts.count() == 4).then_some(first)
}

#[cfg(test)]
mod tests {
    use warploom_core::{BackendId, DeviceId, PhysicalKey, Uuid};

    use super::*;
    use crate::work::{Assigned, Refusal};

    fn info(backend: &'static str, ordinal: u32, uuid: Option<u8>) -> DeviceInfo {
        let id = DeviceId::new(BackendId::new(backend), ordinal);
        let mut info = DeviceInfo::new(id, "a card", &[]);
        info.key = PhysicalKey {
            uuid: uuid.map(|byte| Uuid([byte; 16])),
            ..PhysicalKey::default()
        };
        info
    }

    fn assigned(device: &FleetDevice) -> Assigned {
        Assigned {
            slot: 0,
            device: device.id.clone(),
            model: device.model.clone(),
            ordinal: device.ordinal,
            identity: device.identity.clone(),
            setup: Vec::new(),
            ceiling: None,
        }
    }

    #[test]
    fn a_cuda_device_is_named_and_is_the_only_one_then() {
        let device = FleetDevice::of(&info("cuda", 3, Some(7)));
        let name = "GPU-07070707-0707-0707-0707-070707070707".to_owned();
        let variables = device.mask.variables();
        assert!(variables.contains(&("CUDA_VISIBLE_DEVICES", Some(name))));
        // In the worker it is the first, and alone.
        let own = info("cuda", 0, Some(7));
        let found = assigned(&device).find([&own, &info("cpu", 0, None)]);
        assert_eq!(found, Ok(own.id));
        let two = assigned(&device).find([&own, &info("cuda", 1, Some(8))]);
        assert!(matches!(two, Err(Refusal::WrongDevice { .. })));
        let other = assigned(&device).find([&info("cuda", 0, Some(8))]);
        assert!(matches!(other, Err(Refusal::WrongDevice { .. })));
    }

    #[test]
    fn other_devices_are_found_by_what_they_are() {
        let device = FleetDevice::of(&info("opencl", 1, Some(2)));
        assert_eq!(device.mask, Mask::inherit());
        let seen = [info("opencl", 0, Some(1)), info("opencl", 1, Some(2))];
        assert_eq!(assigned(&device).find(&seen), Ok(seen[1].id));
        // A driver that counts otherwise in another process has the same card elsewhere.
        let swapped = [info("opencl", 0, Some(2)), info("opencl", 1, Some(1))];
        assert_eq!(assigned(&device).find(&swapped), Ok(swapped[0].id));
        let absent = assigned(&device).find(&seen[..1]);
        assert!(matches!(absent, Err(Refusal::WrongDevice { .. })));
        // A driver that does not answer is no danger for others.
        let silent = assigned(&device).find([&info("cpu", 0, None)]);
        assert!(matches!(silent, Err(Refusal::Failed(_))), "{silent:?}");
    }

    #[test]
    fn twins_that_tell_nothing_of_themselves_are_counted() {
        for uuid in [None, Some(7)] {
            let device = FleetDevice::of(&info("opencl", 1, uuid));
            let twins = [info("opencl", 0, uuid), info("opencl", 1, uuid)];
            assert_eq!(assigned(&device).find(&twins), Ok(twins[1].id));
        }
        let device = FleetDevice::of(&info("opencl", 1, None));
        let one = [info("opencl", 0, None)];
        let absent = assigned(&device).find(&one);
        assert!(matches!(absent, Err(Refusal::WrongDevice { .. })));
    }
}
