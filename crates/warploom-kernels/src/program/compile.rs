//! From a flow to steps on a device.

use std::sync::Arc;

use warploom_core::DeviceInfo;

use super::explanation::Explanation;
use super::layout::{Layout, Lifetime, lay_out};
use super::over::{self, Over};
use crate::cpu::Pass;
use crate::flow::{Flow, ValueId, ValueKind};
use crate::fuse::{Fused, Options, fuse};
use crate::gpu::{self, Constant, Launch, LaunchArg, Plan, Tuning};

/// Something a program does.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Runs a kernel. Scratch numbers count from the program's values on.
    Launch(Launch),
    /// Runs nodes of the flow in Rust: on the CPU backend as a kernel like any other, elsewhere
    /// on the host, with copies there and back.
    Host(Pass),
}

/// A flow compiled for one sort of device. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    flow: Arc<Flow>,
    explanation: Explanation,
    tuning: Option<Tuning>,
    steps: Vec<Step>,
    constants: Vec<Constant>,
    temps: Vec<Temp>,
    layout: Layout,
    touched: Touched,
    over: Over,
    /// Inputs that lie where an output is written, by their places.
    replaced: Vec<(usize, usize)>,
}

/// The first and the last step that touch something; `None` when none does.
type Span = Option<(usize, usize)>;

/// When values and scratch are touched, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Touched {
    values: Vec<Span>,
    scratch: Vec<Span>,
}

impl Touched {
    fn by(steps: &[Step], values: usize, scratch: usize) -> Self {
        let mut touched = Self {
            values: vec![None; values],
            scratch: vec![None; scratch],
        };
        for (at, step) in steps.iter().enumerate() {
            let touch = |span: &mut Span| *span = Some((span.map_or(at, |(first, _)| first), at));
            match step {
                Step::Host(pass) => {
                    for id in pass.inputs.iter().chain(&pass.outputs) {
                        touch(&mut touched.values[*id as usize]);
                    }
                }
                Step::Launch(launch) => {
                    for arg in &launch.args {
                        match arg {
                            LaunchArg::Value(id) => touch(&mut touched.values[*id as usize]),
                            LaunchArg::Scratch(number) => {
                                touch(&mut touched.scratch[*number as usize]);
                            }
                            LaunchArg::Constant(_) | LaunchArg::Number(_) => {}
                        }
                    }
                }
            }
        }
        touched
    }

    /// How long a piece of memory is needed, by its number.
    fn lifetime(&self, number: usize, temp: Temp) -> Lifetime {
        let span = match temp.value {
            Some(id) => self.values[id as usize],
            None => self.scratch[number],
        };
        let (first, last) = span.unwrap_or((0, 0));
        Lifetime {
            bytes: temp.bytes,
            first,
            last,
        }
    }
}

/// Memory that only the program uses: an inner value, or scratch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Temp {
    /// The value; scratch has none.
    value: Option<ValueId>,
    bytes: u64,
}

/// Bytes a value is given: whole words, for devices that know nothing smaller.
pub fn room(kind: &ValueKind) -> u64 {
    whole_words(kind.bytes())
}

/// Whole words, one at least.
fn whole_words(bytes: u64) -> u64 {
    bytes.next_multiple_of(4).max(4)
}

impl Program {
    /// Compiles `flow` for a device, with as few passes over memory as fusion finds.
    pub fn new(flow: &Flow, info: &DeviceInfo) -> Self {
        Self::with(flow, info, &Options::of(info))
    }

    /// The same, under other limits of fusion.
    pub fn with(flow: &Flow, info: &DeviceInfo, options: &Options) -> Self {
        Self::tuned(fuse(flow, options), Tuning::of(info), alignment(info))
    }

    /// Compiles `flow` for a device node by node: what a fused program is measured against.
    pub fn unfused(flow: &Flow, info: &DeviceInfo) -> Self {
        Self::tuned(Fused::none(flow), Tuning::of(info), alignment(info))
    }

