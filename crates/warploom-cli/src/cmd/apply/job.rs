//! One operation, its images and where its result goes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use warploom::io::{self, Image};
use warploom::kernels::flow::Flow;
use warploom::kernels::lower::{ROWS, lower, lower_rows};
use warploom::kernels::op::{Given, OpCall, OpInfo, Params, ValueType, find, image_type};
use warploom::kernels::program::{Loaded, Program};

use super::machine::Machine;
use super::outcome::{self, Outcome};
use crate::report::Problem;

/// A job that makes sense, with its images read.
#[derive(Debug)]
pub(super) struct Job {
    call: OpCall,
    inputs: Vec<(PathBuf, Image)>,
    output: PathBuf,
    read: Duration,
}

impl Job {
    /// Reads the images and checks everything that can be checked before something is computed.
    pub(super) fn new(
        op: &str,
        params: &[String],
        inputs: &[PathBuf],
        output: PathBuf,
    ) -> Result<Self, Problem> {
        let op = find(op)?;
        Self::of(op, params, inputs, output).map_err(|problem| problem.about(op.name))
    }

    fn of(
        op: &'static OpInfo,
        params: &[String],
        inputs: &[PathBuf],
        output: PathBuf,
    ) -> Result<Self, Problem> {
        // Before the images are read, which may be large.
        let params = Params::read(op, &Given::parse(params)?)?;
        let start = Instant::now();
        let mut images = Vec::new();
        let mut types = Vec::new();
        for (at, path) in inputs.iter().enumerate() {
            let image = io::read(path)?;
            types.push(image_type(op, at, image.dtype(), image.shape().dims())?);
            images.push((path.clone(), image));
        }
        let read = start.elapsed();
        let call = OpCall::with(op, params, &types)?;
        outcome::check(&output, call.output())?;
        Ok(Self {
            call,
            inputs: images,
            output,
            read,
        })
    }

    pub(super) fn op(&self) -> &'static OpInfo {
        self.call.op
    }

    fn load(machine: &Machine, flow: &Flow) -> Result<Loaded, Problem> {
        let program = Program::with(flow, machine.info(), machine.fusion());
        Ok(machine.loader().load(program)?)
    }

    /// Computes the result and writes it.
    pub(super) fn run<'j>(&'j self, machine: &'j Machine) -> Result<Report<'j>, Problem> {
        let start = Instant::now();
        let mut loaded = Self::load(machine, &lower(&self.call))?;
        let prepared = start.elapsed();
        let start = Instant::now();
        let inputs: Vec<&[u8]> = self.inputs.iter().map(|(_, image)| image.bytes()).collect();
        let device = machine.loader().device();
        let mut bytes = loaded.run(device, &inputs)?.swap_remove(0);
        let rows = outcome::rows(self.call.output(), &bytes);
        if let Some(rows) = rows.filter(|rows| *rows > ROWS) {
            loaded = Self::load(machine, &lower_rows(&self.call, rows))?;
            bytes = loaded.run(device, &inputs)?.swap_remove(0);
        }
        let flow = loaded.program().flow();
        let dtype = flow.kind(flow.outputs()[0]).dtype();
        let outcome = Outcome::new(self.call.output(), dtype, &bytes)?;
        let computed = start.elapsed();
        let start = Instant::now();
        outcome.write(&self.output)?;
        let wrote = start.elapsed();
        Ok(Report {
            schema: 1,
            op: self.call.op.name,
            params: self.call.params.to_string(),
            device: DeviceAnswer {
                id: machine.info().id.to_string(),
                name: &machine.info().name,
                software: machine.info().software,
            },
            math: machine.math(),
            on_host: loaded.program().detours(),
            inputs: self.inputs.iter().map(FileAnswer::of).collect(),
            output: &self.output,
            result: self.call.output(),
            ms: Times {
                read: ms(self.read),
                prepare: ms(prepared),
                compute: ms(computed),
                write: ms(wrote),
            },
        })
    }
}

/// `gaussian(sigma=2) of 512x512 u16`.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images: Vec<String> = self.call.inputs.iter().map(ToString::to_string).collect();
        write!(f, "{} of {}", self.call, images.join(" and "))
    }
}

/// What was done, for people and as JSON.
#[derive(Serialize, Debug)]
pub(super) struct Report<'j> {
    schema: u32,
    op: &'static str,
    params: String,
    device: DeviceAnswer<'j>,
    math: &'static str,
    /// Parts that ran on the host although the device is another.
    on_host: Vec<&'static str>,
    inputs: Vec<FileAnswer<'j>>,
    output: &'j Path,
    result: &'j ValueType,
    ms: Times,
}

#[derive(Serialize, Debug)]
struct DeviceAnswer<'j> {
    id: String,
    name: &'j str,
    software: bool,
}

#[derive(Serialize, Debug)]
struct FileAnswer<'j> {
    path: &'j Path,
    dtype: &'static str,
    shape: &'j [u64],
}

impl<'j> FileAnswer<'j> {
    fn of((path, image): &'j (PathBuf, Image)) -> Self {
        Self {
            path,
            dtype: image.dtype().name(),
            shape: image.shape().dims(),
        }
    }
}

/// Milliseconds.
#[derive(Serialize, Debug)]
struct Times {
    read: f64,
    prepare: f64,
    compute: f64,
    write: f64,
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// `smooth.tif: 512x512 f32 (read 3.1 ms, …)`.
impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Times {
            read,
            prepare,
            compute,
            write,
        } = self.ms;
        write!(
            f,
            "{}: {} (read {read:.1} ms, prepare {prepare:.1}, compute {compute:.1}, write {write:.1})",
            self.output.display(),
            self.result,
        )?;
        if self.on_host.is_empty() {
            return Ok(());
        }
        write!(f, "\nran on the host: {}", self.on_host.join(", "))
    }
}
