//! Numbers that follow from a recording, for reports and metrics alike.

use crate::recording::{Counter, DeviceNo, LaneNo, Outcome, Recording, Span, Unit};

/// One stage over the whole run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StageFigures {
    pub(crate) name: String,
    pub(crate) spans: usize,
    /// Nanoseconds in all, and of one span: the middle one, one that 95 of 100 stay below, the
    /// longest.
    pub(crate) total: u64,
    pub(crate) median: u64,
    pub(crate) p95: u64,
    pub(crate) longest: u64,
}

/// One device over the whole run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct DeviceFigures {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    /// Attempts beyond the first.
    pub(crate) retries: u64,
    /// Nanoseconds in which at least one of its queues had work; `None` where no queue was timed.
    pub(crate) busy: Option<u64>,
    /// When it finished its last record.
    pub(crate) last: Option<u64>,
}

/// Stages that did anything, in the order of the recording.
pub(crate) fn stages(recording: &Recording) -> Vec<StageFigures> {
    let mut lengths: Vec<Vec<u64>> = vec![Vec::new(); recording.stages.len()];
    for span in &recording.spans {
        if let Some(lengths) = lengths.get_mut(span.stage.index()) {
            lengths.push(span.length());
        }
    }
    let named = recording.stages.iter().zip(lengths);
    let busy = named.filter(|(_, lengths)| !lengths.is_empty());
    busy.map(|(name, mut lengths)| {
        lengths.sort_unstable();
        let share = |part: usize| lengths[(lengths.len() * part).div_ceil(100).max(1) - 1];
        StageFigures {
            name: name.clone(),
            spans: lengths.len(),
            total: lengths.iter().copied().fold(0, u64::saturating_add),
            median: share(50),
            p95: share(95),
            longest: share(100),
        }
    })
    .collect()
}

/// Every device, in the order of the recording.
pub(crate) fn devices(recording: &Recording) -> Vec<DeviceFigures> {
    let mut figures = vec![DeviceFigures::default(); recording.devices.len()];
    for record in &recording.records {
        let of = record
            .device
            .and_then(|device| figures.get_mut(device.index()));
        let Some(of) = of else { continue };
        match record.outcome {
            Outcome::Ok => of.ok += 1,
            Outcome::Failed { .. } => of.failed += 1,
            Outcome::Skipped | Outcome::NotStarted => {}
        }
        of.retries += u64::from(record.attempts.saturating_sub(1));
        of.last = of.last.max(record.end);
    }
    for (at, figures) in figures.iter_mut().enumerate() {
        let is_queue = |lane: LaneNo| {
            let lane = recording.lanes.get(lane.index());
            lane.is_some_and(|lane| {
                lane.place.is_queue() && lane.place.device() == Some(DeviceNo::at(at))
            })
        };
        let spans = recording.spans.iter().filter(|span| is_queue(span.lane));
        figures.busy = covered(spans);
    }
    figures
}

/// Nanoseconds in which at least one of the spans was going on; `None` for no spans.
pub(crate) fn covered<'s>(spans: impl Iterator<Item = &'s Span>) -> Option<u64> {
    let mut times: Vec<(u64, u64)> = spans.map(|span| (span.begin, span.end)).collect();
    if times.is_empty() {
        return None;
    }
    times.sort_unstable();
    let (mut sum, mut until) = (0_u64, 0);
    for (begin, end) in times {
        let begin = begin.max(until);
        if end > begin {
            sum = sum.saturating_add(end - begin);
            until = end;
        }
    }
    Some(sum)
}

/// The largest sample of a counter.
pub(crate) fn peak(counter: &Counter) -> Option<f64> {
    let finite = counter.samples.iter().map(|sample| sample.value);
    finite.filter(|value| value.is_finite()).reduce(f64::max)
}

/// The memory counter that came closest to its budget, with its peak; the largest one where none
/// has a budget.
pub(crate) fn tightest_memory(recording: &Recording) -> Option<(&Counter, f64)> {
    let bytes = recording
        .counters
        .iter()
        .filter(|counter| counter.unit == Unit::Bytes);
    let peaks = bytes.filter_map(|counter| Some((counter, peak(counter)?)));
    peaks.reduce(|best, next| {
        let share = |(counter, peak): (&Counter, f64)| (counter.budget.map(|all| peak / all), peak);
        let ((best_share, best_peak), (share, peak)) = (share(best), share(next));
        // A counter without a budget has a smaller share than any with one.
        let (best_share, share) = (best_share.unwrap_or(-1.0), share.unwrap_or(-1.0));
        if (share, peak) > (best_share, best_peak) {
            next
        } else {
            best
        }
    })
}

