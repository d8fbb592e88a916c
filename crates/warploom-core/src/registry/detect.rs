//! Asking all backends at once, without trusting any of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::{BackendId, GpuBackend};
use crate::device::DeviceInfo;
use crate::registry::entry::{BackendEntry, LoadError};
use crate::survey::{BackendReport, BackendState};

/// A backend of this program: how to load it, and what came of it.
#[derive(Debug)]
pub(super) struct Source {
    id: BackendId,
    entry: Option<BackendEntry>,
    // Only success is kept, so that a driver installed later is found by the next try.
    loaded: Mutex<Option<Arc<dyn GpuBackend>>>,
}

impl Source {
    pub(super) fn from_entry(entry: BackendEntry) -> Self {
        Self {
            id: entry.id(),
            entry: Some(entry),
            loaded: Mutex::new(None),
        }
    }

    pub(super) fn ready(backend: Arc<dyn GpuBackend>) -> Self {
        Self {
            id: backend.id(),
            entry: None,
            loaded: Mutex::new(Some(backend)),
        }
    }

    pub(super) fn id(&self) -> BackendId {
        self.id
    }

    /// The backend if it was loaded before; touches no driver.
    pub(super) fn loaded(&self) -> Option<Arc<dyn GpuBackend>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.as_ref().map(Arc::clone)
    }

    pub(super) fn load(&self) -> Result<Arc<dyn GpuBackend>, LoadError> {
        if let Some(backend) = self.loaded() {
            return Ok(backend);
        }
        let Some(entry) = self.entry else {
            return Err(LoadError::broken("it was added without a way to load it"));
        };
        // Loaded outside the lock: a driver that hangs must not block those who only look.
        let backend: Arc<dyn GpuBackend> = Arc::from(entry.load()?);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(loaded.get_or_insert(backend)))
    }
}

/// One backend's answer.
pub(super) struct Answer {
    pub(super) report: BackendReport,
    pub(super) devices: Vec<DeviceInfo>,
}

type Reply = (usize, Answer);

/// Loads and probes all `sources`, each on its own thread, waiting at most `deadline`. A backend
/// that panics or does not answer is reported as broken; its thread is left to itself, which is
/// all that can be done about a driver that hangs.
pub(super) fn ask(sources: &[Arc<Source>], deadline: Duration) -> Vec<Answer> {
    let started = Instant::now();
    let (sender, replies) = mpsc::channel::<Reply>();
    for (at, source) in sources.iter().enumerate() {
        let (thread_sender, task) = (sender.clone(), Arc::clone(source));
        let spawned = std::thread::Builder::new()
            .name(format!("probe-{}", source.id()))
            .spawn(move || {
                // A closed channel means that nobody waits for the answer any more.
                let _ = thread_sender.send((at, answer(&task)));
            });
        if spawned.is_err() {
            tracing::debug!(backend = %source.id(), "no thread to probe on; probing in place");
            let _ = sender.send((at, answer(source)));
        }
    }
    drop(sender);
    let mut answers: Vec<Option<Answer>> = sources.iter().map(|_| None).collect();
    while answers.iter().any(Option::is_none) {
        let left = deadline.saturating_sub(started.elapsed());
        match replies.recv_timeout(left) {
            Ok((at, answer)) => answers[at] = Some(answer),
            Err(_) => break,
        }
    }
    let silent = |source: &Arc<Source>| {
        let reason = format!("it did not answer within {} ms", deadline.as_millis());
        broken(source.id(), reason, started.elapsed())
    };
    answers
        .into_iter()
        .zip(sources)
        .map(|(answer, source)| answer.unwrap_or_else(|| silent(source)))
        .collect()
}

fn answer(source: &Source) -> Answer {
    let started = Instant::now();
    let (id, took) = (source.id(), || started.elapsed());
    let asked = catch_unwind(AssertUnwindSafe(|| {
        let backend = source.load()?;
        Ok(backend.probe())
    }));
    match asked {
        Ok(Ok(Ok(devices))) => verified(id, devices, took()),
        Ok(Ok(Err(error))) => broken(id, error.to_string(), took()),
        Ok(Err(LoadError::Absent { reason })) => Answer {
            report: report(id, BackendState::Absent, Some(reason), took()),
            devices: Vec::new(),
        },
        Ok(Err(LoadError::Broken { reason })) => broken(id, reason, took()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let reason = format!("it panicked: {}", text.unwrap_or("no message"));
            broken(id, reason, took())
        }
    }
}

/// A stranger's backend may answer nonsense; nonsense must not reach the survey.
fn verified(id: BackendId, devices: Vec<DeviceInfo>, took: Duration) -> Answer {
    let foreign = devices.iter().find(|device| device.id.backend != id);
    let mut ids: Vec<_> = devices.iter().map(|device| device.id).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
    let wrong = match (foreign, twice) {
        (Some(device), _) => Some(format!("it lists {}, which is not its own", device.id)),
        (None, Some(pair)) => Some(format!("it lists {} twice", pair[0])),
        (None, None) => None,
    };
    match wrong {
        Some(reason) => broken(id, reason, took),
        None => Answer {
            report: report(id, BackendState::Loaded, None, took),
            devices,
        },
    }
}

fn broken(id: BackendId, reason: String, took: Duration) -> Answer {
    Answer {
        report: report(id, BackendState::Broken, Some(reason), took),
        devices: Vec::new(),
    }
}

pub(super) fn report(
    id: BackendId,
    state: BackendState,
    reason: Option<String>,
    took: Duration,
) -> BackendReport {
    BackendReport {
        id,
        state,
        reason,
        took,
    }
}
