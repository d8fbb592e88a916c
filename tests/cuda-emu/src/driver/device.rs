//! Emulated devices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::context::Context;
use super::handle;
use super::journal;
use super::memory::{Budget, Pool};
use super::status::{Result, Status};
use crate::plan::{DeviceSpec, Loss, Plan};

/// Processors of a device: few, because they are threads of the host.
pub(crate) const PROCESSORS: u32 = 4;

/// One device the process sees.
#[derive(Debug)]
pub(crate) struct Device {
    ordinal: usize,
    index: usize,
    spec: DeviceSpec,
    budget: Arc<Budget>,
    launches: AtomicU64,
    loss: Option<Loss>,
    lost: OnceLock<Status>,
    primary: Mutex<Primary>,
    default_pool: Arc<Pool>,
    pools: Mutex<Pools>,
}

/// The primary context and who holds it.
#[derive(Debug, Default)]
pub(crate) struct Primary {
    pub(crate) context: Option<Arc<Context>>,
    pub(crate) users: u32,
    pub(crate) flags: u32,
}

#[derive(Debug)]
struct Pools {
    all: Vec<Arc<Pool>>,
    /// The one stream-ordered allocations come from.
    current: Arc<Pool>,
}

impl Device {
    pub(crate) fn new(plan: &Plan, ordinal: usize, index: usize) -> Arc<Self> {
        let spec = plan.machine[index].clone();
        let budget = Arc::new(Budget::new(spec.memory));
        let pool = Pool::new(handle::fresh(), index, &budget, None);
        let device = Self {
            ordinal,
            index,
            spec,
            budget,
            launches: AtomicU64::new(0),
            loss: plan
                .losses
                .iter()
                .copied()
                .find(|loss| loss.device == index),
            lost: OnceLock::new(),
            primary: Mutex::default(),
            pools: Mutex::new(Pools {
                all: vec![Arc::clone(&pool)],
                current: Arc::clone(&pool),
            }),
            default_pool: pool,
        };
        device.lose_if_due(0);
        Arc::new(device)
    }

    /// What the process calls it.
    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Its place in the machine.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub(crate) fn primary(&self) -> MutexGuard<'_, Primary> {
        self.primary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a device that died.
    pub(crate) fn check(&self) -> Result {
        self.lost.get().map_or(Ok(()), |status| Err(*status))
    }

    /// Counts a kernel that ran.
    pub(crate) fn launched(&self) {
        let launches = self.launches.fetch_add(1, Ordering::SeqCst) + 1;
        self.lose_if_due(launches);
    }

    fn lose_if_due(&self, launches: u64) {
        let Some(loss) = self.loss.filter(|loss| launches >= loss.launches) else {
            return;
        };
        if self.lost.set(loss.status).is_ok() {
            journal::fault(&format!(
                "device {}: {}: lost after {} launches, as planned",
                self.ordinal, loss.status, loss.launches
            ));
        }
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn default_pool(&self) -> &Arc<Pool> {
        &self.default_pool
    }

    pub(crate) fn current_pool(&self) -> Arc<Pool> {
        Arc::clone(&self.pools().current)
    }

    pub(crate) fn set_current_pool(&self, pool: &Arc<Pool>) {
        self.pools().current = Arc::clone(pool);
    }

    pub(crate) fn add_pool(&self, pool: &Arc<Pool>) {
        self.pools().all.push(Arc::clone(pool));
    }

    /// Ends a pool; the default one takes its place.
    pub(crate) fn remove_pool(&self, pool: &Arc<Pool>) {
        let mut pools = self.pools();
        pools.all.retain(|other| !Arc::ptr_eq(other, pool));
        if Arc::ptr_eq(&pools.current, pool) {
            pools.current = Arc::clone(&self.default_pool);
        }
    }

    /// Somebody waited for the device: pools return what they need not keep.
    pub(crate) fn settle(&self) {
        for pool in &self.pools().all {
            pool.settle();
        }
    }
}
