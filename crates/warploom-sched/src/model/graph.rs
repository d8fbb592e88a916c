//! What is to be ordered: stages and the resources they read and write.

use std::time::Duration;

use warploom_core::{QueueClass, Space};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub(crate) usize);
        impl $name {
            /// Its place in the list it belongs to.
            pub fn index(self) -> usize {
                self.0
            }
        }
    )*};
}
ids! {
    /// A stage of one graph.
    StageId;
    /// A resource of one graph.
    ResourceId;
    /// An edge of one plan.
    EdgeId;
}

/// How many slots a resource has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slots {
    /// As many as the rate needs and the budget allows, at most this many.
    UpTo(u32),
    /// Exactly this many.
    Exactly(u32),
}

/// What stages hand to each other: one slot of it for each generation in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Resource {
    /// What people call it.
    pub name: String,
    /// Who can see it.
    pub space: Space,
    /// Bytes of one slot.
    pub bytes: u64,
    /// How many slots it may have.
    pub slots: Slots,
}

/// The most slots a resource gets when nobody says otherwise.
const MOST_SLOTS: u32 = 8;

impl Resource {
    /// A resource whose slots have `bytes` each.
    pub fn new(name: impl Into<String>, space: Space, bytes: u64) -> Self {
        Self {
            name: name.into(),
            space,
            bytes,
            slots: Slots::UpTo(MOST_SLOTS),
        }
    }

    /// The same with this many slots.
    #[must_use]
    pub fn with_slots(self, slots: Slots) -> Self {
        Self { slots, ..self }
    }
}

/// Where a stage runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// On a thread of the host. Stages with a thread of the same name share it.
    Host {
        /// The thread's name; `None` is a thread of its own.
        thread: Option<String>,
    },
    /// On a queue of the device. Stages with a queue of the same name share it.
    Device {
        /// What sort of work it is.
        class: QueueClass,
        /// The queue's name; `None` lets the plan choose.
        queue: Option<String>,
    },
}

/// How a stage uses a resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum How {
    /// Reads what earlier stages wrote in the same generation.
    Read,
    /// Writes, without looking at what was there. Stages that only write a resource, one after the
    /// other with no reader between them, write different parts of it.
    Write,
    /// Reads and writes in place.
    Update,
    /// The host reads it while it enqueues the stage, for instance to know how much to copy.
    Look,
    /// Reads what the generation before left.
    Previous,
}

/// One use of a resource by a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Access {
    /// What is used.
    pub resource: ResourceId,
    /// How.
    pub how: How,
    /// Does the device itself wait for what a host stage writes? Plans refuse it; it can be said so
    /// that the refusal can be explained.
    pub gated: bool,
}

/// A step of payload work, once per generation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stage {
    /// What people call it.
    pub name: String,
    /// Where it runs.
    pub place: Place,
    /// What it reads and writes.
    pub accesses: Vec<Access>,
    /// How long one generation takes; zero when nobody knows.
    pub time: Duration,
    /// On how many threads it works at once: of the host, or of a device whose kernels are threads', where 0
    /// is all of them.
    pub threads: u32,
}

impl Stage {
    fn at(name: impl Into<String>, place: Place) -> Self {
        let is_host = matches!(place, Place::Host { .. });
        Self {
            name: name.into(),
            place,
            accesses: Vec::new(),
            time: Duration::ZERO,
            threads: u32::from(is_host),
        }
    }

    /// A stage on a thread of its own.
    pub fn host(name: impl Into<String>) -> Self {
        Self::at(name, Place::Host { thread: None })
    }

    /// A stage on a device, on a queue that the plan chooses.
    pub fn device(name: impl Into<String>, class: QueueClass) -> Self {
        Self::at(name, Place::Device { class, queue: None })
    }

    /// The same on the queue or thread of this name.
    #[must_use]
    pub fn on(mut self, name: impl Into<String>) -> Self {
        let (Place::Host { thread: place } | Place::Device { queue: place, .. }) = &mut self.place;
        *place = Some(name.into());
        self
    }

