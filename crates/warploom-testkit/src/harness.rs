//! The suite as a test binary.

use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use warploom_core::{BackendEntry, BackendId};

use crate::case::{CaseReport, Outcome};
use crate::expect::Expect;
use crate::run::{Options, jobs, presence};
use crate::session::{NoSession, Session};

/// Runs the conformance suite on every device the backends find, as `main` of a test binary, and
/// ends the process: with 101 when a case failed.
///
/// Takes the usual arguments (`--list`, filters, `--test-threads`). `WARPLOOM_REQUIRE` is a comma
/// list of backends that must be there.
pub fn main(entries: &[BackendEntry]) {
    main_with(entries, &[]);
}

/// As [`main`], with known faults of drivers that this crate does not list.
pub fn main_with(entries: &[BackendEntry], known: &[Expect]) {
    let arguments = Arguments::from_args();
    let required = required();
    let mut options = Options::default();
    options.known.extend_from_slice(known);
    let told = Arc::new(Mutex::new(Vec::new()));
    let trials = entries
        .iter()
        .flat_map(|entry| trials(entry, &options, &required, &told))
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    summary(&told);
    conclusion.exit();
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is a test binary's main, and a variable is how CI reaches through cargo test"
)]
fn required() -> Vec<String> {
    let text = std::env::var("WARPLOOM_REQUIRE").unwrap_or_default();
    let names = text.split(',').map(str::trim);
    names.filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

type Told = Arc<Mutex<Vec<CaseReport>>>;

/// Every case of one backend; one that says why, when there is nothing to test.
fn trials(entry: &BackendEntry, options: &Options, required: &[String], told: &Told) -> Vec<Trial> {
    let session = load(entry, options);
    let needed = required.iter().any(|name| name == entry.id().as_str());
    let report = presence(entry.id(), &session, needed);
    let mut trials = vec![trial(report.name.clone(), told, move || report)];
    if let Ok(session) = session {
        trials.extend(jobs(&session).into_iter().map(|job| {
            let (session, options) = (Arc::clone(&session), options.clone());
            let name = job.name.clone();
            trial(name, told, move || job.run(&session, &options))
        }));
    }
    trials
}

fn load(entry: &BackendEntry, options: &Options) -> Result<Arc<Session>, NoSession> {
    let id: BackendId = entry.id();
    let (entry, limit) = (*entry, options.limit);
    let loaded = crate::watchdog::guarded("load", limit, move || entry.load());
    let backend = loaded
        .map_err(NoSession::Misbehaved)?
        .map_err(|error| NoSession::Nothing(error.to_string()))?;
    Session::begin(Arc::from(backend), Some(id), limit).map(Arc::new)
}

fn trial(name: String, told: &Told, run: impl FnOnce() -> CaseReport + Send + 'static) -> Trial {
    let told = Arc::clone(told);
    Trial::ignorable_test(name, move || {
        let report = run();
        let completion = match &report.outcome {
            Outcome::Passed => Ok(Completion::Completed),
            Outcome::Skipped { reason } => {
                Ok(Completion::ignored_with(format!("skipped: {reason}")))
            }
            Outcome::Known { reason, .. } => {
                Ok(Completion::ignored_with(format!("known fault: {reason}")))
            }
            Outcome::Failed { text } => {
                Err(Failed::from(format!("{text}\npromise: {}", report.promise)))
            }
        };
        told.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(report);
        completion
    })
}

/// What the line of totals does not say: why cases did not run, and what was noticed.
#[expect(
    clippy::print_stderr,
    reason = "this is a test binary's main, and a skip nobody sees is a pass"
)]
fn summary(told: &[CaseReport]) {
    let mut told: Vec<&CaseReport> = told.iter().collect();
    told.sort_by(|a, b| a.name.cmp(&b.name));
    for report in told {
        match &report.outcome {
            Outcome::Skipped { reason } => eprintln!("skipped: {}: {reason}", report.name),
            Outcome::Known { text, reason } => {
                eprintln!("known fault: {}: {reason}: {text}", report.name);
            }
            Outcome::Passed | Outcome::Failed { .. } => {}
        }
        for note in &report.notes {
            eprintln!("note: {}: {note}", report.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use warploom_core::{DeviceError, LoadError};

    use super::*;
    use crate::fake::Probe;
    use crate::{FakeBackend, FakeDevice, Flaw};

    const ID: BackendId = BackendId::new("fake");
    const ABSENT: BackendEntry = BackendEntry::new(ID, || Err(LoadError::absent("no libfake")));
    const EMPTY: BackendEntry = BackendEntry::new(ID, || Ok(Box::new(FakeBackend::new("fake"))));
    const MUTE: BackendEntry = BackendEntry::new(ID, || {
        let error = DeviceError::probe(ID, "list", "not today");
        Ok(Box::new(
            FakeBackend::new("fake").on_probe([Probe::Error(error)]),
        ))
    });
    const WORKS: BackendEntry = BackendEntry::new(ID, || {
        Ok(Box::new(
            FakeBackend::new("fake").device(FakeDevice::new("x")),
        ))
    });
    const FLAWED: BackendEntry = BackendEntry::new(ID, || {
        let device = FakeDevice::new("x");
        let fakes = FakeBackend::new("fake").device(device);
        Ok(Box::new(fakes.flawed(Flaw::CopyShort)))
    });
    const MISNAMED: BackendEntry = BackendEntry::new(BackendId::new("other"), || WORKS.load());

    /// Passed, failed, ignored of the cases whose names contain `filter`, and what was told.
    fn totals(entry: &BackendEntry, required: &[&str], filter: &str) -> (u64, u64, u64, String) {
        // The inner run's failures are not this run's: they go to a file nobody reads.
        let log = tempfile::NamedTempFile::new().unwrap();
        let arguments = Arguments {
            logfile: Some(log.path().display().to_string()),
            filter: Some(filter.to_owned()),
            ..Arguments::default()
        };
        let required: Vec<String> = required.iter().map(|name| (*name).to_owned()).collect();
        let told = Told::default();
        let trials = trials(entry, &Options::default(), &required, &told);
        let ended = libtest_mimic::run(&arguments, trials);
        let told = format!("{:?}", told.lock().unwrap());
        (ended.num_passed, ended.num_failed, ended.num_ignored, told)
    }

    #[test]
    fn an_absent_backend_is_skipped_and_says_why() {
        for (entry, why) in [
            (ABSENT, "no libfake"),
            (EMPTY, "finds no device"),
            (MUTE, "not today"),
        ] {
            let (passed, failed, ignored, told) = totals(&entry, &["cuda", "fakes"], "");
            assert_eq!((passed, failed, ignored), (0, 0, 1), "{told}");
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn an_absent_backend_that_is_required_fails() {
        for entry in [ABSENT, EMPTY, MUTE] {
            let (passed, failed, ignored, told) = totals(&entry, &["cuda", "fake"], "");
            assert_eq!((passed, failed, ignored), (0, 1, 0), "{told}");
            assert!(told.contains("required"), "{told}");
        }
    }

    #[test]
    fn filters_choose_cases_by_name() {
        let (passed, failed, ignored, told) = totals(&WORKS, &["fake"], "fake:0::copy::");
        assert_eq!((passed, failed, ignored), (5, 0, 0), "{told}");
        let (passed, failed, _, told) = totals(&WORKS, &[], "fake::backend::is_present");
        assert_eq!((passed, failed), (1, 0), "{told}");
    }

    #[test]
    fn a_broken_promise_fails_the_run() {
        let (passed, failed, _, told) = totals(&FLAWED, &[], "copy::within_one_buffer");
        assert_eq!((passed, failed), (0, 1), "{told}");
    }

    #[test]
    fn a_backend_keeps_the_name_it_registered_under() {
        let (_, failed, _, told) = totals(&MISNAMED, &[], "id_is_the_registered_one");
        assert_eq!(failed, 1, "{told}");
    }
}
