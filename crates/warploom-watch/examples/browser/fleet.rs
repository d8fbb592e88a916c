//! A recording like that of a run on several devices: workers in lanes of their own, some of whom die.

use warploom_watch::Recording;
use warploom_watch::recording::{
    Clock, Device, Lane, Mark, Occasion, Part, Place, Record, RecordNo, Span,
};

const MS: u64 = 1_000_000;
/// Records of a batch.
const BATCH: u32 = 6;
/// How long a batch takes on each of the cards.
const TIMES: [u64; 4] = [40 * MS, 40 * MS, 60 * MS, 110 * MS];

/// Batches of four cards with two workers each, gathered as they would be from files of workers.
pub(crate) fn run(batches: u32) -> Recording {
    let mut recording = Recording::new("Plate 7 on four cards", "nuclei");
    recording.started = 1_795_170_600_000;
    for number in 0..batches * BATCH {
        recording.record(Record::new(format!("w{number:04}")));
    }
    let mut free = [0_u64; 8];
    let mut parts = Vec::new();
    for batch in 0..batches {
        let worker = (0..8).min_by_key(|&worker| free[worker]).unwrap_or(0);
        let (card, begin) = (worker / 2, free[worker]);
        let end = begin + TIMES[card];
        free[worker] = end;
        let first = batch * BATCH;
        parts.push(part(worker, begin, end, first));
        for number in first..first + BATCH {
            let device = warploom_watch::recording::DeviceNo::at(card);
            let record = &mut recording.records[number as usize];
            *record = record.clone().done_at(begin, end).on(device);
            // What was on the third card when its worker died was done again.
            if card == 2 && number % 40 < BATCH {
                record.attempts = 2;
            }
        }
    }
    for card in 0..TIMES.len() {
        recording.device(Device::new(format!("cuda:{card}"), "NVIDIA L40").face("cuda"));
    }
    recording.absorb_parts(parts);
    recording.wall = free.into_iter().max().unwrap_or(0) + MS;
    let wall = recording.wall;
    let marks = [
        (
            20,
            Occasion::Lost,
            "it ended by signal 11; 6 records were under way",
        ),
        (21, Occasion::Retry, "6 records are tried again"),
        (
            40,
            Occasion::Quarantine,
            "3 batches in a row came to grief on it",
        ),
        (55, Occasion::Readmitted, "it passed its probe"),
    ];
    for (percent, occasion, text) in marks {
        recording.marks.push(Mark {
            at: wall * percent / 100,
            device: Some(warploom_watch::recording::DeviceNo(2)),
            occasion,
            text: text.into(),
        });
    }
    recording
}

fn part(worker: usize, begin: u64, end: u64, first: u32) -> Part {
    let mut recording = Recording::default();
    let label = format!("cuda:{}", worker / 2);
    let device = recording.device(Device::new(label, "NVIDIA L40"));
    let name = format!("worker {}", worker % 2 + 1);
    let lane = recording.lane(Lane::new(name, Place::Queue(device)));
    let stage = recording.stage("batch");
    recording.spans.push(Span {
        lane,
        stage,
        generation: 0,
        first: RecordNo(0),
        count: BATCH,
        begin: 0,
        end: end - begin,
        clock: Clock::Host,
    });
    Part {
        recording,
        later: begin,
        records: vec![RecordNo(first)],
    }
}
