//! Recordings that look like runs: a plate over two cards of different speed, with some trouble.

use warploom_watch::Recording;
use warploom_watch::recording::{
    Bound, Clock, Counter, Device, DeviceNo, Edge, Lane, LaneNo, Mark, Occasion, Outcome, Picture,
    Place, Record, RecordNo, Sample, Span, StageNo, Thumbnail, Unit,
};

use crate::nuclei;

const MS: u64 = 1_000_000;
const DEPTH: usize = 3;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    /// Between 0.85 and 1.25 of a time, rarely twice of it.
    fn near(&mut self, time: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let draw = self.0 >> 33;
        let share = 850 + draw % 400 + if draw.is_multiple_of(97) { 1_000 } else { 0 };
        time * share / 1_000
    }
}

/// One card: where its lanes are, when they are free, and how long its stages take.
struct Card {
    device: DeviceNo,
    lanes: [LaneNo; 3],
    free: [u64; 3],
    times: [u64; 3],
    slots: [u64; DEPTH],
    memory: Vec<(u64, f64)>,
}

/// The stages of a batch, in their order.
const STAGES: [&str; 5] = ["read", "upload", "segment", "download", "write"];

/// A run of so many records.
pub(crate) fn plate(records: u32) -> Recording {
    let mut recording = Recording::new("Plate 7 · screen 2026-11", "nuclei");
    recording.plan = "b5c1f09e77d2a4416c0e".into();
    recording.started = 1_795_170_600_000;
    let mut dice = Dice(7);
    let stages = STAGES.map(|name| recording.stage(name));
    let readers = [1, 2].map(|at| recording.lane(Lane::new(format!("read {at}"), Place::Shared)));
    let writer = recording.lane(Lane::new("write", Place::Shared));
    let cards = [
        (
            "gpu0",
            "NVIDIA RTX A5000",
            "cuda:0",
            [3 * MS, 11 * MS, 2 * MS],
        ),
        (
            "gpu1",
            "Radeon PRO W7900",
            "opencl:0",
            [3 * MS, 19 * MS, 3 * MS],
        ),
    ];
    let mut cards = cards.map(|(label, name, face, times)| {
        let device = recording.device(Device::new(label, name).face(face));
        let lanes = ["upload", "compute", "download"];
        let lanes = lanes.map(|name| recording.lane(Lane::new(name, Place::Queue(device))));
        let (free, slots, memory) = ([0; 3], [0; DEPTH], Vec::new());
        Card {
            device,
            lanes,
            free,
            times,
            slots,
            memory,
        }
    });
    let (mut readers_free, mut writer_free) = ([4 * MS, 5 * MS], 0);
    for number in 0..records {
        let generation = u64::from(number);
        let card = usize::from(cards[0].slots.iter().min() > cards[1].slots.iter().min());
        let card = &mut cards[card];
        let slot = (0..DEPTH).min_by_key(|&slot| card.slots[slot]).unwrap_or(0);
        let first = RecordNo(number);
        let mut put = |lane, stage: StageNo, begin, end, clock| {
            recording.spans.push(Span {
                lane,
                stage,
                generation,
                first,
                count: 1,
                begin,
                end,
                clock,
            });
        };
        let reader = usize::from(readers_free[1] < readers_free[0]);
        let begin = readers_free[reader].max(card.slots[slot].saturating_sub(8 * MS));
        let mut now = begin + dice.near(7 * MS);
        readers_free[reader] = now;
        put(readers[reader], stages[0], begin, now, Clock::Host);
        card.memory.push((card.slots[slot].max(now), 412e6));
        now = now.max(card.slots[slot]);
        for (at, stage) in stages[1..4].iter().enumerate() {
            let begin = now.max(card.free[at]) + 40_000;
            now = begin + dice.near(card.times[at]);
            card.free[at] = now;
            put(card.lanes[at], *stage, begin, now, Clock::Device);
        }
        let write = now.max(writer_free) + 30_000;
        now = write + dice.near(3 * MS);
        writer_free = now;
        put(writer, stages[4], write, now, Clock::Host);
        card.slots[slot] = now;
        card.memory.push((now, -412e6));
        recording.record(ended(number, begin, now, card.device));
    }
    recording.wall = recording
        .spans
        .iter()
        .map(|span| span.end)
        .max()
        .unwrap_or(0)
        + 6 * MS;
    describe(&mut recording, &cards);
    recording
}

