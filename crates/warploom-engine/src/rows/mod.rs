//! Chains of passes over rows, in one pass over memory.
//!
//! A [`RowGraph`] says what is computed; [`RowGraph::finish`] makes a [`RowEngine`] of it. Every
//! value keeps only the rows that those after it still need, in a ring small enough for the cache.
//! Strips of rows are worked on in parallel; each makes the few rows around it again.

mod frame;
mod graph;
mod map;
mod schedule;
mod strip;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

pub use frame::Frame;
pub use graph::{Axis, List, Reads, RowGraph, Value, real};
pub(crate) use map::MOST;

use super::gather::Collector;
use super::image::{Image, ImageMut};
use super::lanes::Level;
use super::past;
use super::way::Way;
use schedule::BATCH;
use strip::Arena;

/// A [`RowGraph`] that can run, again and again, on images of any extents.
#[derive(Debug)]
pub struct RowEngine {
    graph: RowGraph,
    level: Level,
    halo: usize,
    /// Every pixel is made of those at its own place, wherever that is: rows may be any length.
    is_local: bool,
    /// Outputs that nobody reads soon.
    last: Vec<bool>,
    /// Memory of strips that are not running; the next call takes it from here.
    arenas: Mutex<Vec<Arena>>,
}

impl RowGraph {
    /// Makes it run on the best instruction set this machine has.
    pub fn finish(self) -> RowEngine {
        self.finish_on(Level::new())
    }

    /// Makes it run on a given instruction set.
    ///
    /// # Panics
    /// When some steps wrap around from row to row and others treat the edge otherwise: such steps
    /// cannot share a pass.
    pub fn finish_on(mut self, level: Level) -> RowEngine {
        self.pair();
        self.shorten();
        self.equip(level);
        assert!(
            !self.wraps() || self.all_wrap(),
            "steps that wrap around and steps that do not cannot share a pass over rows"
        );
        let halo = self.halo() as usize;
        RowEngine {
            is_local: self.is_local(),
            graph: self,
            level,
            halo,
            last: Vec::new(),
            arenas: Mutex::default(),
        }
    }
}

/// As many as a pass has of something, most often: no memory is asked for.
pub(crate) type Few<T> = smallvec::SmallVec<[T; 12]>;

/// What a run is given.
#[derive(Clone, Copy, Debug)]
struct Given<'a> {
    inputs: &'a [Image<'a>],
    lists: &'a [&'a [f64]],
    collectors: &'a [Collector<'a>],
    /// Which outputs go past the caches.
    past: &'a [bool],
    /// Inputs that are nowhere but in the memory of an output, each with that output.
    over: &'a [(usize, usize)],
    dims: [usize; 3],
}

/// A part of a plane.
#[derive(Clone, Copy, Debug)]
struct Strips {
    planes: usize,
    rows: usize,
    /// Strips of one plane.
    per_plane: usize,
}

impl Strips {
    fn new(planes: usize, rows: usize, halo: usize) -> Self {
        let threads = rayon::current_num_threads();
        // More strips even out the load of the threads; but each makes its halo again.
        let cost = |per_plane: &usize| {
            let rounds = (planes * per_plane).div_ceil(threads);
            let strips = rounds * (rows.div_ceil(*per_plane) + halo / 2 + 4);
            // A thread that was held up costs a strip.
            (strips + rows.div_ceil(*per_plane) / 4, *per_plane)
        };
        let most = (8 * threads).div_ceil(planes.max(1)).min(rows.div_ceil(16));
        // One thread has nobody to share with; but strips that make nothing again let it turn round.
        let per_plane = if threads == 1 && halo > 0 {
            1
        } else {
            (1..=most.max(1)).min_by_key(cost).unwrap_or(1)
        };
        Self {
            planes,
            rows,
            per_plane,
        }
    }

    fn count(self) -> usize {
        self.planes * self.per_plane
    }

    /// The first row of a strip, counted through all planes.
    fn start(self, strip: usize) -> usize {
        let (z, part) = (strip / self.per_plane, strip % self.per_plane);
        z * self.rows + part * self.rows / self.per_plane
    }

