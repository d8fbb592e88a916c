//! Which tiles: the largest that fit together, or those that take the least together.
//!
//! Segments follow each other, so tiles of one face take as much as the largest of them; their programs
//! stay loaded, so these add up.

use std::collections::BTreeMap;

use crate::draft::info;
use crate::place::Placing;
use crate::segment::{FaceAt, Segment};
use crate::tile::{Tiler, Tiling};
use crate::world::speed;

/// The tiled segments of a pipeline and how each may be cut, larger tiles first.
pub(crate) struct Choices {
    /// The graph of each segment, its face, and its tilings.
    all: Vec<(usize, FaceAt, Vec<Tiling>)>,
    graphs: usize,
}

/// A tiling of each of some segments, by its place in their lists.
#[derive(Clone)]
struct Pick {
    places: Vec<usize>,
    /// Bytes of the largest tile, and of all programs.
    total: u64,
}

impl Pick {
    /// The tiling of each segment that takes at most so much: the largest, or the one whose programs
    /// take least.
    fn of(lists: &[&Vec<Tiling>], most: u64, least: bool) -> Option<Self> {
        let mut pick = Self {
            places: Vec::new(),
            total: 0,
        };
        let (mut largest, mut loaded) = (0, 0);
        for list in lists {
            let mut fits = (0..list.len()).filter(|at| list[*at].bytes() <= most);
            let at = if least {
                fits.min_by_key(|at| list[*at].loaded)?
            } else {
                fits.next()?
            };
            largest = largest.max(list[at].bytes());
            loaded += list[at].loaded;
            pick.places.push(at);
        }
        pick.total = largest + loaded;
        Some(pick)
    }

    /// How large the largest tile may be, larger ones first.
    fn limits(lists: &[&Vec<Tiling>]) -> Vec<u64> {
        let tilings = lists.iter().flat_map(|list| list.iter());
        let mut limits: Vec<u64> = tilings.map(Tiling::bytes).collect();
        limits.sort_unstable_by(|a, b| b.cmp(a));
        limits.dedup();
        limits
    }

    /// What takes the least, of all there is.
    fn least(lists: &[&Vec<Tiling>]) -> Option<Self> {
        let limits = Self::limits(lists).into_iter();
        let picks = limits.filter_map(|most| Self::of(lists, most, true));
        picks.min_by_key(|pick| pick.total)
    }

    /// The largest tiles that take at most so much.
    fn largest(lists: &[&Vec<Tiling>], room: u64) -> Option<Self> {
        let limits = Self::limits(lists).into_iter();
        let mut picks = limits.flat_map(|most| {
            let both = [false, true].map(|least| Self::of(lists, most, least));
            both.into_iter().flatten()
        });
        picks.find(|pick| pick.total <= room)
    }
}

impl Choices {
    /// The faces, and which segments are on each.
    fn faces(&self) -> BTreeMap<FaceAt, Vec<usize>> {
        let mut faces: BTreeMap<FaceAt, Vec<usize>> = BTreeMap::new();
        for (at, (_, face, _)) in self.all.iter().enumerate() {
            faces.entry(*face).or_default().push(at);
        }
        faces
    }

    fn lists(&self, these: &[usize]) -> Vec<&Vec<Tiling>> {
        these.iter().map(|at| &self.all[*at].2).collect()
    }

    /// One tiling for each tiled segment of each graph.
    fn chosen(&self, picks: &BTreeMap<FaceAt, Pick>) -> Vec<Vec<Tiling>> {
        let mut chosen = vec![Vec::new(); self.graphs];
        let mut next: BTreeMap<FaceAt, usize> = BTreeMap::new();
        for (graph, face, list) in &self.all {
            let at = next.entry(*face).or_default();
            chosen[*graph].push(list[picks[face].places[*at]].clone());
            *at += 1;
        }
        chosen
    }

    /// Those that take the least; `None` when a segment has no tiles at all.
    pub(crate) fn least(&self) -> Option<Vec<Vec<Tiling>>> {
        Some(self.chosen(&self.least_picks()?))
    }

    fn least_picks(&self) -> Option<BTreeMap<FaceAt, Pick>> {
        let faces = self.faces().into_iter();
        let least =
            |(face, these): (FaceAt, Vec<usize>)| Some((face, Pick::least(&self.lists(&these))?));
        faces.map(least).collect()
    }

    /// The largest that fit into what each card has; `None` when none do.
    pub(crate) fn largest(&self, room: impl Fn(usize) -> u64) -> Option<Vec<Vec<Tiling>>> {
        let mut picks = self.least_picks()?;
        // Faces of one card share its memory: each may take what the others leave.
        for (face, these) in self.faces() {
            let others = picks
                .iter()
                .filter(|(other, _)| other.card == face.card && **other != face);
            let others: u64 = others.map(|(_, pick)| pick.total).sum();
            let left = room(face.card).checked_sub(others)?;
            picks.insert(face, Pick::largest(&self.lists(&these), left)?);
        }
        Some(self.chosen(&picks))
    }
}

/// Who cuts the images of each tiled segment of a pipeline.
pub(crate) struct Tilers<'a, 'p> {
    /// With the graph and the face of each.
    all: Vec<(usize, FaceAt, Tiler<'a, 'p>)>,
    graphs: usize,
}

impl Tilers<'_, '_> {
    /// For each segment the largest tile that fits into `room` by itself: quickly found, and nearly
    /// always all there is to find.
    pub(crate) fn quick(&self, room: u64) -> Option<Vec<Vec<Tiling>>> {
        let mut chosen = vec![Vec::new(); self.graphs];
        for (graph, _, tiler) in &self.all {
            chosen[*graph].push(tiler.largest(room)?);
        }
        Some(chosen)
    }

    /// All ways to cut every segment that could be of use where `room` bytes may be taken; `None` when
    /// there is none for some segment.
    pub(crate) fn choices(&self, room: u64) -> Option<Choices> {
        let graphs = self.graphs;
        let smallest = self.all.iter();
        let smallest =
            smallest.map(|(graph, face, tiler)| Some((*graph, *face, vec![tiler.smallest()?])));
        let smallest = Choices {
            all: smallest.collect::<Option<Vec<_>>>()?,
            graphs,
        };
        // What takes more than the smallest of all together is neither the least nor within the room.
        let least = smallest.least_picks()?;
        let together: u64 = least.values().map(|pick| pick.total).sum();
        let room = room.max(together);
        let all = self.all.iter();
        let all = all.map(|(graph, face, tiler)| (*graph, *face, tiler.all(room)));
        Some(Choices {
            all: all.collect(),
            graphs,
        })
    }
}

impl<'p> Placing<'_, 'p> {
    /// Whoever cuts the images of tiled segments; `None` when one cannot be cut.
    pub(crate) fn tilers<'a>(&'a self, segments: &'a [Vec<Segment>]) -> Option<Tilers<'a, 'p>> {
        let mut all = Vec::new();
        for (graph, segments) in segments.iter().enumerate() {
            for segment in segments.iter().filter(|segment| segment.face.tiled) {
                let info = info(self.world, segment.face);
                let machine = speed(info, self.options).0.machine;
                let tiler = Tiler::new(&self.graphs[graph], segment, info, machine)?;
                all.push((graph, segment.face, tiler));
            }
        }
        let graphs = segments.len();
        Some(Tilers { all, graphs })
    }
}
