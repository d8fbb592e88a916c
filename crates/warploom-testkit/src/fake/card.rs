//! A fake card: what a device is told to be, and what all its openings share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use warploom_core::{
    Caps, DeviceError, DeviceId, DeviceInfo, DeviceKind, Language, Limits, PciAddress, Uuid,
};

use super::fault::{Call, Fate, Fault, Script};

/// Makes an error for a device whose number is not known yet.
type MakeError = Box<dyn FnOnce(DeviceId) -> DeviceError + Send>;
/// A change to the script, kept until the device has its number.
type Plan = Box<dyn FnOnce(&mut Script, DeviceId) + Send>;

/// A device to be: its description and its script.
pub struct FakeDevice {
    pub(crate) info: DeviceInfo,
    at_once: bool,
    plans: Vec<Plan>,
}

impl std::fmt::Debug for FakeDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeDevice")
            .field("info", &self.info)
            .field("at_once", &self.at_once)
            .field("plans", &self.plans.len())
            .finish()
    }
}

impl FakeDevice {
    /// A discrete card called `name` with 1 GiB and no identity.
    pub fn new(name: &str) -> Self {
        // Number, backend and memory kinds are set when a backend takes it.
        let id = DeviceId::new(warploom_core::BackendId::new("fake"), 0);
        let mut info = DeviceInfo::new(id, name, &[]);
        "fake 1.0".clone_into(&mut info.driver);
        info.total_memory = 1 << 30;
        info.languages = vec![Language::Host];
        info.caps = Caps::F64
            | Caps::I64
            | Caps::TIMESTAMPS
            | Caps::CONCURRENT_QUEUES
            | Caps::COPY_OVERLAP
            | Caps::STRICT_MATH;
        Self {
            info,
            at_once: false,
            plans: Vec::new(),
        }
    }

    /// Its memory, to the byte: what does not fit is refused.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        self.edit(|info| info.total_memory = bytes)
    }

    /// Where it sits, as text.
    ///
    /// # Panics
    /// When the text is not a PCI address.
    #[must_use]
    pub fn pci(self, address: &str) -> Self {
        let address: PciAddress = match address.parse() {
            Ok(address) => address,
            Err(error) => panic!("{error}"),
        };
        self.edit(|info| info.key.pci = Some(address))
    }

    /// What it calls itself.
    #[must_use]
    pub fn uuid(self, uuid: [u8; 16]) -> Self {
        self.edit(|info| info.key.uuid = Some(Uuid(uuid)))
    }

    /// Does a processor play it?
    #[must_use]
    pub fn software(self, software: bool) -> Self {
        self.edit(|info| info.software = software)
    }

    /// What sort of hardware it is.
    #[must_use]
    pub fn kind(self, kind: DeviceKind) -> Self {
        self.edit(|info| info.kind = kind)
    }

    /// What it can do.
    #[must_use]
    pub fn caps(self, caps: Caps) -> Self {
        self.edit(|info| info.caps = caps)
    }

    /// What it cannot exceed.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.edit(|info| info.limits = limits)
    }

    /// Changes anything else a driver could tell. Its number and memory kinds are set by the
    /// backend that takes it.
    #[must_use]
    pub fn edit(mut self, change: impl FnOnce(&mut DeviceInfo)) -> Self {
        change(&mut self.info);
        self
    }

    /// Every call is done when it returns: no threads, and the same order in every run.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        self.at_once = true;
        self.info
            .caps
            .remove(Caps::CONCURRENT_QUEUES | Caps::COPY_OVERLAP);
        self
    }

    /// The `nth` call of this sort fails, counted from 1 over all openings.
    #[must_use]
    pub fn fail(
        self,
        call: Call,
        nth: u64,
        error: impl FnOnce(DeviceId) -> DeviceError + Send + 'static,
    ) -> Self {
        self.fault(call, nth, false, Box::new(error))
    }

    /// The `nth` call of this sort is accepted, and its work fails where an event tells. Only
    /// uploads, copies and launches have such work.
    #[must_use]
    pub fn fail_later(
        self,
        call: Call,
        nth: u64,
        error: impl FnOnce(DeviceId) -> DeviceError + Send + 'static,
    ) -> Self {
        self.fault(call, nth, true, Box::new(error))
    }

    /// The device accepts this many launches; from then on every call says that it is lost.
    #[must_use]
    pub fn lose_after(mut self, launches: u64) -> Self {
        self.plans.push(Box::new(move |script, id| {
            let text = format!("scripted after {launches} launches");
            script.lose_after(launches, DeviceError::lost(id, "launch", text));
        }));
        self
    }

    fn fault(mut self, call: Call, nth: u64, late: bool, error: MakeError) -> Self {
        self.plans.push(Box::new(move |script, id| {
            script.add(Fault {
                call,
                nth,
                error: error(id),
                late,
            });
        }));
        self
    }

    pub(crate) fn insert(self, id: DeviceId, kinds: &[warploom_core::MemoryKind]) -> Card {
        let mut info = self.info;
        info.id = id;
        info.memory = kinds.to_vec();
        let mut script = Script::default();
        for plan in self.plans {
            plan(&mut script, id);
        }
        Card {
            info,
            at_once: self.at_once,
            state: Mutex::new(State { used: 0, script }),
        }
    }
}

/// What all openings of a fake device share.
#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) info: DeviceInfo,
    pub(crate) at_once: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    used: u64,
    script: Script,
}

impl Card {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn admit(&self, call: Call) -> Result<Fate, DeviceError> {
        self.state().script.admit(call)
    }

    /// As `admit`, for calls whose work cannot fail later.
    pub(crate) fn enter(&self, call: Call) -> Result<(), DeviceError> {
        match self.admit(call)? {
            Fate::Fine => Ok(()),
            Fate::Doomed(error) => Err(error),
        }
    }

    pub(crate) fn calls(&self, call: Call) -> u64 {
        self.state().script.calls(call)
    }

    pub(crate) fn lose(&self, error: DeviceError) {
        self.state().script.lose(error);
    }

    pub(crate) fn lost(&self) -> Option<DeviceError> {
        self.state().script.lost().cloned()
    }

    pub(crate) fn used(&self) -> u64 {
        self.state().used
    }

    /// Takes memory of the card, or says how much is free.
    pub(crate) fn take(&self, bytes: u64, limit: u64) -> Result<(), u64> {
        let mut state = self.state();
        let free = limit.saturating_sub(state.used);
        if bytes > free {
            return Err(free);
        }
        state.used += bytes;
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_sub(bytes);
    }
}
