//! Neighbourhoods of any shape: sums, extremes and ranks.
//!
//! The rows around the one that is made are kept as padded [`lines`]; what is done with them are
//! [`sum`], [`extreme`], [`rank`] and [`count`].

mod count;
mod extreme;
mod lines;
mod median;
mod naive;
mod network;
mod phases;
mod rank;
mod sum;
#[cfg(test)]
mod tests;

use super::arms::{to_real, to_same, unfit};
use super::image::{Image, ImageMut};
use super::lanes::{Float, Level};
use super::share::{band_height, for_bands};
use super::{Pixel, Real, View, ViewMut};
use count::Counts;
use extreme::Runs;
use median::Square;
use network::Network;
use rank::Ranks;
use warploom_core::DType;
use warploom_flow::Boundary;
use warploom_flow::flow::{Combine, Footprint, Prim};

/// Bytes of lines that stay in the second cache with room to spare.
const RING: usize = 256 << 10;

/// Elements that a network of comparisons is made for: its size grows faster than their number, and
/// where one pixel's elements are partitioned alone does not.
const NETWORK: usize = 1024;

/// Offsets as lines and columns.
#[derive(Clone, Debug)]
pub(crate) struct Lined {
    /// How far it reaches along z, y, x.
    reach: [usize; 3],
    /// The line and the column of each element, both counted from the least of the reach; in the
    /// order of the offsets.
    places: Vec<(usize, usize)>,
}

impl Lined {
    fn new(reach: [usize; 3], offsets: impl IntoIterator<Item = [i32; 3]>) -> Self {
        let places = offsets.into_iter().map(|offset| {
            let [z, y, x] =
                [0, 1, 2].map(|axis| (offset[axis] + reach[axis] as i32).cast_unsigned() as usize);
            (z * (2 * reach[1] + 1) + y, x)
        });
        Self {
            reach,
            places: places.collect(),
        }
    }

    fn of(footprint: &Footprint) -> Self {
        Self::new(footprint.reach().map(|n| n as usize), footprint.offsets())
    }
}

/// A primitive over neighbourhoods, ready to run again and again.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    lined: Lined,
    boundary: Boundary,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Sum,
    Extreme { runs: Runs, greatest: bool },
    Median { square: Square, rank: usize },
    Rank { ranks: Ranks, rank: usize },
    Count { counts: Counts, rank: usize },
    Partition { rank: usize },
}

impl Around {
    /// Makes a primitive over images of a type ready, if it is one of these.
    pub(crate) fn new(prim: &Prim, dtype: DType) -> Option<Self> {
        match prim {
            Prim::Around {
                footprint,
                combine,
                boundary,
            } => {
                let lined = Lined::of(footprint);
                let work = match combine {
                    Combine::Sum => Work::Sum,
                    Combine::Min | Combine::Max => Work::Extreme {
                        runs: Runs::new(&lined),
                        greatest: *combine == Combine::Max,
                    },
                };
                Some(Self {
                    lined,
                    boundary: *boundary,
                    work,
                })
            }
            Prim::Rank {
                footprint,
                rank,
                boundary,
            } => {
                let lined = Lined::of(footprint);
                let [rz, ry, rx] = lined.reach;
                let lines = (2 * rz + 1) * (2 * ry + 1);
                let rank = *rank as usize;
                let work = match Square::of(lined.reach, lined.places.len(), rank) {
                    Some(square) => Work::Median { square, rank },
                    None if count::pays(dtype, lined.places.len()) => Work::Count {
                        counts: Counts::new(&lined),
                        rank,
                    },
                    None if lined.places.len() > NETWORK => Work::Partition { rank },
                    None => Work::Rank {
                        ranks: Ranks::new(
                            Network::new(&lined.places, lines, rx, rank),
                            lines,
                            dtype,
                        ),
                        rank,
                    },
                };
                Some(Self {
                    lined,
                    boundary: *boundary,
                    work,
                })
            }
            _ => None,
        }
    }

    /// Runs it on the threads of the pool it is called in.
    pub(crate) fn run(&self, source: Image<'_>, target: ImageMut<'_>) {
        self.run_on(Level::new(), source, target);
    }

    fn run_on(&self, level: Level, source: Image<'_>, target: ImageMut<'_>) {
        let (reach, boundary) = (self.lined.reach, self.boundary);
        match &self.work {
            Work::Sum => to_real!(source, target, a, out => {
                sum::run(level, a, &self.lined, sum::Terms::Plain, boundary, out);
            }),
            Work::Extreme {
                runs,
                greatest: false,
            } => to_same!(source, target, a, out => {
                runs.run::<_, false>(level, a, reach, boundary, out);
            }),
            Work::Extreme {
                runs,
                greatest: true,
            } => to_same!(source, target, a, out => {
                runs.run::<_, true>(level, a, reach, boundary, out);
            }),
            Work::Median { square, rank } => to_same!(source, target, a, out => {
                square.run(level, a, reach, boundary, out, |band| {
                    rank::aside(a, &self.lined, *rank, boundary, band)
                });
            }),
            Work::Partition { rank } => to_same!(source, target, a, out => {
                for_bands(out, band_height(a.dims()[2]), &|mut band| {
                    naive::ranks(a, &self.lined, *rank, boundary, &mut band);
                });
            }),
            Work::Count { counts, rank } => match (source, target) {
                (Image::U8(a), ImageMut::U8(out)) => {
                    counts.run_bytes(level, a, &self.lined, *rank, boundary, out);
                }
                (Image::U16(a), ImageMut::U16(out)) => {
                    counts.run(a, &self.lined, *rank, boundary, out);
                }
                (Image::I16(a), ImageMut::I16(out)) => {
                    counts.run(a, &self.lined, *rank, boundary, out);
                }
                (source, target) => unfit(source.dtype(), target.dtype()),
            },
            Work::Rank { ranks, rank } => to_same!(source, target, a, out => {
                ranks.run(level, a, &self.lined, *rank, boundary, out);
            }),
        }
    }
}

/// What is made of elements at offsets that have a number each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taps {
    /// Their sum: `fma(number, element, sum)` from 0 on.
    Weights,
    /// The least of `element + number`, from infinity on; NaN is ignored, and so are pixels outside.
    Drops,
}

/// Makes one of the elements at some offsets, in their order.
pub(crate) fn tapped<T: Pixel<Real = R>, R: Real + Float>(
    image: View<'_, T>,
    what: Taps,
    reach: [usize; 3],
    taps: &[([i32; 3], R)],
    boundary: Boundary,
    out: ViewMut<'_, R>,
) {
    let lined = Lined::new(reach, taps.iter().map(|tap| tap.0));
    let numbers: Vec<R> = taps.iter().map(|tap| tap.1).collect();
    let terms = match what {
        Taps::Weights => sum::Terms::Weighted(&numbers),
        Taps::Drops => sum::Terms::Touched(&numbers),
    };
    sum::run(Level::new(), image, &lined, terms, boundary, out);
}