    /// Where a run of strips is best cut in two: between planes when there are several.
    fn middle(self, strips: &Range<usize>) -> usize {
        let middle = strips.start.midpoint(strips.end);
        let plane = middle / self.per_plane * self.per_plane;
        if plane > strips.start {
            plane
        } else if plane + self.per_plane < strips.end {
            plane + self.per_plane
        } else {
            middle
        }
    }
}

/// Pixels in a row that is as long as is of use: what a row costs by itself no longer shows.
const LONG: usize = 1 << 14;

/// The pixels of an image in fewer and longer rows, where their number allows; in enough of them
/// for all threads.
fn long_rows([planes, rows, width]: [usize; 3]) -> [usize; 3] {
    let all = planes * rows;
    let fair = all * width / (64 * rayon::current_num_threads());
    let most = (LONG.min(fair) / width).max(1);
    let times = (1..=most).rev().find(|&times| all.is_multiple_of(times));
    match times {
        Some(times) if times > 1 => [1, all / times, width * times],
        _ => [planes, rows, width],
    }
}

impl RowEngine {
    /// Says of every output, in order, whether nobody reads it soon: large ones then go past the
    /// caches, which would fetch every line that they are about to overwrite.
    #[must_use]
    pub fn with_last(self, last: Vec<bool>) -> Self {
        Self { last, ..self }
    }

