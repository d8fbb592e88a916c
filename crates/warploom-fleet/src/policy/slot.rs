//! One slot: a place for one worker process at a time.

use std::collections::VecDeque;
use std::time::Duration;

use super::batch::Flight;
use super::{Moment, Rules};
use crate::journal::Cause;

/// What a slot's process is doing.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Phase {
    /// There is none. One may be started from then on.
    Empty { from: Moment },
    /// It has been started, or will be when its turn on the device has come, for which it was seen to wait.
    Starting {
        since: Moment,
        probe: bool,
        held: bool,
    },
    /// It works, or could.
    Up,
    /// It was asked to end when it had nothing to do.
    Retiring { since: Moment },
    /// It was asked to end, or said that it would.
    Ending {
        since: Moment,
        asked: bool,
        cause: Option<Cause>,
    },
    /// It was killed.
    Killed { since: Moment, cause: Option<Cause> },
    /// It did not die, or its device is given up.
    Lost,
}

/// One slot.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) device: usize,
    pub(super) phase: Phase,
    /// The one it works on first, then those that wait with it.
    pub(super) flights: VecDeque<Flight>,
    progress: u64,
    /// When it last showed that it gets on.
    moved: Moment,
    /// Was it asked what it is doing since then?
    asked: bool,
    /// When the flight before the first one ended: what was taken early waited for that.
    freed: Moment,
    /// When it last finished a batch, and the records that it has done since.
    finished: Moment,
    answered: u32,
    /// Records a second.
    pub(super) rate: Option<f64>,
    /// How many records its latest batch had.
    pub(super) batch: Option<u64>,
    /// Why it could not start, if it said so.
    pub(super) refusal: Option<(String, bool)>,
}

impl Slot {
    pub(super) fn new(device: usize) -> Self {
        Self {
            device,
            phase: Phase::Empty { from: Moment::ZERO },
            flights: VecDeque::new(),
            progress: 0,
            moved: Moment::ZERO,
            asked: false,
            freed: Moment::ZERO,
            finished: Moment::ZERO,
            answered: 0,
            rate: None,
            batch: None,
            refusal: None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// Does its process wait for others to make room on the device?
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Starting { held: true, .. })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.phase == Phase::Lost
    }

