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
#[path = "peer/mod.rs"]
mod peer;

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use deals::cases;
use peer::Peer;
use warploom_sched::{Dealer, Forecast, Rule, Task, Work, deal, forecast};

/// Nanoseconds for a task with the choice of its device: dealt, taken and done.
fn choice_ns(rule: Rule) -> f64 {
    let costs = vec![
        vec![2.0, 4.0, 3.0],
        vec![16.0, 4.0, 6.0],
        vec![16.0, 4.0, 6.0],
    ];
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
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(tasks)
}

/// `StarPU` that deals by its model of costs, with so many processors and so many devices.
fn starpu(processors: &str, devices: &str, folder: &str) -> Result<Option<Peer>, Box<dyn Error>> {
    let settings = [
        ("STARPU_SCHED", "dmda"),
        ("STARPU_NCPU", processors),
        ("STARPU_NOPENCL", devices),
        ("STARPU_OPENCL_ON_CPUS", "1"),
        ("STARPU_NCUDA", "0"),
        ("STARPU_CALIBRATE", "1"),
        ("STARPU_SILENT", "1"),
        ("STARPU_HOME", folder),
    ];
    Peer::start("WARPLOOM_PEER_STARPU", &settings)
}

/// What a task with the choice of its device costs, taking turns with `StarPU` where it is here.
fn choices(folder: &str) -> Result<(), Box<dyn Error>> {
    let mut peer = starpu("2", "0", folder)?;
    let (mut ours, mut theirs) = ([f64::INFINITY; 2], f64::INFINITY);
    for _ in 0..7 {
        for (best, rule) in ours.iter_mut().zip([Rule::Soonest, Rule::Shares]) {
            *best = best.min(choice_ns(rule));
        }
        if let Some(peer) = &mut peer {
            theirs = theirs.min(peer.round("independent")?.unwrap_or(f64::INFINITY));
        }
    }
    let worst = ours[0].max(ours[1]);
    println!("sched_choice_ns {worst:.1}");
    if peer.is_some() {
        println!("starpu_choice_ns {theirs:.1}");
        println!("sched_choice_starpu_ratio {:.3}", worst / theirs);
    }
    Ok(())
}

/// A device and two processors that wait for real, taking turns with `StarPU` where it is here.
fn hetero(work: &Work, folder: &str) -> Result<(), Box<dyn Error>> {
    let mut peer = starpu("2", "1", folder)?;
    // It learns its model first.
    for _ in 0..3 {
        if let Some(peer) = &mut peer {
            peer.round("hetero")?;
        }
    }
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        ours = ours.min(waited_ms(work, |_, _| 1.0)?);
        if let Some(peer) = &mut peer {
            let round = peer.round("hetero")?;
            theirs = theirs.min(round.map_or(f64::INFINITY, |ns| ns / 1e6));
        }
    }
    println!("sched_hetero_real_ratio {:.4}", ours / work.bound());
    if theirs.is_finite() {
        println!("starpu_hetero_real_ratio {:.4}", theirs / work.bound());
        println!("sched_hetero_starpu_ratio {:.4}", ours / theirs);
    } else if peer.is_some() {
        eprintln!("StarPU found no OpenCL device to deal to: hetero_real has no peer");
    }
    Ok(())
}

/// Milliseconds on devices that wait for real.
fn waited_ms(
    work: &Work,
    slowness: impl Fn(usize, Duration) -> f64 + Sync,
) -> Result<f64, Box<dyn Error>> {
    // What is timed are seconds.
    let mut timed = work.clone();
    for cost in timed.costs.iter_mut().flatten() {
        *cost /= 1e3;
    }
    let begun = Instant::now();
    deal(Dealer::best(timed), |device: usize, task: Task| {
        let ms = work.costs[device][task.stage] * slowness(device, begun.elapsed());
        std::thread::sleep(Duration::from_secs_f64(ms / 1e3));
        Ok(())
    })?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
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
    // What StarPU learns about costs is not kept.
    let folder = std::env::temp_dir().join(format!("warploom-starpu-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let place = folder.to_str().ok_or("a folder whose name is no text")?;
    let raced = choices(place).and_then(|()| hetero(&cases()[2].1, place));
    std::fs::remove_dir_all(&folder)?;
    raced?;

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
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        best = best.min(waited_ms(&equal, real)?);
    }
    println!("sched_drift_real_ratio {:.4}", best / bound);
    Ok(())
}
