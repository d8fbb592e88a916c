//! The fake backend.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use warploom_core::{
    BackendId, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, MemoryKind, Result, Space,
};

use super::card::{Card, FakeDevice};
use super::device::Opened;
use super::fault::Call;
use super::flaw::Flaw;

/// What one probe does.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Probe {
    /// Lists the devices.
    Answer,
    /// Lists them after this long; long enough is a hang.
    Late(Duration),
    /// Fails.
    Error(DeviceError),
    /// Breaks the contract.
    Panic(String),
}

/// A backend of scripted devices. Clones share the devices, so a test keeps one and asks it what
/// happened.
#[derive(Clone, Debug)]
pub struct FakeBackend {
    id: BackendId,
    kinds: &'static [MemoryKind],
    cards: Vec<Arc<Card>>,
    probes: Arc<Mutex<Probes>>,
    flaw: Option<Flaw>,
}

#[derive(Debug, Default)]
struct Probes {
    count: u64,
    script: VecDeque<Probe>,
}

impl FakeBackend {
    /// A backend called `name` without devices. Its memory kinds are `name.device`, which the host
    /// cannot see, and `name.pinned`.
    ///
    /// # Panics
    /// When `name` is not a name for a backend, or too long for its memory kinds.
    pub fn new(name: &str) -> Self {
        let id = BackendId::new(name);
        Self {
            id,
            kinds: kinds_of(id),
            cards: Vec::new(),
            probes: Arc::default(),
            flaw: None,
        }
    }

    /// The same backend with one more device; they are numbered in the order they come.
    #[must_use]
    pub fn device(mut self, device: FakeDevice) -> Self {
        let ordinal = u32::try_from(self.cards.len()).unwrap_or(u32::MAX);
        let id = DeviceId::new(self.id, ordinal);
        self.cards.push(Arc::new(device.insert(id, self.kinds)));
        self
    }

    /// The next probes do this, in order; after them, probes answer.
    #[must_use]
    pub fn on_probe(self, script: impl IntoIterator<Item = Probe>) -> Self {
        self.probes_mut(|probes| probes.script.extend(script));
        self
    }

    /// The same backend with a mistake in it.
    #[must_use]
    pub fn flawed(mut self, flaw: Flaw) -> Self {
        self.flaw = Some(flaw);
        self
    }

    /// How often it was probed.
    pub fn probes(&self) -> u64 {
        self.probes_mut(|probes| probes.count)
    }

    /// How often device `ordinal` was asked for this.
    pub fn calls(&self, ordinal: u32, call: Call) -> u64 {
        self.card(ordinal).map_or(0, |card| card.calls(call))
    }

    /// What all openings of device `ordinal` hold of its own memory, in bytes.
    pub fn used(&self, ordinal: u32) -> u64 {
        self.card(ordinal).map_or(0, |card| card.used())
    }

    /// Device `ordinal` is lost from now on.
    pub fn lose(&self, ordinal: u32) {
        if let Some(card) = self.card(ordinal) {
            card.lose(DeviceError::lost(card.info.id, "nothing", "scripted"));
        }
    }

    fn card(&self, ordinal: u32) -> Option<&Arc<Card>> {
        self.cards.get(usize::try_from(ordinal).ok()?)
    }

    fn probes_mut<T>(&self, f: impl FnOnce(&mut Probes) -> T) -> T {
        f(&mut self.probes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl GpuBackend for FakeBackend {
    fn id(&self) -> BackendId {
        self.id
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        self.kinds
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        let (count, next) = self.probes_mut(|probes| {
            probes.count += 1;
            (probes.count, probes.script.pop_front())
        });
        match next {
            None | Some(Probe::Answer) => {}
            Some(Probe::Late(time)) => std::thread::sleep(time),
            Some(Probe::Error(error)) => return Err(error),
            Some(Probe::Panic(text)) => panic!("{text}"),
        }
        let mut infos: Vec<DeviceInfo> = self.cards.iter().map(|card| card.info.clone()).collect();
        match self.flaw {
            Some(Flaw::ProbeDrifts) => {
                for info in &mut infos {
                    info.name = format!("{} of {count}", info.name);
                }
            }
            Some(Flaw::ProbeLeavesThread) => {
                std::thread::spawn(|| std::thread::sleep(Duration::from_mins(1)));
            }
            _ => {}
        }
        Ok(infos)
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let ordinal = match self.flaw {
            Some(Flaw::OpensFirst) => 0,
            Some(Flaw::OpensAnything) if self.card(ordinal).is_none() => 0,
            _ => ordinal,
        };
        let Some(card) = self.card(ordinal) else {
            let (id, count) = (DeviceId::new(self.id, ordinal), self.cards.len());
            let text = format!("there are {count} devices");
            return Err(DeviceError::driver(id, "open", text));
        };
        card.enter(Call::Open)?;
        Ok(Arc::new(Opened::new(Arc::clone(card), self.flaw)))
    }
}

/// The memory kinds of a fake. The trait wants them for ever, so each name's are made once and
/// kept for ever.
fn kinds_of(id: BackendId) -> &'static [MemoryKind] {
    static MADE: Mutex<BTreeMap<BackendId, &'static [MemoryKind]>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(id).or_insert_with(|| {
        let kind = |place, space| MemoryKind::new(&format!("{id}.{place}"), space);
        Vec::leak(vec![
            kind("device", Space::Device),
            kind("pinned", Space::Pinned),
        ])
    })
}
