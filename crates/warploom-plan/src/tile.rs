//! Records that do not fit: cut into tiles, each with as much around it as its operations read.
//!
//! Only operations that look at a pixel's surroundings run on tiles, on cards and on the processor alike;
//! numbers that an earlier one computed go with every tile. What looks at all pixels (sums, percentiles, labels, distances) runs
//! on the processor between two passes over tiles, on the whole image in host memory. Every strict
//! device gives the processor's bits, so the result is that of the untiled pipeline, bit for bit;
//! where a device or the pipeline is not strict, the plan says so.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use warploom_core::{BackendId, Caps, DeviceInfo};
use warploom_kernels::Dims;
use warploom_kernels::flow::{ValueId, ValueKind};
use warploom_kernels::fuse::{Halo, Machine, halo};
use warploom_kernels::program::Program;

use crate::diagnostic::{Diagnostic, Problem};
use crate::draft::{Draft, Moved, info};
use crate::pipeline::Math;
use crate::place::Placing;
use crate::pool::ALIGN;
use crate::resolve::Ref;
use crate::segment::{FaceAt, Segment, detours, lowered, notes};
use crate::typed::{AskedBy, Typed};

/// Can an operation run on a tile? Its images are equally large, and no pixel depends on pixels
/// farther away than a halo that is known.
fn is_local(graph: &Typed<'_>, at: usize) -> bool {
    let wanted = BTreeSet::from([Ref::Op(at)]);
    let lowered = lowered(graph, &[at], &wanted, &BTreeMap::new(), None);
    lowered.is_some_and(|lowered| halo(&lowered.flow).is_some())
}

impl Placing<'_, '_> {
    /// Why what was asked for rules out tiles.
    pub(crate) fn hindrance(&self, home: BackendId) -> Option<&'static str> {
        if self.pipeline.no_host_copy && home != BackendId::CPU {
            Some("no tiles with `strict = \"no-host-copy\"`: they go through the host")
        } else if self.options.depth.is_some() {
            Some("no tiles with a depth: records in flight are whole")
        } else {
            None
        }
    }

    /// The processor's face.
    pub(crate) fn processor(&self) -> Option<FaceAt> {
        let card = self.world.cpu()?;
        let mut faces = self.world.cards[card].faces.iter();
        let face = faces.position(|face| face.id.backend == BackendId::CPU)?;
        Some(FaceAt::new(card, face))
    }

    /// Has everything that can run on tiles do so; moves what looks at whole images to the processor,
    /// and says what that was. What the processor does beside another card it does on whole images.
    pub(crate) fn make_room(
        &self,
        faces: &mut [Vec<FaceAt>],
        home: BackendId,
        host: FaceAt,
    ) -> Result<Vec<Moved>, String> {
        let mut all: Vec<Moved> = Vec::new();
        for ((graph, faces), asks) in self.graphs.iter().zip(faces).zip(self.asks) {
            for (at, face) in faces.iter_mut().enumerate() {
                if *face == host && home != BackendId::CPU {
                    continue;
                }
                if is_local(graph, at) {
                    face.tiled = true;
                    continue;
                }
                if *face == host {
                    continue;
                }
                let op = &graph.ops[at];
                if op.asked_by == AskedBy::Step {
                    let why = format!(
                        "no tiles: `{}` looks at whole images, which then are on the processor, and its step asks for another place",
                        op.name
                    );
                    return Err(why);
                }
                *face = host;
                let moved = Moved {
                    name: op.name.clone(),
                    from: asks[at].wish(),
                };
                if !all.contains(&moved) {
                    all.push(moved);
                }
            }
        }
        Ok(all)
    }

    /// Are the bits of this draft those of every other strict one?
    pub(crate) fn is_strict(&self, draft: &Draft) -> bool {
        let mut faces = draft.faces.iter().map(|face| info(self.world, *face));
        self.pipeline.math == Math::Strict
            && faces.all(|face| face.caps.contains(Caps::STRICT_MATH))
    }
}

/// What is said of operations that are not where the pipeline asks for them.
pub(crate) fn warnings(moved: &[Moved]) -> Vec<Diagnostic> {
    let asked = moved
        .iter()
        .filter_map(|moved| Some((&moved.name, moved.from.as_ref()?)));
    let one = |(name, place): (&String, &String)| {
        let message = format!(
            "`{name}` runs on the processor, although the pipeline asks for `{place}`: it looks at whole images, and they go through the card in tiles"
        );
        let finding = Diagnostic::warning(Problem::Moved, message).step(name);
        finding.help("use smaller records or a larger budget, or say `backend` in its step to have this refused")
    };
    asked.map(one).collect()
}

