//! What `warploom run` shows while it runs: bars, lines, events, metrics; and what it leaves of several
//! devices: traces, reports, logs.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test tells what it met")]

mod plate;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use plate::Bench;

const CREW: [&str; 4] = ["--devices", "cpu:0", "--workers-per-device", "2"];

/// Each way to run: in one process, and with workers.
fn ways<'a>(out: &'a [&'a str; 2], more: &[&'a str]) -> [Vec<&'a str>; 2] {
    let one = [&["-o", out[0]][..], more].concat();
    let many = [&["-o", out[1]][..], &CREW[..], more].concat();
    [one, many]
}

#[test]
fn events_are_one_json_value_a_line_and_account_for_every_record() {
    let bench = Bench::new(9);
    let cut = fs::read(bench.input(3)).unwrap();
    fs::write(bench.input(3), &cut[..cut.len() - 9]).unwrap();
    for args in ways(&["one", "many"], &["--progress", "json"]) {
        let (code, _, stderr) = bench.run(&args);
        assert_eq!(code, 3, "{stderr}");
        let events: Vec<Value> = stderr
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
            .collect();
        assert!(events.iter().all(|event| event["at"].as_u64() > Some(0)));
        assert_eq!(events[0]["event"], "begun");
        assert_eq!(events[0]["records"], 9);
        let last = events.last().unwrap();
        assert_eq!(last["event"], "finished");
        assert_eq!(
            (&last["tally"]["ok"], &last["tally"]["failed"]),
            (&8.into(), &1.into())
        );
        let ended: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "ended")
            .collect();
        let names: BTreeSet<&str> = ended
            .iter()
            .map(|event| event["record"].as_str().unwrap())
            .collect();
        assert_eq!((ended.len(), names.len()), (9, 9));
        let failed = ended
            .iter()
            .find(|event| event["outcome"] == "failed")
            .unwrap();
        assert_eq!(
            (&failed["record"], &failed["code"]),
            (&"s003".into(), &"WL0706".into())
        );
        assert_eq!(failed["index"], 3);
    }
}

