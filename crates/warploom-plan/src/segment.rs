//! Operations that run on one face without leaving it: one program each.

use std::collections::{BTreeMap, BTreeSet};

use warploom_core::DeviceInfo;
use warploom_kernels::flow::{Flow, ValueId, ValueKind};
use warploom_kernels::fuse::Machine;
use warploom_kernels::lower::{Computed, lower_computed};
use warploom_kernels::op::{OpCall, ValueType};
use warploom_kernels::program::Program;
use warploom_kernels::{Dims, ImageType};

use crate::resolve::Ref;
use crate::typed::Typed;

/// A face, by card and place among its faces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct FaceAt {
    pub(crate) card: usize,
    pub(crate) face: usize,
    /// Does it work on tiles there? They have memory of their own, also where whole images are in
    /// memory of the same kind.
    pub(crate) tiled: bool,
}

impl FaceAt {
    pub(crate) const fn new(card: usize, face: usize) -> Self {
        let tiled = false;
        Self { card, face, tiled }
    }

    /// The face, whatever it works on.
    pub(crate) const fn whole(self) -> Self {
        Self::new(self.card, self.face)
    }
}

/// Operations in a row on one face.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) face: FaceAt,
    pub(crate) ops: Vec<usize>,
    /// What it reads that others give, each once.
    pub(crate) reads: Vec<Ref>,
    /// How `reads` are kept, in order.
    pub(crate) read_kinds: Vec<ValueKind>,
    /// What it gives that others read or that is written.
    pub(crate) gives: Vec<Ref>,
    /// How `gives` are kept, in order.
    pub(crate) kinds: Vec<ValueKind>,
    pub(crate) passes: u32,
    pub(crate) scratch: u64,
    pub(crate) loaded: u64,
    pub(crate) detours: Vec<String>,
    /// Which passes touch `reads`, `gives` and scratch.
    pub(crate) spans: Spans,
    pub(crate) traffic: u64,
    /// Seconds its passes should take, beside what launches cost.
    pub(crate) seconds: f64,
    pub(crate) fused: Vec<String>,
    /// Which of `reads` may lie where which of `gives` is written.
    pub(crate) replaceable: Vec<(usize, usize)>,
}

/// From which pass to which a program needs its memory, counted from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) reads: Vec<(usize, usize)>,
    pub(crate) gives: Vec<(usize, usize)>,
    pub(crate) scratch: (usize, usize),
}

impl Spans {
    fn of(program: &Program) -> Self {
        // What no pass touches is somebody else's to write or read, at any time.
        let all = (0, program.steps().len().saturating_sub(1));
        let flow = program.flow();
        let span = |id: &ValueId| program.span(*id).unwrap_or(all);
        Self {
            reads: flow.inputs().iter().map(span).collect(),
            gives: flow.outputs().iter().map(span).collect(),
            scratch: program.workspace_span().unwrap_or(all),
        }
    }
}

/// Cuts a graph into segments, each after those it reads.
pub(crate) fn cut(
    graph: &Typed<'_>,
    faces: &[FaceAt],
    info: impl Fn(FaceAt) -> (DeviceInfo, Machine),
) -> Vec<Segment> {
    // An operation is one level above what it reads on another face, and on the same level on its
    // own: so segments of one level never wait for each other.
    let mut levels: Vec<usize> = Vec::with_capacity(graph.ops.len());
    let mut groups: BTreeMap<(usize, FaceAt), Vec<usize>> = BTreeMap::new();
    for (at, op) in graph.ops.iter().enumerate() {
        let reads = op.reads.iter().chain(op.late.iter().map(|late| &late.from));
        let level = reads.filter_map(|read| match read {
            Ref::Op(from) => Some(levels[*from] + usize::from(faces[*from] != faces[at])),
            _ => None,
        });
        let level = level.max().unwrap_or(0);
        levels.push(level);
        groups.entry((level, faces[at])).or_default().push(at);
    }
    let group_of: BTreeMap<usize, (usize, FaceAt)> = groups
        .iter()
        .flat_map(|(key, ops)| ops.iter().map(move |op| (*op, *key)))
        .collect();
    let mut wanted: BTreeSet<Ref> = graph.outputs.iter().map(|(of, _, _)| *of).collect();
    for (at, op) in graph.ops.iter().enumerate() {
        let reads = op.reads.iter().chain(op.late.iter().map(|late| &late.from));
        for read in reads {
            if let Ref::Op(from) = read
                && group_of[from] != group_of[&at]
            {
                wanted.insert(*read);
            }
        }
    }
    let mut devices: BTreeMap<FaceAt, (DeviceInfo, Machine)> = BTreeMap::new();
    let mut kinds: BTreeMap<Ref, ValueKind> = BTreeMap::new();
    groups
        .into_iter()
        .map(|((_, face), ops)| {
            let device = devices.entry(face).or_insert_with(|| info(face));
            build(graph, face, ops, &wanted, device, &mut kinds)
        })
        .collect()
}

