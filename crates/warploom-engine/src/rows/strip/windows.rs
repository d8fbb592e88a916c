//! Windows along an axis of the rows in a strip.

use std::ops::Range;

use warploom_flow::Boundary;

use crate::block::{Rows, RowsMut};
use crate::lanes::{Lane, dispatch};
use crate::window::{self, Fold};

use super::super::graph::{Axis, Place};
use super::super::map::Around;
use super::{Ring, Scratch, row_of};

impl Around<'_, '_> {
    pub(super) fn window<T: Lane>(
        &self,
        window: Window,
        src: &Ring,
        dst: &mut Ring,
        rows: Range<i64>,
        scratch: &mut Scratch,
    ) {
        let Window {
            axis,
            fold,
            radius,
            boundary,
        } = window;
        let (reach, beyond) = match axis {
            Axis::Y => (radius as i64, boundary),
            Axis::X => (0, Boundary::Wrap),
        };
        self.starts(
            src,
            rows.start - reach..rows.end + reach,
            beyond,
            &mut scratch.from,
        );
        self.starts(dst, rows.clone(), Boundary::Wrap, &mut scratch.to);
        let from = Rows {
            data: src.block.as_slice::<T>(),
            starts: &scratch.from,
        };
        let mut to = RowsMut {
            data: dst.block.as_mut_slice::<T>(),
            starts: &scratch.to,
        };
        let width = self.dims[2];
        let ends = scratch.ends.reserve::<T>(window::column::ends::<T>(radius));
        match axis {
            Axis::Y => {
                // Only the place within a block matters: counted from far above, it is positive.
                let length = 2 * radius + 1;
                let first = rows.start.rem_euclid(length as i64) as usize;
                dispatch!(self.level, simd => window::column::fold(
                    simd, fold, radius, from, &mut to, first, width, ends));
            }
            Axis::X => {
                let turn = &mut scratch.turn;
                dispatch!(self.level, simd => window::turned(
                    simd, fold, radius, from, &mut to, width, boundary, turn, ends));
            }
        }
    }

    /// Extremes along x, of rows of an input too.
    pub(super) fn extremes<T: Lane>(
        &self,
        window: Window,
        place: Place,
        src: &Ring,
        dst: &mut Ring,
        rows: Range<i64>,
        scratch: &mut Scratch,
    ) {
        let Window {
            fold,
            radius,
            boundary,
            ..
        } = window;
        let width = self.dims[2];
        let Scratch {
            ends, turn, copy, ..
        } = scratch;
        ends.reserve::<T>(window::column::ends::<T>(radius));
        for y in rows {
            let row: &[T] = if let Place::Input(at) = place {
                row_of(&self.inputs[at], self.z, self.row(y))
            } else {
                &src.block.as_slice::<T>()[src.start(y)..][..width]
            };
            let start = dst.start(y);
            let out = &mut dst.block.as_mut_slice::<T>()[start..];
            let memory = [&mut *copy, &mut *ends];
            dispatch!(self.level, simd => window::along_row(
                simd, fold, radius, row, out, boundary, turn, memory));
        }
    }
}

/// A window as its step has it.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) axis: Axis,
    pub(super) fold: Fold,
    pub(super) radius: usize,
    pub(super) boundary: Boundary,
}
