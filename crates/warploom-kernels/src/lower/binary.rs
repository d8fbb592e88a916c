//! Masks: everything that is not 0 counts as set.

use warploom_core::DType;

use super::boxes::extreme;
use super::lowering::Lowering;
use crate::expr::Ty;
use crate::flow::{Combine, Connectivity, Prim, ValueId};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    match (at.name(), at.inputs) {
        ("binary_erode", [mask]) => steps(at, *mask, &[Combine::Min]),
        ("binary_dilate", [mask]) => steps(at, *mask, &[Combine::Max]),
        ("binary_open", [mask]) => steps(at, *mask, &[Combine::Min, Combine::Max]),
        ("binary_close", [mask]) => steps(at, *mask, &[Combine::Max, Combine::Min]),
        ("binary_and", [a, b]) => {
            at.native(DType::U8, [*a, *b], |[a, b]| a.is_not(0) & b.is_not(0))
        }
        ("binary_or", [a, b]) => at.native(DType::U8, [*a, *b], |[a, b]| a.is_not(0) | b.is_not(0)),
        ("binary_xor", [a, b]) => {
            at.native(DType::U8, [*a, *b], |[a, b]| a.is_not(0) ^ b.is_not(0))
        }
        ("binary_not", [mask]) => at.native(DType::U8, [*mask], |[a]| a.is(0)),
        ("fill_holes", [mask]) => fill_holes(at, *mask),
        ("distance_transform", [mask]) => distance(at, *mask),
        _ => at.unknown(),
    }
}

/// Distances to what is not set.
fn distance(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let mask = at.mask(image);
    let distances = at.give(Prim::Distance, &[mask]);
    let rank = at.call.image().rank;
    let first = usize::from(3 - rank);
    if at.call.image().dims[first] > 1 {
        return distances;
    }
    // Where nothing is not set, the primitive measures from before the first axis longer than 1,
    // and scipy from before the first, of one pixel here: its step is 1 everywhere.
    let least = at.totals(mask);
    let dtype = at.result().dtype;
    let inputs = [distances, least];
    at.flow
        .map(&inputs, distances, dtype, &[], |graph, values, _| {
            let squares = graph.coords().into_iter().skip(first + 1);
            let squares = squares.map(|at| {
                let at = at.cast(Ty::F64);
                at * at
            });
            let one = graph.number(Ty::F64, 1.0);
            let root = squares.fold(one, |sum, square| sum + square).sqrt();
            let distance = graph.pixel(values[0]);
            let none = graph.scalar(values[1], 0).gt(0.0);
            none.select(root.cast(distance.ty()), distance)
        })
}

/// Erosion is the minimum, dilation the maximum of what is inside the image, and outside of it by
/// the rule that was asked for.
fn steps(at: &mut Lowering<'_>, image: ValueId, steps: &[Combine]) -> ValueId {
    let params = &at.call.params;
    let boundary = params.boundary();
    let (shape, iterations) = (params.choice("shape"), params.integer("iterations"));
    // Beyond the image's own extents nothing changes any more.
    let extents = at.flow.image(image).dims.map(|extent| extent.min(1 << 20));
    let farthest: u64 = extents.iter().map(|extent| extent - 1).sum();
    let iterations = u32::try_from(iterations.unsigned_abs().min(farthest)).unwrap_or(u32::MAX);
    let mask = at.native(DType::U8, [image], |[a]| a.is_not(0));
    steps.iter().fold(mask, |mask, combine| {
        if shape == "box" {
            // n steps of one pixel are one of n, under every rule. The edge repeated adds nothing
            // that a window at the edge does not hold already.
            return extreme(at.flow, mask, [iterations; 3], *combine, boundary);
        }
        (0..iterations).fold(mask, |mask, _| diamond(at, mask, *combine))
    })
}

/// The smallest or largest of a pixel and its neighbours along the axes.
fn diamond(at: &mut Lowering<'_>, mask: ValueId, combine: Combine) -> ValueId {
    let (axes, boundary) = (at.flow.axes(mask), at.boundary());
    at.flow
        .map(&[mask], mask, DType::U8, &[], |graph, images, _| {
            let mut offsets = Vec::new();
            for axis in axes {
                for by in [-1, 1] {
                    let mut offset = [0; 3];
                    offset[usize::from(axis)] = by;
                    offsets.push(offset);
                }
            }
            let neighbours = offsets.iter();
            neighbours.fold(graph.pixel(images[0]), |sum, offset| {
                let next = graph.near(images[0], *offset, boundary);
                match combine {
                    Combine::Min => sum & next,
                    _ => sum | next,
                }
            })
        })
}

/// What is not set and no part of the background that reaches the edge.
fn fill_holes(at: &mut Lowering<'_>, mask: ValueId) -> ValueId {
    let background = at.native(DType::U8, [mask], |[a]| a.is(0));
    let gives = at.flow.image(mask).with_dtype(DType::U32);
    let label = Prim::Label(Connectivity::Diamond);
    let parts = at.flow.add_image(label, &[background], gives);
    let holes = at.like(Prim::ClearBorder, &[parts], parts);
    at.native(DType::U8, [mask, holes], |[a, hole]| {
        a.is_not(0) | hole.is_not(0)
    })
}
