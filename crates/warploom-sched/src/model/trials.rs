//! Cycles and slots against looking at all of them.

use proptest::prelude::*;

use super::cycle::{Period, slowest, without_token};
use super::marked::{Arc, Marked, Why, index};
use super::{Budget, Options, Plan, PlanError, Resource, Slots, Stage, StageGraph, plan};
use std::time::Duration;
use warploom_core::{QueueClass, Space};

/// All simple cycles, by trying.
fn all_cycles(marked: &Marked) -> Vec<Vec<Arc>> {
    fn extend(marked: &Marked, start: usize, path: &mut Vec<Arc>, found: &mut Vec<Vec<Arc>>) {
        let at = path.last().map_or(start, |arc| arc.to);
        for arc in marked.arcs.iter().filter(|arc| arc.from == at) {
            if arc.to == start {
                let mut cycle = path.clone();
                cycle.push(*arc);
                found.push(cycle);
            } else if arc.to > start && !path.iter().any(|known| known.to == arc.to) {
                path.push(*arc);
                extend(marked, start, path, found);
                path.pop();
            }
        }
    }
    let mut found = Vec::new();
    for start in 0..marked.nodes {
        extend(marked, start, &mut Vec::new(), &mut found);
    }
    found
}

fn any_marked() -> impl Strategy<Value = Marked> {
    let arc = (0..7_usize, 0..7_usize, -1..3_i64, 0..20_u64);
    proptest::collection::vec(arc, 1..14).prop_map(|arcs| Marked {
        nodes: 7,
        arcs: arcs
            .into_iter()
            .map(|(from, to, tokens, time)| Arc {
                from,
                to,
                tokens,
                time,
                why: Why::Turn,
            })
            .collect(),
    })
}

fn sums(cycle: &[Arc]) -> (i64, u64) {
    let tokens = cycle.iter().map(|arc| arc.tokens).sum();
    (tokens, cycle.iter().map(|arc| arc.time).sum())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_circle_without_token_is_found_just_when_there_is_one(marked in any_marked()) {
        let exists = all_cycles(&marked).iter().any(|cycle| sums(cycle).0 <= 0);
        match without_token(&marked) {
            None => prop_assert!(!exists),
            Some(cycle) => {
                prop_assert!(sums(&cycle).0 <= 0);
                for (arc, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                    prop_assert_eq!(arc.to, next.from);
                }
            }
        }
    }

    #[test]
    fn the_slowest_circle_is_the_slowest_of_all(marked in any_marked()) {
        if without_token(&marked).is_some() {
            return Ok(());
        }
        let cycles = all_cycles(&marked);
        let ratios = cycles.iter().map(|cycle| {
            let (tokens, time) = sums(cycle);
            Period { time, tokens: u64::try_from(tokens).unwrap() }
        });
        let most = ratios.filter(|period| period.time > 0).map(Period::nanos).fold(0.0, f64::max);
        let found = slowest(&marked).map_or(0.0, |(period, _)| period.nanos());
        prop_assert!((found - most).abs() < 1e-9, "{found} {most}");
    }
}

/// A graph of up to six stages, each reading some of what earlier ones wrote.
fn any_graph() -> impl Strategy<Value = StageGraph> {
    let stage = (0..4_u8, 0..9_u64, any::<u16>(), 0..3_u8, 1..5_u64);
    proptest::collection::vec(stage, 2..7).prop_map(|stages| {
        let mut graph = StageGraph::new();
        let mut written = Vec::new();
        for (at, (place, time, picks, sort, bytes)) in stages.into_iter().enumerate() {
            let name = format!("stage {at}");
            let mut stage = match place {
                0 => Stage::host(name),
                queue => Stage::device(name, QueueClass::Compute).on(format!("queue {queue}")),
            };
            stage = stage.taking(Duration::from_nanos(time));
            for (pick, resource) in written.iter().enumerate() {
                let (chosen, looked) = (picks >> pick & 1 == 1, picks >> (pick + 8) & 3 == 3);
                stage = match (chosen, looked, sort) {
                    (false, ..) => stage,
                    (true, true, _) => stage.looks_at(*resource),
                    (true, false, 2) => stage.updates(*resource),
                    (true, false, _) => stage.reads(*resource),
                };
            }
            let resource = Resource::new(format!("resource {at}"), Space::Pinned, bytes)
                .with_slots(Slots::UpTo(4));
            let resource = graph.resource(resource);
            written.push(resource);
            graph.stage(stage.writes(resource));
        }
        graph
    })
}

fn bytes_only() -> Options {
    Options {
        align: 1,
        ..Options::default()
    }
}

