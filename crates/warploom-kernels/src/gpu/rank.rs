//! The element of a rank in a neighbourhood.
//!
//! Small neighbourhoods are sorted by a network, an expression without branches that becomes
//! vector code. In large ones the element is found bit by bit: how many elements are below a limit
//! decides the next bit. Between the two, processors go through a network as a list of pairs.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Footprint, Node};
use crate::kernel::{Access, Builder};

use super::columns;
use super::lanes::{items, runs};
use super::launch::{Args, Plan};
use super::near::{Near, Row};
use super::order;
use super::sorted;
use super::tuning::Tuning;

/// The largest neighbourhood that is sorted: a square of seven, on which a network takes a tenth
/// of the comparisons that 32 rounds over all elements take.
const SORTED: usize = 49;

/// How often an item looks at an element of such a neighbourhood.
pub(super) fn steps(footprint: &Footprint, dtype: DType) -> usize {
    let count = footprint.count();
    match order::bits(dtype) {
        _ if count <= SORTED => count,
        Some(bits) => count.saturating_mul(bits as usize),
        None => count.saturating_mul(count),
    }
}

/// What the kernel's text depends on.
#[derive(Clone, Copy)]
struct Sort<'a> {
    dtype: DType,
    boundary: Boundary,
    run: u32,
    /// The neighbourhood and the rank, where they are sorted.
    sorted: Option<(&'a [[i32; 3]], usize)>,
    /// Are its keys put in order by a list of pairs?
    listed: bool,
}

fn write<'k>(k: &'k Builder, sort: Sort<'_>) {
    let dtype = sort.dtype;
    let keyed = order::bits(dtype).is_some();
    let src = k.image("src", dtype, Access::Read);
    let offsets = match sort.sorted {
        Some(_) => None,
        None => Some(k.buffer("offsets", DType::I32, Access::Read)),
    };
    let dst = k.image("dst", dtype, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [count, reach, rank] = ["count", "reach", "rank"].map(|name| k.scalar(name, Ty::I32));
    let sorter = sort.listed.then(|| order::Listed::new(k, sort.run));
    let ty = src.buf.ty();
    runs(k, sort.run, dims, |run| {
        let near = Near {
            k,
            src,
            dims,
            boundary: sort.boundary,
            ty,
            outside: k.graph().number(ty, 0.0),
            run,
        };
        let put = |lane: Ex<'k>, value: Ex<'k>| {
            let value = if keyed {
                order::element(dtype, value)
            } else {
                value
            };
            k.put(dst, [run.z, run.y, run.first + lane], value);
        };
        near.both_ways(reach, reach, |lanes, clear| match (offsets, sort.sorted) {
            (None, Some((list, rank))) => {
                let pixels = neighbours(near, list, clear);
                lanes.each(|lane| {
                    let values = pixels.iter().map(|pixel| {
                        let value = pixel(lane);
                        k.let_(if keyed {
                            order::key(dtype, value)
                        } else {
                            value
                        })
                    });
                    put(lane, order::ranked(values.collect(), rank));
                });
            }
            (Some(offsets), _) => {
                let each = |body: order::Body<'_, 'k>| {
                    k.for_(k.graph().int(0), count, |at| {
                        let offset = [0, 1, 2].map(|axis| k.load(offsets, at * 3 + axis));
                        body(&near.at(offset, clear));
                    });
                };
                if let Some(sorter) = sorter {
                    k.for_(k.graph().int(0), count, |at| {
                        let offset = [0, 1, 2].map(|axis| k.load(offsets, at * 3 + axis));
                        let (pixel, to) = (near.at(offset, clear), sorter.at(at));
                        lanes.each(|lane| sorter.set(to + lane, order::key(dtype, pixel(lane))));
                    });
                    return;
                }
                let found = if keyed {
                    order::halved(k, lanes, dtype, rank, &each)
                } else {
                    order::compared(k, lanes, ty, rank, &each)
                };
                lanes.each(|lane| put(lane, found.get(lane)));
            }
            (None, None) => unreachable!("what is not sorted has a list of offsets"),
        });
        if let Some(sorter) = sorter {
            sorter.sort();
            let at = sorter.at(rank);
            run.lanes.each(|lane| put(lane, sorter.get(at + lane)));
        }
    });
}

/// The pixels of a neighbourhood; each row is found once.
fn neighbours<'k>(
    near: Near<'k>,
    list: &[[i32; 3]],
    clear: bool,
) -> Vec<impl Fn(Ex<'k>) -> Ex<'k> + 'k> {
    let int = |value: i32| near.k.graph().int(value);
    let mut rows: Vec<([i32; 2], Row<'k>)> = Vec::new();
    let mut pixels = Vec::new();
    for [z, y, x] in list {
        let known = rows.iter().find(|(at, _)| *at == [*z, *y]);
        let row = known.map_or_else(|| near.row(int(*z), int(*y)), |(_, row)| *row);
        rows.push(([*z, *y], row));
        pixels.push(row.at(int(*x), clear));
    }
    pixels
}

pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (footprint, rank, boundary): (&Footprint, u32, Boundary),
    tuning: &Tuning,
) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let to = flow.kind(output);
    if let Some(reach) = columns::reach(footprint, to.dtype(), tuning) {
        return columns::plan(flow, node, (reach, rank, boundary), tuning);
    }
    let list = footprint.offsets();
    let is_sorted = list.len() <= SORTED;
    let columns = sorted::reach(footprint, to.dtype(), tuning).filter(|_| is_sorted);
    if let Some(reach) = columns {
        return sorted::plan(flow, node, (reach, rank, boundary), tuning);
    }
    // On a processor with memory of its own for the keys, fewer comparisons than bit by bit, and no more text.
    let able = tuning.is_processor() && order::bits(to.dtype()).is_some();
    let listed = able && !is_sorted && list.len() <= order::LISTED;
    let k = Builder::new();
    write(
        &k,
        Sort {
            dtype: to.dtype(),
            boundary,
            run: tuning.run,
            sorted: is_sorted.then_some((&list, rank as usize)),
            listed,
        },
    );
    let name = if listed { "wl_rank_listed" } else { "wl_rank" };
    let def = k.finish(name, tuning.group);
    let mut plan = Plan::default();
    let mut args = Args::new().image(flow, input);
    if !is_sorted {
        let constant = plan.constant::<i32>(list.as_flattened());
        args = args.buffer(constant);
    }
    let args = args
        .image(flow, output)
        .dims(to)
        .count(list.len() as u64)
        .count(u64::from(footprint.reach()[2]))
        .count(u64::from(rank));
    let args = if listed {
        order::listed(&mut plan, args, &order::pairs(list.len(), &[rank as usize]))
    } else {
        args
    };
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