#[test]
fn quiet_is_quiet_and_excludes_progress() {
    let bench = Bench::new(3);
    for how in [
        &["-q"][..],
        &["--progress", "none"],
        &["--progress", "lines"],
    ] {
        for args in ways(&["one", "many"], how) {
            let (code, _, stderr) = bench.run(&args);
            // Lines come every ten seconds; it would have to take longer than that.
            assert_eq!(
                (code, stderr.lines().any(|line| line.contains("warning"))),
                (0, false)
            );
        }
    }
    let (code, _, stderr) = bench.run(&["-o", "out", "-q", "--progress", "json"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot be used with"), "{stderr}");
}

/// What a run shows on a terminal.
fn on_terminal(bench: &Bench, more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_warploom");
    let line = format!("stty cols 100; '{program}' run spots.toml -i images -o out {more}");
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("WARPLOOM_CPU_ONLY", "1")
        .env("TERM", "xterm-256color")
        .current_dir(bench.folder.path())
        .output()
        .expect("`script` makes a terminal");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Records done, records a second and seconds left of each time that `.. 12/300 45.6/s 3s left` was drawn.
fn drawn(seen: &str, total: u64) -> Vec<(u64, f64, f64)> {
    let words: Vec<&str> = seen.split_whitespace().collect();
    let one = |at: usize| {
        let done = words[at].strip_suffix(&format!("/{total}"))?.parse().ok()?;
        let rate = words.get(at + 1)?.strip_suffix("/s")?.replace(',', "");
        let left = words.get(at + 2)?.strip_suffix('s')?.parse().ok()?;
        (words.get(at + 3)?.starts_with("left")).then_some((done, rate.parse().ok()?, left))
    };
    (0..words.len()).filter_map(one).collect()
}

#[test]
fn a_bar_shows_how_fast_it_goes_and_how_long_it_takes() {
    const TOTAL: u32 = 600;
    let bench = Bench::new(TOTAL);
    let seen = on_terminal(&bench, "--batch 1");
    let drawn = drawn(&seen, u64::from(TOTAL));
    let amid = drawn.iter().filter(|(done, rate, _)| {
        (1..u64::from(TOTAL)).contains(done) && rate.is_finite() && *rate > 0.0
    });
    let amid: Vec<&(u64, f64, f64)> = amid.collect();
    assert!(!amid.is_empty(), "{seen:?}");
    for (done, rate, left) in amid {
        // Seconds are told as whole ones.
        let expected = (u64::from(TOTAL) - done) as f64 / rate;
        let off = (left - expected).abs();
        assert!(off <= 1.5 + expected / 4.0, "{done} at {rate}/s: {left} s");
    }
    assert!(seen.contains("600 records: 600 ok in "), "{seen:?}");
}

#[test]
fn a_terminal_shows_a_bar_for_each_device_and_one_for_all() {
    let bench = Bench::new(30);
    let run = |more: &str| on_terminal(&bench, more);
    let seen = run("--devices cpu:0");
    // The device's own bar, and the total below it.
    assert!(seen.contains("cpu:0 "), "{seen:?}");
    assert!(seen.contains("total "), "{seen:?}");
    assert!(seen.contains("/30"), "{seen:?}");
    let states = ["starting", "working", "idle", "ending", "done"];
    assert!(states.iter().any(|state| seen.contains(state)), "{seen:?}");
    assert!(seen.contains("30 records: 30 ok in "), "{seen:?}");
    let quiet = run("--devices cpu:0 -q");
    assert!(!quiet.contains("total "), "{quiet:?}");
}

/// A text without what moves the cursor and changes colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.find(|one: char| one.is_ascii_alphabetic());
        plain.push_str(code.map_or("", |at| &part[at + 1..]));
    }
    plain
}

/// Test 9 of the acceptance list, as far as it is about bars: three devices, each with its own, which moves.
#[test]
fn three_devices_have_bars_that_move() {
    const DEVICES: [&str; 3] = ["opencl:0", "opencl:1", "opencl:2"];
    let pocl = [
        ("POCL_DEVICES", "pthread pthread basic"),
        ("WARPLOOM_BACKENDS", "cpu,opencl"),
    ];
    let program = env!("CARGO_BIN_EXE_warploom");
    let detected = Command::new(program)
        .args(["detect", "--json"])
        .envs(pocl)
        .output()
        .unwrap();
    let detected = String::from_utf8_lossy(&detected.stdout).into_owned();
    if !DEVICES.iter().all(|name| detected.contains(name)) {
        eprintln!("not tried: PoCL does not show three devices here");
        return;
    }
    // Enough for the last device to come, on a machine that is busy, to find several batches left.
    let bench = Bench::new(3000);
    let names = DEVICES.join(",");
    let line =
        format!("stty cols 120; '{program}' run spots.toml -i images -o out --devices {names}");
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .envs(pocl)
        .env("TERM", "xterm-256color")
        .current_dir(bench.folder.path())
        .output()
        .expect("`script` makes a terminal");
    let seen = plain(&String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{seen}");
    for name in DEVICES {
        // Lines that are as wide as the terminal need no end: a bar goes on to where the next one begins.
        let drawn = seen.split("opencl:").filter_map(|bar| {
            let bar = bar.split("total").next()?;
            bar.strip_prefix(name.strip_prefix("opencl:")?)
        });
        let told = drawn.filter_map(|bar| {
            let (before, after) = bar.split_once(" working")?;
            let position: u32 = before.rsplit(' ').next()?.parse().ok()?;
            Some((position, after.to_owned()))
        });
        let told: Vec<(u32, String)> = told.collect();
        let mut positions: Vec<u32> = told.iter().map(|(position, _)| *position).collect();
        assert!(positions.is_sorted(), "{name}: {positions:?}");
        positions.dedup();
        assert!(positions.len() > 2, "{name}: {positions:?}");
        // Once it has worked, how fast it is and how large its batches are.
        let is_told = |(_, words): &(u32, String)| {
            let rate = words.split(", ").find_map(|word| word.strip_suffix("/s"));
            let batch = words.split("batch ").nth(1).map(|rest| {
                let digits = rest.chars().take_while(char::is_ascii_digit);
                digits.collect::<String>()
            });
            rate.is_some_and(|rate| rate.parse::<f64>().is_ok_and(|rate| rate > 0.0))
                && batch.is_some_and(|batch| batch.parse::<u32>().is_ok_and(|batch| batch > 0))
        };
        assert!(told.iter().any(is_told), "{name}: {told:?}");
    }
    assert!(seen.contains("3000 records: 3000 ok in "), "{seen}");
}

#[test]
fn metrics_are_kept_in_a_file_that_is_whole() {
    let bench = Bench::new(6);
    let cut = fs::read(bench.input(3)).unwrap();
    fs::write(bench.input(3), &cut[..cut.len() - 9]).unwrap();
    for args in ways(&["one", "many"], &["--metrics", "run.prom", "-q"]) {
        let (code, _, stderr) = bench.run(&args);
        assert_eq!(code, 3, "{stderr}");
        let text = fs::read_to_string(bench.path("run.prom")).unwrap();
        let number = |name: &str, labels: &[&str]| {
            let line = text.lines().find(|line| {
                line.starts_with(name) && labels.iter().all(|label| line.contains(label))
            });
            let line = line.unwrap_or_else(|| panic!("{name} {labels:?} in {text}"));
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
        };
        let is = |name: &str, labels: &[&str], wanted: f64| {
            let found = number(name, labels);
            assert!((found - wanted).abs() < 1e-9, "{name} {labels:?}: {found}");
        };
        is(
            "warploom_run_records{",
            &["outcome=\"ok\"", "pipeline=\"spots\""],
            5.0,
        );
        is("warploom_run_records{", &["outcome=\"failed\""], 1.0);
        is("warploom_run_records_asked{", &[], 6.0);
        is(
            "warploom_run_device_records{",
            &["device=\"cpu", "outcome=\"ok\""],
            5.0,
        );
        // Every family is described once, and its samples follow.
        let types: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("# TYPE "))
            .collect();
        let once: BTreeSet<&&str> = types.iter().collect();
        assert_eq!(types.len(), once.len(), "{text}");
        assert!(text.contains("warploom_run_device_griefs_total") == args.contains(&"--devices"));
        let parts = fs::read_dir(bench.folder.path()).unwrap();
        let mut parts = parts.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(!parts.any(|name| name.contains(".part")));
    }
    let (code, _, stderr) = bench.run(&["-o", "out", "--metrics", "no/folder/run.prom"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("cannot write metrics to no/folder/run.prom"),
        "{stderr}"
    );
    assert!(!bench.path("out").exists(), "nothing ran");
}

#[test]
fn traces_reports_and_logs_of_several_devices() {
    let bench = Bench::new(20);
    let args = [
        "-o",
        "out",
        "--report",
        "r.html",
        "--trace",
        "t.json",
        "--metrics",
        "m.prom",
        "-q",
    ];
    let (code, _, stderr) = bench.run(&[&args[..], &CREW[..]].concat());
    assert_eq!((code, stderr.as_str()), (0, ""));
    let trace: Value = serde_json::from_slice(&fs::read(bench.path("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let batches = events
        .iter()
        .filter(|event| event["name"] == "batch" && event["ph"] == "X");
    let tracks: BTreeSet<String> = batches
        .map(|event| format!("{} {}", event["pid"], event["tid"]))
        .collect();
    assert!(!tracks.is_empty());
    // What the workers recorded of their stages is there, too.
    for stage in ["read", "write"] {
        let spans = events
            .iter()
            .filter(|event| event["name"] == stage && event["ph"] == "X");
        assert!(spans.count() > 0, "{stage}");
    }
    let page = fs::read_to_string(bench.path("r.html")).unwrap();
    for wanted in ["all 20 records ok", "cpu:0", "worker 1", "worker 2"] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let text = fs::read_to_string(bench.path("m.prom")).unwrap();
    assert!(
        text.contains("warploom_device_records{pipeline=\"spots\",device=\"cpu:0\"} 20"),
        "{text}"
    );
    // Each worker that did something has a log of its own; one may have come when all was done.
    let mut runs = fs::read_dir(bench.path("out/.warploom")).unwrap();
    let run = runs.find_map(|entry| {
        let path = entry.unwrap().path();
        path.is_dir().then_some(path)
    });
    let logs = (0..2).map(|slot| format!("logs/slot-{slot}.log"));
    let logs = logs.filter(|log| run.as_ref().unwrap().join(log).is_file());
    assert!(logs.count() >= tracks.len(), "{tracks:?}");
}
