//! One way to run a pipeline: which face each operation is on, what is copied, where the bytes
//! lie, what it should take. Placement makes a draft for each card and keeps the best.

mod route;
mod run;

use std::collections::BTreeMap;

use warploom_core::DeviceInfo;
use warploom_core::memory::HOST;
use warploom_kernels::flow::ValueKind;
use warploom_kernels::gpu::Tuning;
use warploom_kernels::kernel::Target;

use crate::diagnostic::Diagnostic;
use crate::options::Options;
use crate::plan::{InPlace, PlanStep, PlanValue, Pool, Role, Variant, is_straight};
use crate::pool::{Replacing, Shared, Spot, Stay, Stays, pool};
use crate::resolve::Ref;
use crate::segment::{FaceAt, Segment};
use crate::tile::Tiling;
use crate::typed::Typed;
use crate::world::{World, speed};

/// A whole way to run a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) variants: Vec<Variant>,
    pub(crate) pools: Vec<Pool>,
    /// Records in flight, once that is decided.
    pub(crate) depth: u32,
    pub(crate) faces: Vec<FaceAt>,
    /// Seconds for one unit of each variant: in all, and of the busiest resource with its name.
    pub(crate) seconds: f64,
    pub(crate) paced: (f64, String),
    pub(crate) measured: bool,
    pub(crate) copies: Vec<(String, String)>,
    /// Operations that tiles move to the processor.
    pub(crate) moved: Vec<Moved>,
}

/// An operation that looks at whole images, where its card works on tiles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    pub(crate) name: String,
    /// Where the pipeline asks it to run: a backend or a card.
    pub(crate) from: Option<String>,
}

struct Drafting<'a, 'p> {
    world: &'a World,
    options: &'a Options,
    graph: &'a Typed<'p>,
    steps: Vec<PlanStep>,
    /// The moment at which each step begins: a pass is a moment, a copy is one.
    begins: Vec<usize>,
    /// The moment at which the next step begins.
    now: usize,
    /// Everything that stays somewhere, by spot; a value's stay is found again by its reference.
    stays: BTreeMap<Spot, Vec<Stay>>,
    known: BTreeMap<(Ref, Spot), usize>,
    /// Results that may be written over what they are made of.
    replacing: BTreeMap<Spot, Vec<Replacing>>,
    kinds: BTreeMap<Ref, ValueKind>,
    values: Vec<PlanValue>,
    home: BTreeMap<Ref, Spot>,
    shared: BTreeMap<Spot, Shared>,
    host: FaceAt,
    copies: Vec<(String, String)>,
    refused: Vec<Diagnostic>,
    no_host_copy: bool,
    moved: &'a [Moved],
}

/// What a draft must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// Values may not travel through the host between steps.
    pub(crate) no_host_copy: bool,
    /// How segments work on tiles, for those of each graph that do; none when all work on whole images.
    pub(crate) tiles: &'a [Vec<Tiling>],
    /// What runs on the processor because of that.
    pub(crate) moved: &'a [Moved],
}

