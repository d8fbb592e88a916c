//! Whole runs, from files to files, on every device that is here: the bytes are the processor's,
//! whatever the depth, the batch and the way over devices.

mod losses;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use warploom::io::{Header, Sync, write_image};
use warploom::plan::pipeline::Policy;
use warploom::plan::{Options, Pipeline};
use warploom::run::{FOLDER, Input, Job, Outcome, Settings, Summary};
use warploom::{Axis, Caps, DType, Shape, registry};

/// Stacks with two channels, a few of them.
fn plate(folder: &Path, records: u32) {
    fs::create_dir_all(folder.join("plate")).unwrap();
    let shape = Shape::with_axes(&[Axis::C, Axis::Z, Axis::Y, Axis::X], &[2, 3, 37, 41]).unwrap();
    for number in 0..records {
        let mut state = u64::from(number) + 1;
        let mut pixels = Vec::new();
        for at in 0..shape.elements() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(7);
            let noise = u16::try_from(state >> 58).unwrap();
            let (y, x) = (at / 41 % 37, at % 41);
            let bright = (y + u64::from(number)) % 13 < 5 && x % 11 < 4;
            pixels.extend((noise + if bright { 900 } else { 200 }).to_ne_bytes());
        }
        let header = Header::new(DType::U16, shape);
        let path = folder.join(format!("plate/w{number}.ome.tif"));
        write_image(path, &header, &pixels, Sync::No).unwrap();
    }
    let flat: Vec<u8> = (0..37 * 41_u16)
        .flat_map(|at| (1.0 + f32::from(at % 7) / 10.0).to_ne_bytes())
        .collect();
    let header = Header::new(DType::F32, Shape::new(&[37, 41]).unwrap());
    write_image(folder.join("flat.npy"), &header, &flat, Sync::No).unwrap();
}

/// A pipeline, by its name and where its steps run.
const PIPELINES: &[(&str, &str)] = &[
    (
        "planes of each channel, with numbers that decide",
        r#"
        name = "planes"
        foreach = "plane"
        [constants]
        flat = "flat.npy"
        [[step]]
        name = "even"
        op = "flat_field"
        input = ["image", "flat"]
        [[step]]
        name = "limits"
        op = "percentiles"
        q = [50, 90]
        [[step]]
        name = "bright"
        op = "greater"
        input = "even"
        value = { from = "limits", item = 1 }
        [[step]]
        name = "spots"
        op = "label_box"
        [[step]]
        name = "measured"
        op = "label_statistics"
        input = ["spots", "even"]
        [[output]]
        of = "spots"
        write = "{record}-{channel}.tif"
        [[output]]
        of = "limits"
        write = "{record}-{channel}-limits.json"
        [[output]]
        of = "measured"
        write = "{record}-{channel}.csv"
        "#,
    ),
    (
        "a way of its own for each channel",
        r#"
        name = "branches"
        [[step]]
        name = "cleaned"
        [step.branch]
        by = "channel"
        1 = [{ op = "gaussian", sigma = 1.2 }, "max_z"]
        2 = [{ op = "median_box", radius = 1 }]
        [[output]]
        of = "cleaned"
        write = "{record}-{channel}.npy"
        "#,
    ),
    (
        "both channels at once",
        r#"
        name = "both"
        [inputs.first]
        channel = 1
        [inputs.second]
        channel = 2
        [[step]]
        name = "soft"
        op = "gaussian"
        input = "first"
        sigma = 1
        [[step]]
        name = "sum"
        op = "add_images"
        input = ["soft", "second"]
        [[output]]
        of = "sum"
        write = "{record}.npy"
        "#,
    ),
];

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != FOLDER {
            let bytes = fs::read(&path).unwrap();
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
        }
    }
    found
}

