//! Metrics, read back by a small parser of Prometheus' text format that refuses what it should.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use warploom_core::{DeviceKind, Holder, LeaseCapacity};
use warploom_watch::board::{DeviceNotice, Notice};
use warploom_watch::recording::{
    Bound, Clock, Counter, Device, Edge, Lane, Outcome, Place, Record, RecordNo, Sample, Span, Unit,
};
use warploom_watch::{Machine, MachineDevice, Recording, metrics};

/// Samples by name and labels.
type Samples = BTreeMap<String, f64>;

/// Reads a text, strictly: every family has its help and type once, in front of its samples, which
/// stay together; no sample occurs twice.
fn parsed(text: &str) -> Result<Samples, String> {
    let (mut samples, mut families) = (Samples::new(), HashSet::new());
    let mut family = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or("help without words")?;
            if help.is_empty() || !families.insert(name) {
                return Err(format!("{name} is described twice, or not at all"));
            }
            family = name;
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
            let kind = kind
                .and_then(|kind| kind.strip_prefix(name))
                .unwrap_or_default();
            if ![" gauge", " counter"].contains(&kind) {
                return Err(format!("{name} has no type"));
            }
            continue;
        }
        let name_end = line.find(['{', ' ']).ok_or("a line without a value")?;
        let name = &line[..name_end];
        if name != family || name.chars().any(|c| !c.is_ascii_lowercase() && c != '_') {
            return Err(format!("{name} among {family}"));
        }
        let (labels, rest) = labels(&line[name_end..])?;
        let value: f64 = rest
            .trim()
            .parse()
            .map_err(|_| format!("no number: {rest}"))?;
        let key = format!("{name} {}", labels.join(" "));
        if samples.insert(key.clone(), value).is_some() {
            return Err(format!("{key} occurs twice"));
        }
    }
    Ok(samples)
}

/// `{a="x",b="y"} 1` as `a=x`, `b=y` and the rest.
fn labels(text: &str) -> Result<(Vec<String>, &str), String> {
    let Some(mut rest) = text.strip_prefix('{') else {
        return Ok((Vec::new(), text));
    };
    let mut labels = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().ok_or("a value without an end")? {
                (at, '"') => break at,
                (_, '\\') => match letters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, letter @ ('\\' | '"'))) => value.push(letter),
                    other => return Err(format!("a backslash before {other:?}")),
                },
                (_, letter) => value.push(letter),
            }
        };
        labels.push(format!("{name}={value}"));
        match after[end + 1..].split_at_checked(1) {
            Some((",", more)) => rest = more,
            Some(("}", more)) => return Ok((labels, more)),
            other => return Err(format!("{other:?} after a label")),
        }
    }
}

#[test]
fn the_parser_refuses_what_prometheus_would() {
    let head = "# HELP a x\n# TYPE a gauge\n";
    assert!(parsed(&format!("{head}a 1\n")).is_ok());
    for wrong in [
        "a 1\n",
        "a 1\na 2\n",
        "b 1\n",
        "a{x=\"1} 1\n",
        "a{x=\"\\t\"} 1\n",
        "a one\n",
        "a\n",
    ] {
        let text = if wrong == "a 1\n" {
            wrong.to_owned()
        } else {
            format!("{head}{wrong}")
        };
        assert!(parsed(&text).is_err(), "{text}");
    }
    assert!(parsed(&format!("{head}a 1\n{head}")).is_err());
}

