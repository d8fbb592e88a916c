//! Sums and extremes of windows along one axis, after van Herk and Gil and Werman.
//!
//! An item has one block of the axis, as long as the window, in one run of pixels beside each
//! other. It goes through its block from the end and leaves the running value of each position
//! where that position's result will be; then it goes through the next block from its start and
//! adds the running value to what it left. Two loads and three operations per pixel, however long
//! the window, and no memory but the result's own.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Node, Prim};
use crate::kernel::{Access, Builder, Work};

use super::fold;
use super::lanes::Lanes;
use super::launch::{Args, Plan, along};
use super::slide;
use super::tuning::Tuning;

/// A window, as the primitive says it.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) axis: u8,
    pub(super) radius: u32,
    pub(super) combine: Combine,
    pub(super) boundary: Boundary,
}

impl Window {
    /// The window of a primitive, if it is one.
    pub(super) fn of(prim: &Prim) -> Option<Self> {
        match prim {
            Prim::Window {
                axis,
                radius,
                combine,
                boundary,
            } => Some(Self {
                axis: *axis,
                radius: *radius,
                combine: *combine,
                boundary: *boundary,
            }),
            _ => None,
        }
    }
}

/// What the kernel's text depends on.
#[derive(Clone, Copy)]
struct Sort {
    from: DType,
    to: DType,
    /// Not along x.
    across: bool,
    combine: Combine,
    boundary: Boundary,
    run: u32,
}

fn write<'k>(k: &'k Builder, sort: Sort) {
    let ty = Ty::of(sort.to).expect("checked when the image was declared");
    let src = k.image("src", sort.from, Access::Read);
    let dst = k.image("dst", sort.to, Access::ReadWrite);
    let [planes, length, side, window] =
        ["planes", "length", "side", "window"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: i32| k.graph().int(value);
    let zero = k.graph().number(ty, 0.0);
    let (block_axis, side_axis) = if sort.across { (1, 0) } else { (0, 1) };
    let plane = k.work(Work::Global(2));
    let first = k.let_(k.work(Work::Global(side_axis)) * sort.run.cast_signed());
    // Blocks count from the one before the first.
    let start = k.let_((k.work(Work::Global(block_axis)) - 1) * window);
    let some = start.lt(0) | start.lt(length - 1);
    let inside = plane.lt(planes) & first.lt(side) & some;
    let body = |lanes: Lanes<'k>| {
        let running = lanes.values(ty);
        let base = |offset: Ex<'k>, pitch: [Ex<'k>; 2]| {
            let beside = if sort.across { first } else { first * pitch[1] };
            k.let_(offset + plane * pitch[0] + beside)
        };
        let (from, to) = (base(src.offset, src.pitch), base(dst.offset, dst.pitch));
        // The pixel of a lane at a place on the axis.
        let at = move |base: Ex<'k>, pitch: Ex<'k>, place: Ex<'k>| {
            let start = k.let_(if sort.across {
                base + place * pitch
            } else {
                base + place
            });
            move |lane: Ex<'k>| {
                if sort.across {
                    start + lane
                } else {
                    start + lane * pitch
                }
            }
        };
        let value = |position: Ex<'k>| {
            let (source, inside) = k.source(position, length, sort.boundary);
            let inside = inside.map(|inside| k.let_(inside));
            let index = at(from, src.pitch[1], source);
            if sort.across && sort.run > 1 {
                let next = index(int(0)) + sort.run.cast_signed();
                k.soon(src, next, sort.run, Access::Read);
            }
            move |lane: Ex<'k>| {
                let value = k.load(src.buf, index(lane)).cast(ty);
                inside.map_or(value, |inside| inside.select(value, zero))
            }
        };
        // One piece of code for the first element and the others: reading by a boundary rule is
        // long, and twice of it is more than some cards have registers for.
        let take = |position: Ex<'k>, first: Ex<'k>| {
            let value = value(position);
            let first = k.let_(first);
            lanes.each(|lane| {
                let value = k.let_(value(lane));
                let begun = fold::begin(sort.combine, value);
                let more = fold::add(sort.combine, running.get(lane), value);
                running.set(lane, first.select(begun, more));
            });
        };
        let radius = k.let_((window - 1).shifted_right(1));
        // Results start + 1 ..= start + last are the end of this block and the start of the next.
        let last = k.let_((window - 1).min(length - 1 - start));
        let here = k.let_(start - radius);
        k.if_(start.ge(0) & last.ge(1), || {
            k.for_(int(0), window - 1, |back| {
                let at_k = k.let_(window - 1 - back);
                take(here + at_k, back.is(0));
                k.if_(at_k.le(last), || {
                    let index = at(to, dst.pitch[1], start + at_k);
                    lanes.each(|lane| k.store(dst.buf, index(lane), running.get(lane)));
                });
            });
        });
        let next = k.let_(here + window);
        let stop = k.let_((start + window).lt(length).select(window, last));
        k.for_(int(1), stop + 1, |at_k| {
            take(next + (at_k - 1), at_k.is(1));
            let index = at(to, dst.pitch[1], start + at_k);
            k.if_else(
                at_k.is(window),
                || lanes.each(|lane| k.store(dst.buf, index(lane), running.get(lane))),
                || {
                    k.if_(start.ge(0), || {
                        lanes.each(|lane| {
                            let end = k.load(dst.buf, index(lane));
                            let whole = fold::add(sort.combine, end, running.get(lane));
                            k.store(dst.buf, index(lane), whole);
                        });
                    });
                },
            );
        });
    };
    k.if_(inside, || {
        let rest = Lanes::rest(k, sort.run, first, side);
        if sort.run == 1 {
            return body(rest);
        }
        // A number of lanes that the compiler knows makes better code.
        let whole = (first + sort.run.cast_signed()).le(side);
        k.if_else(whole, || body(Lanes::whole(k, sort.run)), || body(rest));
    });
}

pub(super) fn plan(flow: &Flow, node: &Node, window: Window, tuning: &Tuning) -> Plan {
    if let Some(plan) = slide::plan(flow, node, window, tuning) {
        return plan;
    }
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let across = window.axis != 2;
    let run = if across { tuning.run } else { tuning.rows };
    let k = Builder::new();
    write(
        &k,
        Sort {
            from: from.dtype(),
            to: to.dtype(),
            across,
            combine: window.combine,
            boundary: window.boundary,
            run,
        },
    );
    let name = if across {
        "wl_window_across"
    } else {
        "wl_window"
    };
    let def = k.finish(name, tuning.group);
    let [planes, y, x] = along(to.dims(), window.axis);
    let (length, side) = if across { (y, x) } else { (x, y) };
    let width = u64::from(window.radius) * 2 + 1;
    let blocks = 1 + (length - 1).div_ceil(width);
    let runs = side.div_ceil(u64::from(run));
    let args = Args::new()
        .image_along(flow, input, window.axis)
        .image_along(flow, output, window.axis)
        .count(planes)
        .count(length)
        .count(side)
        .count(width);
    let mut plan = Plan::default();
    let items = if across {
        [runs, blocks, planes]
    } else {
        [blocks, runs, planes]
    };
    plan.launch(def, items, args);
    plan
}
