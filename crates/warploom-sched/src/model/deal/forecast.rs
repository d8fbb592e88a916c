//! What a dealer's decisions come to, in virtual time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::{Dealer, Task, Work};

/// How a forecast came out.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Forecast {
    /// When the last result is on the host.
    pub time: f64,
    /// How many tasks were done.
    pub tasks: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Arrived,
    Computed,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Happening {
    at: f64,
    number: u64,
    what: What,
    device: usize,
    task: Task,
}

impl Eq for Happening {}

impl Ord for Happening {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives the greatest first, and the earliest is wanted.
        let earlier = other.at.total_cmp(&self.at);
        earlier.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Happening {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One device: copies in, computes and copies out, one task each at a time.
#[derive(Clone, Debug, Default)]
struct Engines {
    is_bringing: bool,
    /// What is on the device and not begun.
    here: VecDeque<Task>,
    is_computing: bool,
    free_to_return: f64,
}

/// Runs a dealer on devices that take what `real` says, whatever the dealer believes.
pub fn forecast(dealer: Dealer, real: &Work) -> Forecast {
    forecast_with(dealer, real, |_, _| 1.0)
}

impl Forecast {
    /// The same on devices that take `slowness` times as long, by device and time.
    pub fn drifting(dealer: Dealer, real: &Work, slowness: impl Fn(usize, f64) -> f64) -> Self {
        forecast_with(dealer, real, slowness)
    }
}

fn forecast_with(
    mut dealer: Dealer,
    real: &Work,
    slowness: impl Fn(usize, f64) -> f64,
) -> Forecast {
    let mut engines = vec![Engines::default(); real.devices()];
    let mut happenings = BinaryHeap::new();
    let (mut now, mut end, mut number, mut tasks) = (0.0, 0.0_f64, 0, 0);
    loop {
        let mut moved = true;
        while moved {
            moved = false;
            for (device, own) in engines.iter_mut().enumerate() {
                let mut later = |at, what, task| {
                    number += 1;
                    happenings.push(Happening {
                        at,
                        number,
                        what,
                        device,
                        task,
                    });
                };
                if let Some(task) = dealer.take(device, own.is_bringing) {
                    let way = real.moves[device] * real.frames[task.frame];
                    if dealer.must_move(device, task) && way > 0.0 {
                        own.is_bringing = true;
                        later(now + way, What::Arrived, task);
                    } else {
                        own.here.push_back(task);
                    }
                    moved = true;
                }
                if !own.is_computing
                    && let Some(task) = own.here.pop_front()
                {
                    own.is_computing = true;
                    let cost = real.costs[device][task.stage] * real.frames[task.frame];
                    later(now + cost * slowness(device, now), What::Computed, task);
                    moved = true;
                }
            }
        }
        let Some(Happening {
            at,
            what,
            device,
            task,
            ..
        }) = happenings.pop()
        else {
            return Forecast { time: end, tasks };
        };
        now = at;
        let own = &mut engines[device];
        match what {
            What::Arrived => {
                own.is_bringing = false;
                own.here.push_back(task);
            }
            What::Computed => {
                own.is_computing = false;
                tasks += 1;
                let took = real.costs[device][task.stage]
                    * real.frames[task.frame]
                    * slowness(device, now);
                dealer.done(device, task, took);
                if task.stage + 1 == real.stages() {
                    let back = real.returns[device] * real.frames[task.frame];
                    own.free_to_return = own.free_to_return.max(now) + back;
                    end = end.max(own.free_to_return);
                }
            }
        }
    }
}
