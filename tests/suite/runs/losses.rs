//! Devices that are lost in the middle of a run, and devices that two runs want.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warploom::plan::pipeline::Policy;
use warploom::plan::{Pipeline, Speed};
use warploom::run::{Input, Job, Outcome, Settings};
use warploom::{
    Arg, BackendId, Buffer, Caps, Device, DeviceError, DeviceInfo, Event, GpuBackend, Grid, Kernel,
    KernelSource, MemoryKind, MemoryUse, Queue, QueueDesc, Registry, Result, Slice, registry,
};

use super::{PIPELINES, files, on, plate, run, strict_faces};

/// A backend whose devices are lost after so many launches.
#[derive(Debug)]
struct Flaky {
    id: BackendId,
    infos: Vec<DeviceInfo>,
    left: Arc<AtomicU64>,
}

#[derive(Debug)]
struct FlakyDevice {
    inner: Arc<dyn Device>,
    left: Arc<AtomicU64>,
}

#[derive(Debug)]
struct FlakyQueue {
    inner: Box<dyn Queue>,
    info: DeviceInfo,
    left: Arc<AtomicU64>,
}

impl GpuBackend for Flaky {
    fn id(&self) -> BackendId {
        self.id
    }
    fn memory_kinds(&self) -> &'static [MemoryKind] {
        &[]
    }
    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self.infos.clone())
    }
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let info = self.infos.iter().find(|info| info.id.ordinal == ordinal);
        let inner = registry().open(info.unwrap().id).unwrap();
        Ok(Arc::new(FlakyDevice {
            inner: Arc::clone(inner.bare()),
            left: Arc::clone(&self.left),
        }))
    }
}

impl Device for FlakyDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }
    fn memory(&self) -> Result<MemoryUse> {
        self.inner.memory()
    }
    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        self.inner.alloc(kind, bytes)
    }
    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        Ok(Box::new(FlakyQueue {
            inner: self.inner.queue(desc)?,
            info: self.inner.info().clone(),
            left: Arc::clone(&self.left),
        }))
    }
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        self.inner.kernel(source)
    }
}

impl FlakyQueue {
    fn alive(&self) -> Result<()> {
        match self.left.load(Ordering::SeqCst) {
            0 => Err(DeviceError::Lost {
                device: self.info.id,
                call: "a call of this test".into(),
                message: "it fell off the bus".into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Queue for FlakyQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        self.alive()?;
        self.inner.upload(src, dst)
    }
    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        self.alive()?;
        self.inner.download(src, dst)
    }
    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        self.alive()?;
        self.inner.copy(src, dst)
    }
    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        self.alive()?;
        self.left.fetch_sub(1, Ordering::SeqCst);
        self.inner.launch(kernel, grid, args)
    }
    fn record(&mut self) -> Result<Arc<dyn Event>> {
        self.alive()?;
        self.inner.record()
    }
    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        self.alive()?;
        self.inner.wait(event)
    }
}

/// A strict device that is not the processor.
fn other() -> Option<String> {
    strict_faces().into_iter().find(|face| face != "cpu:0")
}

/// This program's backends, but one of them loses its devices after so many launches.
fn losing(face: &str, launches: u64) -> Registry {
    changed(face, launches, Caps::empty())
}

/// The same, and it does not claim these capabilities.
fn changed(face: &str, launches: u64, without: Caps) -> Registry {
    let status = registry().setup(&warploom::Options::default()).unwrap();
    let faces = status.survey.devices.iter().flat_map(|card| &card.faces);
    let infos = faces.filter(|info| info.id.to_string() == face).cloned();
    let infos = infos.map(|mut info| {
        info.caps.remove(without);
        info
    });
    let mut registry = Registry::linked();
    registry.add(Arc::new(Flaky {
        id: face.split(':').next().unwrap().parse().unwrap(),
        infos: infos.collect(),
        left: Arc::new(AtomicU64::new(launches)),
    }));
    registry.setup(&warploom::Options::default()).unwrap();
    registry
}

/// Prefers a device to the processor.
fn preferring(face: &str) -> Settings {
    preferring_to(face, "cpu:0")
}

/// Prefers a device to another one.
fn preferring_to(face: &str, other: &str) -> Settings {
    let mut settings = Settings::default();
    let mut speed = Speed::guess(true, false);
    speed.machine.bytes_per_second *= 1e3;
    speed.machine.operations_per_second *= 1e3;
    (speed.up, speed.down, speed.launch) = (1e13, 1e13, 1e-9);
    settings.plan.calibration.insert(face.to_owned(), speed);
    settings.plan.devices = vec![face.to_owned(), other.to_owned()];
    settings.plan.placement = Some(Policy::Cost);
    settings.check_races = true;
    settings
}

