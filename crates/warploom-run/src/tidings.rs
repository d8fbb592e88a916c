//! What a fleet tells, in the words of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use warploom_fleet::{Incident, Reason, SlotState, Snapshot};

use crate::course::Listener;
use crate::outcome::{DeviceNews, Failure, News};

/// Why a record failed on a fleet, at the last of so many attempts; `logs` is where its workers wrote.
pub(crate) fn failure(reason: &Reason, attempts: u32, logs: Option<&Path>) -> Failure {
    let log = match reason {
        Reason::Work { text } => {
            let own = serde_json::from_str(text).unwrap_or_else(|_| Failure::new(text));
            return Failure { attempts, ..own };
        }
        Reason::Crashed { log, .. }
        | Reason::Hung { log, .. }
        | Reason::Late { log, .. }
        | Reason::DeviceLost { log, .. } => Some(log.trim_end()),
        _ => None,
    };
    let mut failure = Failure::new(reason.to_string());
    failure.attempts = attempts;
    failure.log = log.filter(|log| !log.is_empty()).map(str::to_owned);
    if log.is_some() {
        failure.help = logs.map(|logs| format!("what workers wrote is in {}", logs.display()));
    }
    failure
}

/// An incident in words.
pub(crate) fn incident(incident: &Incident) -> String {
    match incident {
        Incident::Grief { device, how } => {
            format!("a worker on {device} came to grief: {how}")
        }
        Incident::Quarantined { device, why } => {
            format!("{device} got no work for a while: {why}")
        }
        Incident::Readmitted { device } => format!("{device} works again"),
        Incident::GivenUp { device, why } => format!("{device} was given up: {why}"),
        Incident::Undead { pid } => format!("process {pid} was killed and did not die"),
        Incident::Reported { device, text } => {
            format!("the management of {device} reported {text}")
        }
        Incident::Ceiling { model, batch } => {
            format!("{model} has room for {batch} records at once")
        }
    }
}

