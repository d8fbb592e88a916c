//! One way to run a pipeline: which face each operation is on, what is copied, where the bytes
//! lie, what it should take. Placement makes a draft for each card and keeps the best.

use std::collections::BTreeMap;

use warploom_core::memory::HOST;
use warploom_core::{Bytes, DeviceInfo, Space};

use crate::diagnostic::{Diagnostic, Problem};
use crate::options::Options;
use crate::plan::{CopyReason, PlanComputed, PlanOp, PlanStep, Pool, Tiles, Variant, Written};
use crate::pool::{ALIGN, Spot, Stay, pool};
use crate::resolve::Ref;
use crate::segment::{FaceAt, Segment, cut};
use crate::tile::tile;
use crate::typed::Typed;
use crate::world::{World, speed};

/// A whole way to run a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) variants: Vec<Variant>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) faces: Vec<FaceAt>,
    /// Seconds for one unit of each variant: in all, and of the busiest resource with its name.
    pub(crate) seconds: f64,
    pub(crate) paced: (f64, String),
    pub(crate) measured: bool,
    pub(crate) copies: Vec<(String, String)>,
}

struct Drafting<'a, 'p> {
    world: &'a World,
    options: &'a Options,
    graph: &'a Typed<'p>,
    steps: Vec<PlanStep>,
    /// Everything that stays somewhere, by spot; a value's stay is found again by its reference.
    stays: BTreeMap<Spot, Vec<Stay>>,
    known: BTreeMap<(Ref, Spot), usize>,
    bytes: BTreeMap<Ref, u64>,
    home: BTreeMap<Ref, Spot>,
    shared: BTreeMap<Spot, BTreeMap<String, u64>>,
    host: FaceAt,
    copies: Vec<(String, String)>,
    refused: Vec<Diagnostic>,
    no_host_copy: bool,
}

/// What a draft must keep to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    /// Values may not travel through the host between steps.
    pub(crate) no_host_copy: bool,
    /// Devices work on tiles of at most this many bytes.
    pub(crate) tiles: Option<u64>,
}