fn recording(name: &str) -> Recording {
    let mut recording = Recording::new("t", name);
    recording.started = 1_500;
    let gpu = recording.device(Device::new("gpu0", "card"));
    let lane = recording.lane(Lane::new("q", Place::Queue(gpu)));
    let stage = recording.stage("blur");
    for (begin, end) in [(0, 400_000_000), (300_000_000, 500_000_000)] {
        recording.spans.push(Span {
            lane,
            stage,
            generation: 0,
            first: RecordNo(0),
            count: 1,
            begin,
            end,
            clock: Clock::Device,
        });
    }
    recording.record(Record::new("a").done_at(0, 1).on(gpu));
    recording.record(Record {
        attempts: 3,
        ..Record::new("b").done_at(0, 1).on(gpu)
    });
    let mut failed = Record::new("c").failed_at(0, 1, "x");
    if let Outcome::Failed { code, .. } = &mut failed.outcome {
        *code = Some("WL0401".into());
    }
    recording.record(failed);
    recording.counters.push(Counter {
        name: "pool".into(),
        unit: Unit::Bytes,
        device: Some(gpu),
        budget: Some(4096.0),
        samples: vec![
            Sample { at: 0, value: 1.0 },
            Sample {
                at: 1,
                value: 2048.0,
            },
        ],
    });
    recording.edges.push(Edge {
        name: "read -> blur".into(),
        device: Some(gpu),
        waits: 9,
        blocked: 250_000_000,
        ..Edge::default()
    });
    recording.bounds.push(Bound {
        records_per_second: 5.0,
        ..Bound::default()
    });
    recording.wall = 2_000_000_000;
    recording
}

#[test]
fn a_run_in_numbers() {
    let samples = parsed(&metrics(&recording("nuclei"))).unwrap();
    let expected = [
        ("warploom_records pipeline=nuclei outcome=ok", 2.0),
        ("warploom_records pipeline=nuclei outcome=failed", 1.0),
        ("warploom_records pipeline=nuclei outcome=skipped", 0.0),
        ("warploom_records pipeline=nuclei outcome=not-started", 0.0),
        ("warploom_failures pipeline=nuclei code=WL0401", 1.0),
        ("warploom_run_seconds pipeline=nuclei", 2.0),
        ("warploom_run_start_time_seconds pipeline=nuclei", 1.5),
        ("warploom_records_per_second pipeline=nuclei", 1.0),
        ("warploom_bound_records_per_second pipeline=nuclei", 5.0),
        ("warploom_device_records pipeline=nuclei device=gpu0", 2.0),
        (
            "warploom_device_retries_total pipeline=nuclei device=gpu0",
            2.0,
        ),
        (
            "warploom_device_busy_seconds pipeline=nuclei device=gpu0",
            0.5,
        ),
        (
            "warploom_memory_peak_bytes pipeline=nuclei memory=pool device=gpu0",
            2048.0,
        ),
        (
            "warploom_memory_budget_bytes pipeline=nuclei memory=pool device=gpu0",
            4096.0,
        ),
        (
            "warploom_stage_seconds_total pipeline=nuclei stage=blur",
            0.6,
        ),
        ("warploom_stage_runs_total pipeline=nuclei stage=blur", 2.0),
        (
            "warploom_edge_blocked_seconds_total pipeline=nuclei edge=read -> blur device=gpu0",
            0.25,
        ),
        (
            "warploom_edge_waits_total pipeline=nuclei edge=read -> blur device=gpu0",
            9.0,
        ),
    ];
    assert_eq!(samples.len(), expected.len(), "{samples:#?}");
    for (key, value) in expected {
        let found = samples
            .get(key)
            .unwrap_or_else(|| panic!("{key} in {samples:#?}"));
        assert!((found - value).abs() < 1e-9, "{key} is {found}");
    }
}

#[test]
fn what_was_not_measured_has_no_line() {
    let mut empty = Recording::new("t", "p");
    empty.started = 0;
    assert_eq!(metrics(&empty), "");
    assert_eq!(metrics(&Machine::default()), "");
}

fn machine() -> Machine {
    let holder = |pid, slots, bytes| Holder {
        pid,
        label: "nuclei".into(),
        slots,
        bytes,
        since: std::time::UNIX_EPOCH,
    };
    let device = MachineDevice {
        name: "gpu0".into(),
        label: "Card".into(),
        kind: DeviceKind::Discrete,
        software: false,
        total_memory: Some(8_192),
        free_memory: None,
        capacity: LeaseCapacity {
            slots: 4,
            bytes: u64::MAX,
        },
        held: vec![holder(1, 1, 100), holder(2, 2, 50)],
        waiting: vec![holder(3, 1, 1)],
        used: Some(120),
        runs: 1,
    };
    let mut run = Notice::new("t", "nuclei", 10);
    (run.pid, run.ok, run.failed, run.rate) = (7, 3, 1, Some(2.5));
    run.devices.push(DeviceNotice {
        memory: Some(120),
        ..DeviceNotice::default()
    });
    Machine {
        devices: vec![device],
        runs: vec![run],
    }
}

