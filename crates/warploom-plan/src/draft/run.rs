//! Operations at work: whole images on one face, or tiles of them.

use warploom_core::DType;
use warploom_kernels::op::Backends;

use super::{Drafting, in_pairs};
use crate::diagnostic::{Diagnostic, Problem};
use crate::plan::{Kinds, KindsBy, PlanComputed, PlanOp, PlanStep, Role, Tiles};
use crate::pool::{Replacing, Spot};
use crate::resolve::Ref;
use crate::segment::Segment;
use crate::tile::Tiling;
use crate::typed::AskedBy;
use crate::world::speed;

impl Drafting<'_, '_> {
    pub(super) fn run(&mut self, segment: &Segment) {
        let spot = self.spot(segment.face);
        self.strict(segment, &segment.detours);
        for read in &segment.reads {
            self.fetch(*read, spot);
        }
        let begin = self.now;
        let at = |(first, last): (usize, usize)| (begin + first, begin + last);
        for (read, span) in segment.reads.iter().zip(&segment.spans.reads) {
            if !matches!(read, Ref::Constant(_)) {
                // It is there from the step's begin, whenever the first pass reads it.
                self.stay(*read, spot, begin, at(*span).1);
            }
        }
        let end = begin + (segment.passes as usize).saturating_sub(1);
        let gives = segment.gives.iter().zip(&segment.kinds);
        for ((of, kind), span) in gives.zip(&segment.spans.gives) {
            self.keep(*of, *kind, spot);
            self.stay(*of, spot, at(*span).0, end);
        }
        self.replace(segment, spot);
        let scratch = at(segment.spans.scratch);
        self.lend(
            spot,
            self.first(segment),
            Role::Scratch,
            segment.scratch,
            scratch,
        );
        self.shared.entry(spot).or_default().loaded += segment.loaded;
        let info = self.info(segment.face);
        let (speed, _) = speed(info, self.options);
        let seconds = f64::from(segment.passes) * speed.launch + segment.seconds;
        let step = PlanStep::Run {
            device: info.id.to_string(),
            memory: spot.1.to_string(),
            ops: self.ops(segment, spot, spot),
            reads: self.names(&segment.reads),
            gives: self.names(&segment.gives),
            passes: segment.passes,
            detours: segment.detours.clone(),
            fused: segment.fused.clone(),
            // What there is of it shows when all is laid out.
            in_place: Vec::new(),
            scratch: segment.scratch,
            loaded: segment.loaded,
            traffic: segment.traffic,
            seconds,
        };
        self.push(step, segment.passes as usize);
    }

    /// Notes which results of the next step may lie where something is that it reads.
    fn replace(&mut self, segment: &Segment, spot: Spot) {
        for (input, output) in &segment.replaceable {
            let (read, give) = (segment.reads[*input], segment.gives[*output]);
            let known = |of: Ref| self.known.get(&(of, spot)).copied();
            // All records share a constant.
            if let (Some(from), Some(to)) = (known(read), known(give)) {
                let (_, moment) = segment.spans.reads[*input];
                let one = Replacing {
                    step: self.steps.len(),
                    moment: self.now + moment,
                    from,
                    to,
                };
                self.replacing.entry(spot).or_default().push(one);
            }
        }
    }

    fn names(&self, of: &[Ref]) -> Vec<String> {
        let names = of.iter().map(|of| self.graph.name(*of).to_owned());
        names.collect()
    }

    /// What a segment's scratch is called.
    fn first(&self, segment: &Segment) -> String {
        let first = segment.ops.first();
        first.map_or_else(String::new, |at| self.graph.name(Ref::Op(*at)).to_owned())
    }

    /// Refuses what travels to the host inside a step, where that is forbidden.
    fn strict(&mut self, segment: &Segment, detours: &[String]) {
        if self.no_host_copy && !detours.is_empty() {
            let name = self.first(segment);
            let message = format!(
                "{} of the step with `{name}` runs on the host, with copies there and back",
                detours.join(" and ")
            );
            let first = segment.ops.first();
            let place = first.and_then(|at| self.graph.ops[*at].step.place());
            let finding = Diagnostic::error(Problem::HostCopy, message);
            let finding = finding.step(name).at(place);
            let help = "run this step on the processor, or remove `strict = \"no-host-copy\"`";
            self.refused.push(finding.help(help));
        }
    }

