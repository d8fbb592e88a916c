//! Passes along z.
//!
//! Planes are a power of two apart as often as not, where no cache keeps a column of pixels. So a
//! piece of a row is gathered from all planes into a tile, worked on there, and given back.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use warploom_core::DType;

use warploom_flow::Boundary;

use super::block::{Block, Rows, RowsMut, stride};
use super::image::{Image, ImageMut, with_image, with_image_mut, with_type};
use super::lanes::{Float, Lane, Level, dispatch};
use super::pixel::cast;
use super::rows::{Axis, real};
use super::taps::sums::{Memory, Sums};
use super::taps::{self, Taps};
use super::window::{self, Fold};

/// What is done along z.
#[derive(Clone, Debug)]
enum Work {
    F32(Taps<f32>, Option<Arc<Sums>>),
    F64(Taps<f64>),
    Window(Fold, usize),
}

/// A pass along z that can run again and again, on stacks of any extents.
#[derive(Debug)]
pub struct DepthEngine {
    work: Work,
    boundary: Boundary,
    /// The type it is computed in.
    dtype: DType,
    level: Level,
    arenas: Mutex<Vec<Arena>>,
}

/// Memory of one thread.
#[derive(Debug, Default)]
struct Arena {
    tile: Block,
    result: Block,
    ends: Block,
    sums: Memory,
    from: Vec<usize>,
    to: Vec<usize>,
}

impl DepthEngine {
    /// A correlation of images of `dtype`; in `f64` for `f64`, in `f32` for all others.
    pub fn taps(dtype: DType, taps: &Taps<f64>, boundary: Boundary) -> Self {
        let work = match real(dtype) {
            DType::F64 => Work::F64(taps.clone()),
            _ => Work::F32(taps.rounded(), None),
        };
        Self::new(work, boundary, real(dtype))
    }

    /// The sum or an extreme of the `2 * radius + 1` pixels around each of images of `dtype`.
    /// Sums are made in `f64` for `f64`, in `f32` for all others; extremes in the type itself.
    pub fn window(dtype: DType, fold: Fold, radius: usize, boundary: Boundary) -> Self {
        let dtype = match fold {
            Fold::Sum => real(dtype),
            Fold::Min | Fold::Max => dtype,
        };
        Self::new(Work::Window(fold, radius), boundary, dtype)
    }

    fn new(work: Work, boundary: Boundary, dtype: DType) -> Self {
        Self {
            work,
            boundary,
            dtype,
            level: Level::new(),
            arenas: Mutex::default(),
        }
        .on(Level::new())
    }

    /// The same on another instruction set.
    #[must_use]
    pub fn on(mut self, level: Level) -> Self {
        self.level = level;
        if let Work::F32(taps, sums) = &mut self.work {
            *sums = Sums::new(taps, Axis::Y, level);
        }
        self
    }

