//! The one emulated machine of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::context::Context;
use super::device::Device;
use super::event::Event;
use super::function::Function;
use super::handle::Table;
use super::journal;
use super::lane::Jitter;
use super::library::{Library, LibraryKernel};
use super::memory::{Block, Home, Memory, Origin, Pool, charge};
use super::module::Module;
use super::status::{Result, Status};
use super::stream::Stream;
use crate::plan::{Plan, PlanError};

/// Devices, memory, and everything callers hold.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) plan: &'static Plan,
    pub(crate) devices: Vec<Arc<Device>>,
    pub(crate) memory: Memory,
    pub(crate) contexts: Table<Context>,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    pub(crate) libraries: Table<Library>,
    pub(crate) kernels: Table<LibraryKernel>,
    pub(crate) pools: Table<Pool>,
    launches: AtomicU64,
    /// A child made by `fork` has the memory, but not the threads.
    process: u32,
}

static MACHINE: OnceLock<Machine> = OnceLock::new();

/// What the environment asks for; read at the first call.
pub(crate) fn plan() -> std::result::Result<&'static Plan, &'static PlanError> {
    static PLAN: OnceLock<std::result::Result<Plan, PlanError>> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let plan = Plan::read(variable, &super::api::is_known);
        match &plan {
            Ok(plan) => journal::set_level(plan.log),
            Err(error) => journal::shout(format_args!("{error}; CUDA will not start")),
        }
        plan
    });
    plan.as_ref()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a driver that replaces another has no other way to be configured"
)]
fn variable(name: &'static str) -> Option<String> {
    // What is no text cannot be meant, and is refused where it is parsed.
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

impl Machine {
    /// Switches the machine on.
    pub(crate) fn start() -> Result<&'static Self> {
        static STARTING: Mutex<()> = Mutex::new(());
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(machine) = MACHINE.get() {
            return machine.check_process();
        }
        let plan = plan().map_err(|_| Status::INVALID_VALUE)?;
        if plan.visible.is_empty() {
            return Err(Status::NO_DEVICE);
        }
        let machine = Self::build(plan)?;
        let machine = MACHINE.get_or_init(|| machine);
        drop(starting);
        Ok(machine)
    }

    fn build(plan: &'static Plan) -> Result<Self> {
        let memory = Memory::new(plan).map_err(|error| {
            journal::shout(format_args!(
                "no addresses for the emulated memory: {error}"
            ));
            Status::OPERATING_SYSTEM
        })?;
        let devices: Vec<_> = (0..)
            .zip(&plan.visible)
            .map(|(ordinal, index)| Device::new(plan, ordinal, *index))
            .collect();
        let pools = Table::default();
        for device in &devices {
            let pool = device.default_pool();
            pools.insert(pool.handle(), pool);
        }
        Ok(Self {
            plan,
            devices,
            memory,
            contexts: Table::default(),
            streams: Table::default(),
            events: Table::default(),
            modules: Table::default(),
            functions: Table::default(),
            libraries: Table::default(),
            kernels: Table::default(),
            pools,
            launches: AtomicU64::new(0),
            process: std::process::id(),
        })
    }

    /// The machine, if it is on.
    pub(crate) fn get() -> Result<&'static Self> {
        MACHINE
            .get()
            .ok_or(Status::NOT_INITIALIZED)?
            .check_process()
    }

    fn check_process(&'static self) -> Result<&'static Self> {
        if self.process != std::process::id() {
            return Err(Status::NOT_INITIALIZED);
        }
        Ok(self)
    }

    /// The device with a place in the machine.
    pub(crate) fn device_at(&self, index: usize) -> Option<&Arc<Device>> {
        self.devices.iter().find(|device| device.index() == index)
    }

    /// A number for a new lane, and its delays.
    pub(crate) fn next_lane() -> (u64, Jitter) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let plan = MACHINE.get().map(|machine| machine.plan);
        let jitter = Jitter {
            seed: plan.map_or(0, |plan| plan.seed),
            longest: plan.map_or_else(Default::default, |plan| plan.jitter),
        };
        (NEXT.fetch_add(1, Ordering::Relaxed), jitter)
    }

    /// Numbers launches, so that each has chances of its own.
    pub(crate) fn next_launch(&self) -> u64 {
        self.launches.fetch_add(1, Ordering::Relaxed)
    }

    /// Frees a block and gives its bytes back to who lent them; `None` if it was freed before.
    pub(crate) fn end_block(&self, base: u64) -> Option<Block> {
        let block = self.memory.free(base)?;
        if let Home::Device { device, origin, .. } = &block.home {
            match origin {
                Origin::Pool(pool) => pool.give(block.bytes),
                Origin::Call | Origin::Variable { .. } => {
                    if let Some(device) = self.device_at(*device) {
                        device.budget().give(charge(block.bytes));
                    }
                }
                // Part of what the context took for itself.
                Origin::Heap => {}
            }
        }
        Some(block)
    }
}
