//! Reports as text: what is in them without any script, and that nothing in them can become code.

use proptest::prelude::*;
use rstest::rstest;
use warploom_watch::recording::{
    Bound, Clock, Counter, Device, Edge, Lane, Mark, Occasion, Outcome, Picture, Place, Record,
    RecordNo, Sample, Span, Thumbnail, Unit,
};
use warploom_watch::{Recording, report};

/// A recording in which every text is `text`.
fn about(text: &str) -> Recording {
    let mut recording = Recording::new(text, text);
    recording.plan = text.into();
    let gpu = recording.device(Device::new(text, text).face(text));
    let lane = recording.lane(Lane::new(text, Place::Queue(gpu)));
    let stage = recording.stage(text);
    recording.record(Record::new(text).done_at(0, 900).on(gpu));
    let mut failed = Record::new(text).failed_at(0, 800, text).on(gpu);
    if let Outcome::Failed { code, .. } = &mut failed.outcome {
        *code = Some(text.into());
    }
    recording.record(failed);
    recording.spans.push(Span {
        lane,
        stage,
        generation: 0,
        first: RecordNo(0),
        count: 2,
        begin: 100,
        end: 700,
        clock: Clock::Device,
    });
    recording.counters.push(Counter {
        name: text.into(),
        unit: Unit::Bytes,
        device: Some(gpu),
        budget: Some(4096.0),
        samples: vec![Sample {
            at: 0,
            value: 1024.0,
        }],
    });
    recording.edges.push(Edge {
        name: text.into(),
        guards: text.into(),
        device: Some(gpu),
        waits: 3,
        blocked: 50,
    });
    recording.bounds.push(Bound {
        device: Some(gpu),
        records_per_second: 1e7,
        limit: text.into(),
    });
    recording.marks.push(Mark {
        at: 5,
        device: Some(gpu),
        occasion: Occasion::Lost,
        text: text.into(),
    });
    let picture = || Some(Picture(b"\x89PNG\r\n\x1a\n".to_vec()));
    recording.thumbnails.push(Thumbnail {
        record: RecordNo(0),
        label: text.into(),
        before: picture(),
        after: picture(),
    });
    recording.notes.push(text.into());
    recording.wall = 1_000;
    recording
}

/// The page without what differs from text to text only as text: tags with their attributes' names.
fn skeleton(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let end = rest.find(['>', ' ', '\n']).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        rest = &rest[1..];
        // What is between these is no markup.
        if name == "<script" || name == "<style" {
            let close = format!("</{}", &name[1..]);
            rest = rest.split_once(&close).map_or("", |(_, after)| after);
        }
        tags.push(name);
    }
    tags
}

#[rstest]
#[case("</script><script>alert(1)</script>")]
#[case("<img src=x onerror=alert(1)>")]
#[case("\"><svg onload=alert(1)>")]
#[case("' autofocus onfocus='alert(1)")]
#[case("<!-- --><!--")]
#[case("]]></style></title></noscript>")]
#[case("&lt;b&gt;")]
#[case("\u{2028}\u{2029}\0")]
fn no_text_becomes_markup(#[case] text: &str) {
    let (plain, hostile) = (report(&about("plain")), report(&about(text)));
    assert_eq!(skeleton(&plain), skeleton(&hostile));
    assert_eq!(plain.matches("onerror").count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_at_all_becomes_markup(text in "[<>&\"'/a-z!\\-= \\PC]{1,40}") {
        prop_assert_eq!(skeleton(&report(&about("plain"))), skeleton(&report(&about(&text))));
    }
}

#[test]
fn what_can_be_said_in_words_is_there_without_a_script() {
    let page = report(&about("zebrafish"));
    let (words, _) = page.split_once("<script").expect("words come first");
    assert!(
        words.matches("zebrafish").count() >= 16,
        "{}",
        words.matches("zebrafish").count()
    );
    for text in [
        "1 of 2 records failed",
        "25 % of a budget of 4.0 KiB",
        "1 failed, 1 lost",
        "<dt>Records per second</dt>",
        "60 %",
        "50 ns",
    ] {
        assert!(words.contains(text), "{text} is missing");
    }
    assert_eq!(
        words.matches("data:image/png;base64,iVBORw0KGgo=").count(),
        2
    );
}

#[test]
fn nothing_comes_from_elsewhere_and_no_script_writes_markup() {
    let page = report(&about("x"));
    for forbidden in [
        "http://",
        "https://",
        "@import",
        "url(",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        " style=\"",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "src=\"h",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn what_was_not_recorded_is_left_out_and_never_zero() {
    let page = report(&Recording::new("t", "p"));
    for absent in [
        "Records per second</dt>",
        "Peak memory</dt>",
        "Limited by",
        "Devices busy",
        "Blocked</dt>",
        "id=\"devices\"",
        "id=\"edges\"",
        "id=\"failures\"",
        "id=\"pictures\"",
        "id=\"stages\"",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("no records"));
}

#[test]
fn failures_with_one_reason_are_told_once() {
    let mut recording = Recording::new("t", "p");
    for at in 0..30 {
        recording.record(Record::new(format!("rare{at}")).failed_at(
            0,
            1,
            format!("reason {}", at % 2 * at % 7),
        ));
    }
    for at in 0..40 {
        recording.record(Record::new(format!("often{at}")).failed_at(0, 1, "the disk is full"));
    }
    let page = report(&recording);
    let (_, failures) = page
        .split_once("id=\"failures\"")
        .expect("there are failures");
    let (failures, _) = failures.split_once("</section>").expect("it ends");
    assert_eq!(failures.matches("the disk is full").count(), 1);
    assert!(failures.contains("40×</strong> the disk is full"));
    assert!(failures.contains("and 28 more"));
    let first = failures.find("×").expect("a count");
    assert!(
        failures[..first].ends_with("40"),
        "the most frequent is first"
    );
}

/// However little a recording fits together, there is a page.
#[test]
fn a_recording_full_of_flaws_is_a_page() {
    let mut recording = about("x");
    recording.devices.clear();
    recording.stages.clear();
    recording.records.clear();
    recording.spans[0].begin = u64::MAX;
    recording.spans.push(Span {
        begin: 0,
        end: u64::MAX,
        ..recording.spans[0]
    });
    recording.counters[0].samples = vec![
        Sample {
            at: u64::MAX,
            value: f64::NAN,
        },
        Sample {
            at: 0,
            value: f64::INFINITY,
        },
    ];
    recording.counters[0].budget = Some(f64::NAN);
    recording.bounds[0].records_per_second = f64::NEG_INFINITY;
    recording.edges.push(Edge {
        blocked: u64::MAX,
        waits: u64::MAX,
        ..Edge::default()
    });
    recording.edges.push(Edge {
        blocked: u64::MAX,
        ..Edge::default()
    });
    recording.wall = 0;
    assert!(!recording.flaws().is_empty());
    assert!(report(&recording).ends_with("</html>\n"));
    warploom_watch::trace(&recording, std::io::sink()).expect("a trace, too");
}