fn ended(number: u32, begin: u64, end: u64, device: DeviceNo) -> Record {
    let well = format!(
        "{}{:02}_s{}",
        char::from(b'A' + (number / 48 % 16) as u8),
        number / 4 % 12 + 1,
        number % 4 + 1
    );
    let record = Record::new(well).on(device);
    match number {
        number if number % 61 == 17 => {
            let mut record = record.failed_at(
                begin,
                end,
                "the file is 1.2 MiB long and says it holds 8.0 MiB of pixels",
            );
            if let Outcome::Failed { code, .. } = &mut record.outcome {
                *code = Some("WL0705".into());
            }
            record
        }
        number if number % 97 == 5 => Record {
            attempts: 2,
            ..record.done_at(begin, end)
        },
        _ => record.done_at(begin, end),
    }
}

/// All that is not lanes.
fn describe(recording: &mut Recording, cards: &[Card; 2]) {
    for (card, budget) in cards.iter().zip([1.5e9, 1.3e9]) {
        let mut changes = card.memory.clone();
        changes.sort_by_key(|change| change.0);
        let mut samples = vec![Sample { at: 0, value: 68e6 }];
        let mut value = 68e6;
        for (at, change) in changes {
            value += change;
            samples.push(Sample { at, value });
        }
        recording.counters.push(Counter {
            name: "memory".into(),
            unit: Unit::Bytes,
            device: Some(card.device),
            budget: Some(budget),
            samples,
        });
    }
    let bounds = [
        (88.0, "queue compute: segment"),
        (51.0, "queue compute: segment"),
    ];
    for (card, (records_per_second, limit)) in cards.iter().zip(bounds) {
        recording.bounds.push(Bound {
            device: Some(card.device),
            records_per_second,
            limit: limit.into(),
        });
    }
    let edges = [
        ("read -> upload", "pixels are in staging", 384, 240),
        (
            "upload -> segment",
            "the frame is on the device",
            384,
            1_310,
        ),
        (
            "segment -> download",
            "labels and table are complete",
            384,
            2_720,
        ),
        ("download -> write", "labels are in host memory", 384, 610),
        ("write -> read", "the slot may be used again", 378, 95),
    ];
    for (name, guards, waits, ms) in edges {
        recording.edges.push(Edge {
            name: name.into(),
            guards: guards.into(),
            device: Some(cards[0].device),
            waits,
            blocked: ms * MS,
        });
    }
    let wall = recording.wall;
    let marks = [
        (
            wall * 55 / 100,
            Occasion::Quarantine,
            "two failures in a row: out of memory",
        ),
        (wall * 61 / 100, Occasion::Readmitted, "passed its test"),
    ];
    for (at, occasion, text) in marks {
        recording.marks.push(Mark {
            at,
            device: Some(cards[1].device),
            occasion,
            text: text.into(),
        });
    }
    recording
        .notes
        .push("gpu1 also shows as wgpu:0; its OpenCL face was faster when measured.".into());
    for record in [0, 9, 30, 52]
        .map(RecordNo)
        .into_iter()
        .filter(|at| at.index() < recording.records.len())
    {
        let (before, after) = nuclei::pair(record.0);
        recording.thumbnails.push(Thumbnail {
            record,
            label: "labels".into(),
            before: Some(Picture(before)),
            after: Some(Picture(after)),
        });
    }
}

/// One in which every text tries to become code.
pub(crate) fn hostile() -> Recording {
    let evil = "</script></style><img src=x onerror=\"document.title='harmed'\"><script>document.title='harmed'</script>&quot;`${document.title='harmed'}`\u{2028}";
    let mut recording = plate(20);
    let texts = [
        &mut recording.title,
        &mut recording.pipeline,
        &mut recording.plan,
    ];
    for text in texts {
        *text = evil.into();
    }
    for stage in &mut recording.stages {
        stage.push_str(evil);
    }
    for device in &mut recording.devices {
        (device.label, device.name, device.faces) = (evil.into(), evil.into(), vec![evil.into()]);
    }
    for lane in &mut recording.lanes {
        lane.name = evil.into();
    }
    for counter in &mut recording.counters {
        counter.name = evil.into();
    }
    for edge in &mut recording.edges {
        (edge.name, edge.guards) = (evil.into(), evil.into());
    }
    for bound in &mut recording.bounds {
        bound.limit = evil.into();
    }
    for mark in &mut recording.marks {
        mark.text = evil.into();
    }
    for record in &mut recording.records {
        record.name = evil.into();
        record.outcome = Outcome::Failed {
            reason: evil.into(),
            code: Some(evil.into()),
        };
    }
    for thumbnail in &mut recording.thumbnails {
        thumbnail.label = evil.into();
    }
    recording.notes.push(evil.into());
    recording
}
