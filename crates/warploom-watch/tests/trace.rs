//! Traces, read back: nothing overlaps that may not, nothing is lost, units are right.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;
use warploom_watch::recording::{
    Clock, Counter, Device, DeviceNo, Lane, LaneNo, Mark, Occasion, Place, Record, RecordNo,
    Sample, Span, StageNo, Unit,
};
use warploom_watch::{Recording, trace};

fn parsed(recording: &Recording) -> Value {
    let mut bytes = Vec::new();
    trace(recording, &mut bytes).expect("a vector takes everything");
    serde_json::from_slice(&bytes).expect("a trace is JSON")
}

/// The events with this phase.
fn events<'t>(trace: &'t Value, phase: &str) -> Vec<&'t Value> {
    let all = trace["traceEvents"].as_array().expect("a list of events");
    all.iter().filter(|event| event["ph"] == phase).collect()
}

/// Microseconds with three decimals, as nanoseconds.
fn nanoseconds(value: &Value) -> u64 {
    let text = value.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, "0"));
    let part = format!("{part:0<3}");
    assert_eq!(part.len(), 3, "{text} has more than three decimals");
    let number = |digits: &str| digits.parse::<u64>().expect("digits");
    number(whole) * 1_000 + number(&part)
}

fn key(event: &Value) -> (u64, u64) {
    (
        event["pid"].as_u64().expect("a process"),
        event["tid"].as_u64().expect("a thread"),
    )
}

fn two_devices() -> Recording {
    let mut recording = Recording::new("plate \"7\"", "nuclei");
    recording.plan = "ab12".into();
    let gpus = [0, 1].map(|at| recording.device(Device::new(format!("gpu{at}"), "Card")));
    let read = recording.lane(Lane::new("read", Place::Shared));
    let lanes = gpus.map(|gpu| recording.lane(Lane::new("compute", Place::Queue(gpu))));
    let (load, blur) = (recording.stage("read"), recording.stage("blur"));
    for at in 0..4_u32 {
        let (gpu, lane) = (gpus[at as usize % 2], lanes[at as usize % 2]);
        let begin = u64::from(at) * 1_000;
        let first = recording.record(
            Record::new(format!("r{at}"))
                .done_at(begin, begin + 2_345)
                .on(gpu),
        );
        let span = Span {
            lane: read,
            stage: load,
            generation: at.into(),
            first,
            count: 1,
            begin,
            end: begin + 999,
            clock: Clock::Host,
        };
        recording.spans.push(span);
        let (begin, end) = (begin + 1_001, begin + 2_345);
        let clock = Clock::Device;
        recording.spans.push(Span {
            lane,
            stage: blur,
            begin,
            end,
            clock,
            ..span
        });
    }
    recording.counters.push(Counter {
        name: "memory".into(),
        unit: Unit::Bytes,
        device: Some(gpus[1]),
        budget: Some(4096.0),
        samples: vec![
            Sample {
                at: 10,
                value: 1024.5,
            },
            Sample {
                at: 20,
                value: f64::NAN,
            },
        ],
    });
    recording.marks.push(Mark {
        at: 1_500,
        device: Some(gpus[0]),
        occasion: Occasion::Quarantine,
        text: "gpu0 is ill".into(),
    });
    recording.marks.push(Mark {
        at: 1_600,
        text: "everybody".into(),
        ..Mark::default()
    });
    recording.wall = 6_000;
    // One sample is not a number.
    assert_eq!(recording.flaws().len(), 1);
    recording
}

#[test]
fn devices_are_processes_and_lanes_are_threads() {
    let trace = parsed(&two_devices());
    let named = |what: &str| -> Vec<(u64, String)> {
        let named = events(&trace, "M")
            .into_iter()
            .filter(|event| event["name"] == what);
        named
            .map(|event| {
                let name = event["args"]["name"].as_str().unwrap().to_owned();
                (event["pid"].as_u64().unwrap(), name)
            })
            .collect()
    };
    let text = |pid: u64, name: &str| (pid, name.to_owned());
    assert_eq!(
        named("process_name"),
        [
            text(1, "host"),
            text(2, "gpu0 · Card"),
            text(3, "gpu1 · Card")
        ]
    );
    assert_eq!(
        named("thread_name"),
        [
            text(1, "thread read"),
            text(2, "queue compute"),
            text(3, "queue compute")
        ]
    );
    let threads = events(&trace, "M")
        .into_iter()
        .filter(|event| event["name"] == "thread_name");
    let mut tids: Vec<u64> = threads.map(|event| key(event).1).collect();
    tids.dedup();
    assert_eq!(
        tids.len(),
        3,
        "thread numbers are unique in the whole trace"
    );
}

#[test]
fn spans_keep_their_nanoseconds_and_say_whose_they_are() {
    let trace = parsed(&two_devices());
    let spans = events(&trace, "X");
    assert_eq!(spans.len(), 8);
    let blur = spans.iter().find(|span| span["name"] == "blur").unwrap();
    assert_eq!(
        (nanoseconds(&blur["ts"]), nanoseconds(&blur["dur"])),
        (1_001, 1_344)
    );
    assert_eq!(blur["cat"], "device");
    assert_eq!(blur["args"]["record"], "r0");
    assert_eq!(blur["args"]["generation"], 0);
    let read = spans.iter().find(|span| span["name"] == "read").unwrap();
    assert_eq!((&read["cat"], &read["pid"]), (&"host".into(), &1.into()));
}