    /// As [`Drafting::run`], tile by tile, on images that stay in host memory.
    pub(super) fn run_tiled(&mut self, segment: &Segment, tiling: &Tiling) {
        let (spot, host) = (self.spot(segment.face), self.host_spot());
        let info = self.info(segment.face).clone();
        let (speed, _) = speed(&info, self.options);
        self.strict(segment, &tiling.detours);
        for read in &segment.reads {
            self.fetch(*read, host);
        }
        let now = self.now;
        for read in &segment.reads {
            if !matches!(read, Ref::Constant(_)) {
                self.stay(*read, host, now, now);
            }
        }
        for (of, kind) in segment.gives.iter().zip(&segment.kinds) {
            self.keep(*of, *kind, host);
            self.stay(*of, host, now, now);
        }
        self.lend_tiles(segment, tiling, spot);
        let work = f64::from(tiling.passes) * speed.launch + tiling.seconds;
        let (up, down) = tiling.copied;
        let copying = up as f64 / speed.up + down as f64 / speed.down;
        let seconds = tiling.count as f64 * work + copying;
        let mut kinds = segment.read_kinds.iter().chain(&segment.kinds);
        let step = PlanStep::Tiled {
            device: info.id.to_string(),
            memory: spot.1.to_string(),
            ops: self.ops(segment, spot, host),
            reads: self.names(&segment.reads),
            gives: self.names(&segment.gives),
            pairs: in_pairs(&info) && kinds.any(|kind| kind.dtype() == DType::F64),
            tiles: Tiles {
                count: tiling.count,
                extents: tiling.extents,
                reach: tiling.halo.reach,
                grain: tiling.halo.grain,
            },
            passes: tiling.passes,
            detours: tiling.detours.clone(),
            fused: tiling.fused.clone(),
            scratch: tiling.scratch,
            loaded: tiling.loaded,
            copied: up + down,
            traffic: tiling.traffic * tiling.count,
            seconds,
        };
        self.push(step, 1);
    }

    /// Memory for the tiles of all values and for scratch, for one tile in flight.
    fn lend_tiles(&mut self, segment: &Segment, tiling: &Tiling, spot: Spot) {
        let now = (self.now, self.now);
        let values = segment.reads.iter().chain(&segment.gives);
        for (of, bytes) in values.zip(tiling.reads.iter().chain(&tiling.gives)) {
            let name = self.graph.name(*of).to_owned();
            self.lend(spot, name, Role::Tile, *bytes, now);
        }
        self.lend(
            spot,
            self.first(segment),
            Role::Scratch,
            tiling.scratch,
            now,
        );
        self.shared.entry(spot).or_default().loaded += tiling.loaded;
    }

    /// The operations of a segment that works at one spot, and whose values are given and left at
    /// another.
    fn ops(&self, segment: &Segment, inner: Spot, outer: Spot) -> Vec<PlanOp> {
        // Long lists are looked through only where it matters.
        let spot = |of: &Ref, outside: &[Ref]| {
            if inner != outer && outside.contains(of) {
                outer
            } else {
                inner
            }
        };
        let one = |at: &usize| {
            let op = &self.graph.ops[*at];
            let reads = op.reads.iter().map(|of| spot(of, &segment.reads));
            let by = match (op.call.op.backends, op.asked_by) {
                (Backends::CpuOnly { .. }, _) => KindsBy::Operation,
                _ if self.moved.iter().any(|moved| moved.name == op.name) => KindsBy::Inferred,
                (_, AskedBy::Step | AskedBy::Pipeline) => KindsBy::User,
                (_, AskedBy::Nobody) => KindsBy::Inferred,
            };
            let kinds = Kinds {
                reads: reads.map(|(_, kind)| kind.to_string()).collect(),
                gives: spot(&Ref::Op(*at), &segment.gives).1.to_string(),
                by,
            };
            self.op(*at, kinds)
        };
        segment.ops.iter().map(one).collect()
    }

    fn op(&self, at: usize, kinds: Kinds) -> PlanOp {
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
            kinds,
        }
    }
}
