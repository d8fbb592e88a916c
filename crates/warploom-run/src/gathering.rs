//! What workers recorded of their stages, put into the recording of the whole run.
//!
//! Each worker has a file of its own below the folder of the run, and adds a line whenever its stages have
//! come to an end. A worker that is killed takes what it did since with it; its batches are in the journal.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use warploom_watch::Recording;
use warploom_watch::recording::Part;

use crate::folder::About;

/// The folder with what workers recorded.
pub(crate) const RECORDINGS: &str = "recordings";

/// What a worker's stages did from one start to their end.
#[derive(Serialize, Deserialize)]
struct Stretch {
    /// When its clock stood at nothing, in nanoseconds since 1970.
    at: u64,
    recording: Recording,
}

/// The file of a worker in the folder of its slot's recordings.
pub(crate) fn file_name(slot: usize) -> String {
    format!("slot-{slot}-{}.jsonl", std::process::id())
}

/// Adds what a worker's stages did, whose clock says that they began so long ago.
pub(crate) fn keep(path: &Path, recording: Recording, ago: Duration) -> io::Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().saturating_sub(ago);
    let at = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut line = serde_json::to_vec(&Stretch { at, recording })?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(&line)
}

/// Puts what workers kept in the folder of a run into its recording.
pub(crate) fn gather(run: &Path, about: &About, into: &mut Recording) {
    let files = fs::read_dir(run.join(RECORDINGS)).into_iter().flatten();
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = files.collect();
    files.sort();
    let mut parts = Vec::new();
    for path in files {
        let name = path.file_name().and_then(|name| name.to_str());
        let slot =
            name.and_then(|name| name.strip_prefix("slot-")?.split('-').next()?.parse().ok());
        let Some(place) = slot.and_then(|slot| place(about, slot)) else {
            continue;
        };
        let Ok(bytes) = fs::read(&path) else { continue };
        // A line that its writer did not finish is none.
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for line in lines {
            if let Ok(stretch) = serde_json::from_slice::<Stretch>(line) {
                parts.push(part(stretch, about.started, &place));
            }
        }
    }
    into.absorb_parts(parts);
}

/// A slot's device as people know it, and what tells its workers apart.
struct Spot {
    label: String,
    mark: String,
}

fn place(about: &About, slot: u32) -> Option<Spot> {
    let mut before = 0;
    for device in &about.devices {
        if slot < before + device.workers {
            let mark = match device.workers {
                1 => String::new(),
                _ => format!(" {}", slot - before + 1),
            };
            let label = device.label.clone();
            return Some(Spot { label, mark });
        }
        before += device.workers;
    }
    None
}

fn part(stretch: Stretch, started: u64, spot: &Spot) -> Part {
    let mut recording = stretch.recording;
    // A worker that sees nothing but its own card calls it as others call theirs.
    for device in &mut recording.devices {
        device.label.clone_from(&spot.label);
    }
    for lane in &mut recording.lanes {
        lane.name.push_str(&spot.mark);
    }
    for counter in &mut recording.counters {
        counter.name.push_str(&spot.mark);
    }
    Part {
        recording,
        later: stretch.at.saturating_sub(started.saturating_mul(1_000_000)),
        records: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::AboutDevice;
    use warploom_watch::recording::{Clock, Device, DeviceNo, Lane, Place, RecordNo, Span};

    fn stage(lane: &str, end: u64) -> Recording {
        let mut recording = Recording::default();
        let device = recording.device(Device::new("gpu0", "card"));
        let lane = recording.lane(Lane::new(lane, Place::Queue(device)));
        let stage = recording.stage("work");
        recording.spans.push(Span {
            lane,
            stage,
            generation: 0,
            first: RecordNo(0),
            count: 0,
            begin: 0,
            end,
            clock: Clock::Device,
        });
        recording.wall = end;
        recording
    }

    #[test]
    fn workers_of_several_devices_become_lanes_of_theirs() {
        let run = tempfile::tempdir().unwrap();
        let device = |label: &str, workers| AboutDevice {
            label: label.into(),
            workers,
            ..AboutDevice::default()
        };
        let about = About {
            started: 1_000,
            devices: vec![device("cuda:0", 1), device("cuda:1", 2)],
            ..About::default()
        };
        let folder = run.path().join(RECORDINGS);
        for (name, times) in [
            ("slot-0-7", 2),
            ("slot-1-8", 1),
            ("slot-2-9", 1),
            ("slot-9-1", 1),
        ] {
            for _ in 0..times {
                let path = folder.join(format!("{name}.jsonl"));
                keep(&path, stage("compute", 50), Duration::ZERO).unwrap();
            }
        }
        // What a worker was writing when it was killed, and what is none of ours.
        let mut torn = fs::read(folder.join("slot-2-9.jsonl")).unwrap();
        torn.extend(b"{\"at\": 5, \"recor");
        fs::write(folder.join("slot-2-9.jsonl"), torn).unwrap();
        fs::write(folder.join("notes.txt"), "x").unwrap();
        let mut recording = Recording::new("t", "p");
        for label in ["cuda:0", "cuda:1"] {
            recording.device(Device::new(label, "card"));
        }
        gather(run.path(), &about, &mut recording);
        assert_eq!(recording.flaws(), []);
        let lanes: Vec<_> = recording
            .lanes
            .iter()
            .map(|lane| (&lane.name[..], lane.place.device()))
            .collect();
        let on = |number| Some(DeviceNo(number));
        assert_eq!(
            lanes,
            [
                ("compute", on(0)),
                ("compute 1", on(1)),
                ("compute 2", on(1))
            ]
        );
        assert_eq!((recording.devices.len(), recording.spans.len()), (2, 4));
        assert!(recording.spans.iter().all(|span| span.begin > 0));
    }
}
