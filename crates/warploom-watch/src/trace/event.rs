//! Trace events as they are written.

use std::fmt;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::track::Address;
use crate::recording::{Clock, Mark, Recording, Span};

/// A JSON array of events that is being written.
///
/// Written by hand and not through a tree of values: a trace has hundreds of thousands of events,
/// and times must not become floating-point numbers.
#[derive(Debug)]
pub(super) struct Events<W: Write> {
    out: BufWriter<W>,
    first: bool,
}

/// Nanoseconds as microseconds, exactly.
struct Microseconds(u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A JSON string.
struct Text<'t>(&'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A string can always be written as JSON.
        let text = serde_json::to_string(self.0).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

impl<W: Write> Events<W> {
    pub(super) fn begin(out: W) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Self { out, first: true })
    }

    fn put(&mut self, event: fmt::Arguments<'_>) -> io::Result<()> {
        self.out
            .write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        self.out.write_fmt(event)
    }

    pub(super) fn process(&mut self, pid: u32, name: &str, sort: u32) -> io::Result<()> {
        let name = Text(name);
        self.put(format_args!(
            r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":{name}}}}}"#
        ))?;
        self.put(format_args!(
            r#"{{"ph":"M","pid":{pid},"name":"process_sort_index","args":{{"sort_index":{sort}}}}}"#
        ))
    }

    pub(super) fn thread(&mut self, at: Address, name: &str) -> io::Result<()> {
        let (Address { pid, tid }, name) = (at, Text(name));
        self.put(format_args!(
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{{"name":{name}}}}}"#
        ))?;
        self.put(format_args!(
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_sort_index","args":{{"sort_index":{tid}}}}}"#
        ))
    }

    pub(super) fn span(
        &mut self,
        span: &Span,
        stage: &str,
        at: Address,
        record: Option<&str>,
    ) -> io::Result<()> {
        let Address { pid, tid } = at;
        let category = match span.clock {
            Clock::Host => "host",
            Clock::Device => "device",
        };
        let (begin, length) = (Microseconds(span.begin), Microseconds(span.length()));
        let (name, generation) = (Text(stage), span.generation);
        self.put(format_args!(
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{begin},"dur":{length},"name":{name},"cat":"{category}","args":{{"generation":{generation},"records":{}"#,
            span.count
        ))?;
        if span.count > 0 {
            write!(self.out, r#","first record":{}"#, span.first.0)?;
        }
        if let Some(record) = record {
            write!(self.out, r#","record":{}"#, Text(record))?;
        }
        self.out.write_all(b"}}")
    }

    /// A step of a flow: `s`tart, s`t`ep, `f`inish. It belongs to the span in which it lies, so it
    /// is put at that span's beginning.
    pub(super) fn flow(&mut self, phase: &str, (span, at): &(Span, Address)) -> io::Result<()> {
        let Address { pid, tid } = at;
        let (begin, id) = (Microseconds(span.begin), span.generation);
        let binding = if phase == "f" { r#","bp":"e""# } else { "" };
        self.put(format_args!(
            r#"{{"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{begin},"id":{id},"name":"generation","cat":"flow"{binding}}}"#
        ))
    }

    pub(super) fn sample(&mut self, name: &str, pid: u32, at: u64, value: f64) -> io::Result<()> {
        let (name, at) = (Text(name), Microseconds(at));
        self.put(format_args!(
            r#"{{"ph":"C","pid":{pid},"ts":{at},"name":{name},"args":{{"value":{value}}}}}"#
        ))
    }

    pub(super) fn mark(&mut self, mark: &Mark, pid: u32) -> io::Result<()> {
        let (at, text) = (Microseconds(mark.at), Text(&mark.text));
        let scope = if mark.device.is_some() { "p" } else { "g" };
        let category = mark.occasion.word();
        self.put(format_args!(
            r#"{{"ph":"i","pid":{pid},"tid":0,"ts":{at},"s":"{scope}","name":{text},"cat":"{category}"}}"#
        ))
    }

    /// Closes the list, and adds what has no place in it.
    pub(super) fn end(mut self, recording: &Recording) -> io::Result<()> {
        let tally = recording.tally();
        let rest = Rest {
            title: &recording.title,
            pipeline: &recording.pipeline,
            plan: &recording.plan,
            started_ms: recording.started,
            wall_ns: recording.wall,
            ok: tally.ok,
            failed: tally.failed,
            skipped: tally.skipped,
            not_started: tally.not_started,
            bound_records_per_second: recording.bound(),
            notes: &recording.notes,
        };
        self.out.write_all(b"\n],\"otherData\":")?;
        serde_json::to_writer(&mut self.out, &rest)?;
        self.out.write_all(b"}\n")?;
        self.out.flush()
    }
}

/// `otherData` of a trace.
#[derive(Serialize)]
struct Rest<'r> {
    title: &'r str,
    pipeline: &'r str,
    plan: &'r str,
    started_ms: u64,
    wall_ns: u64,
    ok: u64,
    failed: u64,
    skipped: u64,
    not_started: u64,
    bound_records_per_second: Option<f64>,
    notes: &'r [String],
}
