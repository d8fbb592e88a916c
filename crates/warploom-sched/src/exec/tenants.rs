//! Several plans on one device, each with its share.

use std::time::Duration;

use warploom_core::{CancelToken, CheckedDevice, QueueClass};

use super::berth::Quarters;
use super::crew::Crew;
use super::error::RunError;
use super::options::RunOptions;
use super::payload::Payloads;
use super::pipeline::{GLANCE, Pipeline};
use super::report::Summary;
use super::tenant::{ENGINES, Member, Tenant, TenantId, engine_of};
use crate::model::{Arbiter, Budget, Memory, Plan};

/// Several plans that run on one device at the same time, in one process, driven by one thread.
///
/// Each has its own queues and slots, so what one does or fails at is nothing to the others; what
/// they share are the device's engines: one for kernels, one for copies in each direction. While
/// several want the same one, each gets its share of the engine's time, by its weight
/// ([`Arbiter`] has the rule and its bounds). What nobody else wants, anybody gets. The results of
/// each are those of running alone.
///
/// Their slots are made when they move in and kept until all are dropped, so what they take is
/// known at any time and checked before anything is allocated: against each one's
/// [`Budget`], and against that of all.
///
/// Dropping it waits for what is running and frees everything, as with a [`Pipeline`].
///
/// ```
/// use warploom_core::{CheckedDevice, GpuBackend, QueueClass, Space};
/// use warploom_sched::{
///     Budget, Options, Payloads, Resource, RunOptions, Stage, StageGraph, Tenant, Tenants,
///     Threads, plan,
/// };
/// # use warploom_testkit::{FakeBackend, FakeDevice};
/// # let backend = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
/// let device = CheckedDevice::new(backend.open(0)?);
///
/// let mut graph = StageGraph::new();
/// let image = graph.resource(Resource::new("image", Space::Device, 1024));
/// let output = graph.resource(Resource::new("output", Space::Pinned, 1024));
/// let make = graph.stage(Stage::device("make", QueueClass::Compute).writes(image));
/// let down = graph.stage(Stage::device("down", QueueClass::Download).reads(image).writes(output));
/// let see = graph.stage(Stage::host("see").reads(output));
/// let payloads = move |byte: u8| {
///     Payloads::new()
///         .device(make, move |turn| {
///             let to = turn.write(image)?;
///             Ok(warploom_core::Queue::upload(turn.queue(), &[byte; 1024], to.slice())?)
///         })
///         .device(down, move |turn| {
///             let (from, to) = (turn.read(image)?, turn.write(output)?);
///             turn.copy(&from, &to)
///         })
///         .host(see, move |turn| turn.read(output, |bytes| assert_eq!(bytes, [byte; 1024])))
/// };
///
/// let plan = plan(&graph, &Options::default().with_depth(2))?;
/// let mut tenants = Tenants::new(&device, Threads::new());
/// let budget = Budget { device: Some(4096), host: None };
/// // While both are busy, the first gets three quarters.
/// let urgent = Tenant::new("urgent").with_weight(3).with_budget(budget);
/// let urgent = tenants.join(&urgent, &plan, payloads(1), RunOptions::of(30, 1))?;
/// let other = tenants.join(&Tenant::new("other"), &plan, payloads(2), RunOptions::of(10, 1))?;
/// tenants.run();
/// assert_eq!(tenants.outcome(urgent).unwrap()?.generations, 30);
/// assert_eq!(tenants.outcome(other).unwrap()?.generations, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tenants<C: Crew> {
    device: CheckedDevice,
    quarters: Quarters<C>,
    members: Vec<Member<C>>,
    arbiters: [Arbiter; ENGINES],
    /// When each engine was last heard to be done with something.
    last: [Duration; ENGINES],
    budget: Budget,
    memory: Memory,
}

impl<C: Crew> std::fmt::Debug for Tenants<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenants")
            .field("members", &self.members.len())
            .field("arbiters", &self.arbiters)
            .finish_non_exhaustive()
    }
}

impl<C: Crew> Tenants<C> {
    /// A device without tenants.
    pub fn new(device: &CheckedDevice, crew: C) -> Self {
        Self {
            device: device.clone(),
            quarters: Quarters::new(crew),
            members: Vec::new(),
            arbiters: std::array::from_fn(|_| Arbiter::new()),
            last: [Duration::ZERO; ENGINES],
            budget: Budget::default(),
            memory: Memory::default(),
        }
    }

