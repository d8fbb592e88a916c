//! How a run on several devices stands, from the journal of its fleet.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use warploom_fleet::journal::{self, BatchId, Entry, Event, Sight};
use warploom_fleet::{Incident, rundir};

use crate::folder::{About, AboutDevice, Ended};
use crate::status::{Ends, RunState, RunStatus, StatusError};
use crate::tidings;

const JOURNAL: &str = "journal";

fn damaged(run: &Path, error: &dyn std::fmt::Display) -> StatusError {
    StatusError::Damaged {
        path: run.to_owned(),
        what: error.to_string(),
    }
}

fn sight(run: &Path) -> Result<Sight, StatusError> {
    let seen = journal::look(&run.join(JOURNAL));
    seen.map_err(|error| damaged(run, &error))
}

/// What the journal of a run says. One that is not there yet says nothing.
pub(crate) fn crew(run: &Path, about: &About, status: &mut RunStatus) -> Result<Ends, StatusError> {
    if !run.join(JOURNAL).exists() {
        return Ok(Ends::new());
    }
    let seen = sight(run)?;
    status.damage = seen.damaged_at.map(damage);
    Ok(Reader::new(run, about).read(&seen.entries, status))
}

fn damage(at: u64) -> String {
    format!("the journal is damaged from byte {at} on")
}

/// A fleet's own folder, which somebody's program has begun: records have numbers there, not names.
pub(crate) fn bare(run: &Path, now: u64) -> Result<RunStatus, StatusError> {
    let identity = rundir::stored(run).map_err(|error| damaged(run, &error))?;
    let identity = identity.ok_or_else(|| damaged(run, &"it does not say what it is of"))?;
    let seen = sight(run)?;
    let mut about = About {
        plan: identity.plan,
        open: (0..identity.records)
            .map(|number| format!("record {number}"))
            .collect(),
        started: seen.entries.first().map_or(0, |entry| entry.at),
        ..About::default()
    };
    let (mut ended, mut broken) = (None, None);
    for entry in &seen.entries {
        match &entry.event {
            Event::Began { .. } => (ended, broken) = (None, None),
            Event::Broken { why } => broken = Some(why.clone()),
            Event::Signed { holder, slots } => {
                (about.pid, about.host) = (holder.pid, holder.host.clone());
                about.devices = devices(slots);
            }
            Event::Ended { complete } => {
                ended = Some(Ended {
                    at: entry.at,
                    seconds: entry.at.saturating_sub(about.started) as f64 / 1e3,
                    interrupted: !complete,
                    error: broken.clone(),
                    ..Ended::default()
                });
            }
            _ => {}
        }
    }
    let mut status = RunStatus::of(run, &about, ended.as_ref(), seen.is_held);
    status.damage = seen.damaged_at.map(damage);
    let ends = Reader::new(run, &about).read(&seen.entries, &mut status);
    let incidents = std::mem::take(&mut status.incidents);
    status.finish(&about, ended.as_ref(), &ends, now);
    status.incidents = incidents;
    Ok(status)
}

fn devices(slots: &[String]) -> Vec<AboutDevice> {
    let mut found: Vec<AboutDevice> = Vec::new();
    for slot in slots {
        match found.iter_mut().find(|device| device.id == *slot) {
            Some(device) => device.workers += 1,
            None => found.push(AboutDevice {
                label: slot.clone(),
                name: String::new(),
                id: slot.clone(),
                workers: 1,
            }),
        }
    }
    found
}

/// Reads a journal from its beginning to its end.
struct Reader<'a> {
    about: &'a About,
    logs: std::path::PathBuf,
    labels: BTreeMap<String, String>,
    /// The device of each slot.
    places: Vec<usize>,
    /// Where each record was handed to last.
    at: HashMap<u64, usize>,
    /// Batches at workers: their device, and the records without an outcome.
    open: HashMap<BatchId, (usize, Vec<u64>)>,
    ends: Ends,
}

impl<'a> Reader<'a> {
    fn new(run: &Path, about: &'a About) -> Self {
        let named = about.devices.iter();
        let labels = named.map(|device| (device.id.clone(), device.label.clone()));
        let mut reader = Self {
            about,
            logs: run.join("logs"),
            labels: labels.collect(),
            places: Vec::new(),
            at: HashMap::new(),
            open: HashMap::new(),
            ends: Vec::new(),
        };
        // Fleets count their slots device by device.
        for (at, device) in about.devices.iter().enumerate() {
            let workers = device.workers as usize;
            reader.places.extend(std::iter::repeat_n(at, workers));
        }
        reader
    }

