//! `warploom run` as people and scripts meet it, with files that are damaged and processes that die.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::fs;
use std::path::Path;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use plate::kills::Kills;
#[cfg(target_os = "linux")]
use plate::processes::{Stopped, children, signal, stand_still, wait_for, wait_within};
use plate::{Bench, PIPELINE};

#[test]
fn every_image_of_a_folder_has_its_results() {
    let bench = Bench::new(7);
    let (code, stdout, stderr) = bench.run(&["-o", "out"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("7 records: 7 ok in "), "{stdout}");
    let results = bench.results("out");
    assert_eq!(results.len(), 14);
    let table = String::from_utf8(results[Path::new("s003/measured.csv")].clone()).unwrap();
    assert!(table.starts_with("label,area,sum,mean"), "{table}");
    assert!(table.lines().count() > 5);
    // What one operation after the other gives is what comes out of the whole.
    let apply = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command
            .env("WARPLOOM_CPU_ONLY", "1")
            .current_dir(bench.folder.path());
        assert!(
            command
                .arg("apply")
                .args(args)
                .output()
                .unwrap()
                .status
                .success()
        );
    };
    apply(&[
        "gaussian",
        "sigma=1.5",
        "-i",
        "images/s003.npy",
        "-o",
        "soft.npy",
    ]);
    apply(&["threshold_otsu", "-i", "soft.npy", "-o", "mask.npy"]);
    apply(&["label_box", "-i", "mask.npy", "-o", "spots.tif"]);
    assert_eq!(
        fs::read(bench.path("spots.tif")).unwrap(),
        results[Path::new("s003/spots.tif")]
    );
}

#[test]
fn what_is_done_is_left_out_and_what_changed_is_not() {
    let bench = Bench::new(9);
    let tally = |args: &[&str]| {
        let (code, answer) = bench.told(args);
        assert_eq!(code, 0, "{answer}");
        let count = |of: &str| answer["tally"][of].as_u64().unwrap();
        (count("ok"), count("skipped"))
    };
    assert_eq!(tally(&["-o", "out"]), (9, 0));
    assert_eq!(tally(&["-o", "out", "--resume"]), (0, 9));
    let before = bench.results("out");
    // Another image, a result that is gone, and one that is cut short.
    bench.image(2, 77);
    fs::remove_file(bench.path("out/s004/spots.tif")).unwrap();
    let table = bench.path("out/s005/measured.csv");
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(tally(&["-o", "out", "--resume"]), (3, 6));
    let after = bench.results("out");
    for (path, bytes) in &before {
        assert_eq!(
            after[path] == *bytes,
            !path.starts_with("s002"),
            "{}",
            path.display()
        );
    }
    // The same pixels with another date are the same pixels.
    bench.image(2, 77);
    assert_eq!(tally(&["-o", "out", "--resume"]), (0, 9));
    // Other work is not done yet, whatever is there.
    let changed = PIPELINE.replace("sigma = 1.5", "sigma = 2.5");
    fs::write(bench.path("spots.toml"), changed).unwrap();
    assert_eq!(tally(&["-o", "out", "--resume"]), (9, 0));
    // Without being asked, nothing is left out.
    assert_eq!(tally(&["-o", "out"]), (9, 0));
}

#[test]
fn a_run_killed_at_any_moment_is_resumed_to_the_same_files() {
    let bench = Bench::new(24);
    let mut kills = Kills::new(&bench, 12_345);
    let mut rounds = 0;
    // Moments before the first result and after the last show little.
    while kills.count < 50 || kills.amid < 10 {
        assert!(rounds < 500, "{} kills, {} amid", kills.count, kills.amid);
        rounds += 1;
        let output = format!("out{rounds}");
        kills.until_done(&bench, &output, &["--resume"], |found, whole| {
            // Whatever has its name is whole.
            for (path, bytes) in found {
                assert!(whole.get(path) == Some(bytes), "{}", path.display());
            }
        });
        // Nothing half written is left beside it.
        let mut folders = vec![bench.path(&output)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                assert!(name == ".warploom" || !name.starts_with('.'), "{name}");
                if path.is_dir() && name != ".warploom" {
                    folders.push(path);
                }
            }
        }
    }
    let (count, amid) = (kills.count, kills.amid);
    eprintln!("{count} kills in {rounds} rounds, {amid} amid results");
}