fn build(
    graph: &Typed<'_>,
    face: FaceAt,
    ops: Vec<usize>,
    wanted: &BTreeSet<Ref>,
    (info, machine): &(DeviceInfo, Machine),
    kinds: &mut BTreeMap<Ref, ValueKind>,
) -> Segment {
    let lowered = lowered(graph, &ops, wanted, kinds, None);
    let lowered = lowered.expect("calls were checked with these very images");
    let program = Program::new(&lowered.flow, info);
    let explanation = program.explanation();
    let inputs = lowered.flow.inputs().iter();
    let read_kinds = inputs.map(|id| lowered.flow.kind(*id)).collect();
    let own = lowered.gives.iter().map(|(_, kind)| *kind).collect();
    let gives = lowered.gives.iter().map(|(of, _)| *of).collect();
    kinds.extend(lowered.gives);
    Segment {
        face,
        ops,
        reads: lowered.reads,
        read_kinds,
        gives,
        kinds: own,
        passes: u32::try_from(program.steps().len()).unwrap_or(u32::MAX),
        scratch: program.workspace(),
        loaded: program.loaded_bytes(),
        detours: detours(&program),
        spans: Spans::of(&program),
        traffic: explanation.bytes(),
        seconds: explanation.seconds(machine),
        fused: notes(&program),
        replaceable: program.replaceable(),
    }
}

/// What was decided about a program's passes.
pub(crate) fn notes(program: &Program) -> Vec<String> {
    let fused = program.explanation().notes.iter().map(ToString::to_string);
    let over = program.in_place().into_iter();
    let over = over.map(|at| format!("pass {} writes over what it reads", at + 1));
    fused.chain(over).collect()
}

/// What of a program runs on the host, each named once.
pub(crate) fn detours(program: &Program) -> Vec<String> {
    let mut names: Vec<String> = program.detours().iter().map(ToString::to_string).collect();
    names.sort();
    names.dedup();
    names
}

/// Operations as one flow.
pub(crate) struct Lowered {
    pub(crate) flow: Flow,
    /// The flow's inputs, in order.
    pub(crate) reads: Vec<Ref>,
    /// The flow's outputs, in order.
    pub(crate) gives: Vec<(Ref, ValueKind)>,
}

/// Lowers operations into one flow; with `dims`, on images of these extents instead of their own.
/// `None` when an operation does not take such images.
pub(crate) fn lowered(
    graph: &Typed<'_>,
    ops: &[usize],
    wanted: &BTreeSet<Ref>,
    kinds: &BTreeMap<Ref, ValueKind>,
    dims: Option<Dims>,
) -> Option<Lowered> {
    let mut flow = Flow::new();
    let mut values: BTreeMap<Ref, ValueId> = BTreeMap::new();
    let inside: BTreeSet<Ref> = ops.iter().map(|at| Ref::Op(*at)).collect();
    let mut reads = Vec::new();
    // All inputs come before the first operation, as they do when a plan is read back.
    for at in ops {
        let op = &graph.ops[*at];
        let late = op.late.iter().map(|late| &late.from);
        for of in op.reads.iter().chain(late) {
            if !inside.contains(of) && !values.contains_key(of) {
                let known = kinds.get(of).copied();
                let kind = known.unwrap_or_else(|| given(&graph.value(*of)));
                values.insert(*of, flow.input(resized(kind, dims)));
                reads.push(*of);
            }
        }
    }
    let mut gives = Vec::new();
    for at in ops {
        let op = &graph.ops[*at];
        let inputs: Vec<ValueId> = op.reads.iter().map(|read| values[read]).collect();
        let computed: Vec<Computed<'_>> = op
            .late
            .iter()
            .map(|late| Computed {
                param: &late.param,
                list: values[&late.from],
                index: late.index,
            })
            .collect();
        let results = if dims.is_some() {
            let images: Vec<_> = inputs.iter().map(|id| flow.image(*id)).collect();
            let call = OpCall::with(op.call.op, op.call.params.clone(), &images).ok()?;
            lower_computed(&mut flow, &call, &inputs, &computed)
        } else {
            lower_computed(&mut flow, &op.call, &inputs, &computed)
        };
        values.insert(Ref::Op(*at), results[0]);
        if wanted.contains(&Ref::Op(*at)) {
            flow.output(results[0]);
            gives.push((Ref::Op(*at), flow.kind(results[0])));
        }
    }
    Some(Lowered { flow, reads, gives })
}

fn resized(kind: ValueKind, dims: Option<Dims>) -> ValueKind {
    match (kind, dims) {
        (ValueKind::Image(image), Some(dims)) => ValueKind::Image(ImageType { dims, ..image }),
        _ => kind,
    }
}

/// How a value is kept whose segment is not known: what the pipeline is given, or what is only
/// looked at to see what an operation that reads it could do.
fn given(value: &ValueType) -> ValueKind {
    match value {
        ValueType::Image(image) => ValueKind::Image(*image),
        ValueType::Scalars { count, .. } => ValueKind::scalars(*count),
        // No operation reads a table.
        ValueType::Table { .. } => ValueKind::scalars(1),
    }
}