    /// The same, taking this long for each generation.
    #[must_use]
    pub fn taking(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The same, working on so many threads at once: of the host, or of a device whose kernels are threads'.
    #[must_use]
    pub fn on_threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }

    fn with(mut self, resource: ResourceId, how: How) -> Self {
        let both = |a, b| matches!((a, b), (How::Read, How::Write) | (How::Write, How::Read));
        let mut known = self.accesses.iter_mut();
        if let Some(known) = known.find(|a| a.resource == resource && both(a.how, how)) {
            known.how = How::Update;
            return self;
        }
        self.accesses.push(Access {
            resource,
            how,
            gated: false,
        });
        self
    }

    /// The same, reading `resource`.
    #[must_use]
    pub fn reads(self, resource: ResourceId) -> Self {
        self.with(resource, How::Read)
    }

    /// The same, writing `resource`.
    #[must_use]
    pub fn writes(self, resource: ResourceId) -> Self {
        self.with(resource, How::Write)
    }

    /// The same, changing `resource` in place.
    #[must_use]
    pub fn updates(self, resource: ResourceId) -> Self {
        self.with(resource, How::Update)
    }

    /// The same, enqueued only when the host has read `resource`.
    #[must_use]
    pub fn looks_at(self, resource: ResourceId) -> Self {
        // A host stage looks by reading.
        let how = if self.is_host() { How::Read } else { How::Look };
        self.with(resource, how)
    }

    /// The same, reading what the generation before left in `resource`.
    #[must_use]
    pub fn reads_previous(self, resource: ResourceId) -> Self {
        self.with(resource, How::Previous)
    }

    /// The same, with the device waiting for its last named resource after it was enqueued.
    #[must_use]
    pub fn gated(mut self) -> Self {
        if let Some(last) = self.accesses.last_mut() {
            last.gated = true;
        }
        self
    }

    /// Does it run on the host?
    pub fn is_host(&self) -> bool {
        matches!(self.place, Place::Host { .. })
    }
}

/// Stages and resources: who reads and writes what, and nothing about order but the order of stages
/// within a generation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageGraph {
    pub(crate) stages: Vec<Stage>,
    pub(crate) resources: Vec<Resource>,
}

impl StageGraph {
    /// A graph without stages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource.
    pub fn resource(&mut self, resource: Resource) -> ResourceId {
        self.resources.push(resource);
        ResourceId(self.resources.len() - 1)
    }

    /// Adds a stage, after all that were added before it.
    pub fn stage(&mut self, stage: Stage) -> StageId {
        self.stages.push(stage);
        StageId(self.stages.len() - 1)
    }

    /// The stages in order.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The resources.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The stage of this name.
    pub fn find(&self, name: &str) -> Option<StageId> {
        let at = self.stages.iter().position(|stage| stage.name == name)?;
        Some(StageId(at))
    }

    pub(crate) fn stage_at(&self, id: StageId) -> &Stage {
        &self.stages[id.0]
    }

    pub(crate) fn resource_at(&self, id: ResourceId) -> &Resource {
        &self.resources[id.0]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = StageId> + use<> {
        (0..self.stages.len()).map(StageId)
    }

    /// How often the host looks at something on the way to each stage: stages of one level are
    /// enqueued without the host in between.
    pub(crate) fn levels(&self) -> Vec<u32> {
        let mut levels = vec![0; self.stages.len()];
        let mut written = vec![0; self.resources.len()];
        for (at, stage) in self.stages.iter().enumerate() {
            for access in &stage.accesses {
                let from = written[access.resource.0];
                let level = match access.how {
                    How::Look => from + 1,
                    How::Read | How::Update => from,
                    How::Write | How::Previous => 0,
                };
                levels[at] = levels[at].max(level);
            }
            for access in &stage.accesses {
                if matches!(access.how, How::Write | How::Update) {
                    let to = &mut written[access.resource.0];
                    *to = levels[at].max(*to);
                }
            }
        }
        levels
    }
}