#[test]
fn a_machine_in_numbers() {
    let samples = parsed(&metrics(&machine())).unwrap();
    let expected = [
        ("warploom_device_slots device=gpu0 name=Card", 4.0),
        ("warploom_device_slots_leased device=gpu0 name=Card", 3.0),
        ("warploom_device_leased_bytes device=gpu0 name=Card", 150.0),
        ("warploom_device_waiting device=gpu0 name=Card", 1.0),
        ("warploom_device_used_bytes device=gpu0 name=Card", 120.0),
        ("warploom_device_memory_bytes device=gpu0 name=Card", 8192.0),
        ("warploom_run_records pipeline=nuclei pid=7 outcome=ok", 3.0),
        (
            "warploom_run_records pipeline=nuclei pid=7 outcome=failed",
            1.0,
        ),
        (
            "warploom_run_records pipeline=nuclei pid=7 outcome=skipped",
            0.0,
        ),
        ("warploom_run_records_asked pipeline=nuclei pid=7", 10.0),
        ("warploom_run_records_per_second pipeline=nuclei pid=7", 2.5),
        ("warploom_run_memory_bytes pipeline=nuclei pid=7", 120.0),
    ];
    // A capacity that nobody knows has no line.
    assert_eq!(samples.len(), expected.len(), "{samples:#?}");
    for (key, value) in expected {
        assert_eq!(samples.get(key), Some(&value), "{key} in {samples:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_name_is_a_label(name in "[\\PC\n\\\\\"{},= ]{0,20}") {
        let samples = parsed(&metrics(&recording(&name))).map_err(TestCaseError::fail)?;
        let key = format!("warploom_run_seconds pipeline={name}");
        prop_assert!(samples.contains_key(&key), "{samples:?}");
    }
}

#[test]
fn a_run_that_goes_on_is_told_with_its_devices() {
    let mut run = Notice::new("results", "nuclei", 96);
    run.pid = 4242;
    (run.ok, run.failed, run.skipped) = (40, 2, 7);
    run.updated = 1_795_170_600_500;
    let device = |label: &str, workers| DeviceNotice {
        label: label.into(),
        workers,
        ok: 20,
        failed: 2,
        batch: workers,
        rate: Some(1.5),
        griefs: 3,
        quarantines: 1,
        quarantined: true,
        ..DeviceNotice::default()
    };
    run.devices.push(device("cuda:0", Some(2)));
    let samples = parsed(&metrics(&run)).unwrap();
    let of_device = |name: &str, more: &str| {
        let key = format!("{name} pipeline=nuclei pid=4242 device=cuda:0{more}");
        samples.get(&key).copied()
    };
    assert_eq!(of_device("warploom_run_device_workers", ""), Some(2.0));
    assert_eq!(
        of_device("warploom_run_device_batch_records", ""),
        Some(2.0)
    );
    assert_eq!(of_device("warploom_run_device_griefs_total", ""), Some(3.0));
    assert_eq!(of_device("warploom_run_device_quarantined", ""), Some(1.0));
    let records = "warploom_run_device_records";
    assert_eq!(of_device(records, " outcome=ok"), Some(20.0));
    assert_eq!(of_device(records, " outcome=failed"), Some(2.0));
    // A file may have both, while it goes on and what it came to.
    let mut recording = Recording::new("results", "nuclei");
    recording.record(Record::new("A01").done_at(0, 5));
    recording.wall = 10;
    parsed(&(metrics(&run) + &metrics(&recording))).unwrap();
    // One process has no workers that could come to grief.
    run.devices = vec![device("cpu", None)];
    let text = metrics(&run);
    assert!(
        !text.contains("griefs") && !text.contains("workers"),
        "{text}"
    );
    assert!(text.contains("warploom_run_device_records{pipeline=\"nuclei\",pid=\"4242\",device=\"cpu\",outcome=\"failed\"} 2\n"));
}
