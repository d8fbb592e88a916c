//! The other end: a pipeline on one device, in a process of its own.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warploom_core::{BackendId, Registry};
use warploom_fleet::worker::Batches;
use warploom_fleet::{Assigned, Load, Refusal, Trouble, Work};
use warploom_io::records::Record;
use warploom_sched::{RunError, StageError};

use crate::agenda::Agenda;
use crate::course::Task;
use crate::error::RunFailure;
use crate::gathering;
use crate::journal::Line;
use crate::outcome::Outcome;
use crate::station::{Ended, Halt, Orders, Pulse, Station};

/// What a worker says of a record that is done.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) files: Vec<PathBuf>,
    pub(super) line: Option<Line>,
}

/// How long the memory of workers that died is waited for.
const ROOM_LIMIT: Duration = Duration::from_secs(20);

/// A pipeline on one device, in a process of its own.
pub(super) struct PipelineWork {
    station: Arc<Station>,
}

impl Work for PipelineWork {
    fn init(assigned: &Assigned) -> Result<Self, Refusal> {
        let failed = |error: &dyn std::fmt::Display| Refusal::Failed(error.to_string());
        let mut orders: Orders = serde_json::from_slice(&assigned.setup).map_err(|e| failed(&e))?;
        let own = gathering::file_name(assigned.slot);
        orders.record = orders.record.map(|folder| folder.join(own));
        let registry = Registry::linked();
        let mut options = warploom_core::Options::default();
        // Nothing but the device's own driver is touched, and the processor, whose memory all use.
        let backend = assigned.device.split(':').next().unwrap_or("cpu");
        let backend: BackendId = backend.parse().map_err(|e| failed(&e))?;
        options.backends = Some(vec![BackendId::CPU, backend]);
        // Its coordinator has seen the device answer, and ends whoever takes too long to start.
        options.probe_deadline = Duration::from_mins(1);
        let status = registry.initialize(&options).map_err(|e| failed(&e))?;
        let face = assigned.find(status.survey.devices.iter().flat_map(|card| &card.faces))?;
        tracing::info!(device = assigned.device, seen = %face, "its device is here");
        let station = Station::open(orders, registry, &face.to_string(), assigned.ceiling);
        let station = station.map_err(|e| failed(&e))?;
        let [wanted, least] = station.needs();
        assigned.wait_for_room(wanted, least, ROOM_LIMIT, || station.free())?;
        Ok(Self {
            station: Arc::new(station),
        })
    }

    fn probe(&mut self) -> Result<(), Refusal> {
        let probed = self.station.probe();
        probed.map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// The stages stay at work from batch to batch: the next one is read while this one is computed and the
    /// one before is written.
    fn stream(&mut self, batches: Batches) -> Result<(), Trouble> {
        let shift = Arc::new(Shift::default());
        let (station, own) = (Arc::clone(&self.station), Arc::clone(&shift));
        let taker = std::thread::Builder::new().name("batches".into());
        let taker = taker.spawn(move || {
            for load in batches {
                own.take(&station, load);
            }
            own.close();
        });
        taker.map_err(|error| Trouble::Failed(error.to_string()))?;
        while let Some(agenda) = shift.begin(&self.station) {
            match self.station.work(&agenda, &*shift) {
                Ok(()) => {}
                Err(Halt::Smaller) => shift.again(),
                Err(Halt::Failed(failure)) => shift.fail(self.trouble(*failure))?,
            }
        }
        Ok(())
    }
}

impl PipelineWork {
    /// What goes wrong with stages that cannot be made smaller.
    fn trouble(&self, failure: RunFailure) -> Trouble {
        match (trouble(failure), self.station.fixed_size()) {
            (Trouble::OutOfMemory { .. }, Some(size)) => Trouble::FixedSize { size },
            (trouble, _) => trouble,
        }
    }
}

fn trouble(failure: RunFailure) -> Trouble {
    match failure {
        RunFailure::Device(error) => error.into(),
        RunFailure::Broken(RunError::Start { error }) => (*error).into(),
        RunFailure::Broken(RunError::Stage { error, .. }) => match *error {
            StageError::Device(error) => error.into(),
            other => Trouble::Failed(other.to_string()),
        },
        other => Trouble::Failed(other.to_string()),
    }
}

/// A batch that is under way.
struct Ticket {
    /// What there is to do, each until it has ended.
    open: Mutex<Vec<Option<Task>>>,
    load: Mutex<Option<Load>>,
}

impl Ticket {
    /// What is left of it.
    fn tasks(&self) -> Vec<Task> {
        lock(&self.open).iter().flatten().cloned().collect()
    }