/// How a segment goes over its images.
#[derive(Clone, Debug)]
pub(crate) struct Tiling {
    /// What one tile gives at most.
    pub(crate) extents: Dims,
    pub(crate) halo: Halo,
    pub(crate) count: u64,
    /// Bytes of the largest tile of each value read and given, in the segment's order.
    pub(crate) reads: Vec<u64>,
    pub(crate) gives: Vec<u64>,
    pub(crate) scratch: u64,
    /// Bytes that loading takes, for tiles of all sizes.
    pub(crate) loaded: u64,
    pub(crate) detours: Vec<String>,
    pub(crate) fused: Vec<String>,
    pub(crate) passes: u32,
    /// Of one tile.
    pub(crate) seconds: f64,
    pub(crate) traffic: u64,
    /// Bytes of all tiles together that go up, and down; what surrounds a tile goes up more than once.
    pub(crate) copied: (u64, u64),
}

impl Tiling {
    fn values(&self) -> impl Iterator<Item = u64> {
        let values = self.reads.iter().chain(&self.gives);
        values.chain([&self.scratch]).copied()
    }

    /// Bytes a tile takes on the device.
    pub(crate) fn bytes(&self) -> u64 {
        let values = self.values();
        values.map(|bytes| bytes.next_multiple_of(ALIGN)).sum()
    }
}

/// Cuts the images of one segment.
pub(crate) struct Tiler<'a, 'p> {
    graph: &'a Typed<'p>,
    segment: &'a Segment,
    info: &'a DeviceInfo,
    machine: Machine,
    wanted: BTreeSet<Ref>,
    kinds: BTreeMap<Ref, ValueKind>,
    halo: Halo,
    dims: Dims,
    /// Bytes of one pixel of every image.
    pixel: u64,
    /// Bytes that go up: of one pixel of every image that is read, and of all numbers.
    up: (u64, u64),
    /// Bytes of one pixel of every image that is given.
    down: u64,
    /// What was found of tiles that read so much.
    compiled: RefCell<BTreeMap<Dims, Option<Tiling>>>,
}

impl<'a, 'p> Tiler<'a, 'p> {
    /// `None` when the segment does not work on tiles.
    pub(crate) fn new(
        graph: &'a Typed<'p>,
        segment: &'a Segment,
        info: &'a DeviceInfo,
        machine: Machine,
    ) -> Option<Self> {
        let wanted: BTreeSet<Ref> = segment.gives.iter().copied().collect();
        let reads = segment.reads.iter().copied();
        let kinds: BTreeMap<Ref, ValueKind> =
            reads.zip(segment.read_kinds.iter().copied()).collect();
        let flow = lowered(graph, &segment.ops, &wanted, &kinds, None)?.flow;
        let pixel = |ids: &[ValueId]| -> u64 {
            let images = ids.iter().filter_map(|id| flow.kind(*id).image());
            images.map(|image| image.dtype.bytes()).sum()
        };
        let (read, down) = (pixel(flow.inputs()), pixel(flow.outputs()));
        let lists = flow.inputs().iter().map(|id| flow.kind(*id));
        let lists = lists.filter(|kind| kind.image().is_none());
        // Every tile gets all numbers.
        let numbers: u64 = lists.map(|list| list.bytes()).sum();
        Some(Self {
            halo: halo(&flow)?,
            dims: flow.kind(*flow.outputs().first()?).dims(),
            pixel: read + down,
            up: (read, numbers),
            down,
            compiled: RefCell::default(),
            graph,
            segment,
            info,
            machine,
            wanted,
            kinds,
        })
    }

    fn cuts(&self, extents: Dims) -> [Cut; 3] {
        [0, 1, 2].map(|axis| Cut::along(&self.halo, self.dims, extents, axis))
    }

    /// Every extent of tiles there is, from whole images to one pixel: halved along the axis along
    /// which halving copies least; of those that cost the same the slowest, whose tiles are contiguous
    /// in memory.
    fn extents(&self) -> impl Iterator<Item = Dims> {
        let halve = |extents: &Dims| {
            let halved = |axis: usize| {
                let mut halved = *extents;
                halved[axis] = halved[axis].div_ceil(2);
                halved
            };
            let read = |axis: usize| {
                let cuts = self.cuts(halved(axis));
                let read = cuts.iter().map(|cut| u128::from(cut.read));
                read.product::<u128>()
            };
            let axes = (0..3).filter(|axis| extents[*axis] > 1);
            let axis = axes.min_by_key(|axis| (read(*axis), *axis))?;
            Some(halved(axis))
        };
        std::iter::successors(Some(self.dims), halve)
    }

