//! How many slots: the fewest that no longer limit the rate, within the budget.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use warploom_core::Space;

use super::cycle::{Period, slowest, without_token};
use super::edge::Sort;
use super::error::PlanError;
use super::graph::{Slots, StageGraph};
use super::marked::{Arc, Why};
use super::plan::{Draft, Memory, Options, stride};

/// The most slots that make sense.
pub(crate) const MOST: u32 = 64;

/// How many combinations are looked at before the best so far is taken.
const PATIENCE: usize = 4000;

fn range(graph: &StageGraph, options: &Options) -> Vec<(u32, u32)> {
    let resources = graph.resources.iter();
    resources
        .map(|resource| match (resource.slots, options.depth) {
            (Slots::Exactly(slots), _) => (slots, slots),
            (Slots::UpTo(_), Some(depth)) => (depth, depth),
            (Slots::UpTo(most), None) => (1, most),
        })
        .collect()
}

/// As many slots as resources may have.
pub(crate) fn most(graph: &StageGraph, options: &Options) -> Vec<u32> {
    let range = range(graph, options).into_iter();
    range.map(|(_, most)| most).collect()
}

/// The slots of the plan: of all that fit the budget those with the best rate, and of those the
/// ones with the least memory.
///
/// A search by memory, least first. What a combination lacks is a token in its slowest cycle (or in
/// one without any), so only resources of that cycle are worth another slot: whatever is better
/// has one of them more. So nothing better is passed over.
pub(crate) fn choose(draft: &Draft<'_>) -> Result<Vec<u32>, PlanError> {
    let range = range(draft.graph, draft.options);
    let least: Vec<u32> = range.iter().map(|(least, _)| *least).collect();
    let goal = rating(draft, &most(draft.graph, draft.options))?.period;
    let align = draft.options.align;
    let cost = |slots: &[u32]| Memory::of(draft.graph, slots, align).total();
    let mut seen = BTreeSet::from([least.clone()]);
    let mut open = BinaryHeap::from([Reverse((cost(&least), least.clone()))]);
    let mut best: Option<(Option<Period>, Vec<u32>)> = None;
    let mut refused = None;
    while let Some(Reverse((_, slots))) = open.pop() {
        if let Err(error) = within(draft, &slots) {
            refused.get_or_insert(error);
            continue;
        }
        let rating = rating(draft, &slots)?;
        if rating.live {
            let better = best
                .as_ref()
                .is_none_or(|(known, _)| slower(*known, rating.period));
            if better {
                best = Some((rating.period, slots.clone()));
            }
            if !slower(rating.period, goal) || seen.len() > PATIENCE {
                break;
            }
        }
        for at in rating.limits {
            if slots[at] < range[at].1 {
                let mut more = slots.clone();
                more[at] += 1;
                if seen.insert(more.clone()) {
                    open.push(Reverse((cost(&more), more)));
                }
            }
        }
    }
    match (best, refused) {
        (Some((_, slots)), _) => Ok(slots),
        (None, Some(error)) => Err(error),
        // The most slots are live, so the search ends at something unless the budget forbids it.
        (None, None) => Ok(most(draft.graph, draft.options)),
    }
}

/// Is the first slower than the second?
fn slower(first: Option<Period>, second: Option<Period>) -> bool {
    let time = |period: Option<Period>| period.unwrap_or(Period { time: 0, tokens: 1 });
    let (first, second) = (time(first), time(second));
    u128::from(first.time) * u128::from(second.tokens)
        > u128::from(second.time) * u128::from(first.tokens)
}

struct Rating {
    live: bool,
    period: Option<Period>,
    /// Resources whose slots are in the way.
    limits: Vec<usize>,
}

fn rating(draft: &Draft<'_>, slots: &[u32]) -> Result<Rating, PlanError> {
    let edges = draft.edges(slots)?;
    let mut marked = draft.marked(&edges);
    // Where nobody knows how long anything takes, everything takes as long.
    if marked.arcs.iter().all(|arc| arc.time == 0) {
        for arc in &mut marked.arcs {
            arc.time = u64::from(!arc.from.is_multiple_of(2));
        }
    }
    let limits = |arcs: &[Arc]| {
        let mut limits: Vec<usize> = arcs
            .iter()
            .filter_map(|arc| match arc.why {
                Why::Edge(edge) | Why::Recorded(edge) if edges[edge.0].sort == Sort::Free => {
                    edges[edge.0].resource
                }
                _ => None,
            })
            .map(|resource| resource.0)
            .collect();
        limits.sort_unstable();
        limits.dedup();
        limits
    };
    if let Some(arcs) = without_token(&marked) {
        return Ok(Rating {
            live: false,
            period: None,
            limits: limits(&arcs),
        });
    }
    Ok(match slowest(&marked) {
        Some((period, arcs)) => Rating {
            live: true,
            period: Some(period),
            limits: limits(&arcs),
        },
        None => Rating {
            live: true,
            period: None,
            limits: Vec::new(),
        },
    })
}

fn within(draft: &Draft<'_>, slots: &[u32]) -> Result<(), PlanError> {
    let (budget, align) = (draft.options.budget, draft.options.align);
    let memory = Memory::of(draft.graph, slots, align);
    let sides = [
        (true, budget.device, memory.device),
        (false, budget.host, memory.pinned + memory.host),
    ];
    for (is_device, allowed, needed) in sides {
        let Some(allowed) = allowed.filter(|allowed| needed > *allowed) else {
            continue;
        };
        let of_side = |space: Space| matches!(space, Space::Host | Space::Pinned) != is_device;
        let sizes = draft.graph.resources.iter().zip(slots);
        let largest = sizes
            .filter(|(resource, _)| of_side(resource.space))
            .map(|(resource, slots)| (stride(resource.bytes, align) * u64::from(*slots), resource))
            .max_by_key(|(bytes, _)| *bytes);
        let (largest_bytes, largest) =
            largest.map_or((0, ""), |(bytes, resource)| (bytes, &resource.name));
        return Err(PlanError::Budget {
            is_device,
            needed,
            allowed,
            largest: largest.to_owned(),
            largest_bytes,
        });
    }
    Ok(())
}