    /// A record has ended; true if it was the last.
    fn ended(&self, (place, outcome, line): Ended) -> bool {
        let mut open = lock(&self.open);
        let (mut load, task) = (lock(&self.load), open.get_mut(place));
        if let (Some(load), Some(true)) = (&*load, task.map(|task| task.take().is_some())) {
            match outcome {
                Outcome::Ok { files } => {
                    let told = serde_json::to_vec(&Told { files, line });
                    load.done(place, &told.unwrap_or_default());
                }
                Outcome::Failed(failure) => {
                    let text = serde_json::to_string(&failure).unwrap_or_default();
                    load.failed(place, text);
                }
                Outcome::Skipped | Outcome::NotStarted => {}
            }
        }
        let is_over = open.iter().all(Option::is_none);
        if is_over && let Some(load) = load.take() {
            // Only a lost device is given back.
            let _ = load.over(Ok(()));
        }
        is_over
    }

    /// Says something of it, as long as it is under way.
    fn say(&self, what: impl FnOnce(&Load)) {
        if let Some(load) = &*lock(&self.load) {
            what(load);
        }
    }

    fn fail(&self, trouble: Trouble) -> Result<(), Trouble> {
        match lock(&self.load).take() {
            Some(load) => load.over(Err(trouble)),
            None => Ok(()),
        }
    }
}

/// Everything that is under way.
#[derive(Default)]
struct Shift {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    tickets: VecDeque<Arc<Ticket>>,
    /// Where the stages that are at work find what to do.
    agenda: Option<Arc<Agenda>>,
    is_closed: bool,
}

impl Shift {
    /// Takes a batch on.
    fn take(self: &Arc<Self>, station: &Station, load: Load) {
        let records: Result<Vec<Record>, _> = load
            .records()
            .map(|(_, body)| serde_json::from_slice(body))
            .collect();
        let records = records.map_err(|error| Trouble::Failed(error.to_string()));
        let tasks = records.and_then(|records| station.tasks(&records).map_err(trouble));
        let tasks = match tasks {
            Ok(tasks) => tasks,
            Err(trouble) => {
                // No device has been touched, so none is lost.
                let _ = load.over(Err(trouble));
                return;
            }
        };
        let ticket = Arc::new(Ticket {
            open: Mutex::new(tasks.into_iter().map(Some).collect()),
            load: Mutex::new(Some(load)),
        });
        let mut state = lock(&self.state);
        state.tickets.push_back(Arc::clone(&ticket));
        if let Some(agenda) = &state.agenda {
            self.enter(station, agenda, &ticket);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Puts what is left of a batch on an agenda.
    fn enter(self: &Arc<Self>, station: &Station, agenda: &Agenda, ticket: &Arc<Ticket>) {
        let (own, of) = (Arc::clone(self), Arc::clone(ticket));
        let course = station.course(ticket.tasks(), move |ended| {
            if of.ended(ended) {
                lock(&own.state)
                    .tickets
                    .retain(|one| !Arc::ptr_eq(one, &of));
            }
        });
        agenda.add(course);
    }

    /// Waits until there is something to do, and puts all of it on an agenda. Nothing when there will be
    /// nothing.
    fn begin(self: &Arc<Self>, station: &Station) -> Option<Arc<Agenda>> {
        let mut state = lock(&self.state);
        while state.tickets.is_empty() && !state.is_closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.tickets.is_empty() {
            return None;
        }
        let agenda = station.agenda();
        for ticket in &state.tickets {
            self.enter(station, &agenda, ticket);
        }
        if state.is_closed {
            agenda.close(false);
        }
        state.agenda = Some(Arc::clone(&agenda));
        Some(agenda)
    }

    /// The stages are gone, and everything that is left begins again.
    fn again(&self) {
        lock(&self.state).agenda = None;
    }

    /// The stages have failed, and are gone. Everything before the failure was finished, so that it is about
    /// the first batch that was not; those behind it begin again.
    fn fail(&self, trouble: Trouble) -> Result<(), Trouble> {
        let mut state = lock(&self.state);
        state.agenda = None;
        let first = state.tickets.pop_front();
        drop(state);
        match first {
            Some(ticket) => ticket.fail(trouble),
            // There is nobody to blame; a device that is lost is lost all the same.
            None if matches!(trouble, Trouble::DeviceLost(_)) => Err(trouble),
            None => Ok(()),
        }
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        if let Some(agenda) = &state.agenda {
            agenda.close(false);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Shift {
    /// Says something of the batch that was taken first.
    fn say(&self, what: impl FnOnce(&Load)) {
        let first = lock(&self.state).tickets.front().cloned();
        if let Some(first) = first {
            first.say(what);
        }
    }
}

impl Pulse for Shift {
    fn beats(&self) {
        self.say(Load::advance);
    }

    fn settles(&self, records: u32) {
        self.say(|load| load.settled(records));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
