//! Which of several devices does what: chains of stages dealt to unequal devices while they run.
//!
//! [`Work`] says how long each stage of a frame takes on each device, and what it takes to bring a
//! frame there. A [`Dealer`] decides, task by task, by one of the [`Rule`]s; [`Dealer::best`] tries
//! them all in a [`forecast`] and takes the one that would be done first, because none of them is
//! the best everywhere. What it is told of real times corrects what it believes.

mod dealer;
mod forecast;
mod shares;

pub use dealer::{Dealer, Rule, Task};
pub use forecast::{Forecast, forecast};

/// What there is to do, and what it is thought to take. Times are in any one unit.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Work {
    /// For each device, what each stage of a frame takes.
    pub costs: Vec<Vec<f64>>,
    /// For each device, what it takes to bring a frame there.
    pub moves: Vec<f64>,
    /// For each device, what it takes to bring a result to the host.
    pub returns: Vec<f64>,
    /// How heavy each frame is; 1 is as said.
    pub frames: Vec<f64>,
    /// How many tasks a device may hold: on their way there, waiting, or running.
    pub slots: usize,
}

impl Work {
    /// So many equal frames, with these costs by device and stage, and nothing to be moved.
    pub fn new(costs: Vec<Vec<f64>>, frames: usize) -> Self {
        Self {
            moves: vec![0.0; costs.len()],
            returns: vec![0.0; costs.len()],
            costs,
            frames: vec![1.0; frames],
            slots: 2,
        }
    }

    /// The same with frames that have to be brought to the device and back.
    #[must_use]
    pub fn moving(self, moves: Vec<f64>, returns: Vec<f64>) -> Self {
        Self {
            moves,
            returns,
            ..self
        }
    }

    /// The same with frames of these weights.
    #[must_use]
    pub fn weighing(self, frames: Vec<f64>) -> Self {
        Self { frames, ..self }
    }

    /// The same with devices that hold so many tasks, at least one.
    #[must_use]
    pub fn holding(self, slots: usize) -> Self {
        let slots = slots.max(1);
        Self { slots, ..self }
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.costs.len()
    }

    /// How many stages a frame has.
    pub fn stages(&self) -> usize {
        self.costs.first().map_or(0, Vec::len)
    }

    /// What no schedule can beat: all devices busy all the time with what suits them best, or the
    /// heaviest frame by itself.
    pub fn bound(&self) -> f64 {
        let all: f64 = self.frames.iter().sum();
        let area = shares::of(&self.costs).0 * all;
        let stages = 0..self.stages();
        let fastest = stages.map(|stage| {
            let costs = self.costs.iter().map(|costs| costs[stage]);
            costs.fold(f64::INFINITY, f64::min)
        });
        let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
        let heaviest = self.frames.iter().copied().fold(0.0, f64::max);
        let lightest = least(&self.frames);
        let ways = (least(&self.moves) + least(&self.returns)) * lightest;
        area.max(fastest.sum::<f64>() * heaviest + ways)
    }
}