/// Tells a listener how devices get on.
pub(crate) struct Tidings {
    listener: Listener,
    /// Griefs and quarantines of each device so far.
    troubles: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl Tidings {
    pub(crate) fn new(listener: Listener) -> Self {
        Self {
            listener,
            troubles: Mutex::default(),
        }
    }

    pub(crate) fn hear(&self, snapshot: &Snapshot) {
        for one in &snapshot.incidents {
            (self.listener)(News::Changed(incident(one)));
        }
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        for one in &snapshot.incidents {
            match one {
                Incident::Grief { device, .. } => {
                    troubles.entry(device.clone()).or_default().0 += 1;
                }
                Incident::Quarantined { device, .. } => {
                    troubles.entry(device.clone()).or_default().1 += 1;
                }
                _ => {}
            }
        }
        let news = devices(snapshot, &troubles);
        drop(troubles);
        (self.listener)(News::Crew(news));
    }
}

/// Slots gathered by their device, in the order of the fleet.
fn devices(snapshot: &Snapshot, troubles: &BTreeMap<String, (u64, u64)>) -> Vec<DeviceNews> {
    let mut found: Vec<(&str, SlotState, DeviceNews)> = Vec::new();
    for slot in &snapshot.slots {
        let place = found.iter().position(|(id, ..)| *id == slot.device);
        let place = place.unwrap_or_else(|| {
            let (griefs, quarantines) = troubles.get(&slot.device).copied().unwrap_or_default();
            let news = DeviceNews {
                label: slot.device.clone(),
                failed: snapshot.failed.get(&slot.device).copied().unwrap_or(0),
                griefs,
                quarantines,
                ..DeviceNews::default()
            };
            found.push((&slot.device, slot.state, news));
            found.len() - 1
        });
        let (_, state, news) = &mut found[place];
        if rank(slot.state) < rank(*state) {
            *state = slot.state;
        }
        news.workers += u64::from(slot.running);
        news.done += slot.done;
        news.under_way += slot.under_way;
        news.batch = news.batch.max(slot.batch);
        // A device is as fast as its workers together, as far as they are known.
        news.rate = match (news.rate, slot.rate) {
            (Some(sum), Some(rate)) => Some(sum + rate),
            (sum, rate) => sum.or(rate),
        };
    }
    let named = found.into_iter().map(|(_, state, mut news)| {
        word(state).clone_into(&mut news.state);
        news
    });
    named.collect()
}

/// Of a device's workers the busiest says what the device does.
fn rank(state: SlotState) -> u8 {
    match state {
        SlotState::Working => 0,
        SlotState::Quarantined => 1,
        SlotState::Starting => 2,
        SlotState::Idle => 3,
        SlotState::Ending => 4,
        SlotState::GivenUp => 5,
        SlotState::Done => 6,
    }
}

fn word(state: SlotState) -> &'static str {
    match state {
        SlotState::Starting => "starting",
        SlotState::Working => "working",
        SlotState::Idle => "idle",
        SlotState::Ending => "ending",
        SlotState::Quarantined => "quarantined",
        SlotState::GivenUp => "given-up",
        SlotState::Done => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use warploom_fleet::{Counts, SlotSnapshot};

    fn slot(device: &str, state: SlotState, done: u64, rate: Option<f64>) -> SlotSnapshot {
        SlotSnapshot {
            device: device.into(),
            running: state == SlotState::Working,
            state,
            under_way: 2,
            batch: Some(done),
            done,
            rate,
        }
    }

    #[test]
    fn slots_of_a_device_are_told_as_one_and_incidents_are_counted_once() {
        let told: Arc<Mutex<Vec<News>>> = Arc::default();
        let ear = Arc::clone(&told);
        let listener: Listener = Arc::new(move |news| ear.lock().unwrap().push(news));
        let tidings = Tidings::new(listener);
        let mut snapshot = Snapshot {
            counts: Counts::default(),
            slots: vec![
                slot("cuda:0", SlotState::Idle, 3, None),
                slot("cpu:0", SlotState::Quarantined, 1, Some(1.0)),
                slot("cuda:0", SlotState::Working, 4, Some(2.5)),
            ],
            failed: [("cuda:0".to_owned(), 2)].into(),
            incidents: vec![Incident::Grief {
                device: "cuda:0".into(),
                how: "it ended by signal 9".into(),
            }],
        };
        tidings.hear(&snapshot);
        snapshot.incidents.clear();
        tidings.hear(&snapshot);
        let told = told.lock().unwrap();
        let [News::Changed(change), News::Crew(first), News::Crew(second)] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(
            change,
            "a worker on cuda:0 came to grief: it ended by signal 9"
        );
        assert_eq!(first, second);
        let [gpu, cpu] = &first[..] else {
            panic!("{first:?}");
        };
        assert_eq!((&*gpu.label, &*gpu.state), ("cuda:0", "working"));
        assert_eq!((gpu.workers, gpu.done, gpu.under_way), (1, 7, 4));
        assert_eq!((gpu.batch, gpu.rate, gpu.griefs), (Some(4), Some(2.5), 1));
        assert_eq!((gpu.failed, cpu.failed), (2, 0));
        assert_eq!((&*cpu.label, &*cpu.state), ("cpu:0", "quarantined"));
    }

    #[test]
    fn a_record_whose_worker_died_quotes_its_last_words() {
        let reason = Reason::Crashed {
            how: "it ended by signal 11".into(),
            log: "about to fall\n".into(),
        };
        let failed = failure(&reason, 3, Some(Path::new("run/logs")));
        assert_eq!(failed.attempts, 3);
        assert_eq!(failed.log.as_deref(), Some("about to fall"));
        assert_eq!(
            failed.help.as_deref(),
            Some("what workers wrote is in run/logs")
        );
        let own = Failure {
            code: Some("WL0706".into()),
            help: Some("h".into()),
            ..Failure::new("r")
        };
        let text = serde_json::to_string(&own).unwrap();
        let again = failure(&Reason::Work { text }, 2, None);
        assert_eq!(again, Failure { attempts: 2, ..own });
        assert_eq!(failure(&Reason::Unanswered, 1, None).log, None);
    }
}