/// How much longer the last device was busy than the first: 0 where all ended together, 1 where one
/// did everything. `None` for fewer than two devices.
pub(crate) fn imbalance(recording: &Recording) -> Option<f64> {
    let ends: Vec<u64> = devices(recording)
        .iter()
        .filter_map(|device| device.last)
        .collect();
    let (first, last) = (ends.iter().min()?, ends.iter().max()?);
    (ends.len() > 1 && *last > 0).then(|| (last - first) as f64 / *last as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Clock, Device, Lane, Place, Record, RecordNo, Sample, StageNo};

    fn span(lane: u32, stage: u32, begin: u64, end: u64) -> Span {
        Span {
            lane: LaneNo(lane),
            stage: StageNo(stage),
            generation: 0,
            first: RecordNo(0),
            count: 0,
            begin,
            end,
            clock: Clock::Device,
        }
    }

    #[test]
    fn time_is_counted_once_however_many_queues_are_busy() {
        let spans = [
            span(0, 0, 10, 20),
            span(0, 0, 15, 30),
            span(0, 0, 12, 14),
            span(0, 0, 40, 50),
        ];
        assert_eq!(covered(spans.iter()), Some(30));
        assert_eq!(covered([].iter()), None);
    }

    #[test]
    fn quantiles_are_lengths_that_occurred() {
        let mut recording = Recording::new("t", "p");
        recording.stage("blur");
        recording.stage("idle");
        recording.spans = (1..=100).map(|length| span(0, 0, 7, 7 + length)).collect();
        recording.spans.push(span(0, 9, 0, 1));
        let [blur] = &stages(&recording)[..] else {
            panic!("one stage did something");
        };
        assert_eq!((blur.spans, blur.total), (100, 5050));
        assert_eq!((blur.median, blur.p95, blur.longest), (50, 95, 100));
        recording.spans.truncate(1);
        let [blur] = &stages(&recording)[..] else {
            panic!("one stage did something");
        };
        assert_eq!((blur.median, blur.p95, blur.longest), (1, 1, 1));
    }

    #[test]
    fn devices_are_counted_apart() {
        let mut recording = Recording::new("t", "p");
        let gpus = [0, 1].map(|at| recording.device(Device::new(format!("gpu{at}"), "card")));
        for gpu in gpus {
            recording.lane(Lane::new("q", Place::Queue(gpu)));
        }
        recording.lane(Lane::new("host", Place::Host(gpus[1])));
        recording.spans = vec![span(0, 0, 0, 10), span(2, 0, 0, 90), span(9, 0, 0, 5)];
        recording.record(Record::new("a").done_at(0, 50).on(gpus[0]));
        recording.record(Record {
            attempts: 3,
            ..Record::new("b").failed_at(0, 100, "x").on(gpus[1])
        });
        recording.record(Record::new("c").on(DeviceNo(7)));
        let [first, second] = &devices(&recording)[..] else {
            panic!("two devices");
        };
        assert_eq!(
            (first.ok, first.failed, first.retries, first.busy),
            (1, 0, 0, Some(10))
        );
        assert_eq!(
            (second.ok, second.failed, second.retries, second.busy),
            (0, 1, 2, None)
        );
        assert_eq!(imbalance(&recording), Some(0.5));
        recording.records.truncate(1);
        assert_eq!(imbalance(&recording), None);
    }

    #[test]
    fn the_memory_that_was_nearest_to_its_limit_counts() {
        let mut recording = Recording::new("t", "p");
        let counter = |name: &str, budget, value| Counter {
            name: name.into(),
            unit: Unit::Bytes,
            device: None,
            budget,
            samples: vec![
                Sample { at: 0, value },
                Sample {
                    at: 1,
                    value: f64::NAN,
                },
            ],
        };
        assert!(tightest_memory(&recording).is_none());
        recording.counters.push(counter("free", None, 900.0));
        assert_eq!(tightest_memory(&recording).unwrap().0.name, "free");
        recording
            .counters
            .push(counter("roomy", Some(1000.0), 100.0));
        recording.counters.push(counter("tight", Some(100.0), 90.0));
        recording.counters.push(Counter {
            unit: Unit::Count,
            ..counter("slots", Some(1.0), 1.0)
        });
        let (tight, peak) = tightest_memory(&recording).unwrap();
        assert_eq!((tight.name.as_str(), peak), ("tight", 90.0));
    }
}
