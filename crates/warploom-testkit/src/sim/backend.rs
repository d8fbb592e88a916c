//! The simulation as a backend, and as seen from outside.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use warploom_core::{
    Account, BackendId, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, MemoryKind, Result,
    Space,
};

use super::choice::{Chooser, Script};
use super::device::SimDevice;
use super::engine::{Lane, Stepped, World};
use crate::fake::{Call, Card, FakeDevice};
use crate::noise::Noise;

const ID: BackendId = BackendId::new("sim");

/// The memory kinds of a simulated device.
const KINDS: &[MemoryKind] = &[
    MemoryKind::new("sim.device", Space::Device),
    MemoryKind::new("sim.pinned", Space::Pinned),
];

/// An operation whose time is asked for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// The label of its queue.
    pub queue: &'a str,
    /// The kernel's name; `None` is a copy.
    pub kernel: Option<&'a str>,
    /// Bytes it reads and writes.
    pub bytes: u64,
}

type Said = dyn Fn(&Operation<'_>) -> Option<Duration> + Send + Sync;

/// How long operations take.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Pace {
    /// Up to a microsecond and mostly less, by the seed.
    #[default]
    Random,
    /// What a function says; `None` is for ever.
    Said(Arc<Said>),
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "Random",
            Self::Said(_) => "Said",
        })
    }
}

/// A simulation with one device. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Sim {
    card: Arc<Card>,
    world: Arc<World>,
}

/// What queues do their work on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Engines {
    /// Each on an engine of its own.
    Own,
    /// All of a class on one, in turns.
    OfClass,
}

/// How a simulation is made.
#[derive(Debug)]
pub struct SimBuilder {
    device: FakeDevice,
    chooser: Chooser,
    pace: Pace,
    jitter: u64,
    is_loose: bool,
    is_free_running: bool,
    is_forgetful: bool,
    engines: Engines,
}

impl Sim {
    /// A simulation of this device, with times by this seed. Its faults are those of the fake.
    pub fn new(device: FakeDevice, seed: u64) -> Self {
        Self::build(device, seed).finish()
    }

    /// The same, to be changed before it is made.
    pub fn build(device: FakeDevice, seed: u64) -> SimBuilder {
        SimBuilder {
            device,
            chooser: Chooser::Timed(Noise::new(seed)),
            pace: Pace::default(),
            jitter: 0,
            is_loose: false,
            is_free_running: false,
            is_forgetful: false,
            engines: Engines::Own,
        }
    }

    /// A simulation in which a script decides what begins and ends next.
    pub fn scripted(device: FakeDevice, script: Script) -> SimBuilder {
        SimBuilder {
            chooser: Chooser::Scripted(script),
            ..Self::build(device, 0)
        }
    }

    /// The time.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.state().now)
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.world.state();
        state.now = state.now.saturating_add(nanos);
    }

    /// When the next operation ends, if one runs.
    pub fn next_end(&self) -> Option<Duration> {
        self.world.state().next_end().map(Duration::from_nanos)
    }

    /// The next thing happens.
    pub fn step(&self) -> Stepped {
        self.world.told_step()
    }

    /// A line for work of the host.
    pub fn lane(&self, name: &str) -> Lane {
        Lane(self.world.line(name))
    }

    /// Work of the host, which begins after all work of its lane before it and takes this long, or
    /// something random where everything does.
    /// [`step`](Self::step) tells when it begins and ends.
    pub fn start(&self, lane: Lane, key: u64, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.world.push_host(lane.0, key, nanos);
    }

    /// The script with the decisions that were taken.
    pub fn script(&self) -> Script {
        match &self.world.state().chooser {
            Chooser::Scripted(script) => script.clone(),
            Chooser::Timed(_) => Script::default(),
        }
    }

    /// How often the device was asked for this.
    pub fn calls(&self, call: Call) -> u64 {
        self.card.calls(call)
    }

    /// What buffers hold of the device's own memory.
    pub fn used(&self) -> u64 {
        self.card.used()
    }
}

impl SimBuilder {
    /// The same with times that a function says; `None` is for ever.
    #[must_use]
    pub fn pace(
        self,
        pace: impl Fn(&Operation<'_>) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        Self {
            pace: Pace::Said(Arc::new(pace)),
            ..self
        }
    }

    /// The same with times that differ from what was said by up to this many percent.
    #[must_use]
    pub fn jitter(self, percent: u64) -> Self {
        Self {
            jitter: percent,
            ..self
        }
    }

    /// The same with memory that the host sees at once, without waiting for work on it: what the
    /// contract forbids and hardware does.
    #[must_use]
    pub fn loose(self) -> Self {
        Self {
            is_loose: true,
            ..self
        }
    }

    /// The same for callers who look at events without waiting: each look lets something happen.
    #[must_use]
    pub fn free_running(self) -> Self {
        Self {
            is_free_running: true,
            ..self
        }
    }

    /// The same with queues that go on when what they waited for has failed.
    #[must_use]
    pub fn forgetful(self) -> Self {
        Self {
            is_forgetful: true,
            ..self
        }
    }

    /// The same with one engine for each class of queues, which does one thing at a time: whose turn
    /// it is among queues that could go on, the seed decides.
    #[must_use]
    pub fn with_engines(self) -> Self {
        Self {
            engines: Engines::OfClass,
            ..self
        }
    }

    /// Makes it.
    pub fn finish(self) -> Sim {
        let card = Arc::new(self.device.insert(DeviceId::new(ID, 0), KINDS));
        let flags = [self.is_loose, self.is_free_running];
        let world = World::new(
            Arc::clone(&card),
            self.chooser,
            self.pace,
            self.jitter,
            flags,
        );
        world.state().is_forgetful = self.is_forgetful;
        world.state().engines = self.engines;
        Sim {
            card,
            world: Arc::new(world),
        }
    }
}

impl GpuBackend for Sim {
    fn id(&self) -> BackendId {
        ID
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        KINDS
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![self.card.info.clone()])
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        if ordinal != 0 {
            let id = DeviceId::new(ID, ordinal);
            return Err(DeviceError::driver(id, "open", "there is 1 device"));
        }
        self.card.enter(Call::Open)?;
        Ok(Arc::new(SimDevice {
            world: Arc::clone(&self.world),
            account: Account::new(u64::MAX),
        }))
    }
}
