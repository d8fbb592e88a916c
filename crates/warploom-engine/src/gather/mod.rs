//! Reductions of an image that are gathered while its rows are made.
//!
//! Whoever asks for the extremes of an image that a pass has just made would read all of it from memory
//! again. Here every row is looked at once more while it is in the cache. Sums keep their order: rows
//! are cut into the chunks that sums are defined by, and a chunk that several strips have parts of is
//! put together in the end. What needs a second look (a deviation from a mean that is known only then)
//! still takes one.

mod part;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use warploom_core::DType;
use warploom_flow::flow::{Flow, Node, Prim};

use super::histogram::{Binning, add_values, values_room, values_total};
use super::image::{with_image, with_type};
use super::lanes::Level;
use super::percentile::percentiles_of_values;
use super::threshold::{Method, threshold_between, threshold_of_values};
use super::totals::{self, Wanted};
use super::{Image, ImageMut, Pixel, whole};
pub(crate) use part::Part;
use part::{Chunk, Chunks};

/// What is gathered of an image, and what becomes of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Gather {
    /// Those totals that are wanted.
    Totals(Wanted),
    /// The mean of what is a number.
    Mean,
    /// Extremes, between which a threshold is then looked for.
    Between { method: Method, bins: usize },
    /// Counts of bins. Limits that are not given are in a list.
    Histogram {
        bins: usize,
        low: Option<f64>,
        high: Option<f64>,
    },
    /// Counts of all values of a type of one or two bytes, in which a threshold is then looked for.
    Threshold(Method),
    /// The same, of which percentiles are then made.
    Percentiles(Vec<f64>),
}

impl Gather {
    /// What a node gathers of its first input; `None` when it is no reduction, or one that starts
    /// from something else.
    pub(crate) fn of(flow: &Flow, node: &Node) -> Option<Self> {
        let dtype = flow.kind(*node.inputs.first()?).image()?.dtype;
        let short = dtype.bytes() <= 2;
        match &node.prim {
            Prim::Totals => Some(Self::Totals(whole::wanted(flow, node.outputs[0]))),
            Prim::Histogram { bins, low, high } => Some(Self::Histogram {
                bins: *bins as usize,
                low: *low,
                high: *high,
            }),
            Prim::Percentiles { q } if short => Some(Self::Percentiles(q.clone())),
            Prim::Threshold { method, bins } => match whole::method(*method) {
                Method::Mean => Some(Self::Mean),
                method if short && method != Method::Li => Some(Self::Threshold(method)),
                method => Some(Self::Between {
                    method,
                    bins: *bins as usize,
                }),
            },
            _ => None,
        }
    }

    /// Does it look at the image again when all was gathered?
    pub(crate) fn looks_again(&self) -> bool {
        match self {
            Self::Totals(wanted) => wanted.std,
            Self::Between { .. } => true,
            _ => false,
        }
    }

    /// Bins of the table that pixels of a type are counted in.
    fn room<T: Pixel>(&self, binning: Option<&Binning>) -> usize {
        match self {
            Self::Histogram { .. } if size_of::<T>() > 2 => binning.map_or(0, Binning::room),
            Self::Histogram { .. } | Self::Threshold(_) | Self::Percentiles(_) => {
                values_room::<T>()
            }
            _ => 0,
        }
    }
}

/// Memory that parts are kept in between runs.
#[derive(Debug, Default)]
pub(crate) struct Idle(Mutex<Vec<Part>>);

/// What is gathered in one run.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    gather: &'a Gather,
    dtype: DType,
    binning: Option<Binning>,
    idle: &'a Idle,
    done: Mutex<Vec<Part>>,
}

impl<'a> Collector<'a> {
    /// `list` holds the limits that are not known otherwise.
    pub(crate) fn new(
        gather: &'a Gather,
        dtype: DType,
        list: Option<&[f64]>,
        idle: &'a Idle,
    ) -> Self {
        let binning = match *gather {
            Gather::Histogram { bins, low, high } => {
                let listed = |at: usize| list.map_or(0.0, |list| list[at]);
                let low = low.unwrap_or_else(|| listed(0));
                let high = high.unwrap_or_else(|| listed(1));
                Some(Binning::new(low, high, bins))
            }
            _ => None,
        };
        Self {
            gather,
            dtype,
            binning,
            idle,
            done: Mutex::default(),
        }
    }

