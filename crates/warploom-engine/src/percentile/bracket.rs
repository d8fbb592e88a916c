//! Values of given ranks by way of a sample.
//!
//! A sample tells between which values a rank almost surely lies. One pass then counts what is below
//! and keeps what is between, which is little, and among which the value is looked for. Where the
//! sample has deceived, there is no answer, and the caller counts digits.

use std::ops::Range;

use rayon::prelude::*;

use crate::lanes::{Level, dispatch};
use crate::share::{pieces, pixels};
use crate::{Pixel, View};

/// Smaller images are counted before a sample is sorted.
const WORTH_IT: usize = 1 << 17;
/// Pixels of a sample at most.
const SAMPLE: usize = 1 << 14;
/// How many standard deviations of its place in a sample a rank may be off.
const DEVIATIONS: f64 = 4.0;
/// Brackets that are counted in one pass.
const MOST: usize = 4;
/// Pixels that are looked at together.
const BLOCK: usize = 64;
/// What a thread keeps at most; more is not little.
const KEPT: usize = 1 << 17;

/// From a key to a key, both included.
type Bracket<K> = (K, K);

/// The values of these ranks (0 is the least), which ascend, of an image without NaN; `None` where
/// this is not the way to find them.
pub(super) fn select<T: Pixel>(image: View<'_, T>, ranks: &[u64]) -> Option<Vec<T>> {
    let count = pixels(image);
    if size_of::<T>() < 4 || count < WORTH_IT {
        return None;
    }
    let brackets = brackets(image, count, ranks)?;
    let found = pass(image, count, &brackets)?;
    // One list for each bracket, of what it has kept.
    let mut lists: Vec<Vec<T::Key>> = vec![Vec::new(); brackets.len()];
    for &key in found.iter().flat_map(|found| &found.kept) {
        let at = brackets.partition_point(|bracket| bracket.1 < key);
        lists[at].push(key);
    }
    let counts = |of: fn(&Found<T::Key>) -> &[u64; MOST], at: usize| -> u64 {
        found.iter().map(|found| of(found)[at]).sum()
    };
    let mut value = |rank: &u64| {
        let at = (0..brackets.len()).find(|&at| *rank < counts(|found| &found.upto, at))?;
        let place = rank.checked_sub(counts(|found| &found.below, at))?;
        let (low, high) = brackets[at];
        if low == high {
            return Some(T::from_key(low.into()));
        }
        let place = usize::try_from(place).ok()?;
        let (_, key, _) = lists[at].select_nth_unstable(place);
        Some(T::from_key((*key).into()))
    };
    ranks.iter().map(&mut value).collect()
}

/// Between which keys each rank lies, as far as a sample knows; such that share keys are one.
fn brackets<T: Pixel>(
    image: View<'_, T>,
    count: usize,
    ranks: &[u64],
) -> Option<Vec<Bracket<T::Key>>> {
    let size = (count / 256).min(SAMPLE);
    let step = count / size;
    // Not at the same distance, which could be that of an image's own pattern.
    let place = |at: usize| at * step + at.wrapping_mul(0x9e37_79b1) % step;
    let mut sample: Vec<T::Key> = (0..size)
        .into_par_iter()
        .with_min_len(1 << 12)
        .map(|at| {
            let [_, ny, nx] = image.dims();
            let (row, x) = (place(at) / nx, place(at) % nx);
            image.row(row / ny, row % ny)[x].key()
        })
        .collect();
    let mut places: Vec<Range<usize>> = Vec::new();
    for &rank in ranks {
        let part = (rank as f64 + 0.5) / count as f64;
        let at = part * size as f64;
        let off = DEVIATIONS * (at * (1.0 - part)).sqrt() + DEVIATIONS;
        let (low, high) = ((at - off).max(0.0) as usize, (at + off) as usize);
        match places.last_mut() {
            Some(last) if low <= last.end => last.end = last.end.max(high),
            _ => places.push(low..high),
        }
    }
    if places.len() > MOST {
        return None;
    }
    let mut done = 0;
    let mut key = |at: usize| {
        // What is before has been put into its place.
        let (_, key, _) = sample[done..].select_nth_unstable(at - done);
        done = at;
        *key
    };
    let mut all: Vec<Bracket<T::Key>> = Vec::new();
    for place in places {
        // At the ends anything may come that the sample has not seen.
        let low = if place.start == 0 {
            T::LEAST.key()
        } else {
            key(place.start)
        };
        let high = if place.end >= size {
            T::GREATEST.key()
        } else {
            key(place.end)
        };
        match all.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => all.push((low, high)),
        }
    }
    Some(all)
}