/// The best that any choice of slots within the budget gives: period, then memory.
fn best_by_trying(graph: &StageGraph, budget: Option<u64>) -> Option<(f64, u64)> {
    let count = graph.resources().len();
    let mut best: Option<(f64, u64)> = None;
    for code in 0..4_u32.pow(u32::try_from(count).unwrap()) {
        let mut graph = graph.clone();
        for (at, resource) in graph.resources.iter_mut().enumerate() {
            let slots = code / 4_u32.pow(u32::try_from(at).unwrap()) % 4 + 1;
            resource.slots = Slots::Exactly(slots);
        }
        let Ok(plan) = plan(&graph, &bytes_only()) else {
            continue;
        };
        let memory = plan.memory().total();
        if budget.is_some_and(|budget| memory > budget) {
            continue;
        }
        let period = plan.period().map_or(0.0, Period::nanos);
        let rating = (period, memory);
        if best.is_none_or(|known| rating < known) {
            best = Some(rating);
        }
    }
    best
}

/// What a plan puts in order, over all of `generations`: who comes before whom.
fn order(plan: &Plan, generations: i64) -> Vec<Vec<bool>> {
    let lines = plan.lines();
    let marked = Marked::frame(&plan.graph, &lines, &plan.skew);
    let marked = marked.with_edges(&plan.graph, &plan.edges);
    let count = marked.nodes * usize::try_from(generations).unwrap();
    let mut before = vec![vec![false; count]; count];
    for arc in &marked.arcs {
        for to in 0..generations {
            let from = to - arc.tokens;
            if (0..generations).contains(&from) {
                let at = |node: usize, generation: i64| {
                    usize::try_from(generation).unwrap() * marked.nodes + node
                };
                before[at(arc.from, from)][at(arc.to, to)] = true;
            }
        }
    }
    for via in 0..count {
        let after = before[via].clone();
        for row in before.iter_mut().filter(|row| row[via]) {
            for (to, reached) in row.iter_mut().zip(&after) {
                *to |= reached;
            }
        }
    }
    before
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_the_fewest_that_do_not_limit(graph in any_graph(), budget in 8..40_u64) {
        prop_assume!(graph.resources().len() < 5);
        prop_assume!(graph.stages().iter().any(|stage| stage.time > Duration::ZERO));
        for budget in [None, Some(budget)] {
            let options = Options {
                budget: Budget { device: None, host: budget },
                ..bytes_only()
            };
            let best = best_by_trying(&graph, budget);
            match plan(&graph, &options) {
                Ok(plan) if plan.shape() == super::Shape::Pipelined => {
                    let (period, memory) = best.unwrap();
                    prop_assert!((plan.period().map_or(0.0, Period::nanos) - period).abs() < 1e-9);
                    prop_assert_eq!(plan.memory().total(), memory);
                }
                // What does not run ahead needs less.
                Ok(_) => prop_assert!(best.is_none()),
                Err(PlanError::Budget { .. }) => prop_assert!(best.is_none()),
                Err(error) => prop_assert!(best.is_none(), "{}", error),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn leaving_out_waits_loses_no_order(graph in any_graph(), depth in 1..4_u32) {
        let Ok(plan) = plan(&graph, &Options::default().with_depth(depth)) else {
            return Ok(());
        };
        // A short stream: what would only hold in the middle of a long one has to fail here.
        for generations in [1_i64, 2, 3, 6] {
            let before = order(&plan, generations);
            let at = |node, generation: i64| {
                usize::try_from(generation).unwrap() * 2 * graph.stages().len() + index(node)
            };
            for edge in plan.edges() {
                for link in edge.links() {
                    for to in i64::from(link.lag)..generations {
                        let from = to - i64::from(link.lag);
                        prop_assert!(before[at(link.from, from)][at(link.to, to)], "{} {:?} of {} in {}", edge, link, generations, plan.explanation());
                    }
                }
            }
        }
        prop_assert!(plan.is_complete());
        // Whatever is left is needed: without it the order is another.
        for (id, edge) in plan.edge_ids() {
            if edge.is_live() {
                prop_assert!(!plan.without(id).is_complete(), "{} is not needed", edge);
            }
        }
    }

    #[test]
    fn what_is_planned_has_no_circle_and_devices_wait_for_no_host_i3(graph in any_graph()) {
        let Ok(plan) = plan(&graph, &Options::default()) else {
            return Ok(());
        };
        let (lines, edges) = (plan.lines(), plan.edges());
        let marked = Marked::frame(&plan.graph, &lines, &plan.skew).with_edges(&plan.graph, edges);
        prop_assert!(without_token(&marked).is_none());
        for arc in &marked.arcs {
            let (from, to) = (super::marked::node(arc.from), super::marked::node(arc.to));
            let own = arc.why == Why::Submit;
            prop_assert!(own || !from.is_host(&graph) || to.is_host(&graph));
            prop_assert_eq!(index(from), arc.from);
        }
    }
}