/// What a command says as JSON, of a machine whose leases are in a folder of their own.
#[cfg(target_os = "linux")]
fn said(leases: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command
        .env("WARPLOOM_CPU_ONLY", "1")
        .env("WARPLOOM_LEASES", leases)
        .args(args);
    let told = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success(), "{:?}: {stderr}", told.status);
    serde_json::from_slice(&told.stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_waits_for_a_device_is_called_off_like_any_other() {
    let bench = Bench::new(600);
    let leases = tempfile::tempdir().unwrap();
    let start = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("WARPLOOM_LEASES", leases.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Stopped(command.spawn().unwrap())
    };
    // As many workers as there are places, which stand still.
    let detected = said(leases.path(), &["detect", "--json"]);
    let places = detected["capacity"]["max_pipelines"]["cpu"].to_string();
    let crew = ["--devices", "cpu:0", "--workers-per-device", &places];
    let mut first = start(&[&crew[..], &["-o", "first", "--batch", "1"]].concat());
    let held = |what: &str| {
        let told = said(leases.path(), &["top", "--json"]);
        let devices = told["devices"].as_array().unwrap().iter();
        let holders = devices.flat_map(|device| device[what].as_array().unwrap().clone());
        holders
            .map(|holder| holder["pid"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    wait_for("all places to be taken", || {
        held("held").len().to_string() == places
    });
    stand_still(first.0.id(), leases.path());
    for how in ["--device", "--devices"] {
        let mut second = start(&["-o", "second", how, "cpu:0"]);
        let pid = second.0.id();
        wait_for("its place in the line", || {
            let waiting = held("waiting");
            let own = [children(pid), vec![pid]].concat();
            own.iter().any(|pid| waiting.contains(&u64::from(*pid)))
        });
        assert!(signal("-INT", pid));
        let mut status = None;
        wait_within(Duration::from_secs(20), "its end", || {
            status = second.0.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(130), "{how}");
        assert!(children(pid).is_empty());
        assert!(bench.results("second").is_empty());
    }
    assert!(signal("-CONT", first.0.id()));
    assert_eq!(first.0.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn an_interrupt_finishes_what_is_begun_and_says_so() {
    let bench = Bench::new(400);
    let mut child = bench.start(&["-o", "out", "--batch", "1"]);
    let end = Instant::now() + Duration::from_mins(1);
    while bench.results("out").len() < 6 {
        assert!(Instant::now() < end, "nothing was written in a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let status = child.wait().unwrap();
    // 0 would be: 400 records were done before the interrupt came.
    assert_eq!(status.code(), Some(130));
    // Only whole records are there.
    let results = bench.results("out");
    assert_eq!(results.len() % 2, 0);
    let (code, answer) = bench.told(&["-o", "out", "--resume"]);
    assert_eq!(code, 0);
    assert_eq!(
        answer["tally"]["skipped"].as_u64().unwrap(),
        results.len() as u64 / 2
    );
    assert_eq!(bench.results("out").len(), 800);
}

#[test]
fn depth_and_batch_change_no_byte() {
    let bench = Bench::new(13);
    assert_eq!(
        bench.run(&["-o", "one", "--depth", "1", "--batch", "1"]).0,
        0
    );
    let one = bench.results("one");
    for args in [
        ["--depth", "2"],
        ["--depth", "4"],
        ["--batch", "5"],
        ["--batch", "999"],
    ] {
        let output = args.concat().replace('-', "");
        let all = [&args[..], &["-o", &output, "--check-races"]].concat();
        let (code, _, stderr) = bench.run(&all);
        assert_eq!((code, stderr.as_str()), (0, ""), "{args:?}");
        assert!(bench.results(&output) == one, "{args:?}");
    }
}

#[test]
fn a_dry_run_does_nothing() {
    let bench = Bench::new(3);
    let (code, stdout, _) = bench.run(&["-o", "out", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(
        stdout.contains("3 records, 0 of them done before"),
        "{stdout}"
    );
    assert!(
        stdout.contains("s000 -> s000/spots.tif, s000/measured.csv"),
        "{stdout}"
    );
    assert!(!bench.path("out").exists());
    let (code, answer) = bench.told(&["-o", "out", "--dry-run"]);
    assert_eq!((code, answer["records"].as_u64()), (0, Some(3)));
    assert_eq!(answer["plan"]["pipeline"], "spots");
    assert_eq!(
        answer["batch"], 1,
        "three records are too few to go together"
    );
    // What is said is what is leased: generations of several records take several times a record's slots.
    let bytes = |batch: &str| {
        let (code, answer) = bench.told(&["-o", "out", "--dry-run", "--batch", batch]);
        assert_eq!((code, answer["batch"].to_string().as_str()), (0, batch));
        answer["bytes"].as_u64().unwrap()
    };
    assert!(bytes("1") < bytes("2") && bytes("2") < bytes("3"));
    let (_, stdout, _) = bench.run(&["-o", "out", "--dry-run", "--batch", "2"]);
    assert!(
        stdout.contains("  2 images go through together, so "),
        "{stdout}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let bench = Bench::new(2);
    let refused = |pipeline: &str, args: &[&str]| {
        fs::write(bench.path("spots.toml"), pipeline).unwrap();
        let (code, stdout, stderr) = bench.run(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(bench.results("out").is_empty());
        stderr.replace(&*bench.folder.path().to_string_lossy(), "FOLDER")
    };
    let out = &["-o", "out"];
    insta::assert_snapshot!("unknown_op", refused("[[step]]\nop = \"gausian\"\n", out));
    let twice = PIPELINE.replace("{record}/spots.tif", "spots.tif");
    insta::assert_snapshot!("one_file_for_all", refused(&twice, out));
    let field = PIPELINE.replace("{record}/spots.tif", "{record}-{well}.tif");
    insta::assert_snapshot!("unknown_field", refused(&field, out));
    let format = PIPELINE.replace("spots.tif", "spots.png");
    insta::assert_snapshot!("labels_as_png", refused(&format, out));
    let device = &["-o", "out", "--device", "gpu7"];
    insta::assert_snapshot!("unknown_device", refused(PIPELINE, device));
    fs::write(bench.path("file"), "").unwrap();
    insta::assert_snapshot!("output_is_a_file", refused(PIPELINE, &["-o", "file"]));
    let budget = &["-o", "out", "--budget", "1KiB"];
    insta::assert_snapshot!("small_budget", refused(PIPELINE, budget));
}

/// What is overwritten is lost for good, by whatever way one comes to the folder.
#[test]
fn no_result_takes_the_place_of_an_image() {
    let bench = Bench::new(3);
    let before = bench.results("images");
    let name = before.keys().next().unwrap().to_string_lossy().into_owned();
    let ending = name.rsplit('.').next().unwrap();
    let pipeline = format!(
        "name = \"soft\"\n[[step]]\nname = \"soft\"\nop = \"maximum_box\"\nradius = 1\n\
         [[output]]\nof = \"soft\"\nwrite = \"{{record}}.{ending}\"\n"
    );
    fs::write(bench.path("spots.toml"), pipeline).unwrap();
    fs::create_dir(bench.path("other")).unwrap();
    for output in ["images", "other/../images"] {
        let (code, _, told) = bench.run(&["-o", output]);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("would replace the image"), "{told}");
        assert!(bench.results("images") == before);
    }
    assert_eq!(bench.run(&["-o", "out", "-q"]).0, 0);
}

/// Nothing can be called after it, so it is among those that failed, and not forgotten.
#[cfg(target_os = "linux")]
#[test]
fn an_image_whose_name_is_no_text_is_told_of() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new(3);
    let images = bench.path("images");
    let first = fs::read_dir(&images)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let ending = first.extension().unwrap().to_str().unwrap();
    let name = [b"bad\xff.", ending.as_bytes()].concat();
    fs::copy(&first, images.join(std::ffi::OsStr::from_bytes(&name))).unwrap();
    let (code, answer) = bench.told(&["-o", "out"]);
    assert_eq!(code, 3, "{answer}");
    let count = |of: &str| answer["tally"][of].as_u64().unwrap();
    assert_eq!((count("ok"), count("failed")), (3, 1), "{answer}");
    let reason = answer["records"][3]["reason"].as_str().unwrap();
    assert!(
        reason.contains("no text") && reason.contains("\\xff"),
        "{reason}"
    );
}

#[test]
fn an_input_that_is_not_there_is_refused() {
    let bench = Bench::new(0);
    let (code, _, stderr) = bench.run(&["-o", "out"]);
    assert_eq!(code, 2, "{stderr}");
    insta::assert_snapshot!("no_images", stderr);
}

#[test]
fn a_trace_has_a_track_for_every_queue() {
    let bench = Bench::new(12);
    let files = ["--trace", "trace.json", "--report", "report.html"];
    let (code, ..) = bench.run(&[&files[..], &["-o", "out", "--batch", "1"]].concat());
    assert_eq!(code, 0);
    let report = fs::read_to_string(bench.path("report.html")).unwrap();
    assert!(report.starts_with("<!DOCTYPE html>") && report.contains("s011"));
    let trace: Value =
        serde_json::from_slice(&fs::read(bench.path("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let phase = |of: &'static str| events.iter().filter(move |event| event["ph"] == of);
    let named = phase("M").filter(|event| event["name"] == "thread_name");
    let tracks: Vec<(&Value, &str)> = named
        .map(|event| (&event["tid"], event["args"]["name"].as_str().unwrap()))
        .collect();
    for (stage, track, clock) in [
        ("read", "thread read", "host"),
        ("work", "queue ", "device"),
        ("write", "thread write", "host"),
    ] {
        let own: Vec<&Value> = phase("X").filter(|one| one["name"] == stage).collect();
        assert_eq!(own.len(), 12, "{stage}");
        let (tid, _) = tracks
            .iter()
            .find(|(_, name)| name.starts_with(track))
            .unwrap_or_else(|| panic!("{stage} has no track: {tracks:?}"));
        for event in own {
            assert_eq!((&event["tid"], &event["cat"]), (*tid, &Value::from(clock)));
        }
    }
    let samples = |name: &'static str| {
        let own = phase("C").filter(move |event| event["name"] == name);
        own.map(|event| event["args"]["value"].as_f64().unwrap())
            .collect::<Vec<f64>>()
    };
    assert!(samples("memory (bytes)").iter().any(|bytes| *bytes > 0.0));
    // Every image is counted when it is read and when it is written.
    let flight = samples("units in flight");
    assert_eq!((flight.len(), flight.last()), (24, Some(&0.0)));
    assert!(flight.iter().all(|units| (0.0..=3.0).contains(units)));
}

/// What a debug build always does, an optimised one does when it is asked.
#[test]
fn races_are_looked_for_when_asked() {
    let bench = Bench::new(5);
    let checked = |args: &[&str]| {
        let (code, answer) = bench.told(&[args, &["--batch", "1"]].concat());
        assert_eq!(code, 0, "{answer}");
        answer["races_checked"].as_u64().unwrap()
    };
    // Three stages of five generations.
    assert_eq!(checked(&["-o", "asked", "--check-races"]), 15);
    let silent = if cfg!(debug_assertions) { 15 } else { 0 };
    assert_eq!(checked(&["-o", "silent"]), silent);
}

#[cfg(unix)]
#[test]
fn two_runs_do_not_share_a_folder_of_results() {
    let bench = Bench::new(300);
    let mut first = bench.start(&["-o", "out", "--batch", "1"]);
    let end = Instant::now() + Duration::from_mins(1);
    while bench.results("out").is_empty() {
        assert!(Instant::now() < end, "nothing was written in a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
    // It stands still while the second one tries, or it might be over before that gives up.
    let pid = first.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    };
    signal("-STOP");
    let (code, _, stderr) = bench.run(&["-o", "out"]);
    signal("-CONT");
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("WL0843"), "{stderr}");
    assert!(first.wait().unwrap().success());
}
