//! Plans run on a simulated device, with payloads whose output depends on every byte they read.
#![allow(dead_code, reason = "each test binary uses some of it")]

mod crew;

pub(crate) use crew::SimCrew;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use warploom_core::{
    Arg, CheckedDevice, DType, DeviceError, GpuBackend, Grid, Kernel, KernelSource, Param,
    Queue as _, Space,
};
use warploom_sched::{
    DeviceTurn, Fill, HostTurn, How, Payloads, Pipeline, Plan, Pool, ReadLease, ResourceId,
    RunError, RunOptions, StageError, StageId, Summary, Use, WriteLease,
};
use warploom_testkit::sim::{Sim, SimBuilder};
use warploom_testkit::{FakeDevice, fake::Call};

/// What was delivered: stage, generation, records, and a sum over the bytes.
pub(crate) type Delivered = Arc<Mutex<Vec<(usize, u64, u64, u64)>>>;

fn mix(state: u64, bytes: &[u8]) -> u64 {
    let step = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(state, step)
}

fn fill(bytes: &mut [u8], mut state: u64) {
    for byte in bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = state.to_be_bytes()[0];
    }
}

/// What a host stage does when it is told to misbehave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mischief {
    Fail,
    Panic,
}

/// Payloads for any graph.
pub(crate) struct Script {
    pub(crate) delivered: Delivered,
    pub(crate) mischief: Option<(&'static str, u64, Mischief)>,
    pub(crate) ends_with: Option<Fill>,
    pub(crate) ends_at: u64,
    /// Do bytes go from slot to slot by way of the host, which takes other calls?
    pub(crate) by_bytes: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            delivered: Delivered::default(),
            mischief: None,
            ends_with: None,
            ends_at: u64::MAX,
            by_bytes: false,
        }
    }
}