#[test]
fn stages_of_one_generation_are_one_flow() {
    let trace = parsed(&two_devices());
    let (starts, ends) = (events(&trace, "s"), events(&trace, "f"));
    assert_eq!(
        (starts.len(), ends.len(), events(&trace, "t").len()),
        (4, 4, 0)
    );
    for (generation, (start, end)) in starts.iter().zip(&ends).enumerate() {
        assert_eq!(
            (&start["id"], &end["id"]),
            (&generation.into(), &generation.into())
        );
        assert_eq!(end["bp"], "e");
        assert_eq!(start["name"], end["name"]);
        assert_eq!(start["cat"], end["cat"]);
        // It begins in the reader and ends on the device, where a span begins at that moment.
        assert_eq!(start["pid"], 1);
        assert_eq!(end["pid"], generation % 2 + 2);
        for step in [start, end] {
            let spans = events(&trace, "X");
            let has_span = |span: &&Value| key(span) == key(step) && span["ts"] == step["ts"];
            assert!(spans.into_iter().any(|span| has_span(&span)), "{step}");
        }
    }
}

#[test]
fn counters_have_their_budget_beside_them() {
    let trace = parsed(&two_devices());
    let shown: Vec<String> = events(&trace, "C")
        .into_iter()
        .map(|event| {
            format!(
                "{} {} {} {}",
                event["pid"], event["ts"], event["name"], event["args"]["value"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"3 0.01 "memory (bytes)" 1024.5"#,
            r#"3 0.0 "memory: budget (bytes)" 4096"#,
            r#"3 6.0 "memory: budget (bytes)" 4096"#,
        ]
    );
}

#[test]
fn marks_belong_to_a_device_or_to_all() {
    let trace = parsed(&two_devices());
    let [device, all] = events(&trace, "i")[..] else {
        panic!("{trace}");
    };
    assert_eq!((&device["pid"], &device["s"]), (&2.into(), &"p".into()));
    assert_eq!(
        (&device["cat"], &device["name"]),
        (&"quarantine".into(), &"gpu0 is ill".into())
    );
    assert_eq!((&all["pid"], &all["s"]), (&1.into(), &"g".into()));
}

#[test]
fn the_rest_is_other_data() {
    let rest = &parsed(&two_devices())["otherData"];
    assert_eq!(rest["title"], "plate \"7\"");
    assert_eq!(rest["wall_ns"], 6_000);
    assert_eq!(rest["ok"], 4);
    assert_eq!(rest["bound_records_per_second"], Value::Null);
}

#[test]
fn an_error_of_the_writer_comes_back() {
    /// A disk with no room.
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = trace(&two_devices(), Full).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn times_that_differ_by_rounding_share_a_thread() {
    let mut recording = two_devices();
    recording.spans.clear();
    let span = |begin, end| Span {
        lane: LaneNo(1),
        stage: StageNo(0),
        generation: 0,
        first: RecordNo(0),
        count: 0,
        begin,
        end,
        clock: Clock::Device,
    };
    recording
        .spans
        .extend([span(0, 2_000), span(1_999, 5_000), span(3_999, 6_000)]);
    let trace = parsed(&recording);
    let shown: Vec<(u64, u64)> = events(&trace, "X")
        .into_iter()
        .map(|span| (key(span).1, nanoseconds(&span["ts"])))
        .collect();
    // One nanosecond is rounding, one microsecond is not.
    assert_eq!(shown[0], (2, 0));
    assert_eq!(shown[1], (2, 2_000));
    assert_eq!(shown[2].1, 3_999);
    assert_ne!(shown[2].0, 2);
}

/// Spans that mean nothing: some out of range, some backwards, many overlapping.
fn any_spans() -> impl Strategy<Value = Vec<Span>> {
    let span = (
        0..5_u32,
        0..4_u32,
        0..6_u64,
        0..9_u32,
        0..4_u32,
        0..9_000_u64,
        -500..4_000_i64,
    );
    let span = span.prop_map(
        |(lane, stage, generation, first, count, begin, length)| Span {
            lane: LaneNo(lane),
            stage: StageNo(stage),
            generation,
            first: RecordNo(first),
            count,
            begin,
            end: begin.saturating_add_signed(length),
            clock: Clock::Host,
        },
    );
    prop::collection::vec(span, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spans_of_one_thread_nest_or_do_not_meet(spans in any_spans()) {
        let mut recording = two_devices();
        recording.spans = spans;
        recording.lanes.push(Lane::new("lost", Place::Queue(DeviceNo(9))));
        let trace = parsed(&recording);
        let shown = events(&trace, "X");
        let sound = |span: &&Span| span.lane.index() < 4 && span.begin <= span.end;
        prop_assert_eq!(shown.len(), recording.spans.iter().filter(sound).count());
        let mut threads: HashMap<(u64, u64), Vec<(u64, u64)>> = HashMap::new();
        for span in shown {
            let begin = nanoseconds(&span["ts"]);
            threads.entry(key(span)).or_default().push((begin, begin + nanoseconds(&span["dur"])));
        }
        for (thread, spans) in &threads {
            for (at, &(begin, end)) in spans.iter().enumerate() {
                for &(other, its_end) in &spans[..at] {
                    let apart = end <= other || its_end <= begin;
                    let nested = (other <= begin && end <= its_end) || (begin <= other && its_end <= end);
                    prop_assert!(apart || nested, "{thread:?}: {begin}..{end} and {other}..{its_end}");
                }
                prop_assert!(at == 0 || spans[at - 1].0 <= begin, "{thread:?} is out of order");
            }
        }
        // Every step of a flow lies at the beginning of a span of its thread.
        for phase in ["s", "t", "f"] {
            for step in events(&trace, phase) {
                let begins = threads[&key(step)].iter().map(|span| span.0);
                prop_assert!(begins.into_iter().any(|begin| begin == nanoseconds(&step["ts"])));
            }
        }
    }
}
