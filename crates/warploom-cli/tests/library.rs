//! Pipelines on several devices from a program: the library, with the command as its worker.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plate::Bench;
use plate::processes::children;
use warploom::fleet::Program;
use warploom::fleet::health::{Sentries, Sentry, Sign};
use warploom::plan::Pipeline;
use warploom::plan::pipeline::{OpUse, Step};
use warploom::run::many::{Crew, Outcomes};
use warploom::run::{Input, Job, News, Outcome, Settings};
use warploom::{LeaseRequest, LeaseScope, Options, Registry};

/// A pipeline that is in no file.
fn pipeline(sigma: f64) -> Pipeline {
    Pipeline::new("soft")
        .step(Step::new(
            "soft",
            OpUse::new("gaussian").with("sigma", sigma),
        ))
        .output("soft", "{record}/soft.npy")
}

/// One test at a time: one of them looks at all processes that this one has started.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn registry() -> Arc<Registry> {
    let registry = Registry::linked();
    registry.initialize(&Options::cpu_only()).unwrap();
    Arc::new(registry)
}

fn stream(bench: &Bench, registry: &Arc<Registry>, sigma: f64, settings: Settings) -> Outcomes {
    watched(bench, registry, sigma, settings, None)
}

fn watched(
    bench: &Bench,
    registry: &Arc<Registry>,
    sigma: f64,
    settings: Settings,
    sentries: Option<Sentries>,
) -> Outcomes {
    let program = Program::new(env!("CARGO_BIN_EXE_warploom"))
        .arg("worker")
        .env("WARPLOOM_CPU_ONLY", "1");
    let mut crew = Crew::new(program, vec!["cpu:0".to_owned()]);
    crew.workers = Some(2);
    crew.sentries = sentries;
    let input = Input::find(bench.path("images").to_str().unwrap()).unwrap();
    let job = Job::new(
        pipeline(sigma),
        bench.folder.path(),
        input,
        bench.path("out"),
    );
    job.stream_on(crew, Arc::clone(registry), settings).unwrap()
}

#[test]
fn outcomes_of_a_pipeline_without_a_file_come_one_after_another() {
    let _alone = alone();
    let bench = Bench::new(20);
    std::fs::write(bench.input(7), b"no image").unwrap();
    let registry = registry();
    let mut outcomes = stream(&bench, &registry, 1.5, Settings::default());
    let mut seen = BTreeSet::new();
    for done in &mut outcomes {
        let done = done.unwrap();
        // What is told of is there.
        let file = bench.path("out").join(&done.record).join("soft.npy");
        let is_ok = matches!(done.outcome, Outcome::Ok { .. });
        assert_eq!(file.exists(), is_ok, "{}", done.record);
        assert_eq!(is_ok, done.record != "s007");
        assert!(seen.insert(done.record));
    }
    assert_eq!(seen.len(), 20);
    assert!(outcomes.next().is_none());
    let tally = outcomes.summary().unwrap().tally;
    assert_eq!((tally.ok, tally.failed), (19, 1));
    assert!(outcomes.finish().is_ok());
}

#[test]
fn a_stream_of_a_pipeline_that_is_dropped_ends_its_workers_and_is_resumed() {
    let _alone = alone();
    let bench = Bench::new(60);
    let registry = registry();
    let mut settings = Settings::default();
    settings.batch = Some(1);
    let mut outcomes = stream(&bench, &registry, 1.5, settings);
    for _ in 0..3 {
        outcomes.next().unwrap().unwrap();
    }
    drop(outcomes);
    let own = children(std::process::id());
    assert!(own.is_empty(), "{own:?}");
    let mut settings = Settings::default();
    settings.resume = true;
    let summary = stream(&bench, &registry, 1.5, settings).finish().unwrap();
    let tally = summary.tally;
    assert_eq!(tally.ok + tally.skipped, 60);
    assert!(tally.skipped >= 3, "{tally:?}");
}