impl Script {
    pub(crate) fn payloads(
        &self,
        plan: &Plan,
        device: &CheckedDevice,
    ) -> Result<Payloads, DeviceError> {
        let mut payloads = Payloads::new();
        for (at, stage) in plan.graph().stages().iter().enumerate() {
            let id = plan
                .graph()
                .find(&stage.name)
                .unwrap_or_else(|| unreachable!());
            let uses = |wanted: fn(How) -> bool| -> Vec<ResourceId> {
                let own = stage.accesses.iter().filter(|access| wanted(access.how));
                own.map(|access| access.resource).collect()
            };
            let reads = uses(|how| matches!(how, How::Read | How::Update));
            let writes = uses(|how| matches!(how, How::Write | How::Update));
            let previous = uses(|how| how == How::Previous);
            let mischief = self.mischief.filter(|(name, ..)| *name == stage.name);
            if stage.is_host() {
                let work = HostScript {
                    at,
                    reads,
                    writes,
                    mischief: mischief.map(|(_, when, what)| (when, what)),
                    delivered: Arc::clone(&self.delivered),
                    ends: self.ends_with.map(|fill| (self.ends_at, fill)),
                };
                payloads = payloads.source(id, move |turn: &mut HostTurn<'_>| work.run(turn));
            } else {
                let looks = uses(|how| how == How::Look);
                let mut work = device_script(plan, device, id, [reads, writes, previous, looks])?;
                work.by_bytes = self.by_bytes;
                payloads = payloads.device(id, move |turn: &mut DeviceTurn<'_>| work.run(turn));
            }
        }
        Ok(payloads)
    }
}

fn device_script(
    plan: &Plan,
    device: &CheckedDevice,
    id: StageId,
    [reads, writes, previous, looks]: [Vec<ResourceId>; 4],
) -> Result<DeviceScript, DeviceError> {
    let graph = plan.graph();
    let stage = &graph.stages()[id.index()];
    let space = |resource: &ResourceId| graph.resources()[resource.index()].space;
    let on_device = |resource: &&ResourceId| space(resource) == Space::Device;
    let near = |all: &[ResourceId]| all.iter().filter(on_device).copied().collect::<Vec<_>>();
    let far = |all: &[ResourceId]| {
        let far = all.iter().filter(|resource| !on_device(resource));
        far.copied().collect::<Vec<_>>()
    };
    // Stages that write one resource together write different parts of it.
    let part = |resource: ResourceId| {
        let writers = graph.stages().iter().enumerate().filter(|(_, other)| {
            let writes = |a: &warploom_sched::Access| a.resource == resource && a.how == How::Write;
            other.accesses.iter().any(writes)
        });
        let writers: Vec<usize> = writers.map(|(at, _)| at).collect();
        let own = writers.iter().position(|at| *at == id.index());
        match (writers.len(), own) {
            (0 | 1, _) | (_, None) => None,
            (_, Some(own)) => Some(own as u64),
        }
    };
    let inputs = near(&reads);
    let updates: Vec<ResourceId> = writes
        .iter()
        .filter(|w| reads.contains(w))
        .copied()
        .collect();
    let inputs: Vec<ResourceId> = inputs
        .into_iter()
        .filter(|r| !updates.contains(r))
        .collect();
    let outputs = near(&writes);
    let mut params = vec![Param::Read; inputs.len()];
    params.extend(outputs.iter().map(|resource| {
        if updates.contains(resource) {
            Param::ReadWrite
        } else {
            Param::Write
        }
    }));
    params.push(Param::Scalar(DType::U32));
    let (ins, outs, seed) = (inputs.len(), outputs.len(), id.index() as u64);
    let changed: Vec<bool> = outputs.iter().map(|r| updates.contains(r)).collect();
    let source = KernelSource::host(&stage.name, &params, move |call| {
        let generation: u32 = call.scalar(ins + outs);
        let mut state = seed.wrapping_mul(77) ^ u64::from(generation);
        for input in 0..ins {
            state = mix(state, call.read::<u8>(input));
        }
        for (output, changed) in changed.iter().enumerate() {
            let bytes = call.write::<u8>(ins + output);
            let start = if *changed { mix(state, bytes) } else { state };
            fill(bytes, start.wrapping_add(output as u64));
        }
    });
    Ok(DeviceScript {
        kernel: device.kernel(&source)?,
        parts: outputs.iter().map(|resource| part(*resource)).collect(),
        inputs,
        outputs,
        far_reads: far(&reads),
        far_writes: far(&writes),
        near_reads: near(&reads),
        previous: far(&previous),
        looks,
        by_bytes: false,
    })
}

struct DeviceScript {
    kernel: Arc<dyn Kernel>,
    inputs: Vec<ResourceId>,
    outputs: Vec<ResourceId>,
    parts: Vec<Option<u64>>,
    far_reads: Vec<ResourceId>,
    far_writes: Vec<ResourceId>,
    near_reads: Vec<ResourceId>,
    previous: Vec<ResourceId>,
    looks: Vec<ResourceId>,
    by_bytes: bool,
}

impl DeviceScript {
    /// From slot to slot, as much as both hold.
    fn copy(
        &self,
        turn: &mut DeviceTurn<'_>,
        from: &ReadLease<'_>,
        to: &WriteLease<'_>,
    ) -> Result<(), StageError> {
        if !self.by_bytes {
            return turn.copy(from, to);
        }
        let length = from.slice().len().min(to.slice().len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let (from, to) = (from.slice().part(0..length)?, to.slice().part(0..length)?);
        turn.queue().download(&from, &mut bytes)?;
        Ok(turn.queue().upload(&bytes, &to)?)
    }

    fn run(&self, turn: &mut DeviceTurn<'_>) -> Result<(), StageError> {
        for look in &self.looks {
            let mut seen = 0;
            turn.look(*look, |bytes| seen = mix(1, bytes))?;
            assert_ne!(seen, 0);
        }
        self.launch(turn)?;
        for (from, to) in self.far_reads.iter().zip(&self.outputs) {
            let (from, to) = (turn.read(*from)?, turn.write(*to)?);
            self.copy(turn, &from, &to)?;
        }
        let sources = self.near_reads.iter().chain(&self.far_reads);
        let sources: Vec<ResourceId> = sources.copied().collect();
        for (at, to) in self.far_writes.iter().enumerate() {
            let lease = turn.write(*to)?;
            let others: Vec<ResourceId> = sources.iter().filter(|r| *r != to).copied().collect();
            if others.is_empty() {
                let byte = turn.batch().generation.to_le_bytes()[0];
                let bytes = vec![byte; usize::try_from(lease.slice().len()).unwrap_or(0)];
                turn.queue().upload(&bytes, lease.slice())?;
            } else {
                let from = turn.read(others[at % others.len()])?;
                self.copy(turn, &from, &lease)?;
            }
        }
        // What the host carried over goes into the second half of what is written.
        for (from, to) in self.previous.iter().zip(&self.outputs) {
            let (Some(from), to) = (turn.previous(*from), turn.write(*to)?) else {
                continue;
            };
            let (from, to) = (from.slice().part(0..256)?, to.slice().part(256..512)?);
            turn.queue().copy(&from, &to)?;
        }
        Ok(())
    }

    fn launch(&self, turn: &mut DeviceTurn<'_>) -> Result<(), StageError> {
        let mut uses = Vec::new();
        for input in &self.inputs {
            uses.push(Use::Slice(turn.read(*input)?.slice().clone()));
        }
        for (output, part) in self.outputs.iter().zip(&self.parts) {
            let lease = turn.write(*output)?;
            uses.push(Use::Slice(match part {
                None => lease.slice().clone(),
                Some(part) => lease.slice().part(part * 256..part * 256 + 256)?,
            }));
        }
        let generation = u32::try_from(turn.batch().generation).unwrap_or(u32::MAX);
        uses.push(Use::Number(Arg::U32(generation)));
        turn.launch(&self.kernel, Grid::groups([1; 3]), &uses)
    }
}

struct HostScript {
    at: usize,
    reads: Vec<ResourceId>,
    writes: Vec<ResourceId>,
    mischief: Option<(u64, Mischief)>,
    delivered: Delivered,
    ends: Option<(u64, Fill)>,
}

impl HostScript {
    fn run(&self, turn: &mut HostTurn<'_>) -> Result<Fill, StageError> {
        let batch = turn.batch();
        match self.mischief {
            Some((when, Mischief::Fail)) if when == batch.generation => {
                return Err(StageError::failed("on purpose"));
            }
            Some((when, Mischief::Panic)) if when == batch.generation => panic!("on purpose"),
            _ => {}
        }
        let mut state = self.at as u64 * 31 + batch.generation;
        for read in &self.reads {
            turn.read(*read, |bytes| state = mix(state, bytes))?;
        }
        for write in &self.writes {
            turn.write(*write, |bytes| fill(bytes, state))?;
        }
        if !self.reads.is_empty() {
            let mut delivered = self.delivered.lock().unwrap_or_else(|_| unreachable!());
            delivered.push((self.at, batch.generation, batch.records, state));
        } else if let Some((at, fill)) = self.ends
            && batch.generation >= at
        {
            return Ok(fill);
        }
        Ok(Fill::Full)
    }
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: Result<Summary, RunError>,
    pub(crate) delivered: Vec<(usize, u64, u64, u64)>,
    pub(crate) sim: Sim,
    pub(crate) held: u64,
    /// What was done, even if it failed.
    pub(crate) summary: Summary,
}

/// A simulation whose kernels and copies take what the plan's stages say.
pub(crate) fn paced(device: FakeDevice, plan: &Plan, seed: u64) -> SimBuilder {
    let graph = plan.graph().clone();
    // A stage's kernel takes its time; copies take none.
    Sim::build(device, seed).pace(move |operation| {
        let stage = operation.kernel.and_then(|name| graph.find(name));
        Some(stage.map_or(Duration::ZERO, |stage| graph.stages()[stage.index()].time))
    })
}

pub(crate) fn device() -> FakeDevice {
    FakeDevice::new("Simulated").memory(1 << 30)
}

pub(crate) fn run_on(sim: Sim, plan: &Plan, script: &Script, options: RunOptions) -> Ran {
    let opened = sim.open(0).map(CheckedDevice::new);
    let run = |opened: &CheckedDevice| -> Result<_, RunError> {
        let payloads = script
            .payloads(plan, opened)
            .map_err(|error| RunError::Start {
                error: Box::new(error),
            })?;
        let crew = SimCrew::new(&sim, plan);
        let mut pipeline = Pipeline::start(plan, opened, payloads, crew, options)?;
        let result = pipeline.run().cloned();
        match &result {
            Err(error) => assert_eq!(pipeline.run().err().as_ref(), Some(error), "errors stay"),
            // What a source fills when there is nothing left is read by nobody.
            Ok(_) if script.ends_with.is_some() => {}
            Ok(_) => assert_eq!(outstanding(plan, pipeline.pool()), 0, "all uses are over"),
        }
        let summary = pipeline.summary().clone();
        Ok((result, pipeline.pool().held(), summary))
    };
    let outcome = match &opened {
        Ok(opened) => run(opened),
        Err(error) => Err(RunError::Start {
            error: Box::new(error.clone()),
        }),
    };
    let (result, held, summary) =
        outcome.unwrap_or_else(|error| (Err(error), 0, Summary::default()));
    drop(opened);
    let delivered = script
        .delivered
        .lock()
        .unwrap_or_else(|_| unreachable!())
        .clone();
    Ran {
        result,
        delivered,
        sim,
        held,
        summary,
    }
}

/// Uses of slots that are still to come. What a generation left for the next has nobody after the last.
fn outstanding(plan: &Plan, pool: &Pool) -> u64 {
    let accesses = || {
        let stages = plan.graph().stages().iter();
        stages.flat_map(|stage| &stage.accesses)
    };
    let is_carried = |of| accesses().any(|a| a.resource == of && a.how == How::Previous);
    let once = accesses().enumerate().filter(|(at, access)| {
        let mut before = accesses().take(*at);
        !before.any(|other| other.resource == access.resource) && !is_carried(access.resource)
    });
    let slots =
        once.flat_map(|(_, access)| (0..).map_while(move |slot| pool.state(access.resource, slot)));
    slots
        .map(|state| state.writes_left + state.reads_left)
        .sum()
}

/// Runs a plan in a simulation in which overlap shows and times are random.
pub(crate) fn run_seeded(plan: &Plan, seed: u64, generations: u64, check_races: bool) -> Ran {
    let sim = Sim::build(device(), seed).loose().finish();
    let options = RunOptions::of(generations, 1)
        .with_race_check(check_races)
        .with_patience(Duration::from_secs(5));
    run_on(sim, plan, &Script::default(), options)
}

/// How often the device was asked for anything.
pub(crate) fn all_calls(sim: &Sim) -> Vec<(Call, u64)> {
    [
        Call::Open,
        Call::Alloc,
        Call::Queue,
        Call::Kernel,
        Call::Upload,
        Call::Download,
        Call::Copy,
        Call::Launch,
        Call::Record,
        Call::Wait,
        Call::EventWait,
        Call::WithHost,
    ]
    .map(|call| (call, sim.calls(call)))
    .to_vec()
}
