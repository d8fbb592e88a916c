//! Sums and extremes of windows along one axis, at a cost that does not depend on their length.

pub(crate) mod column;
mod line;

use fearless_simd::prelude::*;

use super::block::{Block, Rows, RowsMut, stride};
use super::depth::DepthEngine;
use super::image::{Image, ImageMut};
use super::lanes::{Lane, Simd, Vector};
use super::rows::{Axis, RowGraph};
use super::turn::{self, Reach, Turn};
use warploom_flow::Boundary;

/// What becomes of the pixels of a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// The least; NaN is ignored.
    Min,
    /// The greatest; NaN is ignored.
    Max,
}

/// The fold of the `2 * radius + 1` pixels around each along `axis` (0, 1, 2 for z, y, x), cast to
/// what `dst` holds. Sums are made in `f64` when `src` is `f64` and in `f32` otherwise.
///
/// For one pass alone; chains are better described by a [`RowGraph`].
///
/// # Panics
/// When the extents differ or the axis is none.
pub fn along(
    src: Image<'_>,
    dst: ImageMut<'_>,
    axis: usize,
    fold: Fold,
    radius: usize,
    boundary: Boundary,
) {
    let axis = match axis {
        0 => return DepthEngine::window(src.dtype(), fold, radius, boundary).run(&src, dst),
        1 => Axis::Y,
        2 => Axis::X,
        other => panic!("an image has no axis {other}"),
    };
    let mut graph = RowGraph::new();
    let value = graph.input(src.dtype());
    let value = graph.window(value, axis, fold, radius, boundary);
    graph.output(value, dst.dtype());
    graph.finish().run(&[src], vec![dst]);
}

/// Extremes of the windows along a row, into one with room for whole vectors beyond its width.
#[inline(always)]
pub(crate) fn along_row<S: Simd, T: Lane>(
    simd: S,
    fold: Fold,
    radius: usize,
    row: &[T],
    out: &mut [T],
    boundary: Boundary,
    turn: &mut Turn,
    [copy, ends]: [&mut Block; 2],
) {
    let memory = turn.memory();
    let done = if fold == Fold::Max {
        line::extremes::<S, T, true>(simd, radius, row, out, boundary, memory)
    } else {
        line::extremes::<S, T, false>(simd, radius, row, out, boundary, memory)
    };
    // Small integers, which turning has no vectors for, have no negative zero.
    if done || size_of::<T>() < 4 {
        return;
    }
    let width = row.len();
    let copy = copy.reserve::<T>(stride::<T>(width));
    copy[..width].copy_from_slice(row);
    let src = Rows {
        data: copy,
        starts: &[0],
    };
    let mut dst = RowsMut {
        data: out,
        starts: &[0],
    };
    let ends = ends.as_mut_slice();
    turned(
        simd, fold, radius, src, &mut dst, width, boundary, turn, ends,
    );
}

/// Windows along the rows of `src` by columns of turned tiles, in the very order that windows are defined by.
#[inline(always)]
pub(crate) fn turned<S: Simd, T: Lane>(
    simd: S,
    fold: Fold,
    radius: usize,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    width: usize,
    boundary: Boundary,
    turn: &mut Turn,
    ends: &mut [T],
) {
    let reach = Reach {
        width,
        before: radius,
        after: radius,
        boundary,
        grain: 2 * radius + 1,
    };
    turn::pass(
        simd,
        src,
        dst,
        reach,
        turn,
        #[inline(always)]
        |simd, tile, results, first| {
            column::fold(
                simd,
                fold,
                radius,
                tile,
                results,
                first,
                Vector::<S, T>::LEN,
                ends,
            );
        },
    );
}
