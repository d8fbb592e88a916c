//! Runs cases, one after another or from a harness's threads.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use warploom_core::{DeviceInfo, GpuBackend};

use crate::case::{Case, CaseReport, Check, Outcome, Stop, Verdict};
use crate::conformance::cases;
use crate::expect::Expect;
use crate::rig::Rig;
use crate::session::{Bench, NoSession, Session};
use crate::watchdog::guarded;

/// How the suite runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long one case may take before it counts as hung.
    pub limit: Duration,
    /// Faults that are known.
    pub known: Vec<Expect>,
    /// Parts of names of the cases to run; none means all.
    pub only: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: Duration::from_mins(1),
            known: crate::expect::KNOWN.to_vec(),
            only: Vec::new(),
        }
    }
}

/// Runs the suite on every device of `backend` and reports on each case, in order.
///
/// The backend is shared because a case that hangs is left behind with its handle.
pub fn run(backend: &Arc<dyn GpuBackend>, options: &Options) -> Vec<CaseReport> {
    let session = match Session::begin(Arc::clone(backend), None, options.limit) {
        Ok(session) => Arc::new(session),
        Err(why) => return vec![presence(backend.id(), &Err(why), false)],
    };
    let wanted = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|part| name.contains(part.as_str()))
    };
    jobs(&session)
        .into_iter()
        .filter(|job| wanted(&job.name))
        .map(|job| job.run(&session, options))
        .collect()
}

/// The case that says whether there is anything to test.
pub(crate) fn presence(
    id: impl std::fmt::Display,
    session: &Result<Arc<Session>, NoSession>,
    required: bool,
) -> CaseReport {
    let outcome = match session {
        Ok(_) => Outcome::Passed,
        Err(NoSession::Nothing(reason)) if required => Outcome::Failed {
            text: format!("{id} is required here, but {reason}"),
        },
        Err(NoSession::Nothing(reason)) => Outcome::Skipped {
            reason: reason.clone(),
        },
        Err(NoSession::Misbehaved(trouble)) => Outcome::Failed {
            text: format!("the first probe {trouble}"),
        },
    };
    CaseReport {
        name: format!("{id}::backend::is_present"),
        promise: "a backend that cannot be loaded says why".to_owned(),
        outcome,
        notes: Vec::new(),
        took: Duration::ZERO,
    }
}

/// A case and what it runs on.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    case: &'static Case,
    info: Option<DeviceInfo>,
}

/// Every case on everything it runs on.
pub(crate) fn jobs(session: &Session) -> Vec<Job> {
    let (per_device, per_backend): (Vec<&'static Case>, Vec<&'static Case>) =
        cases().partition(|case| case.per_device());
    let backend = per_backend.into_iter().map(|case| Job {
        name: case.title(session.backend.id()),
        case,
        info: None,
    });
    let device = session.infos.iter().flat_map(|info| {
        per_device.iter().map(|case| Job {
            name: case.title(info.id),
            case,
            info: Some(info.clone()),
        })
    });
    backend.chain(device).collect()
}

/// Cases that measure the process or fill a device run alone in it.
static GATE: RwLock<()> = RwLock::new(());

impl Job {
    /// Runs the case and judges the outcome.
    pub(crate) fn run(&self, session: &Arc<Session>, options: &Options) -> CaseReport {
        let _alone;
        let _beside;
        if self.case.alone {
            _alone = GATE.write().unwrap_or_else(PoisonError::into_inner);
        } else {
            _beside = GATE.read().unwrap_or_else(PoisonError::into_inner);
        }
        let notes = Arc::new(Mutex::new(Vec::new()));
        let bench = Bench::new(Arc::clone(session), Arc::clone(&notes));
        let (check, info) = (self.case.check, self.info.clone());
        let begun = Instant::now();
        let ended = guarded(&self.name, options.limit, move || {
            perform(check, bench, info)
        });
        let outcome = match ended {
            Ok(Ok(())) => Outcome::Passed,
            Ok(Err(Stop::Skip(reason))) => Outcome::Skipped { reason },
            Ok(Err(Stop::Fail(text))) => Outcome::Failed { text },
            Err(trouble) => Outcome::Failed {
                text: format!("the case {trouble}"),
            },
        };
        let notes = std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner));
        CaseReport {
            name: self.name.clone(),
            promise: self.case.promise.to_owned(),
            outcome: self.judge(outcome, options),
            notes,
            took: begun.elapsed(),
        }
    }

    fn judge(&self, outcome: Outcome, options: &Options) -> Outcome {
        let case = format!("{}::{}", self.case.group, self.case.name);
        let info = self.info.as_ref();
        let known = info.and_then(|info| options.known.iter().find(|e| e.covers(info, &case)));
        match known {
            Some(expect) => expect.judge(outcome),
            None => outcome,
        }
    }
}

fn perform(check: Check, bench: Bench, info: Option<DeviceInfo>) -> Verdict {
    match (check, info) {
        (Check::Backend(check), _) => check(&bench),
        (Check::Device(check), Some(info)) => check(&Rig::open(bench, info)?),
        (Check::Device(_), None) => Err(Stop::skip("no device to run on")),
    }
}
