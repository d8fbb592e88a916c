//! What the page's script draws from: the recording in columns, as short as numbers get in JSON.

use serde::Serialize;

use crate::layer::Layers;
use crate::recording::{Clock, Counter, DeviceNo, Outcome, Recording, Sample, Unit};

use super::thin::{Bar, thin};

/// Columns of a page.
#[derive(Serialize)]
pub(super) struct Data<'r> {
    wall: u64,
    started: u64,
    stages: &'r [String],
    devices: Vec<&'r str>,
    /// What drivers call them.
    cards: Vec<&'r str>,
    lanes: Vec<LaneData<'r>>,
    spans: Spans,
    records: Records<'r>,
    reasons: Vec<Reason<'r>>,
    counters: Vec<CounterData<'r>>,
    bound: Option<f64>,
    marks: Vec<MarkData<'r>>,
}

#[derive(Serialize)]
struct LaneData<'r> {
    name: &'r str,
    /// A place in `devices`, or -1.
    device: i64,
    queue: bool,
    /// How many spans each of its layers has; they follow each other in the columns.
    layers: Vec<usize>,
}

/// Spans in columns, by lane, layer and time. Beginnings are told as what they are later than the
/// one before on the same layer.
#[derive(Serialize, Default)]
struct Spans {
    /// How many there were, where some were joined to draw them; else 0.
    joined: usize,
    begin: Vec<u64>,
    length: Vec<u64>,
    stage: Vec<u32>,
    generation: Vec<u64>,
    first: Vec<u32>,
    count: Vec<u32>,
    /// 1 for times of the device.
    clock: Vec<u8>,
}

/// Records in columns; -1 for what is not known.
#[derive(Serialize, Default)]
struct Records<'r> {
    name: Vec<&'r str>,
    outcome: Vec<u8>,
    begin: Vec<i64>,
    end: Vec<i64>,
    device: Vec<i64>,
    attempts: Vec<u32>,
    /// A place in `reasons`.
    reason: Vec<i64>,
}

#[derive(Serialize, PartialEq)]
struct Reason<'r> {
    text: &'r str,
    code: Option<&'r str>,
}

#[derive(Serialize)]
struct CounterData<'r> {
    name: &'r str,
    unit: Unit,
    device: i64,
    budget: Option<f64>,
    at: Vec<u64>,
    value: Vec<f64>,
}

#[derive(Serialize)]
struct MarkData<'r> {
    at: u64,
    device: i64,
    occasion: &'static str,
    text: &'r str,
}

/// More than these make a page slow to open, and no screen shows them apart.
const MOST_SPANS: usize = 300_000;
const MOST_SAMPLES: usize = 4_000;

fn number(place: Option<usize>) -> i64 {
    place.map_or(-1, |place| i64::try_from(place).unwrap_or(-1))
}

fn moment(at: Option<u64>) -> i64 {
    at.map_or(-1, |at| i64::try_from(at).unwrap_or(-1))
}

impl<'r> Data<'r> {
    pub(super) fn of(recording: &'r Recording) -> Self {
        Self::with_most(recording, MOST_SPANS)
    }

    /// With at most so many spans, or as few as can be.
    fn with_most(recording: &'r Recording, most: usize) -> Self {
        let layers = Layers::of(recording);
        let all = layers.placed.len();
        let bars = thin(&layers.placed, recording.wall, most);
        let mut lanes: Vec<LaneData<'r>> = recording
            .lanes
            .iter()
            .zip(&layers.of_lane)
            .map(|(lane, &count)| LaneData {
                name: &lane.name,
                device: number(lane.place.device().map(DeviceNo::index)),
                queue: lane.place.is_queue(),
                layers: vec![0; count],
            })
            .collect();
        for bar in &bars {
            lanes[bar.span.lane.index()].layers[bar.layer] += 1;
        }
        let joined = if bars.len() < all { all } else { 0 };
        let (records, reasons) = records(recording);
        Self {
            wall: recording.wall,
            started: recording.started,
            stages: &recording.stages,
            devices: recording
                .devices
                .iter()
                .map(|device| device.label.as_str())
                .collect(),
            cards: (recording.devices.iter())
                .map(|device| device.name.as_str())
                .collect(),
            lanes,
            spans: spans(&bars, joined),
            records,
            reasons,
            counters: recording.counters.iter().map(counter).collect(),
            bound: recording.bound(),
            marks: recording
                .marks
                .iter()
                .map(|mark| MarkData {
                    at: mark.at,
                    device: number(mark.device.map(DeviceNo::index)),
                    occasion: mark.occasion.word(),
                    text: &mark.text,
                })
                .collect(),
        }
    }
}

fn spans(bars: &[Bar], joined: usize) -> Spans {
    let mut columns = Spans {
        joined,
        ..Spans::default()
    };
    let mut before = None;
    for Bar { span, layer } in bars {
        let since = match before {
            Some((row, begin)) if row == (span.lane, *layer) => begin,
            _ => 0,
        };
        before = Some(((span.lane, *layer), span.begin));
        columns.begin.push(span.begin.saturating_sub(since));
        columns.length.push(span.length());
        columns.stage.push(span.stage.0);
        columns.generation.push(span.generation);
        columns.first.push(span.first.0);
        columns.count.push(span.count);
        columns.clock.push(u8::from(span.clock == Clock::Device));
    }
    columns
}