/// Makes the draft of graphs whose operations are on these faces.
pub(crate) fn draft(
    world: &World,
    options: &Options,
    graphs: &[Typed<'_>],
    faces: &[Vec<FaceAt>],
    rules: Rules,
) -> Result<Draft, Vec<Diagnostic>> {
    let mut draft = Draft {
        variants: Vec::new(),
        pools: Vec::new(),
        faces: Vec::new(),
        seconds: 0.0,
        paced: (0.0, String::new()),
        measured: true,
        copies: Vec::new(),
    };
    let mut all: BTreeMap<Spot, Vec<Vec<Stay>>> = BTreeMap::new();
    let mut shared: BTreeMap<Spot, BTreeMap<String, u64>> = BTreeMap::new();
    let mut busy: BTreeMap<String, f64> = BTreeMap::new();
    let mut refused = Vec::new();
    for (at, (graph, faces)) in graphs.iter().zip(faces).enumerate() {
        let segments = cut(graph, faces, |face| {
            let info = info(world, face);
            (info.clone(), speed(info, options).0.machine)
        });
        let host = host(world, faces);
        let mut drafting = Drafting {
            world,
            options,
            graph,
            steps: Vec::new(),
            stays: BTreeMap::new(),
            known: BTreeMap::new(),
            bytes: BTreeMap::new(),
            home: BTreeMap::new(),
            shared: BTreeMap::new(),
            host,
            copies: Vec::new(),
            refused: Vec::new(),
            no_host_copy: rules.no_host_copy,
        };
        drafting.arrive();
        let mut whole = true;
        for segment in &segments {
            match rules.tiles {
                Some(room) if drafting.spot(segment.face).1 != HOST => {
                    whole = drafting.run_tiled(segment, room);
                }
                _ => drafting.run(segment),
            }
            if !whole {
                break;
            }
        }
        if !whole {
            // What follows reads what nobody gives.
            return Err(drafting.refused);
        }
        let outputs = drafting.leave();
        refused.append(&mut drafting.refused);
        for face in faces {
            if !draft.faces.contains(face) {
                draft.faces.push(*face);
            }
            draft.measured &= speed(info(world, *face), options).1;
        }
        for step in &drafting.steps {
            *busy.entry(resource(step)).or_default() += step.seconds();
            draft.seconds += step.seconds();
        }
        for (spot, stays) in drafting.stays {
            let lists = all.entry(spot).or_default();
            lists.resize(at, Vec::new());
            lists.push(stays);
        }
        for (spot, constants) in drafting.shared {
            shared.entry(spot).or_default().extend(constants);
        }
        draft.copies.append(&mut drafting.copies);
        draft.variants.push(Variant {
            channel: graph.channel.clone(),
            steps: drafting.steps,
            outputs,
        });
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    if let Some((name, seconds)) = busy.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        draft.paced = (seconds, name);
    }
    for spot in shared.keys() {
        all.entry(*spot).or_default();
    }
    for (spot, mut lists) in all {
        lists.resize(draft.variants.len(), Vec::new());
        let shared = shared.get(&spot).map_or(0, |list| list.values().sum());
        draft.pools.push(pool(world, spot, &lists, shared));
    }
    Ok(draft)
}

/// What a step keeps busy.
fn resource(step: &PlanStep) -> String {
    match step {
        PlanStep::Copy { to, device, .. } if to == HOST.name() => format!("copies from {device}"),
        PlanStep::Copy { device, .. } => format!("copies to {device}"),
        PlanStep::Run { device, .. } | PlanStep::Tiled { device, .. } => {
            format!("work on {device}")
        }
    }
}

/// A face, of those that are there.
pub(crate) fn info(world: &World, face: FaceAt) -> &DeviceInfo {
    &world.cards[face.card].faces[face.face]
}

/// The face whose memory is the host's: the processor's, else the first there is.
fn host(world: &World, faces: &[FaceAt]) -> FaceAt {
    let cpu = world.cpu().and_then(|card| {
        let faces = &world.cards[card].faces;
        let face = faces
            .iter()
            .position(|face| face.local_kind() == Some(HOST))?;
        Some(FaceAt { card, face })
    });
    cpu.or_else(|| faces.first().copied())
        .unwrap_or(FaceAt { card: 0, face: 0 })
}

impl Drafting<'_, '_> {
    fn info(&self, face: FaceAt) -> &DeviceInfo {
        info(self.world, face)
    }

    /// Where a face's kernels work.
    fn spot(&self, face: FaceAt) -> Spot {
        let info = self.info(face);
        (face, info.local_kind().unwrap_or(HOST))
    }

    fn host_spot(&self) -> Spot {
        (self.host, HOST)
    }

    /// Notes that a value is at a spot from this step to that one.
    fn stay(&mut self, of: Ref, spot: Spot, first: usize, last: usize) {
        let list = self.stays.entry(spot).or_default();
        if let Some(at) = self.known.get(&(of, spot)) {
            list[*at].last = list[*at].last.max(last);
            return;
        }
        self.known.insert((of, spot), list.len());
        list.push(Stay {
            name: self.graph.name(of).to_owned(),
            bytes: self.bytes[&of],
            first,
            last,
        });
    }

    /// Records are in host memory when work begins.
    fn arrive(&mut self) {
        let host = self.host_spot();
        for (at, (_, _, image)) in self.graph.inputs.iter().enumerate() {
            let of = Ref::Input(at);
            self.bytes.insert(of, image.bytes());
            self.home.insert(of, host);
            self.stay(of, host, 0, 0);
        }
        for (at, (name, image)) in self.graph.constants.iter().enumerate() {
            let of = Ref::Constant(at);
            self.bytes.insert(of, image.bytes());
            self.home.insert(of, host);
            let shared = self.shared.entry(host).or_default();
            shared.insert(name.clone(), image.bytes());
        }
    }

    fn copy(&mut self, of: Ref, from: Spot, to: Spot, why: CopyReason) {
        let bytes = self.bytes[&of];
        // The device's side of the copy does it.
        let face = if from.1 == HOST { to.0 } else { from.0 };
        let info = self.info(face);
        let (speed, _) = speed(info, self.options);
        let (id, staging) = (info.id.to_string(), info.staging_kind());
        let name = self.graph.name(of).to_owned();
        self.copies.push((
            format!("copy of `{name}` from {} to {}", from.1, to.1),
            match why {
                CopyReason::Input => "records come from the host".to_owned(),
                CopyReason::Output => "results go to the host".to_owned(),
                CopyReason::Constant => "all records share it, so it is copied once".to_owned(),
                CopyReason::Route => format!("the next step works in {}", to.1),
            },
        ));
        let step = self.steps.len();
        if let Some(staging) = staging.filter(|kind| kind.space() == Space::Pinned) {
            self.stays.entry((face, staging)).or_default().push(Stay {
                name: format!("{name} (staged)"),
                bytes,
                first: step,
                last: step,
            });
        }
        self.steps.push(PlanStep::Copy {
            value: name,
            from: from.1.to_string(),
            to: to.1.to_string(),
            device: id,
            bytes,
            seconds: speed.launch + bytes as f64 / speed.link,
            why,
        });
    }

    /// Makes sure that a value is at a spot, with copies as needed.
    fn fetch(&mut self, of: Ref, to: Spot) {
        if let Ref::Constant(at) = of {
            let (name, image) = self.graph.constants[at].clone();
            let shared = self.shared.entry(to).or_default();
            if shared.insert(name, image.bytes()).is_none() && to.1 != HOST {
                self.copy(of, self.host_spot(), to, CopyReason::Constant);
            }
            return;
        }
        if self.known.contains_key(&(of, to)) {
            return;
        }
        let mut from = self.home[&of];
        let given = matches!(of, Ref::Input(_));
        let reason = if given {
            CopyReason::Input
        } else {
            CopyReason::Route
        };
        if !given && self.no_host_copy {
            let name = self.graph.name(of);
            let message = format!(
                "`{name}` would be copied from {} to {} through the host, {} bytes",
                from.1, to.1, self.bytes[&of]
            );
            let finding = Diagnostic::error(Problem::HostCopy, message).step(name);
            let help = "put both steps on one backend, or remove `strict = \"no-host-copy\"`";
            self.refused.push(finding.help(help));
        }
        let host = self.host_spot();
        if from.1 != HOST && to.1 != HOST && !self.known.contains_key(&(of, host)) {
            let step = self.steps.len();
            self.stay(of, from, step, step);
            self.copy(of, from, host, reason);
            self.stay(of, host, step, step);
            from = host;
        } else if to.1 != HOST {
            from = if self.known.contains_key(&(of, host)) {
                host
            } else {
                from
            };
        }
        let step = self.steps.len();
        self.stay(of, from, step, step);
        self.copy(of, from, to, reason);
        self.stay(of, to, step, step);
    }

    fn run(&mut self, segment: &Segment) {
        let spot = self.spot(segment.face);
        for read in &segment.reads {
            self.fetch(*read, spot);
        }
        let step = self.steps.len();
        for read in &segment.reads {
            if !matches!(read, Ref::Constant(_)) {
                self.stay(*read, spot, step, step);
            }
        }
        for (of, bytes) in segment.gives.iter().zip(&segment.bytes) {
            self.bytes.insert(*of, *bytes);
            self.home.insert(*of, spot);
            self.stay(*of, spot, step, step);
        }
        if segment.scratch > 0 {
            self.stays.entry(spot).or_default().push(Stay {
                name: "scratch".to_owned(),
                bytes: segment.scratch,
                first: step,
                last: step,
            });
        }
        let info = self.info(segment.face);
        let (speed, _) = speed(info, self.options);
        let seconds = f64::from(segment.passes) * speed.launch + segment.seconds;
        let ops = segment.ops.iter().map(|at| self.op(*at)).collect();
        self.steps.push(PlanStep::Run {
            device: info.id.to_string(),
            memory: spot.1.to_string(),
            ops,
            passes: segment.passes,
            fused: segment.fused.clone(),
            scratch: segment.scratch,
            traffic: segment.traffic,
            seconds,
        });
    }

    /// As [`Drafting::run`], tile by tile, on images that stay in host memory; false when not even
    /// the smallest tile fits.
    fn run_tiled(&mut self, segment: &Segment, room: u64) -> bool {
        let (spot, host) = (self.spot(segment.face), self.host_spot());
        let info = self.info(segment.face).clone();
        let (speed, _) = speed(&info, self.options);
        let tiling = match tile(self.graph, segment, &info, &speed.machine, room, ALIGN) {
            Ok(tiling) => tiling,
            Err(smallest) => {
                let names: Vec<&str> = segment
                    .ops
                    .iter()
                    .map(|at| self.graph.name(Ref::Op(*at)))
                    .collect();
                let message = format!(
                    "not even a tile of one pixel of {} fits: {} needed of {}, {} may be used",
                    names.join(", "),
                    Bytes(smallest),
                    spot.1,
                    Bytes(room)
                );
                let finding = Diagnostic::error(Problem::DoesNotFit, message);
                let help = format!("a budget of {} would do", Bytes(smallest));
                self.refused.push(finding.help(help));
                return false;
            }
        };
        for read in &segment.reads {
            self.fetch(*read, host);
        }
        let step = self.steps.len();
        for read in &segment.reads {
            if !matches!(read, Ref::Constant(_)) {
                self.stay(*read, host, step, step);
            }
        }
        for (of, bytes) in segment.gives.iter().zip(&segment.bytes) {
            self.bytes.insert(*of, *bytes);
            self.home.insert(*of, host);
            self.stay(*of, host, step, step);
        }
        let values = segment.reads.iter().chain(&segment.gives);
        let sizes = tiling.reads.iter().chain(&tiling.gives);
        let mut stays: Vec<(String, u64)> = values
            .zip(sizes)
            .map(|(of, bytes)| (format!("{} (tile)", self.graph.name(*of)), *bytes))
            .collect();
        stays.push(("scratch".to_owned(), tiling.scratch));
        for (name, bytes) in stays.into_iter().filter(|(_, bytes)| *bytes > 0) {
            self.stays.entry(spot).or_default().push(Stay {
                name,
                bytes,
                first: step,
                last: step,
            });
        }
        let work = f64::from(tiling.passes) * speed.launch + tiling.seconds;
        let seconds = tiling.count as f64 * work + tiling.copied as f64 / speed.link;
        let ops = segment.ops.iter().map(|at| self.op(*at)).collect();
        self.steps.push(PlanStep::Tiled {
            device: info.id.to_string(),
            memory: spot.1.to_string(),
            ops,
            tiles: Tiles {
                count: tiling.count,
                extents: tiling.extents,
                reach: tiling.halo.reach,
                grain: tiling.halo.grain,
            },
            passes: tiling.passes,
            scratch: tiling.scratch,
            copied: tiling.copied,
            traffic: tiling.traffic * tiling.count,
            seconds,
        });
        true
    }

    fn op(&self, at: usize) -> PlanOp {
        let op = &self.graph.ops[at];
        let computed = |name: &str| op.late.iter().any(|late| late.param == name);
        let params = op.call.params.iter();
        PlanOp {
            name: op.name.clone(),
            op: op.call.op.name.to_owned(),
            params: params
                .filter(|(name, _)| !computed(name))
                .map(|(name, value)| (name.to_owned(), value.to_string()))
                .collect(),
            computed: op
                .late
                .iter()
                .map(|late| PlanComputed {
                    param: late.param.clone(),
                    from: self.graph.name(late.from).to_owned(),
                    index: late.index,
                })
                .collect(),
            reads: op
                .reads
                .iter()
                .map(|read| self.graph.name(*read).to_owned())
                .collect(),
            gives: op.call.output().to_string(),
        }
    }

    /// What is written goes to the host and stays until the end.
    fn leave(&mut self) -> Vec<Written> {
        let host = self.host_spot();
        let mut written = Vec::new();
        let outputs: Vec<_> = self.graph.outputs.clone();
        for (of, _, _) in &outputs {
            let from = self.home[of];
            if from.1 != HOST && !self.known.contains_key(&(*of, host)) {
                let step = self.steps.len();
                self.stay(*of, from, step, step);
                self.copy(*of, from, host, CopyReason::Output);
                self.stay(*of, host, step, step);
            }
        }
        let end = self.steps.len().saturating_sub(1);
        for (of, file, _) in &outputs {
            if !matches!(of, Ref::Constant(_)) {
                self.stay(*of, host, end, end);
            }
            written.push(Written {
                value: self.graph.name(*of).to_owned(),
                gives: self.graph.value(*of).to_string(),
                file: (!file.is_empty()).then(|| file.clone()),
            });
        }
        written
    }
}
