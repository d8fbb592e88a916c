//! Our side of a race: images and compiled programs that stay, run when asked and timed here.
//!
//! `ours.py` beside this file has the questions and answers: one JSON object a line each way.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use warploom::io::{self, Image, Numbers};
use warploom::kernels::flow::{Flow, ValueId};
use warploom::kernels::lower::Recipe;
use warploom::kernels::op::{Given, find, image_type};
use warploom::kernels::program::{Loaded, Loader, Program, room};
use warploom::{
    CheckedQueue, DType, DeviceId, Math, MemoryKind, Options, Queue as _, QueueDesc, Slice,
    registry,
};

fn main() -> Result<()> {
    registry().setup(&Options::default())?;
    let mut server = Server::default();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        let answer = server
            .answer(&question)
            .unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Default)]
struct Server {
    images: HashMap<String, Image>,
    devices: HashMap<String, Opened>,
    programs: HashMap<u64, Prepared>,
}

/// A device in use.
struct Opened {
    loader: Loader,
    queue: CheckedQueue,
    kind: MemoryKind,
    /// Images that are there already.
    resident: HashMap<String, Slice>,
    /// What programs write to and work in: one runs at a time, as frames of a stream do.
    shared: HashMap<usize, Slice>,
}

/// A program with all that it reads and writes in place.
struct Prepared {
    device: String,
    loaded: Loaded,
    inputs: Vec<Slice>,
    outputs: Vec<Slice>,
    workspace: Option<Slice>,
}

impl Server {
    fn answer(&mut self, question: &Value) -> Result<Value> {
        let number = |name: &str| question[name].as_u64();
        if let Some(name) = question["load"].as_str() {
            let image = io::read(text(question, "path")?)?;
            self.images.insert(name.to_owned(), image);
            // What devices hold under this name is of another scene.
            for device in self.devices.values_mut() {
                device.resident.remove(name);
            }
        } else if let Some(id) = number("prepare") {
            let prepared = self.prepare(question)?;
            self.programs.insert(id, prepared);
        } else if let Some(ids) = question["run"].as_array() {
            let mut seconds = 0.0;
            for id in ids.iter().filter_map(Value::as_u64) {
                seconds = self.run(id)?;
            }
            return Ok(json!({"seconds": seconds}));
        } else if let Some(id) = number("explain") {
            let it = self.programs.get(&id).context("no such program")?;
            return Ok(serde_json::to_value(it.loaded.program().explanation())?);
        } else if let Some(name) = question["measure"].as_str() {
            self.open(name)?;
            let opened = self.devices.get(name).context("opened before")?;
            return Ok(serde_json::to_value(opened.loader.measure()?)?);
        } else if let Some(id) = number("save") {
            self.save(id, question)?;
        } else if let Some(id) = number("drop") {
            self.programs.remove(&id);
        } else {
            bail!("`{question}` is no question");
        }
        Ok(json!({"ok": true}))
    }

    fn prepare(&mut self, question: &Value) -> Result<Prepared> {
        let device = text(question, "device")?.to_owned();
        self.open(&device)?;
        let steps = list(question, "steps")?;
        let mut recipe = Recipe::new();
        let mut names: Vec<String> = Vec::new();
        let mut values: Vec<ValueId> = Vec::new();
        let mut made: Vec<ValueId> = Vec::new();
        for step in steps {
            let op = find(text(step, "op")?)?;
            let args = list(step, "args")?.iter().filter_map(Value::as_str);
            let mut inputs = Vec::new();
            for (at, input) in list(step, "inputs")?.iter().enumerate() {
                inputs.push(if let Some(earlier) = input.as_u64() {
                    let earlier = usize::try_from(earlier)?;
                    *made.get(earlier).context("no such earlier step")?
                } else {
                    let name = input.as_str().context("an input is a name or a number")?;
                    if let Some(known) = names.iter().position(|other| other == name) {
                        values[known]
                    } else {
                        let image = self.image(name)?;
                        let kind = image_type(op, at, image.dtype(), image.shape().dims())?;
                        names.push(name.to_owned());
                        values.push(recipe.image(kind));
                        values[values.len() - 1]
                    }
                });
            }
            made.push(recipe.apply(op.name, &Given::parse(args)?, &inputs)?);
        }
        for output in list(question, "outputs")? {
            let at = usize::try_from(output.as_u64().context("an output is a number")?)?;
            recipe.give(*made.get(at).context("no such step")?);
        }
        let fused = question["fused"].as_bool().unwrap_or(true);
        self.place(device, recipe.flow(), &names, fused)
    }

