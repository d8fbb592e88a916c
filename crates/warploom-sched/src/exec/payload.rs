//! What stages do.

use super::error::{RunError, StageError};
use super::turn::{DeviceTurn, HostTurn};
use crate::model::{Plan, StageId};

/// What a source says of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// It is full, and there may be more.
    Full,
    /// It has this many records, and there are no more.
    Last(u64),
    /// There was nothing left to fill it with.
    End,
}

/// A stage on a device: enqueues its work.
pub trait DeviceWork: Send {
    /// Enqueues the work of one batch.
    fn enqueue(&mut self, turn: &mut DeviceTurn<'_>) -> Result<(), StageError>;
}

impl<F> DeviceWork for F
where
    F: FnMut(&mut DeviceTurn<'_>) -> Result<(), StageError> + Send,
{
    fn enqueue(&mut self, turn: &mut DeviceTurn<'_>) -> Result<(), StageError> {
        self(turn)
    }
}

/// A stage on the host: does its work.
pub trait HostWork: Send {
    /// Does the work of one batch. What a stage that reads something says of the fill is ignored.
    fn run(&mut self, turn: &mut HostTurn<'_>) -> Result<Fill, StageError>;
}

impl<F> HostWork for F
where
    F: FnMut(&mut HostTurn<'_>) -> Result<Fill, StageError> + Send,
{
    fn run(&mut self, turn: &mut HostTurn<'_>) -> Result<Fill, StageError> {
        self(turn)
    }
}

pub(crate) enum Payload {
    Device(Box<dyn DeviceWork>),
    Host(Box<dyn HostWork>),
}

/// What each stage of a plan does, in one pipeline: it cannot be submitted twice.
///
/// ```compile_fail,E0382
/// # use warploom_core::CheckedDevice;
/// # use warploom_sched::{Payloads, Pipeline, Plan, RunOptions, Threads};
/// fn twice(plan: &Plan, device: &CheckedDevice, payloads: Payloads) {
///     let once = RunOptions::of(1, 1);
///     let first = Pipeline::start(plan, device, payloads, Threads::new(), once.clone());
///     let second = Pipeline::start(plan, device, payloads, Threads::new(), once);
/// }
/// ```
#[derive(Default)]
pub struct Payloads {
    all: Vec<(StageId, Payload)>,
}

impl std::fmt::Debug for Payloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stages = self.all.iter().map(|(stage, _)| stage.index());
        f.debug_list().entries(stages).finish()
    }
}

impl Payloads {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with the work of a stage on the device.
    #[must_use]
    pub fn device(
        mut self,
        stage: StageId,
        work: impl FnMut(&mut DeviceTurn<'_>) -> Result<(), StageError> + Send + 'static,
    ) -> Self {
        self.all.push((stage, Payload::Device(Box::new(work))));
        self
    }

    /// The same with the work of a stage on the host.
    #[must_use]
    pub fn host(
        mut self,
        stage: StageId,
        mut work: impl FnMut(&mut HostTurn<'_>) -> Result<(), StageError> + Send + 'static,
    ) -> Self {
        let work = move |turn: &mut HostTurn<'_>| work(turn).map(|()| Fill::Full);
        self.all.push((stage, Payload::Host(Box::new(work))));
        self
    }

    /// The same with the work of a stage on the host that says when there is no more.
    #[must_use]
    pub fn source(
        mut self,
        stage: StageId,
        work: impl FnMut(&mut HostTurn<'_>) -> Result<Fill, StageError> + Send + 'static,
    ) -> Self {
        self.all.push((stage, Payload::Host(Box::new(work))));
        self
    }

    /// One payload for each stage, in order.
    pub(crate) fn sorted(mut self, plan: &Plan) -> Result<Vec<Payload>, RunError> {
        let mut sorted = Vec::new();
        for (at, stage) in plan.graph().stages().iter().enumerate() {
            let found = self.all.iter().rposition(|(id, _)| id.index() == at);
            let payload = found.map(|found| self.all.swap_remove(found).1);
            let (place, wrong) = if stage.is_host() {
                ("the host", "a payload for the device")
            } else {
                ("the device", "a payload for the host")
            };
            let refused = |payload| RunError::Payload {
                stage: stage.name.clone(),
                place,
                payload,
            };
            match payload {
                None => return Err(refused("no payload")),
                Some(payload) if matches!(payload, Payload::Host(_)) == stage.is_host() => {
                    sorted.push(payload);
                }
                Some(_) => return Err(refused(wrong)),
            }
        }
        Ok(sorted)
    }
}
