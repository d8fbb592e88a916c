//! The rim of a fleet: does what the policy decides, and tells it what happens.
//!
//! One thread does it all: it starts every worker, because workers die with the thread that started them,
//! and it waits in one place for sockets, deaths, leases and wishes.

mod child;
mod clock;
mod ear;
mod hand;
mod health;
mod ledger;
mod turn;

use std::time::Duration;

use warploom_core::CancelToken;

use crate::error::FleetError;
use crate::fleet::Fleet;
use crate::journal::{Event, History, Journal};
use crate::policy::{Input, Moment, Policy};
use crate::record::Record;
use crate::report::{Delivery, Report, SlotSnapshot, Snapshot};
use crate::stop::Wish;
use child::Child;
use clock::Clock;
use health::Health;
use ledger::Ledger;
use turn::Turns;

/// A worker that has closed its socket has ended by then, or is broken.
const CLOSING: Duration = Duration::from_secs(2);
/// How often somebody who watches is told.
const WATCH: Duration = Duration::from_millis(100);
/// What is at a slot.
#[derive(Debug)]
enum Station {
    Empty,
    /// A worker will be started when it has its lease.
    Waiting {
        cancel: CancelToken,
        probe: bool,
    },
    Running(Box<Child>),
    /// The socket is closed, and the process not gone.
    Closing(Box<Child>, Moment),
}

impl Station {
    fn child(&mut self) -> Option<&mut Child> {
        match self {
            Self::Running(child) | Self::Closing(child, _) => Some(child),
            Self::Empty | Self::Waiting { .. } => None,
        }
    }
}

/// One run.
pub(crate) struct Supervisor<'a> {
    fleet: &'a Fleet,
    policy: Policy,
    records: &'a [Record],
    ledger: Ledger<'a>,
    stations: Vec<Station>,
    /// The device of each slot.
    places: Vec<usize>,
    turns: Turns,
    health: Health,
    /// Processes that would not die.
    undead: Vec<Child>,
    clock: Clock,
    wish: Wish,
    error: Option<FleetError>,
    /// The answer that is being told of.
    answer: Vec<u8>,
    watched: Option<Moment>,
    /// How many incidents those who watch know of.
    told: usize,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        fleet: &'a Fleet,
        records: &'a [Record],
        policy: Policy,
        journal: Option<Journal>,
        history: &History,
        sink: &'a mut dyn FnMut(Delivery<'_>) -> Result<(), String>,
    ) -> Self {
        let devices = fleet.devices.iter().enumerate();
        let places = devices.flat_map(|(at, device)| std::iter::repeat_n(at, device.workers));
        let places: Vec<usize> = places.collect();
        Self {
            fleet,
            policy,
            records,
            ledger: Ledger::new(fleet, journal, history, sink, places.len()),
            stations: places.iter().map(|_| Station::Empty).collect(),
            places,
            turns: Turns::new(),
            health: Health::new(
                &fleet.devices,
                fleet.sentries.as_ref(),
                fleet.rules.management_limit,
                &fleet.stopper,
            ),
            undead: Vec::new(),
            clock: Clock::new(),
            wish: Wish::GoOn,
            error: None,
            answer: Vec::new(),
            watched: None,
            told: 0,
        }
    }

    /// Goes on until the policy has nothing left to do.
    pub(crate) fn run(&mut self) -> Result<(), FleetError> {
        self.tell(Input::Tick);
        let mut buffer = vec![0; 1 << 16];
        while !self.policy.is_over() {
            self.commit();
            let ready = self.wait();
            self.hear_wishes();
            self.take_turns();
            self.hear_signs();
            for slot in ready {
                self.read(slot, &mut buffer);
            }
            self.tell(Input::Tick);
            self.watch(false);
        }
        self.watch(true);
        let delivered = self.ledger.finish(&mut self.clock);
        self.note(delivered);
        let complete = self.policy.counts().waiting == 0;
        if let Some((device, why)) = self.policy.lost()
            && !complete
        {
            let error = FleetError::NoDevice {
                left: self.policy.counts().waiting,
                device: self.fleet.devices[device].id.clone(),
                why: why.to_owned(),
            };
            self.error.get_or_insert(error);
        }
        if let Some(error) = &self.error {
            let why = error.to_string();
            let told = self.ledger.push(Event::Broken { why });
            self.note(told);
        }
        let ended = self.ledger.push(Event::Ended { complete });
        self.note(ended);
        let kept = self.ledger.close();
        self.note(kept);
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(crate) fn into_report(self) -> Report {
        self.ledger.report(&self.policy, self.wish > Wish::GoOn)
    }

    fn gone(&mut self, slot: usize, how: String, log: String) {
        tracing::debug!(slot, how, "a worker is gone");
        self.tell(Input::Gone { slot, how, log });
    }

    /// Tells the policy something, and does what it answers.
    fn tell(&mut self, input: Input) {
        self.judge_closed(&input);
        let mut actions = Vec::new();
        self.policy.step(self.clock.now(), input, &mut actions);
        for action in actions {
            self.act(action);
        }
    }

    /// Workers that closed their socket and did not end are broken.
    fn judge_closed(&mut self, input: &Input) {
        if *input != Input::Tick {
            return;
        }
        let now = self.clock.now();
        for slot in 0..self.stations.len() {
            if let Station::Closing(_, since) = self.stations[slot]
                && since + CLOSING <= now
            {
                let text = "it closed its socket and lives on".into();
                self.tell(Input::Nonsense { slot, text });
                // Once is enough: it is being killed now.
                if let Station::Closing(_, since) = &mut self.stations[slot] {
                    *since = Moment::MAX.saturating_sub(CLOSING);
                }
            }
        }
    }

    fn commit(&mut self) {
        let committed = self.ledger.commit();
        self.note(committed);
    }

    /// The first error ends the run.
    fn note(&mut self, result: Result<(), FleetError>) {
        if let Err(error) = result
            && self.error.is_none()
        {
            self.error = Some(error);
            self.tell(Input::Stop);
        }
    }

    fn watch(&mut self, last: bool) {
        let Some(watcher) = &self.fleet.watcher else {
            return;
        };
        let now = self.clock.now();
        if !last && self.watched.is_some_and(|at| now < at + WATCH) {
            return;
        }
        self.watched = Some(now);
        let slots = self
            .places
            .iter()
            .enumerate()
            .map(|(slot, &device)| SlotSnapshot {
                device: self.fleet.devices[device].id.clone(),
                running: !matches!(self.stations[slot], Station::Empty),
                state: self.policy.state(slot),
                under_way: self.policy.under_way(slot),
                batch: self.policy.batch(slot),
                done: self.ledger.per_slot()[slot],
                rate: self.policy.rate(slot),
            });
        let incidents = self.ledger.incidents();
        watcher(&Snapshot {
            counts: self.policy.counts(),
            slots: slots.collect(),
            failed: self.ledger.failed().clone(),
            incidents: incidents[self.told..].to_vec(),
        });
        self.told = incidents.len();
    }
}
