//! Tasks dealt to unequal devices: each once and in order, by every rule, and well.

mod deals;
mod graphs;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use deals::cases;
use graphs::Dice;
use rstest::rstest;
use warploom_sched::{Dealer, Forecast, Rule, StageError, Task, Work, deal, forecast};

fn random(seed: u64) -> Work {
    let mut dice = Dice::new(seed);
    let mut count = |most: u64| usize::try_from(dice.below(most)).expect("a small number");
    let devices = 1 + count(4);
    let stages = 1 + count(5);
    let (frames, slots) = (count(40), 1 + count(3));
    let mut number = |most: u64| dice.below(most) as f64;
    let costs: Vec<Vec<f64>> = (0..devices)
        .map(|_| (0..stages).map(|_| 1.0 + number(30)).collect())
        .collect();
    let mut ways = || (0..devices).map(|_| number(8)).collect();
    let (moves, returns) = (ways(), ways());
    Work::new(costs, frames)
        .moving(moves, returns)
        .weighing((0..frames).map(|_| 0.5 + number(4)).collect())
        .holding(slots)
}

/// Devices that end their tasks in any order: each task comes once, after the one before it.
#[rstest]
fn every_task_is_done_once_and_in_order(#[values(0, 1, 2, 3, 4, 5)] rule: usize) {
    let rule = Rule::ALL[rule];
    for seed in 0..120 {
        let work = random(seed);
        let (devices, stages) = (work.devices(), work.stages());
        let mut dealer = Dealer::new(work.clone(), rule);
        let mut dice = Dice::new(seed + 1000);
        let mut held: Vec<(usize, Task)> = Vec::new();
        let mut next: HashMap<usize, usize> = HashMap::new();
        while !dealer.is_done() {
            let mut idle = 0;
            for device in 0..devices {
                match dealer.take(device, dice.below(3) == 0) {
                    Some(task) => held.push((device, task)),
                    None => idle += 1,
                }
                let own = held.iter().filter(|(of, _)| *of == device).count();
                assert!(own <= work.slots, "{rule:?} {seed}");
            }
            // With nothing on its way anywhere, somebody must have something to do.
            if held.is_empty() && idle == devices {
                let task =
                    (0..devices).find_map(|device| Some((device, dealer.take(device, false)?)));
                held.push(task.unwrap_or_else(|| panic!("{rule:?} {seed}: all are idle")));
            }
            let at = usize::try_from(dice.below(held.len() as u64)).unwrap();
            let (device, task) = held.swap_remove(at);
            let stage = next.entry(task.frame).or_default();
            assert_eq!(task.stage, *stage, "{rule:?} {seed} {task:?}");
            *stage += 1;
            dealer.done(device, task, 1.0 + dice.below(50) as f64);
        }
        assert_eq!(next.len(), work.frames.len(), "{rule:?} {seed}");
        assert!(next.values().all(|done| *done == stages), "{rule:?} {seed}");
    }
}

#[test]
fn no_forecast_beats_the_bound_and_the_best_rule_is_the_best() {
    for seed in 0..200 {
        let work = random(seed);
        let own = forecast(Dealer::best(work.clone()), &work);
        assert_eq!(own.tasks, work.frames.len() * work.stages(), "{seed}");
        if work.frames.is_empty() {
            continue;
        }
        for rule in Rule::ALL {
            let other = forecast(Dealer::new(work.clone(), rule), &work).time;
            assert!(other >= work.bound() - 1e-6, "{rule:?} {seed}");
            assert!(own.time <= other, "{rule:?} {seed}: {} {other}", own.time);
        }
    }
}

/// What the best known rule of each case reaches of the bound.
#[rstest]
#[case("two_equal", 0.990)]
#[case("speeds_4_2_1", 0.978)]
#[case("mixed", 0.945)]
#[case("mixed_moving", 0.943)]
#[case("locality", 0.81)]
#[case("heavy_tail", 0.824)]
#[case("wrong_model", 0.909)]
fn each_case_is_dealt_as_well_as_by_its_best_known_rule(#[case] name: &str, #[case] least: f64) {
    let all = cases();
    let (_, believed, real) = all.iter().find(|case| case.0 == name).unwrap();
    let time = forecast(Dealer::best(believed.clone()), real).time;
    assert!(real.bound() / time >= least, "{}", real.bound() / time);
}

#[test]
fn a_device_that_slows_down_is_given_less() {
    let work = Work::new(vec![vec![8.0]; 3], 96);
    let slow = |device: usize, at: f64| if device == 2 && at >= 128.0 { 3.0 } else { 1.0 };
    let time = Forecast::drifting(Dealer::best(work.clone()), &work, slow).time;
    let bound = 128.0 + (96.0 - 48.0) * 8.0 / (2.0 + 1.0 / 3.0);
    assert!(bound / time >= 0.9, "{}", bound / time);
}

#[test]
fn threads_do_all_of_it_each_frame_in_order() {
    for seed in 0..20 {
        let mut work = random(seed);
        for cost in work.costs.iter_mut().flatten() {
            *cost *= 1e-6;
        }
        let (frames, stages) = (work.frames.len(), work.stages());
        let done = Mutex::new(vec![0; frames]);
        deal(Dealer::best(work), |_, task| {
            let mut done = done.lock().unwrap();
            assert_eq!(done[task.frame], task.stage);
            done[task.frame] += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(*done.lock().unwrap(), vec![stages; frames], "{seed}");
    }
}

#[test]
fn the_first_failure_ends_it_and_a_panic_is_one() {
    let work = Work::new(vec![vec![1e-6]; 3], 1000);
    let begun = AtomicUsize::new(0);
    let error = deal(Dealer::best(work.clone()), |_, task| {
        begun.fetch_add(1, Ordering::Relaxed);
        match task.frame {
            10 => Err(StageError::failed("on purpose")),
            _ => Ok(()),
        }
    });
    assert_eq!(error, Err(StageError::failed("on purpose")));
    assert!(begun.into_inner() <= 1000);
    let error = deal(Dealer::best(work), |_, task| {
        assert_ne!(task.frame, 20, "on purpose");
        Ok(())
    });
    assert!(matches!(error, Err(StageError::Panicked(_))), "{error:?}");
}