fn records(recording: &Recording) -> (Records<'_>, Vec<Reason<'_>>) {
    let mut reasons: Vec<Reason<'_>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    let mut columns = Records::default();
    for record in &recording.records {
        columns.name.push(&record.name);
        columns.outcome.push(match record.outcome {
            Outcome::Ok => 0,
            Outcome::Failed { .. } => 1,
            Outcome::Skipped => 2,
            Outcome::NotStarted => 3,
        });
        columns.begin.push(moment(record.begin));
        columns.end.push(moment(record.end));
        columns
            .device
            .push(number(record.device.map(DeviceNo::index)));
        columns.attempts.push(record.attempts);
        let reason = match &record.outcome {
            Outcome::Failed { reason, code } => {
                let place = *known.entry((reason, code)).or_insert_with(|| {
                    reasons.push(Reason {
                        text: reason,
                        code: code.as_deref(),
                    });
                    reasons.len() - 1
                });
                Some(place)
            }
            _ => None,
        };
        columns.reason.push(number(reason));
    }
    (columns, reasons)
}

/// A counter with so few samples that a page can draw it at once: of each stretch of time the
/// smallest and the largest.
fn counter(counter: &Counter) -> CounterData<'_> {
    let finite = counter
        .samples
        .iter()
        .filter(|sample| sample.value.is_finite());
    let samples: Vec<Sample> = finite.copied().collect();
    let mut kept: Vec<Sample> = Vec::new();
    let stretch = samples.len().div_ceil(MOST_SAMPLES / 2).max(1);
    for part in samples.chunks(stretch) {
        if part.len() <= 2 {
            kept.extend(part);
            continue;
        }
        let by_value = |a: &&Sample, b: &&Sample| a.value.total_cmp(&b.value);
        let (low, high) = (part.iter().min_by(by_value), part.iter().max_by(by_value));
        let mut ends: Vec<Sample> = low.into_iter().chain(high).copied().collect();
        ends.sort_by_key(|sample| sample.at);
        kept.extend(ends);
    }
    CounterData {
        name: &counter.name,
        unit: counter.unit,
        device: number(counter.device.map(DeviceNo::index)),
        budget: counter.budget.filter(|budget| budget.is_finite()),
        at: kept.iter().map(|sample| sample.at).collect(),
        value: kept.iter().map(|sample| sample.value).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Lane, LaneNo, Place, Record, RecordNo, Span, StageNo};

    fn span(lane: u32, begin: u64, end: u64) -> Span {
        Span {
            lane: LaneNo(lane),
            stage: StageNo(0),
            generation: 3,
            first: RecordNo(1),
            count: 2,
            begin,
            end,
            clock: Clock::Device,
        }
    }

    #[test]
    fn columns_are_by_lane_and_say_how_much_later() {
        let mut recording = Recording::new("t", "p");
        for name in ["a", "b"] {
            recording.lane(Lane::new(name, Place::Shared));
        }
        recording.stage("s");
        recording.spans = vec![
            span(1, 70, 90),
            span(0, 500, 600),
            span(0, 100, 300),
            span(8, 1, 2),
        ];
        recording.record(Record::new("x").failed_at(1, 2, "torn"));
        recording.record(Record::new("y"));
        recording.record(Record::new("z").failed_at(3, 4, "torn"));
        recording.wall = 1_000;
        let data = serde_json::to_value(Data::of(&recording)).unwrap();
        assert_eq!(data["spans"]["begin"], serde_json::json!([100, 400, 70]));
        assert_eq!(data["spans"]["length"], serde_json::json!([200, 100, 20]));
        assert_eq!(data["spans"]["joined"], 0);
        assert_eq!(data["lanes"][0]["layers"], serde_json::json!([2]));
        assert_eq!(data["lanes"][1]["layers"], serde_json::json!([1]));
        assert_eq!(data["lanes"][0]["device"], -1);
        assert_eq!(data["records"]["outcome"], serde_json::json!([1, 3, 1]));
        assert_eq!(data["records"]["reason"], serde_json::json!([0, -1, 0]));
        assert_eq!(data["records"]["begin"], serde_json::json!([1, -1, 3]));
        assert_eq!(
            data["reasons"],
            serde_json::json!([{ "text": "torn", "code": null }])
        );
        let few = serde_json::to_value(Data::with_most(&recording, 2)).unwrap();
        assert_eq!(few["spans"]["joined"], 3);
    }

    #[test]
    fn many_samples_keep_their_peaks() {
        let mut long = Counter::default();
        for at in 0..100_000_u64 {
            let value = if at == 77_777 {
                5.0
            } else if at == 33_333 {
                -5.0
            } else {
                1.0
            };
            long.samples.push(Sample { at, value });
        }
        long.samples.push(Sample {
            at: 100_000,
            value: f64::NAN,
        });
        let data = counter(&long);
        assert!(data.at.len() <= MOST_SAMPLES, "{}", data.at.len());
        assert!(data.at.is_sorted());
        let extremes = data
            .value
            .iter()
            .fold((1.0_f64, 1.0_f64), |(low, high), &v| {
                (low.min(v), high.max(v))
            });
        assert_eq!(extremes, (-5.0, 5.0));
        long.samples.truncate(3);
        assert_eq!(counter(&long).at, [0, 1, 2]);
    }
}
