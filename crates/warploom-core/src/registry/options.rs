//! What a registry is told before it looks.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::backend::BackendId;
use crate::registry::capacity::CapacityPolicy;
use crate::registry::error::RegistryError;
use crate::registry::lending::LeaseScope;

/// How to detect and how to count capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Load nothing but the CPU backend.
    pub cpu_only: bool,
    /// Load only these; all that are linked when `None`. Naming one that is not linked is an error.
    pub backends: Option<Vec<BackendId>>,
    /// Fail, instead of reporting, when one of these does not load.
    pub require: Vec<BackendId>,
    /// How capacity is counted.
    pub capacity: CapacityPolicy,
    /// CPU threads this process may use; `None` when the system does not tell.
    pub cpu_threads: Option<NonZeroU32>,
    /// Counted with when `cpu_threads` is unknown.
    pub workers: NonZeroU32,
    /// Among whom leases are agreed.
    pub leases: LeaseScope,
    /// A backend that has not answered by then is reported as broken.
    pub probe_deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        // Respects affinity masks and cgroup quotas, unlike a count of processors.
        let threads = std::thread::available_parallelism().ok();
        let threads = threads.and_then(|n| u32::try_from(n.get()).ok());
        Self {
            cpu_only: false,
            backends: None,
            require: Vec::new(),
            capacity: CapacityPolicy::default(),
            cpu_threads: threads.and_then(NonZeroU32::new),
            workers: NonZeroU32::MIN,
            leases: LeaseScope::default(),
            probe_deadline: Duration::from_secs(5),
        }
    }
}

impl Options {
    /// Everything from the defaults but the CPU only.
    pub fn cpu_only() -> Self {
        Self {
            cpu_only: true,
            ..Self::default()
        }
    }

    /// A worker count as people write it.
    ///
    /// # Errors
    /// When it is zero, negative or absurdly large.
    pub fn parse_workers(value: i64) -> Result<NonZeroU32, RegistryError> {
        let positive = u32::try_from(value).ok().and_then(NonZeroU32::new);
        positive.ok_or_else(|| RegistryError::BadOption {
            option: "workers",
            value: value.to_string(),
            wanted: "a pipeline needs at least one worker",
        })
    }

    /// Is this backend to be loaded? If not, the reason people see.
    pub(crate) fn excludes(&self, id: BackendId) -> Option<&'static str> {
        if self.cpu_only && id != BackendId::CPU {
            return Some("switched off: CPU only");
        }
        let wanted = self.backends.as_ref().is_none_or(|all| all.contains(&id));
        (!wanted).then_some("switched off: not among the backends asked for")
    }

    pub(crate) fn threads(&self) -> NonZeroU32 {
        self.cpu_threads.unwrap_or(self.workers)
    }
}