    /// Computes every output from the inputs, on the threads of the pool it is called in.
    ///
    /// # Panics
    /// When images are missing, differ in extents or are not of the element types the graph was
    /// made for.
    pub fn run(&self, inputs: &[Image<'_>], outputs: Vec<ImageMut<'_>>) {
        self.run_with(inputs, &[], outputs);
    }

    /// The same with lists of numbers.
    ///
    /// # Panics
    /// As [`RowEngine::run`], or when a list or a number of one is missing.
    pub fn run_with(&self, inputs: &[Image<'_>], lists: &[&[f64]], outputs: Vec<ImageMut<'_>>) {
        self.gather(inputs, lists, outputs.into(), &[], &[]);
    }

    /// The same with collectors of what is gathered, or where some inputs lie in the memory of an output and
    /// are not looked at: an expression that reads only its own pixel of them. A row is taken from there
    /// before it is written.
    ///
    /// # Panics
    /// As [`RowEngine::run_with`], or when anything but such expressions is to be done in place.
    pub(crate) fn gather(
        &self,
        inputs: &[Image<'_>],
        lists: &[&[f64]],
        outputs: Few<ImageMut<'_>>,
        collectors: &[Collector<'_>],
        over: &[(usize, usize)],
    ) {
        assert_eq!(lists.len(), self.graph.lists, "lists of numbers");
        assert_eq!(collectors.len(), self.graph.gathers, "collectors");
        assert!(
            over.is_empty() || collectors.is_empty(),
            "what is gathered may look at an image again"
        );
        assert!(
            over.iter().all(|(input, _)| self.graph.reads_own(*input)),
            "what is written over may be read at its own place only"
        );
        let dims = self.check(inputs, &outputs, over);
        if dims.contains(&0) {
            return;
        }
        // What is written over an image was read a moment ago, and is in the cache already.
        let past: Few<bool> = (0..outputs.len())
            .map(|at| over.is_empty() && self.goes_past(inputs, &outputs, at))
            .collect();
        let past = &past;
        let long = long_rows(dims);
        let mut outputs = outputs;
        if self.is_local && long != dims {
            let sources = inputs.iter().enumerate().map(|(at, input)| {
                let absent = over.iter().any(|(input, _)| *input == at);
                if absent {
                    Some(*input)
                } else {
                    input.regrouped(long)
                }
            });
            let sources: Option<Few<_>> = sources.collect();
            let targets: Option<Few<_>> = outputs.iter_mut().map(|o| o.regrouped(long)).collect();
            if let (Some(sources), Some(targets)) = (sources, targets) {
                let given = Given {
                    inputs: &sources,
                    lists,
                    collectors,
                    past,
                    over,
                    dims: long,
                };
                self.start(given, targets);
                return;
            }
        }
        let given = Given {
            inputs,
            lists,
            collectors,
            past,
            over,
            dims,
        };
        self.start(given, outputs);
    }

    /// Is an output one that nobody reads soon, of a pass too large to leave it in a cache?
    fn goes_past(&self, inputs: &[Image<'_>], outputs: &[ImageMut<'_>], at: usize) -> bool {
        let pixels = |dims: [usize; 3]| dims.iter().product::<usize>();
        let read = inputs
            .iter()
            .map(|image| pixels(image.dims()) * image.dtype().bytes() as usize);
        let written = outputs
            .iter()
            .map(|image| pixels(image.dims()) * image.dtype().bytes() as usize);
        let all: usize = read.chain(written).sum();
        // Who gathers reads rows where they were written.
        self.last.get(at) == Some(&true) && self.graph.gathers == 0 && past::pays(all)
    }

    fn start(&self, given: Given<'_>, outputs: Few<ImageMut<'_>>) {
        let [planes, rows, _] = given.dims;
        let strips = Strips::new(planes, rows, self.halo);
        self.share(given, outputs, strips, 0..strips.count(), Way::next());
    }

    fn check(
        &self,
        inputs: &[Image<'_>],
        outputs: &[ImageMut<'_>],
        over: &[(usize, usize)],
    ) -> [usize; 3] {
        assert_eq!(inputs.len(), self.graph.inputs, "inputs");
        assert_eq!(outputs.len(), self.graph.outputs, "outputs");
        let first = || inputs.first().map_or([0; 3], Image::dims);
        let source = self.graph.framed().unwrap_or_else(first);
        let dims = outputs.first().map_or(source, ImageMut::dims);
        for (value, info) in self.graph.values.iter().enumerate() {
            let lies = |at: usize| over.iter().find(|(input, _)| *input == at);
            let (is, at) = match info.place {
                graph::Place::Input(at) if lies(at).is_some() => {
                    let output = lies(at).map_or(0, |(_, output)| *output);
                    ((outputs[output].dtype(), outputs[output].dims()), at)
                }
                graph::Place::Input(at) if self.graph.is_framed(value) => {
                    ((inputs[at].dtype(), dims), at)
                }
                graph::Place::Input(at) => ((inputs[at].dtype(), inputs[at].dims()), at),
                graph::Place::Output(at) => ((outputs[at].dtype(), outputs[at].dims()), at),
                graph::Place::Ring => continue,
            };
            assert_eq!(is, (info.dtype, dims), "image {at} at {:?}", info.place);
        }
        dims
    }

    fn share(
        &self,
        given: Given<'_>,
        mut outputs: Few<ImageMut<'_>>,
        strips: Strips,
        these: Range<usize>,
        way: Way,
    ) {
        if these.len() == 1 {
            let first = strips.start(these.start);
            let z = first / strips.rows;
            let y = first % strips.rows;
            let rows = strips.start(these.end) - first;
            // What is gathered should still be near, and long rows need not come in numbers.
            let is_near = self.is_local && self.graph.gathers > 0;
            let batch = if is_near { 1 } else { BATCH };
            let mut arena = self.take();
            let strip = y..y + rows;
            arena.run(
                &self.graph,
                self.level,
                given,
                &mut outputs,
                z,
                strip,
                batch,
            );
            self.give(arena);
            return;
        }
        let middle = strips.middle(&these);
        let rows = strips.start(middle) - strips.start(these.start);
        let (first, rest): (Few<_>, Few<_>) = outputs
            .into_iter()
            .map(|output| output.split_rows(rows))
            .unzip();
        way.join(
            || self.share(given, first, strips, these.start..middle, way),
            || self.share(given, rest, strips, middle..these.end, way),
        );
    }

    fn take(&self) -> Arena {
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        arenas.pop().unwrap_or_default()
    }

    fn give(&self, arena: Arena) {
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        arenas.push(arena);
    }
}