    /// Compiles a flow for launches cut this way; without a tuning, for the CPU backend.
    ///
    /// # Panics
    /// When there are 2^32 pieces of memory.
    pub fn tuned(fused: Fused, tuning: Option<Tuning>, align: u64) -> Self {
        let explanation = Explanation::of(&fused);
        let Fused { flow, passes, .. } = fused;
        let mut temps: Vec<Temp> = Vec::new();
        let mut steps = Vec::new();
        let mut constants: Vec<Constant> = Vec::new();
        let planned = passes
            .into_iter()
            .flat_map(|pass| planned(&flow, pass, tuning));
        for (pass, plan) in planned {
            let Some(plan) = plan else {
                steps.push(Step::Host(pass));
                continue;
            };
            let base = u32::try_from(temps.len()).expect("few pieces of memory");
            temps.extend(plan.scratch.iter().map(|bytes| Temp {
                value: None,
                bytes: bytes.next_multiple_of(4),
            }));
            // Equal lists, as of the passes of one blur, are kept once.
            let places: Vec<u32> = plan
                .constants
                .into_iter()
                .map(|constant| {
                    let known = constants.iter().position(|other| *other == constant);
                    let at = known.unwrap_or_else(|| {
                        constants.push(constant);
                        constants.len() - 1
                    });
                    u32::try_from(at).expect("few lists")
                })
                .collect();
            for mut launch in plan.launches {
                launch.nodes.clone_from(&pass.nodes);
                for arg in &mut launch.args {
                    match arg {
                        LaunchArg::Scratch(number) => *number += base,
                        LaunchArg::Constant(number) => *number = places[*number as usize],
                        LaunchArg::Value(_) | LaunchArg::Number(_) => {}
                    }
                }
                steps.push(Step::Launch(launch));
            }
        }
        let mut touched = Touched::by(&steps, flow.values().len(), temps.len());
        let mut bound = vec![false; flow.values().len()];
        for id in flow.inputs().iter().chain(flow.outputs()) {
            bound[*id as usize] = true;
        }
        let is_own =
            |id: ValueId| !bound[id as usize] && flow.values()[id as usize].constant.is_none();
        let over = within(&flow, &mut steps, &mut touched, tuning, is_own);
        for ((id, value), bound) in (0_u32..).zip(flow.values()).zip(&bound) {
            let shared = touched.values[id as usize].is_some();
            if !bound && value.constant.is_none() && shared && over.last(id) == id {
                temps.push(Temp {
                    value: Some(id),
                    bytes: room(&value.kind),
                });
            }
        }
        let lives = temps.iter().enumerate();
        let lives = lives.map(|(number, temp)| touched.lifetime(number, *temp));
        let lives: Vec<Lifetime> = lives.collect();
        let layout = lay_out(&lives, align);
        Self {
            flow: Arc::new(flow),
            explanation,
            tuning,
            steps,
            constants,
            temps,
            layout,
            touched,
            over,
            replaced: Vec::new(),
        }
    }

    /// Inputs, each with an output that may be bound to the same memory: by their places in the
    /// flow's lists. The last step that reads the input is the first that writes there.
    pub fn replaceable(&self) -> Vec<(usize, usize)> {
        let direct = self.direct().into_iter();
        direct.map(|(input, output, _)| (input, output)).collect()
    }

    /// The same, with what is written over the input.
    fn direct(&self) -> Vec<(usize, usize, ValueId)> {
        let flow = &*self.flow;
        let mut found: Vec<(usize, usize, ValueId)> = Vec::new();
        let mut over = self.over.clone();
        for (input, from) in flow.inputs().iter().enumerate() {
            let Some((_, last)) = self.touched.values[*from as usize] else {
                continue;
            };
            let step = &self.steps[last];
            let Some(node) = over::expression(flow, step, self.tuning) else {
                continue;
            };
            for to in &node.outputs {
                let end = over.last(*to);
                let output = flow.outputs().iter().position(|id| *id == end);
                let known = found.iter().any(|(_, other, _)| Some(*other) == output);
                if let Some(output) = output
                    && !known
                    && !flow.is_output(*from)
                    && over::allows(flow, step, node, (*from, *to))
                    && over.add(last, *from, *to)
                {
                    found.push((input, output, *to));
                    break;
                }
            }
        }
        found
    }

    /// The same program with these of its inputs bound to the memory of these outputs; `None` when
    /// that is none of what [`Program::replaceable`] tells.
    #[must_use]
    pub fn replacing(mut self, pairs: &[(usize, usize)]) -> Option<Self> {
        let direct = self.direct();
        for pair in pairs {
            let mut direct = direct.iter();
            let (input, _, to) = direct.find(|(i, o, _)| (*i, *o) == *pair)?;
            let from = self.flow.inputs()[*input];
            let (_, last) = self.touched.values[from as usize]?;
            self.over.add(last, from, *to);
            over::replanned(&self.flow, &mut self.steps[last], &self.over, self.tuning);
            self.replaced.push(*pair);
        }
        Some(self)
    }

    /// Its inputs that have to be bound to the memory of an output.
    pub fn replaced(&self) -> &[(usize, usize)] {
        &self.replaced
    }

    /// Steps that write a result over what they read, counted from 0.
    pub fn in_place(&self) -> Vec<usize> {
        self.over.steps()
    }

    /// Which inputs of a pass lie where which of its outputs is written.
    pub(super) fn over(&self, pass: &Pass) -> Vec<(usize, usize)> {
        self.over.among(&pass.inputs, &pass.outputs)
    }

    /// The last of the values that lie where this one lies.
    pub(super) fn place_of(&self, id: ValueId) -> ValueId {
        self.over.last(id)
    }