    fn read(mut self, entries: &[Entry], status: &mut RunStatus) -> Ends {
        for entry in entries {
            self.take(entry, status);
        }
        if status.state == RunState::Running {
            for (device, records) in self.open.values() {
                if let Some(device) = status.devices.get_mut(*device) {
                    device.under_way += records.len() as u64;
                }
            }
        }
        self.ends
    }

    fn take(&mut self, entry: &Entry, status: &mut RunStatus) {
        match &entry.event {
            Event::Began { .. } => {
                self.open.clear();
                for device in &mut status.devices {
                    device.state.clear();
                }
            }
            Event::Attempt {
                batch,
                slot,
                records,
            } => {
                let Some(&place) = self.places.get(*slot as usize) else {
                    return;
                };
                if let Some(device) = status.devices.get_mut(place) {
                    device.batch = Some(records.len());
                }
                self.at.extend(records.iter().map(|record| (record, place)));
                self.open.insert(*batch, (place, records.iter().collect()));
            }
            Event::Ok { record, .. } => {
                status.tally.ok += 1;
                if let Some(device) = self.end(entry.at, *record, status) {
                    device.ok += 1;
                }
            }
            Event::Failed {
                record,
                attempts,
                reason,
            } => {
                if let Some(device) = self.end(entry.at, *record, status) {
                    device.failed += 1;
                }
                let place = usize::try_from(*record).unwrap_or(usize::MAX);
                let name = self.about.open.get(place).map_or("?", String::as_str);
                let failure = tidings::failure(reason, *attempts, Some(&self.logs));
                status.fail(name, failure);
            }
            Event::Charged { batch, cause, .. } => {
                let Some((place, _)) = self.open.remove(batch) else {
                    return;
                };
                let Some(device) = status.devices.get_mut(place) else {
                    return;
                };
                device.griefs += 1;
                let grief = Incident::Grief {
                    device: device.label.clone(),
                    how: cause.to_string(),
                };
                note(&grief, status);
            }
            Event::Returned { batch, records } => {
                if let Some((_, held)) = self.open.get_mut(batch) {
                    let back: Vec<u64> = records.iter().collect();
                    held.retain(|record| !back.contains(record));
                }
            }
            Event::Quarantined { device, why } => {
                self.stand(device, "quarantined", status);
                let (device, why) = (self.label(device), why.clone());
                note(&Incident::Quarantined { device, why }, status);
            }
            Event::GivenUp { device, why } => {
                self.stand(device, "given-up", status);
                let (device, why) = (self.label(device), why.clone());
                note(&Incident::GivenUp { device, why }, status);
            }
            Event::Readmitted { device } => {
                self.stand(device, "", status);
                let device = self.label(device);
                note(&Incident::Readmitted { device }, status);
            }
            Event::Ceiling { model, batch, .. } => {
                let (model, batch) = (model.clone(), *batch);
                note(&Incident::Ceiling { model, batch }, status);
            }
            _ => {}
        }
    }

    /// A record has ended: where it was.
    fn end<'s>(
        &mut self,
        at: u64,
        record: u64,
        status: &'s mut RunStatus,
    ) -> Option<&'s mut crate::status::DeviceStatus> {
        let place = self.at.get(&record).copied();
        self.ends.push((at, place));
        for (of, records) in self.open.values_mut() {
            if Some(*of) == place {
                records.retain(|open| *open != record);
            }
        }
        self.open.retain(|_, (_, records)| !records.is_empty());
        status.devices.get_mut(place?)
    }

    fn stand(&self, device: &str, state: &str, status: &mut RunStatus) {
        let mut known = self.about.devices.iter();
        let place = known.position(|known| known.id == device);
        if let Some(device) = place.and_then(|place| status.devices.get_mut(place)) {
            device.quarantines += u64::from(state == "quarantined");
            state.clone_into(&mut device.state);
        }
    }

    /// What people call a device of the journal.
    fn label(&self, device: &String) -> String {
        self.labels.get(device).unwrap_or(device).clone()
    }
}

fn note(incident: &Incident, status: &mut RunStatus) {
    status.incidents.push(tidings::incident(incident));
}