/// Makes the draft of graphs, each cut into segments.
pub(crate) fn draft(
    world: &World,
    options: &Options,
    graphs: &[Typed<'_>],
    segments: &[Vec<Segment>],
    rules: Rules<'_>,
) -> Result<Draft, Vec<Diagnostic>> {
    let mut draft = Draft {
        variants: Vec::new(),
        pools: Vec::new(),
        depth: 1,
        faces: Vec::new(),
        seconds: 0.0,
        paced: (0.0, String::new()),
        measured: true,
        copies: Vec::new(),
        moved: rules.moved.to_vec(),
    };
    let mut all: BTreeMap<Spot, Vec<Stays>> = BTreeMap::new();
    let mut shared: BTreeMap<Spot, Shared> = BTreeMap::new();
    let mut busy: BTreeMap<String, f64> = BTreeMap::new();
    let mut refused = Vec::new();
    for (at, (graph, segments)) in graphs.iter().zip(segments).enumerate() {
        let faces: Vec<FaceAt> = segments
            .iter()
            .map(|segment| segment.face.whole())
            .collect();
        let host = host(world, &faces);
        let mut drafting = Drafting {
            world,
            options,
            graph,
            steps: Vec::new(),
            begins: Vec::new(),
            now: 0,
            stays: BTreeMap::new(),
            known: BTreeMap::new(),
            replacing: BTreeMap::new(),
            kinds: BTreeMap::new(),
            values: Vec::new(),
            home: BTreeMap::new(),
            shared: BTreeMap::new(),
            host,
            copies: Vec::new(),
            refused: Vec::new(),
            no_host_copy: rules.no_host_copy,
            moved: rules.moved,
        };
        drafting.work(segments, rules.tiles.get(at).map_or(&[], Vec::as_slice));
        let outputs = drafting.leave();
        refused.append(&mut drafting.refused);
        for face in faces {
            if !draft.faces.contains(&face) {
                draft.faces.push(face);
            }
            draft.measured &= speed(info(world, face), options).1;
        }
        for step in &drafting.steps {
            *busy.entry(resource(step)).or_default() += step.seconds();
            draft.seconds += step.seconds();
        }
        for (spot, list) in drafting.stays {
            let lists = all.entry(spot).or_default();
            lists.resize(at, Stays::default());
            lists.push(Stays {
                list,
                begins: drafting.begins.clone(),
                replacing: drafting.replacing.remove(&spot).unwrap_or_default(),
            });
        }
        for (spot, own) in drafting.shared {
            let shared = shared.entry(spot).or_default();
            shared.constants.extend(own.constants);
            shared.loaded += own.loaded;
        }
        draft.copies.append(&mut drafting.copies);
        draft.variants.push(Variant {
            channel: graph.channel.clone(),
            values: drafting.values,
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
        lists.resize(draft.variants.len(), Stays::default());
        let shared = shared.remove(&spot).unwrap_or_default();
        let (pool, replaced) = pool(world, spot, &lists, &shared);
        draft.pools.push(pool);
        for ((variant, stays), replaced) in draft.variants.iter_mut().zip(&lists).zip(replaced) {
            mark(&mut variant.steps, stays, &replaced);
        }
    }
    if !is_straight(draft.faces.len(), &draft.pools, &draft.variants) {
        // Nothing overlaps where records go back and forth.
        draft.paced.0 = draft.seconds;
    }
    Ok(draft)
}

/// Says of steps what they write over what they read.
fn mark(steps: &mut [PlanStep], stays: &Stays, replaced: &[Replacing]) {
    for one in replaced {
        if let Some(PlanStep::Run { in_place, .. }) = steps.get_mut(one.step) {
            in_place.push(InPlace {
                value: stays.list[one.to].name.clone(),
                over: stays.list[one.from].name.clone(),
            });
        }
    }
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

/// Does a face keep numbers of 64 bits as pairs of `f32`?
fn in_pairs(info: &DeviceInfo) -> bool {
    Tuning::of(info).is_some_and(|tuning| tuning.target == Target::Wgsl)
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
        Some(FaceAt::new(card, face))
    });
    cpu.or_else(|| faces.first().copied())
        .unwrap_or(FaceAt::new(0, 0))
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

    /// Runs segment after segment; `tiles` are of those that work on tiles, in order.
    fn work(&mut self, segments: &[Segment], tiles: &[Tiling]) {
        self.arrive();
        let mut tiles = tiles.iter();
        for segment in segments {
            match segment.face.tiled.then(|| tiles.next()).flatten() {
                Some(tiling) => self.run_tiled(segment, tiling),
                None => self.run(segment),
            }
        }
    }

    /// Makes a value known.
    fn keep(&mut self, of: Ref, kind: ValueKind, home: Spot) {
        self.kinds.insert(of, kind);
        self.home.insert(of, home);
        let value = PlanValue::new(self.graph.name(of), &self.graph.value(of), kind);
        self.values.push(value);
    }

    /// Notes that a value is at a spot from this moment to that one.
    fn stay(&mut self, of: Ref, spot: Spot, first: usize, last: usize) {
        let list = self.stays.entry(spot).or_default();
        if let Some(at) = self.known.get(&(of, spot)) {
            list[*at].last = list[*at].last.max(last);
            return;
        }
        self.known.insert((of, spot), list.len());
        list.push(Stay {
            name: self.graph.name(of).to_owned(),
            role: Role::Value,
            bytes: self.kinds[&of].bytes(),
            first,
            last,
        });
    }

    /// Notes that a step needs memory of its own, between these moments.
    fn lend(&mut self, spot: Spot, name: String, role: Role, bytes: u64, span: (usize, usize)) {
        if bytes > 0 {
            let (first, last) = span;
            self.stays.entry(spot).or_default().push(Stay {
                name,
                role,
                bytes,
                first,
                last,
            });
        }
    }

    /// Adds a step that takes so many moments.
    fn push(&mut self, step: PlanStep, moments: usize) {
        self.steps.push(step);
        self.begins.push(self.now);
        self.now += moments.max(1);
    }
}
