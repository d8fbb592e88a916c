//! How well tasks are dealt to unequal devices: seven cases in virtual time, devices that wait for
//! real, a device that slows down, and what a decision costs. `cargo xtask bench sched` runs it.
//!
//! Ratios are what was taken above what no schedule can beat.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its result"
)]

#[path = "../tests/deals/mod.rs"]
mod deals;

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use deals::cases;
use warploom_sched::{Dealer, Forecast, Rule, Task, Work, deal, forecast};

/// Nanoseconds for a task with the choice of its device: dealt, taken and done.
fn choice_ns() -> f64 {
    let costs = vec![
        vec![2.0, 4.0, 3.0],
        vec![16.0, 4.0, 6.0],
        vec![16.0, 4.0, 6.0],
    ];
    let mut worst = 0.0_f64;
    for rule in [Rule::Soonest, Rule::Shares] {
        let mut own = f64::INFINITY;
        for _ in 0..7 {
            let begun = Instant::now();
            let mut dealer = Dealer::new(Work::new(costs.clone(), 10_000), rule);
            let mut tasks = 0;
            let mut device = 0;
            while !dealer.is_done() {
                device = (device + 1) % 3;
                if let Some(task) = black_box(dealer.take(device, false)) {
                    dealer.done(device, task, costs[device][task.stage]);
                    tasks += 1;
                }
            }
            own = own.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(tasks));
        }
        worst = worst.max(own);
    }
    worst
}

/// Devices that wait for real: what is taken above the bound, best of several.
fn waiting_ratio(
    work: &Work,
    bound: f64,
    slowness: impl Fn(usize, Duration) -> f64 + Sync,
) -> Result<f64, Box<dyn Error>> {
    // What is timed are seconds.
    let mut timed = work.clone();
    for cost in timed.costs.iter_mut().flatten() {
        *cost /= 1e3;
    }
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let begun = Instant::now();
        deal(Dealer::best(timed.clone()), |device: usize, task: Task| {
            let ms = work.costs[device][task.stage] * slowness(device, begun.elapsed());
            std::thread::sleep(Duration::from_secs_f64(ms / 1e3));
            Ok(())
        })?;
        best = best.min(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best / bound)
}

fn main() -> Result<(), Box<dyn Error>> {
    for (name, believed, real) in cases() {
        let dealer = Dealer::best(believed.clone());
        let rule = dealer.rule();
        let time = forecast(dealer, &real).time;
        println!("sched_deal_{name}_ratio {:.4}", time / real.bound());
        eprintln!(
            "{name} by {rule:?}: {:.3} of the bound",
            real.bound() / time
        );
    }
    println!("sched_choice_ns {:.1}", choice_ns());
    let mixed = &cases()[2].1;
    let ratio = waiting_ratio(mixed, mixed.bound(), |_, _| 1.0)?;
    println!("sched_hetero_real_ratio {ratio:.4}");

    // Three equal devices, of which the last becomes three times slower after half the time.
    let equal = Work::new(vec![vec![8.0]; 3], 96);
    let turn = 128.0;
    // Until then all three work at 1 in 8 ms; then 2 1/3 of them do what is left.
    let left = 96.0 - 3.0 * turn / 8.0;
    let bound = turn + left * 8.0 / (2.0 + 1.0 / 3.0);
    let slow = |device: usize, at: f64| if device == 2 && at >= turn { 3.0 } else { 1.0 };
    let time = Forecast::drifting(Dealer::best(equal.clone()), &equal, slow).time;
    println!("sched_drift_ratio {:.4}", time / bound);
    let real = |device, at: Duration| slow(device, at.as_secs_f64() * 1e3);
    println!(
        "sched_drift_real_ratio {:.4}",
        waiting_ratio(&equal, bound, real)?
    );
    Ok(())
}