    /// Is there no process, for now or for good?
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.phase, Phase::Empty { .. } | Phase::Lost)
    }

    /// Is there a process that can still say something of use?
    pub(super) fn listens(&self) -> bool {
        matches!(
            self.phase,
            Phase::Up | Phase::Retiring { .. } | Phase::Ending { .. }
        )
    }

    pub(super) fn under_way(&self) -> u64 {
        let counts = self.flights.iter().map(|flight| flight.open.len() as u64);
        counts.sum()
    }

    pub(super) fn flight(&mut self, batch: u64) -> Option<&mut Flight> {
        self.flights.iter_mut().find(|flight| flight.id == batch)
    }

    /// Takes a flight out that has ended, by its place.
    pub(super) fn land(&mut self, place: usize, now: Moment) -> Option<Flight> {
        if place == 0 {
            self.freed = now;
        }
        self.flights.remove(place)
    }

    /// It gets on.
    pub(super) fn moves(&mut self, now: Moment) {
        self.moved = now;
        self.asked = false;
    }

    /// It says how far it is; standing still is not getting on.
    pub(super) fn beats(&mut self, now: Moment, progress: u64) {
        if progress > self.progress {
            self.progress = progress;
            self.moves(now);
        }
    }

    /// A new process begins with nothing.
    pub(super) fn reset(&mut self, phase: Phase) {
        self.phase = phase;
        self.progress = 0;
        self.answered = 0;
        self.refusal = None;
    }

    /// It did a record.
    pub(super) fn answers(&mut self) {
        self.answered += 1;
    }

    /// It finished a batch that it had begun then. It may be at others, whose records count as well, but
    /// neither they nor the time they took count twice.
    pub(super) fn measured(&mut self, begun: Moment, now: Moment) {
        let others = self.flights.iter().filter_map(|flight| flight.begun);
        let since = others.fold(begun, Moment::min).max(self.finished);
        let took = now.saturating_sub(since);
        // Batches that end close together would make it look fast beyond measure: they are put together.
        if took * 4 < now.saturating_sub(begun) {
            return;
        }
        let count = std::mem::take(&mut self.answered);
        self.finished = now;
        if count == 0 {
            return;
        }
        let rate = f64::from(count) / took.as_secs_f64().max(1e-6);
        self.rate = Some(self.rate.map_or(rate, |old| f64::midpoint(old, rate)));
    }

    /// Takes note that it is killed now; false when there is nothing to kill.
    pub(super) fn kill(&mut self, now: Moment, cause: Option<Cause>) -> bool {
        let earlier = match &mut self.phase {
            Phase::Empty { .. } | Phase::Killed { .. } | Phase::Lost => return false,
            Phase::Ending { cause, .. } => cause.take(),
            Phase::Starting { .. } | Phase::Up | Phase::Retiring { .. } => None,
        };
        let cause = earlier.or(cause);
        self.phase = Phase::Killed { since: now, cause };
        true
    }

    /// Is it to be asked what it is doing? Once for a silence, and once for a batch.
    pub(super) fn asks(&mut self, now: Moment, rules: &Rules) -> bool {
        if self.asks_at(rules).is_none_or(|moment| moment > now) {
            return false;
        }
        self.asked |= self.moved + before(rules.silence_limit) <= now;
        let is_late = rules.batch_limit.zip(self.worked_since());
        let is_late = is_late.is_some_and(|(limit, since)| since + before(limit) <= now);
        if let Some(first) = self.flights.front_mut() {
            first.asked |= is_late;
        }
        true
    }

    /// From when on it is to be asked.
    fn asks_at(&self, rules: &Rules) -> Option<Moment> {
        let first = self.flights.front().filter(|_| self.is_up())?;
        let silent = (!self.asked).then(|| self.moved + before(rules.silence_limit));
        let late = rules.batch_limit.zip(self.worked_since());
        let late = late.filter(|_| !first.asked);
        let late = late.map(|(limit, since)| since + before(limit));
        silent.into_iter().chain(late).min()
    }

    /// Since when it has worked on its first flight. It may have begun with it while it was at the one before,
    /// which is no time that this one takes.
    fn worked_since(&self) -> Option<Moment> {
        Some(self.flights.front()?.begun?.max(self.freed))
    }

    /// How it has hung, if it has.
    pub(super) fn hang(&self, now: Moment, rules: &Rules) -> Option<Cause> {
        let (at, cause) = self.hangs_at(rules)?;
        (at <= now).then_some(cause)
    }

    /// From when on it hangs, and in which way.
    fn hangs_at(&self, rules: &Rules) -> Option<(Moment, Cause)> {
        let first = self.flights.front().filter(|_| self.is_up())?;
        let after = rules.silence_limit;
        let silent = self.moved + after;
        let late = rules.batch_limit.zip(self.worked_since());
        let late = late.map(|(limit, since)| (since + limit, limit));
        Some(match late {
            Some((at, limit)) if at < silent => {
                let records = first.size as u64;
                (at, Cause::Late { limit, records })
            }
            _ => (silent, Cause::Hung { after }),
        })
    }

    /// When somebody has to look at it again.
    pub(super) fn due(&self, rules: &Rules) -> Option<Moment> {
        match &self.phase {
            Phase::Empty { .. } | Phase::Lost => None,
            Phase::Starting { since, .. } => Some(*since + rules.start_limit),
            Phase::Up => {
                let hangs = self.hangs_at(rules).map(|(moment, _)| moment);
                hangs.into_iter().chain(self.asks_at(rules)).min()
            }
            Phase::Retiring { since } | Phase::Ending { since, .. } => Some(*since + rules.grace),
            Phase::Killed { since, .. } => Some(*since + rules.patience),
        }
    }

    /// When a process may be started.
    pub(super) fn starts_at(&self) -> Option<Moment> {
        match self.phase {
            Phase::Empty { from } => Some(from),
            _ => None,
        }
    }
}

/// When a worker is asked that has not hung yet.
fn before(limit: Duration) -> Duration {
    limit * 3 / 4
}