    /// The same, with this much memory for all together.
    #[must_use]
    pub fn within(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Another plan, at any time: makes its queues and slots.
    ///
    /// # Errors
    /// When its slots take more than its budget or what is left of the common one, which is known
    /// before anything is allocated, and as [`Pipeline::start`].
    pub fn join(
        &mut self,
        tenant: &Tenant,
        plan: &Plan,
        payloads: Payloads,
        options: RunOptions,
    ) -> Result<TenantId, RunError> {
        let own = plan.memory();
        let all = Memory {
            device: self.memory.device + own.device,
            pinned: self.memory.pinned + own.pinned,
            host: self.memory.host + own.host,
        };
        let limits = [(tenant.budget, own, false), (self.budget, all, true)];
        for (budget, memory, is_common) in limits {
            let sides = [
                (true, budget.device, memory.device),
                (false, budget.host, memory.pinned + memory.host),
            ];
            for (is_device, allowed, needed) in sides {
                if let Some(allowed) = allowed.filter(|allowed| needed > *allowed) {
                    return Err(RunError::Budget {
                        tenant: tenant.name.clone(),
                        is_device,
                        needed,
                        allowed,
                        is_common,
                    });
                }
            }
        }
        let stages = plan.graph().stages().len();
        let berth = self
            .quarters
            .berth(&tenant.name, stages, plan.queues().len());
        let first = berth.first_stage();
        let pipeline = Pipeline::watched(plan, &self.device, payloads, berth, options)?;
        self.quarters.settle_in(first);
        for arbiter in &mut self.arbiters {
            arbiter.join(tenant.weight);
        }
        self.memory = all;
        let member = Member::new(plan, pipeline, self.quarters.now());
        self.members.push(member);
        Ok(TenantId(self.members.len() - 1))
    }

    /// What the slots of all take.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Runs all to their ends. What became of each, [`outcome`](Self::outcome) says.
    pub fn run(&mut self) {
        while self.turn() {}
    }

    /// Does everything that can be done now, or sleeps until there is news. Answers whether there
    /// is more to do.
    pub fn turn(&mut self) -> bool {
        for member in self.members.iter_mut().filter(|m| m.outcome.is_none()) {
            member.pipeline.heed_cancel();
        }
        let is_heard = self.hear();
        let mut any = is_heard;
        for member in self.members.iter_mut().filter(|m| m.outcome.is_none()) {
            any |= member.pipeline.begin_host_stages();
        }
        any |= self.let_through();
        if any {
            return true;
        }
        for member in &mut self.members {
            member.end_if_over();
        }
        if self.members.iter().all(|member| member.outcome.is_some()) {
            return false;
        }
        self.rest();
        true
    }

    /// What became of a tenant; `None` while it runs.
    pub fn outcome(&self, tenant: TenantId) -> Option<Result<&Summary, RunError>> {
        let outcome = self.members[tenant.0].outcome.as_ref()?;
        Some(outcome.as_ref().map_err(Clone::clone))
    }

    /// How much time of an engine a tenant was given, as far as it is known.
    pub fn served(&self, tenant: TenantId, class: QueueClass) -> Duration {
        self.arbiters[engine_of(class)].served(tenant.0)
    }

    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Some((whose, note)) = self.quarters.poll() {
            let now = self.quarters.now();
            self.members[whose].hear(note, now, &mut self.arbiters, &mut self.last);
            any = true;
        }
        any
    }

    /// Lets work through to the engines that have room.
    fn let_through(&mut self) -> bool {
        let mut any = false;
        for engine in 0..ENGINES {
            while let Some(whose) = self.next_on(engine) {
                let (member, arbiter) = (&mut self.members[whose], &mut self.arbiters[engine]);
                let ready = member.ready(engine, false);
                let Some(stage) = ready.or_else(|| member.ready(engine, true)) else {
                    break;
                };
                let passage = arbiter.admit(whose, member.cost(stage));
                let (now, quarters) = (self.quarters.now(), &self.quarters);
                let refused = member.fly(stage, engine, passage, now, || quarters.watched());
                if let Some(passage) = refused {
                    arbiter.finish(passage, Duration::ZERO);
                }
                any = true;
            }
        }
        any
    }

    fn next_on(&self, engine: usize) -> Option<usize> {
        let ready = |patient: bool| {
            let members = self.members.iter().enumerate();
            let ready = members.filter(move |(_, member)| member.ready(engine, patient).is_some());
            ready.map(|(at, _)| at)
        };
        let arbiter = &self.arbiters[engine];
        // What would only stand in the queue and wait goes where it stands in nobody's way.
        let next = arbiter.choose(ready(false));
        next.or_else(|| arbiter.is_idle().then(|| arbiter.choose(ready(true)))?)
    }

    /// Sleeps until there is news, or somebody's patience is at its end.
    fn rest(&mut self) {
        let now = self.quarters.now();
        let mut nap = Duration::MAX;
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            if member.outcome.is_some() {
                continue;
            }
            if !member.is_under_way() && member.is_ready() {
                // It waits for others, who have a patience of their own.
                member.heard = now;
                continue;
            }
            let options = &member.pipeline.options;
            let waited = now.saturating_sub(member.heard);
            let left = options.patience.saturating_sub(waited);
            if left.is_zero() {
                member.give_up(waited);
                for arbiter in &mut self.arbiters {
                    arbiter.leave(at);
                }
                return;
            }
            nap = nap.min(left);
        }
        let is_cancellable = |member: &Member<C>| {
            let token: Option<&CancelToken> = member.pipeline.options.cancel.as_ref();
            member.outcome.is_none() && member.pipeline.failure.is_none() && token.is_some()
        };
        if self.members.iter().any(is_cancellable) {
            nap = nap.min(GLANCE);
        }
        self.quarters.rest(nap);
        let rested = self.quarters.now().saturating_sub(now);
        for member in self.members.iter_mut().filter(|m| m.outcome.is_none()) {
            member.pipeline.blocked(rested);
        }
    }
}

impl<C: Crew> Drop for Tenants<C> {
    fn drop(&mut self) {
        // Before any pipeline waits for its queues, nobody on the host uses them any more.
        self.quarters.dismiss();
    }
}
