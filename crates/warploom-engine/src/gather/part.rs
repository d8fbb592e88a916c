//! What is gathered of some consecutive pixels.

use super::super::Pixel;
use super::super::block::Block;
use super::super::lanes::{Level, dispatch};
use super::super::totals::{
    CHUNK, Totals, Wanted, chunk_numbers, chunk_sum, chunk_totals, in_groups, run_extremes,
};

/// What is found of one chunk of pixels.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Chunk {
    least: f64,
    most: f64,
    sum: f64,
    count: u64,
}

impl Chunk {
    pub(super) fn totals<T: Pixel>(level: Level, chunk: &[T], wanted: Wanted) -> Self {
        if !wanted.extremes {
            let sum = dispatch!(level, _simd => chunk_sum(chunk, &Pixel::to_f64));
            return Self {
                sum,
                ..Self::default()
            };
        }
        if !wanted.sum && !wanted.std {
            return Self::extremes(level, chunk);
        }
        let (least, most, sum) = dispatch!(level, _simd => chunk_totals(chunk));
        Self {
            least: least.to_f64(),
            most: most.to_f64(),
            sum,
            count: 0,
        }
    }

    pub(super) fn extremes<T: Pixel>(level: Level, chunk: &[T]) -> Self {
        let (least, most) = dispatch!(level, _simd => run_extremes(chunk));
        Self {
            least: least.to_f64(),
            most: most.to_f64(),
            ..Self::default()
        }
    }

    pub(super) fn numbers<T: Pixel>(level: Level, chunk: &[T]) -> Self {
        let (sum, count) = dispatch!(level, _simd => chunk_numbers(chunk));
        Self {
            sum,
            count: u64::from(count),
            ..Self::default()
        }
    }
}

/// What is gathered of pixels `start..end`, counted in C order.
#[derive(Debug, Default)]
pub(crate) struct Part {
    start: usize,
    end: usize,
    /// Pixels at the beginning whose chunk has begun before.
    head: Open,
    /// Pixels at the end whose chunk has not ended.
    tail: Open,
    chunks: Vec<Chunk>,
    table: Vec<u32>,
}

/// Some pixels of a chunk.
#[derive(Debug, Default)]
struct Open {
    block: Block,
    count: usize,
}

impl Open {
    fn push<T: Pixel>(&mut self, pixels: &[T]) {
        let room = self.block.reserve::<T>(CHUNK);
        room[self.count..self.count + pixels.len()].copy_from_slice(pixels);
        self.count += pixels.len();
    }

    fn pixels<T: Pixel>(&self) -> &[T] {
        &self.block.as_slice()[..self.count]
    }
}

impl Part {
    pub(super) fn clear(&mut self) {
        self.head.count = 0;
        self.tail.count = 0;
        self.chunks.clear();
        self.table.clear();
    }

    /// The next pixel that is added is this one.
    pub(super) fn go_to(&mut self, start: usize) {
        (self.start, self.end) = (start, start);
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Adds pixels, chunk by chunk.
    pub(super) fn chunked<T: Pixel>(&mut self, mut row: &[T], find: impl Fn(&[T]) -> Chunk) {
        while !row.is_empty() {
            let inside = self.end % CHUNK;
            let (here, rest) = row.split_at(row.len().min(CHUNK - inside));
            if here.len() == CHUNK {
                self.chunks.push(find(here));
            } else if self.end - inside < self.start {
                self.head.push(here);
            } else {
                self.tail.push(here);
                if self.tail.count == CHUNK {
                    self.chunks.push(find(self.tail.pixels()));
                    self.tail.count = 0;
                }
            }
            self.end += here.len();
            row = rest;
        }
    }

    /// The table that pixels are counted in.
    pub(super) fn table(&mut self, room: usize) -> &mut [u32] {
        if self.table.len() != room {
            self.table.clear();
            self.table.resize(room, 0);
        }
        &mut self.table
    }

    pub(super) fn counts(&self) -> &[u32] {
        &self.table
    }
}

/// All chunks of an image, in order.
pub(super) struct Chunks {
    all: Vec<Chunk>,
    pixels: usize,
}

impl Chunks {
    /// Puts parts together that follow each other, and makes of the pieces of chunks what `find` finds.
    pub(super) fn join<T: Pixel>(parts: &[Part], find: impl Fn(&[T]) -> Chunk) -> Self {
        let mut all = Vec::new();
        let mut open = Open::default();
        for part in parts {
            open.push(part.head.pixels::<T>());
            if open.count == CHUNK {
                all.push(find(open.pixels()));
                open.count = 0;
            }
            all.extend_from_slice(&part.chunks);
            open.push(part.tail.pixels::<T>());
        }
        if open.count > 0 {
            all.push(find(open.pixels()));
        }
        let pixels = parts.last().map_or(0, |part| part.end);
        Self { all, pixels }
    }

    /// Least and greatest value, of whatever type.
    pub(super) fn extremes<T: Pixel>(&self) -> (T, T) {
        let least = self.all.iter().map(|chunk| T::from_f64(chunk.least));
        let most = self.all.iter().map(|chunk| T::from_f64(chunk.most));
        (
            least.fold(T::GREATEST, T::lesser),
            most.fold(T::LEAST, T::greater),
        )
    }

    /// All but the deviation.
    pub(super) fn totals<T: Pixel>(&self, wanted: Wanted) -> Totals {
        let (mut min, mut max) = (0.0, 0.0);
        if wanted.extremes {
            let (least, most) = self.extremes::<T>();
            (min, max) = (least.to_f64(), most.to_f64());
        }
        let sum = in_groups(self.all.iter().map(|chunk| chunk.sum));
        Totals {
            min,
            max,
            sum,
            mean: sum / self.pixels as f64,
            std: 0.0,
        }
    }

    /// The mean of what is a number.
    pub(super) fn mean(&self) -> f64 {
        let count: u64 = self.all.iter().map(|chunk| chunk.count).sum();
        in_groups(self.all.iter().map(|chunk| chunk.sum)) / count as f64
    }
}