    /// Compiles a flow, and puts everything where it will be used.
    fn place(
        &mut self,
        device: String,
        flow: &Flow,
        names: &[String],
        fused: bool,
    ) -> Result<Prepared> {
        let images = &self.images;
        let opened = self.devices.get_mut(&device).context("opened before")?;
        let info = opened.loader.device().info();
        let program = if fused {
            Program::new(flow, info)
        } else {
            Program::unfused(flow, info)
        };
        let loaded = opened.loader.load(program)?;
        let flow = loaded.program().flow();
        let mut inputs = Vec::new();
        for (name, id) in names.iter().zip(flow.inputs()) {
            if let Some(there) = opened.resident.get(name) {
                inputs.push(there.clone());
                continue;
            }
            let slice = opened.alloc(room(&flow.kind(*id)))?;
            let bytes = images[name].bytes();
            let part = slice.part(0..bytes.len() as u64)?;
            opened.queue.upload(bytes, &part)?;
            opened.resident.insert(name.clone(), slice.clone());
            inputs.push(slice);
        }
        let outputs = (1..)
            .zip(flow.outputs())
            .map(|(at, id)| opened.lend(at, room(&flow.kind(*id))));
        let outputs = outputs.collect::<Result<Vec<Slice>>>()?;
        let workspace = match loaded.program().workspace() {
            0 => None,
            bytes => Some(opened.lend(0, bytes)?),
        };
        Ok(Prepared {
            device,
            loaded,
            inputs,
            outputs,
            workspace,
        })
    }

    /// Runs a program once, and gives the seconds from the first call to the end of its work.
    fn run(&mut self, id: u64) -> Result<f64> {
        let it = self.programs.get(&id).context("no such program")?;
        let opened = self.devices.get_mut(&it.device).context("opened before")?;
        let start = Instant::now();
        let workspace = it.workspace.as_ref();
        it.loaded
            .enqueue(&mut opened.queue, &it.inputs, &it.outputs, workspace)?;
        opened.queue.record()?.wait(None)?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn save(&mut self, id: u64, question: &Value) -> Result<()> {
        let it = self.programs.get(&id).context("no such program")?;
        let opened = self.devices.get_mut(&it.device).context("opened before")?;
        let flow = it.loaded.program().flow();
        let paths = list(question, "paths")?;
        for ((path, slice), id) in paths.iter().zip(&it.outputs).zip(flow.outputs()) {
            let path = path.as_str().context("a path is a text")?;
            let kind = flow.kind(*id);
            let mut bytes = vec![0; usize::try_from(kind.bytes())?];
            opened
                .queue
                .download(&slice.part(0..kind.bytes())?, &mut bytes)?;
            if let Some(image) = kind.image() {
                let shape = warploom::Shape::new(image.shape())?;
                io::write(path, &Image::from_bytes(image.dtype, shape, &bytes)?)?;
            } else {
                ensure!(kind.dtype() == DType::F64, "only numbers can be saved");
                let numbers = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned);
                io::write_numbers(path, &Numbers::list(numbers.collect()))?;
            }
        }
        Ok(())
    }

    fn open(&mut self, name: &str) -> Result<()> {
        if self.devices.contains_key(name) {
            return Ok(());
        }
        let id: DeviceId = name.parse()?;
        let device = registry().open(id)?;
        let kind = device
            .info()
            .local_kind()
            .context("no memory for kernels")?;
        let queue = device.queue(&QueueDesc::named("race"))?;
        let opened = Opened {
            loader: Loader::new(device, Math::Strict),
            queue,
            kind,
            resident: HashMap::new(),
            shared: HashMap::new(),
        };
        self.devices.insert(name.to_owned(), opened);
        Ok(())
    }

    fn image(&self, name: &str) -> Result<&Image> {
        self.images
            .get(name)
            .with_context(|| format!("no image `{name}` was loaded"))
    }
}

impl Opened {
    fn alloc(&self, bytes: u64) -> Result<Slice> {
        Ok(Slice::whole(&self.loader.device().alloc(self.kind, bytes)?))
    }

    /// Memory that the next program under the same number has too.
    fn lend(&mut self, number: usize, bytes: u64) -> Result<Slice> {
        if let Some(there) = self.shared.get(&number)
            && let Ok(part) = there.part(0..bytes)
        {
            return Ok(part);
        }
        let slice = self.alloc(bytes)?;
        self.shared.insert(number, slice.clone());
        Ok(slice)
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value[name]
        .as_str()
        .with_context(|| format!("`{name}` is missing in {value}"))
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value]> {
    let list = value[name].as_array();
    list.map(Vec::as_slice)
        .with_context(|| format!("`{name}` is missing in {value}"))
}
