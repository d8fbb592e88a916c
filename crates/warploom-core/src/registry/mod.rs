//! The backends of this program, and the devices they find.
//!
//! A registry is initialised once. Until then it knows names only; afterwards everybody gets the
//! same immutable [`Status`]. Detection runs outside the lock, so asking for the status never
//! waits for a driver. There is no hidden global: whoever needs a registry is given one.

mod bindings;
mod capacity;
mod detect;
mod entry;
mod error;
mod lending;
mod options;
mod status;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::backend::{BackendId, GpuBackend};
use crate::checked::CheckedDevice;
use crate::device::{Device, DeviceId};
use crate::lease::{Lease, LeaseDesk, LeaseRequest};
use crate::memory::{self, MemoryKind};
use crate::name::nearest;
use crate::survey::{BackendState, Survey};

pub use bindings::Bindings;
pub use capacity::{Capacity, CapacityPolicy, MemoryNeed};
use detect::Source;
pub use entry::{BackendEntry, Load, LoadError};
pub use error::RegistryError;
pub use lending::LeaseScope;
use lending::Lending;
pub use options::Options;
pub use status::{Placement, Status};

/// The backends of this program, and the devices they find.
#[derive(Debug, Default)]
pub struct Registry {
    sources: Vec<Arc<Source>>,
    state: Mutex<State>,
    changed: Condvar,
    opened: Mutex<BTreeMap<DeviceId, Opened>>,
    lending: Lending,
    notes: Vec<String>,
}

/// The place of one device, locked while it is being opened: one caller opens, others of the same
/// device wait for it, and a driver that hangs holds up nobody else.
type Opened = Arc<Mutex<Option<Weak<dyn Device>>>>;

#[derive(Debug, Default)]
struct State {
    status: Option<Arc<Status>>,
    leases: LeaseScope,
    detecting: bool,
}

impl Registry {
    /// A registry without backends; [`add`](Self::add) them.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Every backend that is linked into this program.
    pub fn linked() -> Self {
        Self::from_entries(inventory::iter::<BackendEntry>.into_iter().copied())
    }

    /// The explicit road, for a `staticlib` and for tests: exactly these backends.
    pub fn from_entries(entries: impl IntoIterator<Item = BackendEntry>) -> Self {
        let mut registry = Self::empty();
        for entry in entries {
            if registry.backends().contains(&entry.id()) {
                // Which of two comes first is the linker's whim, so it must not go unnoticed.
                registry.notes.push(format!(
                    "two backends are called `{}`; only one of them is used",
                    entry.id()
                ));
                continue;
            }
            registry.insert(Source::from_entry(entry));
        }
        registry
    }

    /// Adds a backend that is loaded already. It replaces one of the same name, so that a program
    /// can put its own in front of a linked one.
    pub fn add(&mut self, backend: Arc<dyn GpuBackend>) {
        self.insert(Source::ready(backend));
    }

    fn insert(&mut self, source: Source) {
        self.sources.retain(|other| other.id() != source.id());
        self.sources.push(Arc::new(source));
        // The order in which linkers list entries is unspecified; names are not.
        self.sources.sort_by_key(|source| source.id());
    }

    /// The names of all backends, in order.
    pub fn backends(&self) -> Vec<BackendId> {
        self.sources.iter().map(|source| source.id()).collect()
    }

    /// Looks for devices, once.
    ///
    /// # Errors
    /// [`RegistryError::AlreadyInitialized`] the second time, and the first state stays. Any other
    /// failure leaves the registry uninitialised, and it can be tried again.
    pub fn initialize(&self, options: &Options) -> Result<Arc<Status>, RegistryError> {
        let state = self.settled();
        if let Some(status) = &state.status {
            return Err(RegistryError::AlreadyInitialized {
                devices: status.survey.devices.len(),
            });
        }
        self.detect(state, options)
    }

    /// Initialises the registry if nobody has; the options count only then. Any number of callers
    /// may do so at once: one detects, all get its result.
    ///
    /// # Errors
    /// As [`initialize`](Self::initialize), but never `AlreadyInitialized`.
    pub fn setup(&self, options: &Options) -> Result<Arc<Status>, RegistryError> {
        let state = self.settled();
        if let Some(status) = &state.status {
            return Ok(Arc::clone(status));
        }
        self.detect(state, options)
    }

