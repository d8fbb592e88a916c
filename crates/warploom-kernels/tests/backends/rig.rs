//! The devices of the process, opened once for every thread that tests.
//!
//! PoCL loads its library of functions anew for every context and compiles one kernel of a context
//! at a time, so tests in turn share a rig, and tests beside each other have one each.

use std::sync::{Mutex, PoisonError};

use warploom_core::{CheckedDevice, DeviceId, GpuBackend, LoadError, Math};
use warploom_cuda::CudaBackend;
use warploom_kernels::program::Loader;
use warploom_opencl::OpenClBackend;

use super::compare::Rule;

/// How PoCL calls its devices before the processor's name: one works when asked, one beside the
/// caller; the code they run is the same.
const TWINS: [&str; 2] = ["basic-", "pthread-"];

/// Rigs that nobody uses now.
static IDLE: Mutex<Vec<Devices>> = Mutex::new(Vec::new());

/// A device whose results are compared with the CPU's.
pub(crate) struct Other {
    pub(crate) loader: Loader,
    pub(crate) rule: Rule,
    /// The device that compiles the same code by the same compiler and runs every case.
    pub(crate) twin: Option<DeviceId>,
}

impl Other {
    /// Which of so many cases it runs: all, or beside a twin the first and the last.
    pub(crate) fn share(&self, all: usize) -> Vec<usize> {
        let mut some = match self.twin {
            None => (0..all).collect(),
            Some(_) => vec![0, all.saturating_sub(1)],
        };
        some.dedup();
        some.retain(|at| *at < all);
        some
    }
}

/// The CPU, whose results are the right ones, and one device of each other sort.
pub(crate) struct Devices {
    pub(crate) cpu: Loader,
    pub(crate) others: Vec<Other>,
}

/// Devices for as long as a test runs.
pub(crate) struct Rig(Option<Devices>);

impl Rig {
    /// Idle devices, or newly opened ones.
    pub(crate) fn take() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(Some(idle.unwrap_or_else(Devices::open)))
    }
}

impl std::ops::Deref for Rig {
    type Target = Devices;

    fn deref(&self) -> &Devices {
        self.0.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.0.take());
    }
}

fn is_required(name: &str) -> bool {
    let text = std::env::var("WARPLOOM_REQUIRE").unwrap_or_default();
    text.split(',').any(|word| word.trim() == name)
}

/// The backend; its absence is said, or is a failure where it is required.
fn load(name: &str, loaded: Result<Box<dyn GpuBackend>, LoadError>) -> Option<Box<dyn GpuBackend>> {
    match loaded {
        Ok(backend) => Some(backend),
        Err(why) if is_required(name) => panic!("{name} is required: {why}"),
        Err(why) => {
            println!("skipped: {name}: {why}");
            None
        }
    }
}

/// Every backend but the CPU's, and how its results are compared. Kernels of the tests stay out of
/// the user's cache.
fn backends() -> Vec<(Box<dyn GpuBackend>, Rule)> {
    type Loaded = Result<Box<dyn GpuBackend>, LoadError>;
    let opencl: Loaded = OpenClBackend::load().map(|it| Box::new(it.without_cache()) as _);
    let cuda: Loaded = CudaBackend::load().map(|it| Box::new(it.without_cache()) as _);
    let wgpu = warploom_wgpu::ENTRY.load();
    let all = [
        ("opencl", opencl, Rule::Bits),
        ("cuda", cuda, Rule::Bits),
        ("wgpu", wgpu, Rule::Ulps(1.0)),
    ];
    let there = |(name, loaded, rule)| load(name, loaded).map(|it| (it, rule));
    all.into_iter().filter_map(there).collect()
}

/// The CPU.
pub(crate) fn cpu() -> CheckedDevice {
    let backend = warploom_cpu::ENTRY.load().expect("there is always a CPU");
    CheckedDevice::new(backend.open(0).expect("it opens"))
}

impl Devices {
    fn open() -> Self {
        let mut others = Vec::new();
        for (backend, rule) in backends() {
            let name = backend.id();
            let found = backend.probe().expect("devices are listed");
            let [basic, pthread] = TWINS;
            let twin = |name: &str| {
                let processor = name.strip_prefix(basic)?;
                let mut all = found.iter();
                let twin = all.find(|it| it.name.strip_prefix(pthread) == Some(processor));
                twin.map(|it| it.id)
            };
            let mut known: Vec<&str> = Vec::new();
            for info in &found {
                // What has the same name compiles the same code.
                if info.languages.is_empty() || known.contains(&info.name.as_str()) {
                    continue;
                }
                known.push(&info.name);
                let device = backend.open(info.id.ordinal).expect("the device opens");
                others.push(Other {
                    loader: Loader::new(CheckedDevice::new(device), Math::Strict),
                    rule,
                    twin: twin(&info.name),
                });
            }
            if known.is_empty() {
                assert!(!is_required(name.as_str()), "{name} lists no device");
                println!("skipped: {name}: it lists no device that compiles");
            }
        }
        Self {
            cpu: Loader::new(cpu(), Math::Strict),
            others,
        }
    }
}