/// Runs in a folder of its own; gives the files, and what became of it.
fn run(
    folder: &Path,
    pipeline: &Pipeline,
    settings: &Settings,
) -> (BTreeMap<PathBuf, Vec<u8>>, Summary) {
    registry().setup(&warploom::Options::default()).unwrap();
    let output = tempfile::tempdir_in(folder).unwrap();
    let input = Input::find(&folder.join("plate").to_string_lossy()).unwrap();
    let job = Job::new(pipeline.clone(), folder, input, output.path());
    let summary = job.run(registry(), settings).unwrap();
    for done in &summary.records {
        let is_ok = matches!(done.outcome, Outcome::Ok { .. });
        assert!(is_ok, "{}: {:?}", pipeline.name.value, done);
    }
    assert!(summary.changes.is_empty(), "{:?}", summary.changes);
    (files(output.path()), summary)
}

fn on(device: &str) -> Settings {
    let mut settings = Settings::default();
    settings.plan.devices = vec![device.to_owned()];
    settings.plan.placement = Some(Policy::First);
    settings.check_races = true;
    settings
}

/// The devices that are here, and whether each is strict.
fn faces() -> Vec<(String, bool)> {
    let status = registry().setup(&warploom::Options::default()).unwrap();
    let faces = status.survey.devices.iter().flat_map(|card| &card.faces);
    let is_strict = |caps: Caps| caps.contains(Caps::STRICT_MATH);
    let mut named: Vec<(String, bool)> = faces
        .map(|face| (face.id.to_string(), is_strict(face.caps)))
        .collect();
    named.sort();
    named
}

/// The strict devices that are here.
fn strict_faces() -> Vec<String> {
    let strict = faces().into_iter().filter(|(_, is_strict)| *is_strict);
    strict.map(|(face, _)| face).collect()
}

/// With so many units in flight, and so many of a generation.
fn at(face: &str, depth: u32, batch: u64) -> Settings {
    let mut settings = on(face);
    settings.plan.depth = Some(depth);
    settings.batch = Some(batch);
    settings
}

/// What a device has to give: the processor's files, or where it does not promise those its own, one unit
/// after the other.
fn expected(
    folder: &Path,
    pipeline: &Pipeline,
    (face, is_strict): (&str, bool),
) -> BTreeMap<PathBuf, Vec<u8>> {
    let settings = if is_strict {
        on("cpu:0")
    } else {
        at(face, 1, 1)
    };
    run(folder, pipeline, &settings).0
}

#[test]
fn i6_runs_give_the_same_files_on_every_device_at_every_depth() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 5);
    for (what, text) in PIPELINES {
        let pipeline = Pipeline::from_toml(text).unwrap_or_else(|found| panic!("{}", found[0]));
        for (face, is_strict) in faces() {
            let expected = expected(folder.path(), &pipeline, (&face, is_strict));
            assert!(expected.len() >= 5, "{what}");
            for depth in [1, 2, 3, 4] {
                let settings = at(&face, depth, u64::from(depth % 3) + 1);
                let (found, _) = run(folder.path(), &pipeline, &settings);
                for (path, bytes) in &expected {
                    let same = found.get(path) == Some(bytes);
                    assert!(same, "{what}: {} on {face}, depth {depth}", path.display());
                }
                assert_eq!(found.len(), expected.len());
            }
        }
    }
}

/// 18 units: of the last generation 2 of 4 places are filled, or 4 of 7, where others have been before.
#[test]
fn a_last_batch_that_is_not_full_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 3);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    for (face, is_strict) in faces() {
        let expected = expected(folder.path(), &pipeline, (&face, is_strict));
        for (depth, batch) in [(1, 4), (2, 7), (3, 4), (4, 7)] {
            let (found, _) = run(folder.path(), &pipeline, &at(&face, depth, batch));
            assert!(found == expected, "{face}, depth {depth}, batch {batch}");
        }
    }
}

/// Called again and again with other seeds of the emulated driver, which delays jobs at random.
#[test]
fn delays_of_a_driver_change_no_byte() {
    let faces = strict_faces();
    let mut cuda = faces
        .iter()
        .filter(|face| face.starts_with("cuda:"))
        .peekable();
    if cuda.peek().is_none() {
        eprintln!("not tried: there is no CUDA device");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 4);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    let (expected, _) = run(folder.path(), &pipeline, &on("cpu:0"));
    for face in cuda {
        for depth in [1, 2, 3, 4] {
            let (found, _) = run(folder.path(), &pipeline, &at(face, depth, 1));
            assert!(found == expected, "{face}, depth {depth}");
        }
    }
}

