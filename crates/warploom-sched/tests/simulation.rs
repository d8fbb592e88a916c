//! Plans on a simulated device: bytes, order and time.

mod graphs;
mod world;

use graphs::{Encoder, chain, ms, random};
use rstest::rstest;
use warploom_sched::{Options, Plan, RunOptions, Slots, StageGraph, plan};
use warploom_testkit::sim::Sim;
use world::{Script, device, paced, run_on, run_seeded};

fn planned(graph: &StageGraph, depth: u32) -> Plan {
    plan(graph, &Options::default().with_depth(depth)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_encoder_delivers_the_same_bytes_at_every_depth_and_seed() {
    for encoder in Encoder::all() {
        let graph = encoder.graph();
        let mut first = None;
        for depth in 1..=4 {
            let Ok(plan) = plan(&graph, &Options::default().with_depth(depth)) else {
                // What runs ahead on one queue needs two slots.
                assert!(encoder.drain_on_d2h && depth == 1, "{encoder:?} {depth}");
                continue;
            };
            for seed in 0..12 {
                let ran = run_seeded(&plan, seed, 9, true);
                if let Err(error) = &ran.result {
                    panic!("{encoder:?} depth {depth} seed {seed}: {error}");
                }
                assert_eq!(ran.held, 0);
                let deliver = plan.graph().find("deliver").unwrap().index();
                let own: Vec<_> = ran.delivered.iter().filter(|d| d.0 == deliver).collect();
                let generations: Vec<u64> = own.iter().map(|d| d.1).collect();
                assert_eq!(generations, (0..9).collect::<Vec<_>>(), "oldest first");
                let sums: Vec<u64> = own.iter().map(|d| d.3).collect();
                let known = first.get_or_insert_with(|| sums.clone());
                assert_eq!(*known, sums, "{encoder:?} depth {depth} seed {seed}");
            }
        }
    }
}

#[test]
fn a_sink_gets_the_oldest_first_whatever_was_quick() {
    let plan = planned(&Encoder::all()[8].graph(), 3);
    // Every third kernel of a sort takes long, the next less, the last nothing: whatever could
    // overtake would.
    let counts = std::sync::Mutex::new(std::collections::HashMap::<String, u64>::new());
    let sim = Sim::build(device(), 1).pace(move |operation| {
        let mut counts = counts.lock().ok()?;
        let count = counts.entry(operation.queue.to_owned()).or_default();
        *count += 1;
        Some(ms(8 - 4 * (*count % 3)))
    });
    let ran = run_on(
        sim.finish(),
        &plan,
        &Script::default(),
        RunOptions::of(12, 1),
    );
    assert_eq!(ran.result.unwrap().generations, 12);
    let deliver = plan.graph().find("deliver").unwrap().index();
    let own = ran.delivered.iter().filter(|d| d.0 == deliver);
    assert!(own.map(|d| d.1).eq(0..12));
}

#[rstest]
#[case(2, 220)]
#[case(1, 410)]
fn neighbours_overlap_as_slots_allow(#[case] slots: u32, #[case] expected: u64) {
    let plan = planned(&chain(&[10, 10, 10], Slots::Exactly(slots)), slots);
    let sim = paced(device(), &plan, 1).finish();
    let ran = run_on(sim, &plan, &Script::default(), RunOptions::of(20, 1));
    assert_eq!(ran.result.unwrap().wall, ms(expected));
}

#[test]
fn one_generation_at_a_time_takes_the_sum_of_all() {
    let options = Options::default().sharing_slots();
    let plan = plan(&chain(&[10, 10, 10], Slots::UpTo(4)), &options).unwrap();
    let sim = paced(device(), &plan, 1).finish();
    let ran = run_on(sim, &plan, &Script::default(), RunOptions::of(20, 1));
    assert_eq!(ran.result.unwrap().wall, ms(600));
}

#[test]
fn the_encoder_runs_as_fast_as_the_model_says() {
    for encoder in Encoder::all() {
        let plan = plan(&encoder.graph(), &Options::default()).unwrap();
        let wall = |generations| {
            let sim = paced(device(), &plan, 3).finish();
            let ran = run_on(
                sim,
                &plan,
                &Script::default(),
                RunOptions::of(generations, 1),
            );
            ran.result.unwrap().wall
        };
        let measured = (wall(240).as_secs_f64() - wall(40).as_secs_f64()) / 200.0 * 1e9;
        let said = plan.period().unwrap().nanos();
        assert!(
            (measured / said - 1.0).abs() < 0.02,
            "{encoder:?}: {measured} {said}"
        );
    }
}

#[test]
fn random_graphs_run_as_fast_as_the_model_says() {
    let (mut planned, mut worst) = (0, 0.0_f64);
    for seed in 0..80 {
        let graph = random(seed);
        let Ok(plan) = plan(&graph, &Options::default()) else {
            continue;
        };
        planned += 1;
        let wall = |generations| {
            // The host reads beside devices that read, which buffers lent as a whole do not allow.
            let sim = paced(device(), &plan, seed).loose().finish();
            let ran = run_on(
                sim,
                &plan,
                &Script::default(),
                RunOptions::of(generations, 1),
            );
            ran.result
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
                .wall
        };
        let measured = (wall(120).as_secs_f64() - wall(40).as_secs_f64()) / 80.0 * 1e9;
        let said = plan.period().map_or(0.0, warploom_sched::Period::nanos);
        let off = (measured / said - 1.0).abs();
        worst = worst.max(off);
        assert!(
            off < 0.02,
            "seed {seed}: {measured} {said}\n{}",
            plan.explanation()
        );
    }
    assert!(planned > 50, "{planned}");
    println!("{planned} graphs, at most {:.3} % off", worst * 100.0);
}

#[test]
fn random_graphs_give_the_same_bytes_at_every_depth_and_seed() {
    let mut runs = 0;
    for seed in 0..60 {
        let graph = random(seed);
        let mut first: Option<Vec<_>> = None;
        for depth in 1..=4 {
            let Ok(plan) = plan(&graph, &Options::default().with_depth(depth)) else {
                continue;
            };
            for round in 0..4 {
                let ran = run_seeded(&plan, round, 9, true);
                if let Err(error) = &ran.result {
                    panic!("graph {seed} depth {depth} round {round}: {error}");
                }
                let mut sums = ran.delivered;
                sums.sort_unstable();
                let known = first.get_or_insert_with(|| sums.clone());
                assert_eq!(*known, sums, "graph {seed} depth {depth} round {round}");
                runs += 1;
            }
        }
    }
    assert!(runs > 500, "{runs}");
}

#[test]
fn a_hundred_seeds_eight_times_write_the_same_as_often() {
    let plan = planned(&graphs::ENCODER.graph(), 3);
    // A sum that does not depend on the order, and how often there was something to write.
    let hash = |ran: &world::Ran| {
        let of = |one: &(usize, u64, u64, u64)| one.3.wrapping_mul(2 * (one.0 as u64 + one.1) + 1);
        let sum = ran.delivered.iter().map(of).fold(0, u64::wrapping_add);
        (sum, ran.delivered.len())
    };
    let mut first = None;
    for seed in 0..100 {
        let mut commands = None;
        for run in 0..8 {
            let sim = Sim::new(device(), seed);
            let ran = run_on(
                sim,
                &plan,
                &Script::default(),
                RunOptions::of(6, 1).with_log(),
            );
            let known = *first.get_or_insert_with(|| hash(&ran));
            assert_eq!(hash(&ran), known, "seed {seed} run {run}");
            let known = commands.get_or_insert_with(|| ran.summary.log.clone());
            assert_eq!(*known, ran.summary.log, "seed {seed} run {run}");
        }
    }
}