    /// The type of the values it makes, before they are cast to the output's.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Computes `output` from `input`, both cast as need be, on the threads of the pool it is
    /// called in.
    ///
    /// # Panics
    /// When their extents differ.
    pub fn run(&self, input: &Image<'_>, output: ImageMut<'_>) {
        let dims = input.dims();
        assert_eq!(dims, output.dims(), "extents of input and output");
        if dims.contains(&0) {
            return;
        }
        let strips = (4 * rayon::current_num_threads()).min(dims[1]);
        // Every strip has its rows of every plane.
        let mut parts: Vec<(Range<usize>, Vec<ImageMut<'_>>)> = (0..strips)
            .map(|i| dims[1] * i / strips..dims[1] * (i + 1) / strips)
            .map(|rows| (rows, Vec::with_capacity(dims[0])))
            .collect();
        let mut rest = output;
        for _ in 0..dims[0] {
            let (mut plane, below) = rest.split_rows(dims[1]);
            rest = below;
            for (rows, planes) in &mut parts {
                let (part, further) = plane.split_rows(rows.len());
                planes.push(part);
                plane = further;
            }
        }
        parts.into_par_iter().for_each(|(rows, mut planes)| {
            let pool = || self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
            let mut arena = pool().pop().unwrap_or_default();
            with_type!(self.dtype, T => self.strip::<T>(input, &mut planes, rows, &mut arena), else ());
            pool().push(arena);
        });
    }

    fn strip<T: Lane>(
        &self,
        input: &Image<'_>,
        planes: &mut [ImageMut<'_>],
        rows: Range<usize>,
        arena: &mut Arena,
    ) {
        let [nz, _, nx] = input.dims();
        // Gathered pieces and results stay in the second cache.
        let columns = ((1 << 16) / nz.max(1)) & !63;
        let columns = columns.clamp(64, 1024).min(nx);
        let stride = stride::<T>(columns);
        arena.tile.reserve::<T>((nz + 1) * stride)[nz * stride..].fill(T::ZERO);
        arena.result.reserve::<T>(nz * stride);
        let (before, after) = self.reach();
        let positions = -(before as i64)..(nz + after) as i64;
        arena.from.clear();
        arena.from.extend(positions.map(|z| {
            let z = self.boundary.source(z, nz as i64);
            z.map_or(nz, |z| z as usize) * stride
        }));
        arena.to.clear();
        arena.to.extend((0..nz).map(|z| z * stride));
        for y in rows.clone() {
            for x in (0..nx).step_by(columns) {
                let part = x..nx.min(x + columns);
                let tile = arena.tile.as_mut_slice::<T>();
                with_image!(input, view => dispatch!(self.level, _simd => for z in 0..nz {
                    cast(&view.row(z, y)[part.clone()], &mut tile[z * stride..][..part.len()]);
                }));
                self.columns::<T>(arena, part.len());
                let result = arena.result.as_slice::<T>();
                for (z, plane) in planes.iter_mut().enumerate() {
                    with_image_mut!(plane, view => {
                        let row = &mut view.row(0, y - rows.start)[part.clone()];
                        dispatch!(self.level, _simd => cast(&result[z * stride..][..part.len()], row));
                    });
                }
            }
        }
    }

    fn reach(&self) -> (usize, usize) {
        match &self.work {
            Work::F32(taps, _) => (taps.before(), taps.after()),
            Work::F64(taps) => (taps.before(), taps.after()),
            Work::Window(_, radius) => (*radius, *radius),
        }
    }

    fn columns<T: Lane>(&self, arena: &mut Arena, width: usize) {
        match &self.work {
            Work::F32(_, Some(sums)) => {
                let from = Rows {
                    data: arena.tile.as_slice(),
                    starts: &arena.from,
                };
                let mut to = RowsMut {
                    data: arena.result.as_mut_slice(),
                    starts: &arena.to,
                };
                sums.down(from, &mut to, width, &mut arena.sums);
            }
            Work::F32(taps, None) => correlate(self.level, taps, arena, width),
            Work::F64(taps) => correlate(self.level, taps, arena, width),
            Work::Window(fold, radius) => {
                let ends = arena.ends.reserve::<T>(window::column::ends::<T>(*radius));
                let from = Rows {
                    data: arena.tile.as_slice::<T>(),
                    starts: &arena.from,
                };
                let mut to = RowsMut {
                    data: arena.result.as_mut_slice::<T>(),
                    starts: &arena.to,
                };
                dispatch!(self.level, simd => window::column::fold(
                    simd, *fold, *radius, from, &mut to, 0, width, ends));
            }
        }
    }
}

fn correlate<T: Float>(level: Level, taps: &Taps<T>, arena: &mut Arena, width: usize) {
    let from = Rows {
        data: arena.tile.as_slice::<T>(),
        starts: &arena.from,
    };
    let mut to = RowsMut {
        data: arena.result.as_mut_slice::<T>(),
        starts: &arena.to,
    };
    dispatch!(level, simd => taps::column::correlate(simd, from, taps, &mut to, width));
}
