//! A recording as a trace that Perfetto opens (`ui.perfetto.dev`, or `chrome://tracing`).
//!
//! The format is trace events in JSON, not Perfetto's own protobuf: every viewer of traces reads
//! it, people and scripts can too, and it needs no generated code. What protobuf would save is
//! size, and compressed files of both are about as large.
//!
//! | of a recording | becomes |
//! | --- | --- |
//! | a device | a process, named `gpu0 · its name`, in the order of the recording |
//! | threads that work for all | the process `host` |
//! | a lane | a thread; where spans of one lane overlap without nesting, as many as are needed |
//! | a span | a complete event (`X`) in microseconds with three decimals: nothing is rounded |
//! | stages of one generation | a flow, from each span to the next |
//! | a counter | a counter track of its device, and one for its budget |
//! | a mark | an instant event of its device, or of all |
//! | everything else | `otherData` |
//!
//! Spans with times of the device itself have the category `device`, others `host`.

mod event;
mod track;

use std::io::{self, Write};

use event::Events;
use track::Tracks;

use crate::recording::{DeviceNo, Recording, Span, Unit};

/// Writes the trace of a recording. What does not fit together in the recording is left out; see
/// [`Recording::flaws`].
///
/// # Errors
/// Only those of `out`.
///
/// ```
/// use warploom_watch::{Recording, trace};
///
/// let mut bytes = Vec::new();
/// trace(&Recording::new("plate 7", "nuclei"), &mut bytes)?;
/// let trace: serde_json::Value = serde_json::from_slice(&bytes)?;
/// assert_eq!(trace["displayTimeUnit"], "ns");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trace(recording: &Recording, out: impl Write) -> io::Result<()> {
    let tracks = Tracks::of(recording);
    let mut events = Events::begin(out)?;
    processes(recording, &tracks, &mut events)?;
    for (span, track) in tracks.placed() {
        let label = label(recording, &span);
        events.span(&span, recording.stage_name(span.stage), track, label)?;
    }
    flows(&tracks, &mut events)?;
    counters(recording, &mut events)?;
    for mark in &recording.marks {
        events.mark(mark, process(recording, mark.device))?;
    }
    events.end(recording)
}

/// The process of threads that work for no device in particular.
const HOST: u32 = 1;

/// The process of a device.
fn process(recording: &Recording, device: Option<DeviceNo>) -> u32 {
    match device {
        Some(device) if device.index() < recording.devices.len() => HOST + 1 + device.0,
        _ => HOST,
    }
}

fn processes<W: Write>(
    recording: &Recording,
    tracks: &Tracks,
    events: &mut Events<W>,
) -> io::Result<()> {
    events.process(HOST, "host", 0)?;
    for (at, device) in recording.devices.iter().enumerate() {
        let pid = process(recording, Some(DeviceNo::at(at)));
        events.process(pid, &format!("{} · {}", device.label, device.name), pid)?;
    }
    for track in tracks.all() {
        events.thread(track.at, &track.name(recording))?;
    }
    Ok(())
}

/// The records of a span, by name where it is one.
fn label<'r>(recording: &'r Recording, span: &Span) -> Option<&'r str> {
    let record = recording.records.get(span.first.index())?;
    (span.count == 1).then_some(record.name.as_str())
}

/// One flow for each generation that has more than one span.
fn flows<W: Write>(tracks: &Tracks, events: &mut Events<W>) -> io::Result<()> {
    let mut steps: Vec<(Span, track::Address)> = tracks.placed().collect();
    steps.retain(|(span, _)| span.count > 0);
    steps.sort_by_key(|(span, track)| (span.generation, span.begin, span.end, track.tid));
    for generation in steps.chunk_by(|(a, _), (b, _)| a.generation == b.generation) {
        if let [first, between @ .., last] = generation {
            events.flow("s", first)?;
            for step in between {
                events.flow("t", step)?;
            }
            events.flow("f", last)?;
        }
    }
    Ok(())
}

fn counters<W: Write>(recording: &Recording, events: &mut Events<W>) -> io::Result<()> {
    for counter in &recording.counters {
        let pid = process(recording, counter.device);
        let unit = match counter.unit {
            Unit::Bytes => " (bytes)",
            Unit::RecordsPerSecond => " (records/s)",
            Unit::Share => " (share)",
            Unit::Count => "",
        };
        let name = format!("{}{unit}", counter.name);
        for sample in counter
            .samples
            .iter()
            .filter(|sample| sample.value.is_finite())
        {
            events.sample(&name, pid, sample.at, sample.value)?;
        }
        if let Some(budget) = counter.budget.filter(|budget| budget.is_finite()) {
            let name = format!("{}: budget{unit}", counter.name);
            events.sample(&name, pid, 0, budget)?;
            events.sample(&name, pid, recording.wall, budget)?;
        }
    }
    Ok(())
}
