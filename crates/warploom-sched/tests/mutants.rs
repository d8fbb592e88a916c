//! Every edge is needed, and losing it is noticed (I4).

mod graphs;
mod world;

use graphs::{ENCODER, Encoder, random};
use warploom_sched::{EdgeId, Keeper, Options, Plan, RunError, plan};
use world::{Ran, run_seeded};

/// Generations of a run: enough to use every slot several times.
const GENERATIONS: u64 = 12;

/// Every configuration at several depths.
fn plans() -> Vec<(String, Plan)> {
    let mut plans = Vec::new();
    for encoder in Encoder::all() {
        for depth in 1..=4 {
            let options = Options::default().with_depth(depth);
            for options in [options.clone(), options.sharing_slots()] {
                if let Ok(plan) = plan(&encoder.graph(), &options) {
                    plans.push((format!("{encoder:?} depth {depth} {}", plan.shape()), plan));
                }
            }
        }
    }
    assert!(plans.len() > 110, "{}", plans.len());
    plans
}

fn live(plan: &Plan) -> Vec<EdgeId> {
    let ids = plan.edge_ids().filter(|(_, edge)| edge.is_live());
    ids.map(|(id, _)| id).collect()
}

fn delivered(ran: &Ran) -> Vec<(usize, u64, u64, u64)> {
    let mut delivered = ran.delivered.clone();
    delivered.sort_unstable();
    delivered
}

#[test]
fn every_lost_edge_is_reported_whatever_the_seed_i4() {
    for (name, plan) in plans() {
        for edge in live(&plan) {
            let mutant = plan.without(edge);
            assert!(!mutant.is_complete());
            let lost = &plan.edges()[edge.index()];
            for seed in 0..2 {
                let ran = run_seeded(&mutant, seed, GENERATIONS, true);
                let Err(error) = &ran.result else {
                    panic!("{name}: nobody noticed that `{lost}` was lost, seed {seed}");
                };
                assert_eq!(ran.held, 0);
                let text = error.to_string();
                if lost.keeper() == Keeper::Event {
                    assert!(matches!(error, RunError::Race(_)), "{name}: {lost}: {text}");
                }
            }
        }
    }
}

#[test]
fn with_all_edges_nothing_is_reported_and_bytes_are_the_same() {
    for (name, plan) in plans() {
        let mut first = None;
        for seed in 0..4 {
            let ran = run_seeded(&plan, seed, GENERATIONS, true);
            assert!(ran.result.is_ok(), "{name}: {:?}", ran.result);
            let known = first.get_or_insert_with(|| delivered(&ran));
            assert_eq!(*known, delivered(&ran), "{name}");
        }
    }
}

#[test]
fn a_lost_reuse_of_the_chunk_pool_is_named_in_every_seed_and_seen_in_the_bytes_of_many() {
    let plan = plan(&ENCODER.graph(), &Options::default().with_depth(2)).unwrap();
    let mutant = plan.without(plan.edge("chunk-pool free").unwrap());
    let good = delivered(&run_seeded(&plan, 0, GENERATIONS, true));
    let mut wrong = 0;
    for seed in 0..1000 {
        let ran = run_seeded(&mutant, seed, 4, true);
        let Err(RunError::Race(race)) = ran.result else {
            panic!("seed {seed}: {:?}", ran.result);
        };
        assert_eq!(
            race.to_string(),
            "nothing orders `codec` of generation 0 before `scatter` of generation 2, which both use slot 0 of `chunk-pool`"
        );
        let unchecked = run_seeded(&mutant, seed, GENERATIONS, false);
        wrong += u32::from(unchecked.result.is_err() || delivered(&unchecked) != good);
        // With the edge, nothing is reported and nothing differs.
        let whole = run_seeded(&plan, seed, GENERATIONS, true);
        assert!(whole.result.is_ok(), "seed {seed}: {:?}", whole.result);
        assert_eq!(delivered(&whole), good, "seed {seed}");
    }
    assert!(wrong >= 100, "bytes differ in {wrong} of 1000");
}

#[test]
fn bytes_alone_show_every_lost_wait_of_a_queue_within_a_hundred_seeds() {
    for depth in 2..=4 {
        let options = Options::default().with_depth(depth);
        let plan = plan(&ENCODER.graph(), &options).unwrap();
        let good = delivered(&run_seeded(&plan, 0, GENERATIONS, true));
        let mut unseen = Vec::new();
        for edge in live(&plan) {
            let mutant = plan.without(edge);
            let is_seen = (0..100).any(|seed| {
                let ran = run_seeded(&mutant, seed, GENERATIONS, false);
                ran.result.is_err() || delivered(&ran) != good
            });
            if !is_seen {
                unseen.push(plan.edges()[edge.index()].name().to_owned());
            }
        }
        assert_eq!(unseen, Vec::<String>::new(), "depth {depth}");
    }
}

#[test]
fn lost_edges_of_random_graphs_are_reported_i4() {
    let mut mutants = 0;
    for seed in 0..120 {
        for depth in 1..=3 {
            let options = Options::default().with_depth(depth);
            let Ok(plan) = plan(&random(seed), &options) else {
                continue;
            };
            for edge in live(&plan) {
                let ran = run_seeded(&plan.without(edge), seed, 8, true);
                let lost = &plan.edges()[edge.index()];
                assert!(
                    ran.result.is_err(),
                    "graph {seed} depth {depth}: `{lost}` of\n{}",
                    plan.explanation()
                );
                mutants += 1;
            }
        }
    }
    assert!(mutants > 1000, "{mutants}");
}