/// What a thread has found of its pixels.
struct Found<K> {
    /// Pixels below each bracket, and those that are not above it.
    below: [u64; MOST],
    upto: [u64; MOST],
    /// Pixels in brackets of more than one key.
    kept: Vec<K>,
    is_of_use: bool,
}

fn pass<T: Pixel>(
    image: View<'_, T>,
    count: usize,
    brackets: &[Bracket<T::Key>],
) -> Option<Vec<Found<T::Key>>> {
    let level = Level::new();
    // More parts than threads, since a thread may be held up.
    let parts = 4 * rayon::current_num_threads();
    let found: Vec<Found<T::Key>> = (0..parts)
        .into_par_iter()
        .map(|part| {
            let mut found = Found {
                below: [0; MOST],
                upto: [0; MOST],
                kept: Vec::new(),
                is_of_use: true,
            };
            let range = count * part / parts..count * (part + 1) / parts;
            pieces(image, range, |piece| {
                dispatch!(level, _simd => scan(piece, brackets, &mut found));
            });
            found
        })
        .collect();
    found.iter().all(|found| found.is_of_use).then_some(found)
}

#[inline(always)]
fn scan<T: Pixel>(piece: &[T], brackets: &[Bracket<T::Key>], found: &mut Found<T::Key>) {
    let (blocks, rest) = piece.as_chunks::<BLOCK>();
    for block in blocks {
        if found.is_of_use {
            look(block.map(Pixel::key), is_nan::<T>, brackets, found);
        }
    }
    for pixel in rest {
        look([pixel.key()], is_nan::<T>, brackets, found);
    }
}

/// Beyond the infinities is NaN.
#[inline(always)]
fn is_nan<T: Pixel>(key: T::Key) -> u32 {
    if T::IS_FLOAT {
        u32::from(key < T::LEAST.key()) | u32::from(key > T::GREATEST.key())
    } else {
        0
    }
}

#[inline(always)]
fn look<K: Copy + Ord, const N: usize>(
    keys: [K; N],
    is_nan: impl Fn(K) -> u32,
    brackets: &[Bracket<K>],
    found: &mut Found<K>,
) {
    let mut wanted = [0_u8; N];
    let mut inside = 0;
    for (at, &(low, high)) in brackets.iter().enumerate() {
        let below: u32 = keys.iter().map(|key| u32::from(*key < low)).sum();
        let upto: u32 = keys.iter().map(|key| u32::from(*key <= high)).sum();
        found.below[at] += u64::from(below);
        found.upto[at] += u64::from(upto);
        if low < high && upto > below {
            inside += upto - below;
            for (wanted, key) in wanted.iter_mut().zip(&keys) {
                *wanted |= u8::from(*key >= low) & u8::from(*key <= high);
            }
        }
    }
    found.is_of_use &= keys.iter().map(|key| is_nan(*key)).sum::<u32>() == 0;
    if inside == 0 {
        return;
    }
    // What is wanted is put side by side without asking, which nobody could guess.
    let mut kept = keys;
    let mut length = 0;
    for (key, wanted) in keys.iter().zip(wanted) {
        kept[length] = *key;
        length += usize::from(wanted);
    }
    found.kept.extend_from_slice(&kept[..length]);
    found.is_of_use &= found.kept.len() <= KEPT;
}