    /// Its passes over memory, and why there are no fewer.
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// What it was compiled from, after fusion.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// How its launches are cut; `None` on the CPU backend.
    pub fn tuning(&self) -> Option<Tuning> {
        self.tuning
    }

    /// What it does, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What its launches read that is known now, beside the flow's own constants.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Bytes of memory it needs beside inputs, outputs and constants.
    pub fn workspace(&self) -> u64 {
        self.layout.bytes
    }

    /// Bytes that loading it takes beside all that: constants, each in a piece of its own.
    pub fn loaded_bytes(&self) -> u64 {
        let values = self.flow.values().iter();
        let values = values.filter_map(|value| value.constant.as_ref().map(|bytes| bytes.len()));
        let own = self.constants.iter().map(|constant| constant.bytes.len());
        values
            .chain(own)
            .map(|bytes| whole_words(bytes as u64))
            .sum()
    }

    /// The first and the last of its steps that touch a value; `None` when none does. Outside of
    /// them the memory of an input or an output may hold something else.
    pub fn span(&self, id: ValueId) -> Option<(usize, usize)> {
        self.touched.values[id as usize]
    }

    /// The first and the last of its steps that touch the workspace; `None` when none does.
    pub fn workspace_span(&self) -> Option<(usize, usize)> {
        let lives = self.temps.iter().enumerate();
        let lives = lives.map(|(number, temp)| self.touched.lifetime(number, *temp));
        lives.fold(None, |span: Option<(usize, usize)>, life| {
            let (first, last) = span.unwrap_or((life.first, life.last));
            Some((first.min(life.first), last.max(life.last)))
        })
    }

    /// Primitives that run on the host although the program is for another device.
    pub fn detours(&self) -> Vec<&'static str> {
        let passes = self.steps.iter().filter_map(|step| match step {
            Step::Host(pass) if self.tuning.is_some() => Some(&pass.nodes),
            _ => None,
        });
        let nodes = passes.flatten().map(|at| &self.flow.nodes()[*at]);
        nodes.map(|node| node.prim.name()).collect()
    }

    /// Where a temporary value lies in the workspace.
    pub(super) fn temp_of_value(&self, id: ValueId) -> Option<(u64, u64)> {
        let at = self.temps.iter().position(|temp| temp.value == Some(id))?;
        Some((self.layout.offsets[at], self.temps[at].bytes))
    }

    /// Where scratch lies in the workspace.
    pub(super) fn temp_of_scratch(&self, number: u32) -> (u64, u64) {
        let at = number as usize;
        (self.layout.offsets[at], self.temps[at].bytes)
    }
}

/// Has results written over values that only the program knows and nobody reads later. From then on
/// the spans of all that lie at one place are those of the last of them.
fn within(
    flow: &Flow,
    steps: &mut [Step],
    touched: &mut Touched,
    tuning: Option<Tuning>,
    is_own: impl Fn(ValueId) -> bool,
) -> Over {
    let mut over = Over::none(flow.values().len());
    for (at, step) in steps.iter_mut().enumerate() {
        let Some(node) = over::expression(flow, step, tuning) else {
            continue;
        };
        let mut changed = false;
        for to in &node.outputs {
            let kept = touched.values[*to as usize].is_some();
            let ends = |from: &&ValueId| {
                let last = touched.values[**from as usize].map(|(_, last)| last);
                is_own(**from) && last == Some(at)
            };
            let mut dying = node.inputs.iter().filter(ends);
            let from = dying.find(|from| {
                let pair = (**from, *to);
                kept && over::allows(flow, step, node, pair) && over.add(at, pair.0, pair.1)
            });
            if let Some(from) = from {
                let (first, _) = touched.values[*from as usize].unwrap_or((at, at));
                if let Some(span) = &mut touched.values[*to as usize] {
                    span.0 = first;
                }
                changed = true;
            }
        }
        if changed {
            over::replanned(flow, step, &over, tuning);
        }
    }
    over
}

/// The launches of a pass, if the device can do it. Where it cannot do several nodes as one, they
/// are taken one by one.
fn planned(flow: &Flow, pass: Pass, tuning: Option<Tuning>) -> Vec<(Pass, Option<Plan>)> {
    let Some(tuning) = tuning else {
        return vec![(pass, None)];
    };
    let plan = gpu::plan_pass(flow, &pass, &tuning);
    if plan.is_some() || pass.nodes.len() == 1 {
        return vec![(pass, plan)];
    }
    let alone = pass.nodes.iter().map(|at| Pass::alone(flow, *at));
    let alone = alone.map(|pass| {
        let plan = gpu::plan_pass(flow, &pass, &tuning);
        (pass, plan)
    });
    alone.collect()
}

/// Kernels' slices start here, and none shares a cache line with another.
fn alignment(info: &DeviceInfo) -> u64 {
    u64::from(info.limits.slice_align.max(1)).max(64)
}