    /// Memory for a run of pixels from `start` on, counted in C order.
    pub(crate) fn begin(&self, start: usize) -> Part {
        // Counts do not care where they were made, and tables are long: one part goes on.
        let mut part = if self.counts() {
            locked(&self.done).pop()
        } else {
            None
        };
        if part.is_none() {
            part = locked(&self.idle.0).pop();
            if let Some(part) = &mut part {
                part.clear();
            }
        }
        let mut part = part.unwrap_or_default();
        part.go_to(start);
        part
    }

    fn counts(&self) -> bool {
        matches!(
            self.gather,
            Gather::Histogram { .. } | Gather::Threshold(_) | Gather::Percentiles(_)
        )
    }

    /// Adds the next pixels of a part.
    pub(crate) fn add<T: Pixel>(&self, level: Level, part: &mut Part, row: &[T]) {
        match self.gather {
            Gather::Totals(wanted) => {
                part.chunked(row, |chunk| Chunk::totals(level, chunk, *wanted));
            }
            Gather::Mean => part.chunked(row, |chunk| Chunk::numbers(level, chunk)),
            Gather::Between { .. } => part.chunked(row, |chunk| Chunk::extremes(level, chunk)),
            _ => {
                let table = part.table(self.gather.room::<T>(self.binning.as_ref()));
                match &self.binning {
                    Some(binning) if size_of::<T>() > 2 => binning.add(level, table, row),
                    _ => add_values(table, row),
                }
            }
        }
    }

    pub(crate) fn end(&self, part: Part) {
        locked(&self.done).push(part);
    }

    /// Writes the numbers. `image` is what was gathered, for those who look at it again.
    pub(crate) fn finish(&self, image: Option<Image<'_>>, target: ImageMut<'_>) {
        let mut parts = std::mem::take(&mut *locked(&self.done));
        parts.sort_unstable_by_key(Part::start);
        let level = Level::new();
        with_type!(self.dtype, T => match self.gather {
            Gather::Totals(wanted) => {
                let chunks = Chunks::join::<T>(&parts, |chunk| Chunk::totals(level, chunk, *wanted));
                let mut found = chunks.totals::<T>(*wanted);
                if let (true, Some(image)) = (wanted.std, image) {
                    found.std = with_image!(image, view => totals::deviation(view, found.mean));
                }
                whole::totals_into(target, found);
            }
            Gather::Mean => {
                let chunks = Chunks::join::<T>(&parts, |chunk| Chunk::numbers(level, chunk));
                whole::numbers(target, &[chunks.mean()]);
            }
            Gather::Between { method, bins } => {
                let chunks = Chunks::join::<T>(&parts, |chunk| Chunk::extremes(level, chunk));
                let found = image.map_or(f64::NAN, |image| {
                    with_image!(image, view => {
                        threshold_between(view, chunks.extremes(), *method, *bins)
                    })
                });
                whole::numbers(target, &[found]);
            }
            Gather::Histogram { bins, .. } => {
                let all = self.counted::<T>(&parts);
                let mut counts = vec![0; *bins];
                if let Some(binning) = &self.binning {
                    if size_of::<T>() > 2 {
                        binning.total(&all, &mut counts);
                    } else {
                        binning.of_values::<T>(&values_total::<T>(all), &mut counts);
                    }
                }
                whole::counts_into(target, &counts);
            }
            Gather::Threshold(method) => {
                let counts = values_total::<T>(self.counted::<T>(&parts));
                whole::numbers(target, &[threshold_of_values::<T>(&counts, *method)]);
            }
            Gather::Percentiles(q) => {
                let counts = values_total::<T>(self.counted::<T>(&parts));
                whole::numbers(target, &percentiles_of_values::<T>(counts, q));
            }
        }, else ());
        locked(&self.idle.0).append(&mut parts);
    }

    /// What all parts have counted.
    fn counted<T: Pixel>(&self, parts: &[Part]) -> Vec<u64> {
        let mut all = vec![0; self.gather.room::<T>(self.binning.as_ref())];
        for part in parts {
            for (sum, count) in all.iter_mut().zip(part.counts()) {
                *sum += u64::from(*count);
            }
        }
        all
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