#[test]
fn eight_runs_give_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 2);
    for (face, is_strict) in faces() {
        // Drivers that are not strict take long to compile what has many kernels, every time.
        let (_, text) = PIPELINES[if is_strict { 0 } else { 2 }];
        let pipeline = Pipeline::from_toml(text).unwrap();
        let (first, _) = run(folder.path(), &pipeline, &on(&face));
        for _ in 1..8 {
            assert!(
                run(folder.path(), &pipeline, &on(&face)).0 == first,
                "{face}"
            );
        }
    }
}

#[test]
fn runs_go_in_tiles_and_over_devices_to_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 3);
    let text = r#"
        name = "there-and-back"
        [inputs.image]
        channel = 2
        [[step]]
        name = "soft"
        op = "gaussian"
        sigma = 1.5
        [[step]]
        name = "norm"
        op = "minmax_normalize"
        [[step]]
        name = "top"
        op = "maximum_box"
        radius = 2
        [[output]]
        of = "norm"
        write = "{record}-norm.npy"
        [[output]]
        of = "top"
        write = "{record}-top.npy"
    "#;
    let pipeline = Pipeline::from_toml(text).unwrap();
    let (expected, _) = run(folder.path(), &pipeline, &on("cpu:0"));
    let mut tried = 0;
    for face in strict_faces().iter().filter(|face| *face != "cpu:0") {
        let mut settings = on(face);
        settings.plan.budget = Some(24_000);
        let (found, _) = run(folder.path(), &pipeline, &settings);
        assert!(found == expected, "tiles on {face}");
        // The middle step on the processor.
        let backend = face.split(':').next().unwrap();
        let mut mixed = pipeline.clone();
        mixed.whereabouts.backend = Some(backend.into());
        let norm = mixed
            .steps
            .iter_mut()
            .find(|step| step.name.value == "norm")
            .unwrap();
        norm.whereabouts.backend = Some("cpu".into());
        let mut settings = Settings::default();
        settings.plan = Options::default();
        settings.plan.placement = Some(Policy::First);
        let (found, summary) = run(folder.path(), &mixed, &settings);
        assert!(found == expected, "{:?}", summary.faces);
        tried += 1;
    }
    if tried == 0 {
        eprintln!("not tried: only the processor is here");
    }
}

#[test]
fn a_recording_of_a_run_fits_together() {
    let folder = tempfile::tempdir().unwrap();
    plate(folder.path(), 6);
    let pipeline = Pipeline::from_toml(PIPELINES[0].1).unwrap();
    for face in strict_faces() {
        let mut settings = on(&face);
        settings.record = true;
        let (_, summary) = run(folder.path(), &pipeline, &settings);
        let recording = summary.recording.unwrap();
        assert_eq!(recording.flaws(), [], "{face}");
        assert_eq!(recording.tally().ok, 6);
        assert!(recording.rate().is_some() && recording.bound().is_some());
        let stages: &[&str] = if face == "cpu:0" {
            &["read", "work", "write"]
        } else {
            &["read", "upload", "work", "download", "write"]
        };
        for stage in stages {
            let number = recording.stages.iter().position(|name| name == stage);
            let number = number.unwrap_or_else(|| panic!("{face} has no {stage}"));
            let own = recording
                .spans
                .iter()
                .filter(|span| span.stage.index() == number);
            let units: u64 = 6 * 2 * 3;
            assert!(own.count() as u64 * 32 >= units, "{face} {stage}");
        }
        assert!(!recording.thumbnails.is_empty() && !recording.edges.is_empty());
        assert!(
            recording
                .counters
                .iter()
                .any(|counter| !counter.samples.is_empty())
        );
    }
}