    /// Looks again, whatever was known. Holders of the old snapshot keep it.
    ///
    /// # Errors
    /// When the options make no sense; the old status stays.
    pub fn rescan(&self, options: &Options) -> Result<Arc<Status>, RegistryError> {
        let state = self.settled();
        self.detect(state, options)
    }

    /// What was found. Never waits, not even while a detection runs.
    ///
    /// # Errors
    /// [`RegistryError::NotInitialized`] before initialisation.
    pub fn status(&self) -> Result<Arc<Status>, RegistryError> {
        let state = self.lock();
        match &state.status {
            Some(status) => Ok(Arc::clone(status)),
            None => Err(RegistryError::NotInitialized {
                detecting: state.detecting,
            }),
        }
    }

    /// Has it been initialised? Finding no device counts.
    pub fn is_initialized(&self) -> bool {
        self.lock().status.is_some()
    }

    /// Opens a device by one backend's name for it. While somebody holds it open, everybody gets
    /// the same one: a context costs hundreds of megabytes on some cards, and buffers of two
    /// contexts do not mix.
    ///
    /// # Errors
    /// When the backend is not linked, switched off or does not load, when it reported no such
    /// device, or when the device does not open.
    pub fn open(&self, id: DeviceId) -> Result<CheckedDevice, RegistryError> {
        let source = self.source(id.backend)?;
        if let Ok(status) = self.status() {
            status.reported(id)?;
        }
        let backend = source.load().map_err(|error| {
            let state = match error {
                LoadError::Absent { .. } => BackendState::Absent,
                LoadError::Broken { .. } => BackendState::Broken,
            };
            RegistryError::Unavailable {
                backend: id.backend,
                state,
                reason: error.to_string(),
            }
        })?;
        let place = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(opened.entry(id).or_default())
        };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = place.as_ref().and_then(Weak::upgrade) {
            return Ok(CheckedDevice::new(device));
        }
        let device = backend.open(id.ordinal)?;
        *place = Some(Arc::downgrade(&device));
        Ok(CheckedDevice::new(device))
    }

    /// Waits for the right to use slots and bytes of a card; dropping the lease gives it back. The
    /// request names cards (`gpu0`) or faces (`cuda:0`), or none for any.
    ///
    /// # Errors
    /// When the registry is not initialised, the request can never be granted, or the wait ends
    /// with its deadline or is called off.
    pub fn lease(&self, request: &LeaseRequest) -> Result<Lease, RegistryError> {
        // One look at both, so that a rescan in between cannot give a name another card.
        let (status, scope) = {
            let state = self.lock();
            let status = state.status.as_ref().map(Arc::clone);
            (status, state.leases.clone())
        };
        let Some(status) = status else {
            return Err(self
                .status()
                .err()
                .unwrap_or(RegistryError::NotInitialized { detecting: false }));
        };
        let names = request.devices().iter().map(|name| {
            // An unknown name is left to the desk, which lists the known ones.
            let found = status.survey.find(name);
            found.map_or_else(|| name.clone(), |device| device.name.clone())
        });
        let names: Vec<String> = names.collect();
        let desk = self.lending.desk(&scope, &status)?;
        Ok(desk.lease(&request.clone().on(names))?)
    }

    /// The desk behind [`lease`](Self::lease): who holds and who waits, and `try_lease`.
    ///
    /// # Errors
    /// When the registry is not initialised, or the ledger's directory cannot be used.
    pub fn desk(&self) -> Result<LeaseDesk, RegistryError> {
        let status = self.status()?;
        let scope = self.lock().leases.clone();
        Ok(self.lending.desk(&scope, &status)?)
    }

    /// The memory kind a user names, by its own name or by one known from elsewhere (`cupy`).
    ///
    /// # Errors
    /// When nobody knows the name, or its backend is not part of this program.
    pub fn memory_kind(&self, name: &str) -> Result<MemoryKind, RegistryError> {
        let own = self.sources.iter().filter_map(|source| source.loaded());
        let own: Vec<MemoryKind> = own.flat_map(|b| b.memory_kinds().to_vec()).collect();
        let known = || own.iter().chain(memory::WELL_KNOWN);
        let answers = |kind: &&MemoryKind| kind.name() == name || kind.aliases().contains(&name);
        if let Some(kind) = known().find(answers) {
            if kind.needs_gpu() {
                self.source(kind.backend())?;
            }
            return Ok(*kind);
        }
        let names =
            known().flat_map(|k| std::iter::once(k.name()).chain(k.aliases().iter().copied()));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        Err(RegistryError::UnknownMemory {
            asked: name.to_owned(),
            near: nearest(name, names.iter().copied()).map(str::to_owned),
            known: names.into_iter().map(str::to_owned).collect(),
        })
    }

    fn source(&self, id: BackendId) -> Result<&Arc<Source>, RegistryError> {
        let found = self.sources.iter().find(|source| source.id() == id);
        found.ok_or_else(|| self.not_linked(id))
    }

    fn not_linked(&self, id: BackendId) -> RegistryError {
        let linked = self.backends();
        RegistryError::NotLinked {
            backend: id.to_string(),
            near: nearest(id.as_str(), linked.iter().map(BackendId::as_str)).map(str::to_owned),
            linked,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No panic can happen under this lock that leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state once no detection is under way.
    fn settled(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.detecting {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn detect(
        &self,
        mut state: MutexGuard<'_, State>,
        options: &Options,
    ) -> Result<Arc<Status>, RegistryError> {
        state.detecting = true;
        let version = state.status.as_ref().map_or(1, |status| status.version + 1);
        drop(state);
        // Ends the detection on every way out, a panic included: others are waiting for it.
        let mut turn = Turn {
            registry: self,
            found: None,
        };
        let status = Arc::new(self.look(options, version)?);
        for report in &status.survey.backends {
            let (state, took) = (report.state, report.took);
            let reason = report.reason.as_deref().unwrap_or("it answered");
            tracing::debug!(backend = %report.id, ?state, ?took, "{reason}");
        }
        for device in &status.survey.devices {
            let faces: Vec<String> = device.faces.iter().map(|f| f.id.to_string()).collect();
            tracing::debug!(device = device.name, label = device.label, ?faces, "found");
        }
        for warning in status.warnings() {
            tracing::warn!("{warning}");
        }
        turn.found = Some((Arc::clone(&status), options.leases.clone()));
        Ok(status)
    }

    fn look(&self, options: &Options, version: u64) -> Result<Status, RegistryError> {
        if self.sources.is_empty() {
            return Err(RegistryError::NoBackends);
        }
        let named = options.backends.iter().flatten().chain(&options.require);
        for id in named {
            self.source(*id)?;
        }
        let (excluded, asked): (Vec<_>, Vec<_>) = self
            .sources
            .iter()
            .map(Arc::clone)
            .partition(|source| options.excludes(source.id()).is_some());
        let mut reports = Vec::new();
        for source in excluded {
            let reason = options.excludes(source.id()).map(str::to_owned);
            reports.push(detect::report(
                source.id(),
                BackendState::Absent,
                reason,
                Duration::ZERO,
            ));
        }
        let mut devices = Vec::new();
        for answer in detect::ask(&asked, options.probe_deadline) {
            reports.push(answer.report);
            devices.extend(answer.devices);
        }
        let lacking = |report: &&crate::survey::BackendReport| {
            options.require.contains(&report.id) && report.state != BackendState::Loaded
        };
        if let Some(report) = reports.iter().find(lacking) {
            return Err(RegistryError::Unavailable {
                backend: report.id,
                state: report.state,
                reason: report.reason.clone().unwrap_or_default(),
            });
        }
        let mut survey = Survey::unite(reports, devices);
        survey.notes.extend(self.notes.iter().cloned());
        let capacity = Capacity::of(&survey, options.capacity, options.threads());
        Ok(Status {
            version,
            survey,
            capacity,
        })
    }
}

struct Turn<'r> {
    registry: &'r Registry,
    found: Option<(Arc<Status>, LeaseScope)>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.detecting = false;
        if let Some((status, leases)) = self.found.take() {
            state.status = Some(status);
            state.leases = leases;
        }
        self.registry.changed.notify_all();
    }
}