#[test]
fn a_stream_of_a_pipeline_says_once_what_was_wrong() {
    let _alone = alone();
    let bench = Bench::new(2);
    let registry = registry();
    let mut outcomes = stream(&bench, &registry, -1.0, Settings::default());
    assert!(outcomes.next().unwrap().is_err());
    assert!(outcomes.next().is_none());
    assert!(outcomes.finish().is_err());
}

/// Somebody was stopped while it had the ledger of leases locked: runs wait for it as they wait for a device.
#[test]
fn a_locked_ledger_is_waited_for_on_one_device_and_on_several() {
    let _alone = alone();
    let bench = Bench::new(6);
    let leases = bench.path("leases");
    let registry = Registry::linked();
    let mut options = Options::cpu_only();
    options.leases = LeaseScope::Folder(leases.clone());
    registry.initialize(&options).unwrap();
    let registry = Arc::new(registry);
    drop(
        registry
            .lease(&LeaseRequest::new(1, 0).on(["cpu"]))
            .unwrap(),
    );
    for is_several in [false, true] {
        let ledgers = std::fs::read_dir(&leases)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let ledgers = ledgers.filter(|path| path.extension().is_some_and(|end| end == "ledger"));
        let ledgers: Vec<File> = ledgers.map(|path| File::open(path).unwrap()).collect();
        assert!(!ledgers.is_empty());
        for ledger in &ledgers {
            ledger.lock().unwrap();
        }
        let (bench, registry) = (&bench, &registry);
        std::thread::scope(|scope| {
            let run = scope.spawn(move || {
                let settings = Settings::default();
                if is_several {
                    return stream(bench, registry, 1.5, settings).finish().unwrap();
                }
                let input = Input::find(bench.path("images").to_str().unwrap()).unwrap();
                let job = Job::new(pipeline(1.5), bench.folder.path(), input, bench.path("one"));
                job.run(registry, &settings).unwrap()
            });
            std::thread::sleep(Duration::from_secs(3));
            assert!(!run.is_finished(), "it did not wait");
            drop(ledgers);
            let summary = run.join().unwrap();
            assert_eq!(summary.tally.ok, 6);
            assert!(summary.changes.is_empty(), "{:?}", summary.changes);
        });
    }
}

/// Reports that the device is sick, once it is told to.
struct Reporter(Arc<AtomicBool>);

impl Sentry for Reporter {
    fn wait(&mut self, _: Duration) -> Result<Option<Sign>, String> {
        std::thread::sleep(Duration::from_millis(5));
        let is_told = self.0.swap(false, Ordering::SeqCst);
        Ok(is_told.then(|| Sign::of_xid(79)))
    }
}

/// A device that was put aside is probed by a worker with the pipeline, and gets what is left.
#[test]
fn a_device_that_was_put_aside_passes_the_probe_of_its_pipeline() {
    let _alone = alone();
    let bench = Bench::new(120);
    let registry = registry();
    let (told, heard) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut settings = Settings::default();
    let own = Arc::clone(&heard);
    settings.listener = Arc::new(move |news| {
        if let News::Changed(change) = news {
            own.fetch_or(change.contains("reported Xid 79"), Ordering::SeqCst);
        }
    });
    let sentry = Arc::clone(&told);
    let sentries = Sentries::new(move |device| {
        assert_eq!(device.id(), "cpu:0");
        Some(Box::new(Reporter(Arc::clone(&sentry))))
    });
    let mut outcomes = watched(&bench, &registry, 1.5, settings, Some(sentries));
    for _ in 0..3 {
        outcomes.next().unwrap().unwrap();
    }
    told.store(true, Ordering::SeqCst);
    let summary = outcomes.finish().unwrap();
    assert!(heard.load(Ordering::SeqCst), "{:?}", summary.changes);
    let changes = summary.changes.join("; ");
    assert!(
        changes.contains("cpu:0 got no work for a while"),
        "{changes}"
    );
    assert!(changes.contains("cpu:0 works again"), "{changes}");
    assert_eq!(summary.tally.ok, 120);
}