    /// What tiles of these extents take; `None` when an operation does not take such images, or the
    /// device not one of them as an argument.
    fn with(&self, extents: Dims) -> Option<Tiling> {
        let cuts = self.cuts(extents);
        // The largest of each extent: what surrounds a tile at an edge is less.
        let most = cuts.map(|cut| cut.most);
        // Where much surrounds a tile, many extents read the same.
        let known = self.compiled.borrow().get(&most).cloned();
        let one = known.unwrap_or_else(|| {
            let one = self.compile(most);
            self.compiled.borrow_mut().insert(most, one.clone());
            one
        })?;
        let read = cuts.iter().map(|cut| cut.read).product::<u64>();
        let count = cuts.iter().map(|cut| cut.count).product::<u64>();
        let pixels = self.dims.iter().product::<u64>();
        let (pixel, numbers) = self.up;
        let copied = (read * pixel + count * numbers, pixels * self.down);
        let sizes = cuts.iter().map(|cut| cut.sizes).product::<u64>();
        Some(Tiling {
            extents,
            count,
            loaded: one.loaded * sizes,
            copied,
            ..one
        })
    }

    /// A tile that reads so much, as if it were the only one.
    fn compile(&self, most: Dims) -> Option<Tiling> {
        let tile = lowered(
            self.graph,
            &self.segment.ops,
            &self.wanted,
            &self.kinds,
            Some(most),
        )?;
        let program = Program::new(&tile.flow, self.info);
        let explanation = program.explanation();
        let inputs = tile.flow.inputs().iter();
        let tiling = Tiling {
            extents: most,
            halo: self.halo,
            count: 1,
            reads: inputs.map(|id| tile.flow.kind(*id).bytes()).collect(),
            gives: tile.gives.iter().map(|(_, kind)| kind.bytes()).collect(),
            scratch: program.workspace(),
            loaded: program.loaded_bytes(),
            detours: detours(&program),
            fused: notes(&program),
            passes: u32::try_from(program.steps().len()).unwrap_or(u32::MAX),
            seconds: explanation.seconds(&self.machine),
            traffic: explanation.bytes(),
            copied: (0, 0),
        };
        let limit = self.info.limits.max_binding;
        let bound = tiling.values().all(|bytes| bytes <= limit);
        bound.then_some(tiling)
    }

    /// What the images of a tile take at least: what is more than there is need not be compiled.
    fn at_least(&self, extents: Dims) -> u64 {
        let pixels = self.cuts(extents).map(|cut| cut.most);
        let pixels = pixels.iter().fold(1_u64, |all, n| all.saturating_mul(*n));
        pixels.saturating_mul(self.pixel)
    }

    /// The fewest tiles of which one fits into `room` bytes, with what its programs keep loaded.
    pub(crate) fn largest(&self, room: u64) -> Option<Tiling> {
        let mut tilings = self
            .extents()
            .filter(|extents| self.at_least(*extents) <= room)
            .filter_map(|extents| self.with(extents));
        tilings.find(|tiling| tiling.bytes() + tiling.loaded <= room)
    }

    /// The smallest tiles there are.
    pub(crate) fn smallest(&self) -> Option<Tiling> {
        let one = self.with([1; 3]);
        one.or_else(|| {
            // Not everything takes single pixels.
            let extents: Vec<Dims> = self.extents().collect();
            extents
                .into_iter()
                .rev()
                .find_map(|extents| self.with(extents))
        })
    }

    /// All that may take no more than `room` bytes, larger ones first.
    pub(crate) fn all(&self, room: u64) -> Vec<Tiling> {
        self.extents()
            .filter(|extents| self.at_least(*extents) <= room)
            .filter_map(|extents| self.with(extents))
            .collect()
    }
}

/// How one axis is cut. Tiles are a grid, so that each axis can be looked at by itself.
#[derive(Clone, Copy, Debug)]
struct Cut {
    count: u64,
    /// The longest stretch that a tile reads.
    most: u64,
    /// All stretches together.
    read: u64,
    /// How many lengths of stretches there are.
    sizes: u64,
}

impl Cut {
    fn along(halo: &Halo, dims: Dims, extents: Dims, axis: usize) -> Self {
        let mut cut = Self {
            count: 0,
            most: 0,
            read: 0,
            sizes: 0,
        };
        let mut lengths = BTreeSet::new();
        for length in halo.lengths(axis, dims[axis], extents[axis]) {
            cut.count += 1;
            cut.most = cut.most.max(length);
            cut.read += length;
            lengths.insert(length);
        }
        cut.sizes = lengths.len() as u64;
        cut
    }
}