#[test]
fn i2_a_lost_device_is_replaced_and_no_record_is_lost_or_done_twice() {
    let Some(face) = other() else {
        eprintln!("not tried: only the processor is here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 5);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    let (expected, _) = run(folder.path(), &pipeline, &on("cpu:0"));
    for launches in [0, 1, 30, 200, 500] {
        let output = tempfile::tempdir_in(folder.path()).unwrap();
        let input = Input::find(&folder.path().join("plate").to_string_lossy()).unwrap();
        let job = Job::new(pipeline.clone(), folder.path(), input, output.path());
        let registry = losing(&face, launches);
        let summary = job.run(&registry, &preferring(&face)).unwrap();
        assert_eq!(
            summary.changes.len(),
            1,
            "{launches}: {:?}",
            summary.changes
        );
        assert!(
            summary.changes[0].contains("cpu:0 goes on"),
            "{:?}",
            summary.changes
        );
        assert_eq!(summary.tally.ok, 5, "{launches}: {:?}", summary.tally);
        assert!(files(output.path()) == expected, "{launches}");
    }
}

/// Whoever goes on, the files are the same.
#[test]
fn i6_every_strict_device_takes_the_place_of_every_other() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 3);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    let (expected, _) = run(folder.path(), &pipeline, &on("cpu:0"));
    let mut pairs = Vec::new();
    for lost in strict_faces().iter().filter(|face| *face != "cpu:0") {
        // A backend that loses one device has only that one.
        let backend = |face: &str| face.split(':').next().unwrap().to_owned();
        for next in strict_faces() {
            if backend(&next) != backend(lost) {
                pairs.push((lost.clone(), next));
            }
        }
    }
    if pairs.is_empty() {
        eprintln!("not tried: only the processor is here");
    }
    for (lost, next) in pairs {
        let output = tempfile::tempdir_in(folder.path()).unwrap();
        let input = Input::find(&folder.path().join("plate").to_string_lossy()).unwrap();
        let job = Job::new(pipeline.clone(), folder.path(), input, output.path());
        let registry = losing(&lost, 60);
        let summary = job.run(&registry, &preferring_to(&lost, &next)).unwrap();
        let changes = &summary.changes;
        assert_eq!(changes.len(), 1, "{lost}: {changes:?}");
        assert!(
            changes[0].ends_with(&format!("{next} goes on")),
            "{changes:?}"
        );
        assert!(files(output.path()) == expected, "{lost}, then {next}");
    }
}

#[test]
fn i6_nobody_takes_the_place_of_a_device_that_is_not_strict() {
    let Some(face) = other() else {
        eprintln!("not tried: only the processor is here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 5);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    let output = tempfile::tempdir_in(folder.path()).unwrap();
    let input = Input::find(&folder.path().join("plate").to_string_lossy()).unwrap();
    let job = Job::new(pipeline, folder.path(), input, output.path());
    let mut settings = preferring(&face);
    (settings.batch, settings.plan.depth) = (Some(1), Some(1));
    let registry = changed(&face, 400, Caps::STRICT_MATH);
    let summary = job.run(&registry, &settings).unwrap();
    assert!(
        summary.tally.ok > 0 && summary.tally.not_started > 0,
        "{:?}",
        summary.tally
    );
    let why = summary.error.unwrap().reason;
    assert!(why.contains("does not promise the same bits"), "{why}");
    // Nor are its results taken for those of another device.
    let mut settings = on("cpu:0");
    settings.resume = true;
    let rest = job.run(super::registry(), &settings).unwrap();
    assert_eq!((rest.tally.skipped, rest.tally.ok), (0, 5));
}

#[test]
fn without_leave_to_go_on_what_was_not_done_is_said() {
    let Some(face) = other() else {
        eprintln!("not tried: only the processor is here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 5);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    let output = tempfile::tempdir_in(folder.path()).unwrap();
    let input = Input::find(&folder.path().join("plate").to_string_lossy()).unwrap();
    let job = Job::new(pipeline, folder.path(), input, output.path());
    let mut settings = preferring(&face);
    settings.failover = false;
    settings.batch = Some(1);
    settings.plan.depth = Some(1);
    let registry = losing(&face, 400);
    let ended = job.run(&registry, &settings);
    let summary = ended.unwrap_or_else(|error| panic!("nothing was done before: {error}"));
    assert!(
        summary.tally.ok > 0 && summary.tally.not_started > 0,
        "{:?}",
        summary.tally
    );
    assert_eq!(summary.tally.total(), 5);
    assert!(!summary.is_ok());
    for done in &summary.records {
        let is_ok = matches!(done.outcome, Outcome::Ok { .. });
        assert_eq!(
            output
                .path()
                .join(format!("{}-1.csv", done.record))
                .exists(),
            is_ok
        );
    }
    // A later run does the rest, and only the rest.
    let mut settings = on("cpu:0");
    settings.resume = true;
    let rest = job.run(super::registry(), &settings).unwrap();
    assert_eq!(rest.tally.skipped, summary.tally.ok);
    assert!(rest.is_ok());
}

#[test]
fn two_runs_share_a_device() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 4);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    for face in strict_faces() {
        let both = std::thread::scope(|scope| {
            let work = || run(folder.path(), &pipeline, &on(&face)).0;
            let (one, other) = (scope.spawn(work), scope.spawn(work));
            [one.join().unwrap(), other.join().unwrap()]
        });
        assert!(both[0] == both[1], "{face}");
    }
}
