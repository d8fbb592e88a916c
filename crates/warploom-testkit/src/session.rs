//! The backend under test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use warploom_core::{BackendId, CheckedDevice, DeviceId, DeviceInfo, GpuBackend};

use crate::case::Verdict;
use crate::slow::Pace;
use crate::watchdog::{Trouble, guarded};

/// A backend that was probed once, and what that first probe was like.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) backend: Arc<dyn GpuBackend>,
    /// The name it registered under, where there was a registration.
    pub(crate) registered: Option<BackendId>,
    pub(crate) infos: Vec<DeviceInfo>,
    /// How long the first probe took; it may have loaded the driver.
    pub(crate) first_probe: Duration,
    /// Threads the first probe left behind, where the system can tell.
    pub(crate) first_threads: Option<usize>,
    /// How much work takes a known time, per device.
    pub(crate) paces: Mutex<BTreeMap<DeviceId, Pace>>,
}

impl Session {
    /// Probes `backend`; the text says why there is nothing to test.
    pub(crate) fn begin(
        backend: Arc<dyn GpuBackend>,
        registered: Option<BackendId>,
        limit: Duration,
    ) -> Result<Self, NoSession> {
        let probed = {
            let backend = Arc::clone(&backend);
            guarded("first probe", limit, move || {
                let before = threads();
                let begun = Instant::now();
                let infos = backend.probe();
                (infos, begun.elapsed(), left_behind(before.as_ref()))
            })
        };
        let (infos, first_probe, left) = probed.map_err(NoSession::Misbehaved)?;
        let infos = infos.map_err(|error| NoSession::Nothing(error.to_string()))?;
        if infos.is_empty() {
            return Err(NoSession::Nothing(format!(
                "{} finds no device",
                backend.id()
            )));
        }
        Ok(Self {
            backend,
            registered,
            infos,
            first_probe,
            first_threads: left.map(|left| left.len()),
            paces: Mutex::default(),
        })
    }
}

/// Why a backend cannot be tested here.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// There is nothing to test, which is normal.
    Nothing(String),
    /// The probe panicked or hung, which is never right.
    Misbehaved(Trouble),
}

/// What a backend's case works with.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) session: Arc<Session>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub(crate) fn new(session: Arc<Session>, notes: Arc<Mutex<Vec<String>>>) -> Self {
        Self { session, notes }
    }

    pub(crate) fn backend(&self) -> &dyn GpuBackend {
        &*self.session.backend
    }

    pub(crate) fn open(&self, ordinal: u32) -> Verdict<CheckedDevice> {
        Ok(CheckedDevice::new(self.session.backend.open(ordinal)?))
    }

    /// Says something in the report that is not a failure.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(text.into());
    }
}

/// The ids of this process's threads; `None` where the system does not list them.
pub(crate) fn threads() -> Option<BTreeSet<u64>> {
    let entries = std::fs::read_dir("/proc/self/task").ok()?;
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(ids.collect())
}

/// Threads that were not there `before` and do not go away within a moment.
pub(crate) fn left_behind(before: Option<&BTreeSet<u64>>) -> Option<BTreeSet<u64>> {
    let before = before?;
    let begun = Instant::now();
    loop {
        let left: BTreeSet<u64> = threads()?.difference(before).copied().collect();
        if left.is_empty() || begun.elapsed() > Duration::from_millis(300) {
            return Some(left);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
