//! What happens: waiting for it, and telling the policy.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Station, Supervisor};
use crate::policy::{End, Input};
use crate::record::Reason;
use crate::stop::Wish;
use crate::wire::{Came, FromWorker};

/// How much is read of one worker before the others have their turn.
const READ: usize = 1 << 18;
/// How often the policy hears that a worker waits for its lease.
const HELD: Duration = Duration::from_secs(1);

impl Supervisor<'_> {
    /// Waits for something to happen; the slots at which something did.
    pub(super) fn wait(&mut self) -> Vec<usize> {
        let pause = self.pause();
        let pause_spec = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let mut ports = vec![PollFd::new(&self.fleet.stopper, PollFlags::IN)];
        let mut slots = Vec::new();
        for (slot, station) in self.stations.iter().enumerate() {
            let (child, heard) = match station {
                Station::Running(child) => (child, child.open),
                Station::Closing(child, _) => (child, false),
                Station::Empty | Station::Waiting { .. } => continue,
            };
            ports.push(PollFd::new(&child.death, PollFlags::IN));
            slots.push(slot);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, heard);
            flags.set(PollFlags::OUT, child.link.is_behind());
            if !flags.is_empty() {
                ports.push(PollFd::new(&child.link, flags));
                slots.push(slot);
            }
        }
        let begun = Instant::now();
        let woken = poll(&mut ports, pause_spec.as_ref());
        if woken.is_err() {
            return Vec::new();
        }
        let happened = ports[1..].iter().zip(slots);
        let happened = happened.filter(|(port, _)| !port.revents().is_empty());
        let mut ready: Vec<usize> = happened.map(|(_, slot)| slot).collect();
        ready.dedup();
        self.clock.waited(begun, pause);
        ready
    }

    /// How long nothing has to happen.
    fn pause(&self) -> Option<Duration> {
        let now = self.clock.now();
        let looks = self.policy.next_look();
        let closing = self.stations.iter().filter_map(|station| match station {
            Station::Closing(_, since) => Some(*since + super::CLOSING),
            Station::Waiting { .. } => Some(now + HELD),
            _ => None,
        });
        let moments = looks.into_iter().chain(closing).min();
        let until = moments.map(|moment| moment.saturating_sub(now));
        let watch = self.fleet.watcher.as_ref().map(|_| super::WATCH);
        // A millisecond more, so that what is due is due by then.
        let until = until.map(|until| until + Duration::from_millis(1));
        [until, self.ledger.due_in(), self.health.due_in(), watch]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn hear_wishes(&mut self) {
        self.fleet.stopper.hush();
        let wish = self.fleet.stopper.wished();
        if wish > self.wish {
            self.wish = wish;
            if wish == Wish::Stop {
                self.ledger.hurry();
            }
            self.tell(match wish {
                Wish::Stop => Input::Stop,
                Wish::Drain | Wish::GoOn => Input::Drain,
            });
        }
    }

    /// What the management of devices reports.
    pub(super) fn hear_signs(&mut self) {
        for (device, sign) in self.health.news() {
            self.tell(Input::Sign { device, sign });
        }
    }

    /// Leases have come, or will not.
    pub(super) fn take_turns(&mut self) {
        for slot in 0..self.stations.len() {
            if matches!(self.stations[slot], Station::Waiting { .. }) {
                self.tell(Input::Held { slot });
            }
        }
        while let Some((slot, lease)) = self.turns.arrived() {
            let station = std::mem::replace(&mut self.stations[slot], Station::Empty);
            let Station::Waiting { cancel, probe } = station else {
                self.stations[slot] = station;
                continue;
            };
            match lease {
                Ok(lease) if !cancel.is_cancelled() => self.spawn(slot, probe, Some(lease)),
                Ok(_) => self.gone(slot, "it was called off".into(), String::new()),
                Err(error) => self.gone(slot, error.to_string(), String::new()),
            }
        }
    }

    /// Hears what a worker says, and whether it still is.
    pub(super) fn read(&mut self, slot: usize, buffer: &mut [u8]) {
        let Some(child) = self.stations[slot].child() else {
            return;
        };
        child.link.flush();
        // Death first: what the dead said is read to the end, because it was said before.
        let mut port = [PollFd::new(&child.death, PollFlags::IN)];
        let dead = matches!(poll(&mut port, Some(&Timespec::default())), Ok(count) if count > 0);
        loop {
            let Some(child) = self.stations[slot].child() else {
                return;
            };
            let came = if child.open {
                child.link.read(buffer, READ)
            } else {
                Came::End
            };
            self.hear(slot);
            if came == Came::End {
                self.close(slot);
            }
            if !dead || came != Came::Something {
                break;
            }
        }
        if !dead {
            return;
        }
        let Some(child) = self.stations[slot].child() else {
            return;
        };
        if let Some(how) = child.reap() {
            let log = child.tail();
            self.stations[slot] = Station::Empty;
            self.gone(slot, how, log);
        }
    }

    /// The worker's end of the socket is closed, or nothing it says counts any more.
    fn close(&mut self, slot: usize) {
        let now = self.clock.now();
        let station = std::mem::replace(&mut self.stations[slot], Station::Empty);
        self.stations[slot] = match station {
            Station::Running(mut child) => {
                child.open = false;
                Station::Closing(child, now)
            }
            other => other,
        };
    }

    /// Every whole message that a worker has sent.
    fn hear(&mut self, slot: usize) {
        loop {
            let Some(child) = self.stations[slot].child() else {
                return;
            };
            match child.link.next() {
                Ok(Some(message)) => self.message(slot, message),
                Ok(None) => return,
                Err(violation) => {
                    self.tell(Input::Nonsense {
                        slot,
                        text: violation.to_string(),
                    });
                    self.close(slot);
                    return;
                }
            }
        }
    }

    fn message(&mut self, slot: usize, message: FromWorker) {
        let over = |batch, end| Input::Over { slot, batch, end };
        let input = match message {
            FromWorker::Ready => Input::Ready { slot },
            FromWorker::Refused { why, wrong_device } => Input::Refused {
                slot,
                why,
                wrong_device,
            },
            FromWorker::Begun { batch } => Input::Begun { slot, batch },
            FromWorker::Beat { progress } => Input::Beat { slot, progress },
            FromWorker::Done {
                batch,
                record,
                body,
            } => {
                let Some(child) = self.stations[slot].child() else {
                    return;
                };
                match child.fetch(body, &mut self.answer) {
                    Ok(()) => Input::Done {
                        slot,
                        batch,
                        record,
                    },
                    Err(violation) => Input::Nonsense {
                        slot,
                        text: violation.to_string(),
                    },
                }
            }
            FromWorker::Failed {
                batch,
                record,
                text,
            } => Input::Failed {
                slot,
                batch,
                record,
                reason: Reason::Work { text },
            },
            FromWorker::TooLong {
                batch,
                record,
                bytes,
                limit,
            } => Input::Failed {
                slot,
                batch,
                record,
                reason: Reason::TooLong { bytes, limit },
            },
            FromWorker::Finished { batch } => over(batch, End::Finished),
            FromWorker::OutOfMemory { batch, asked } => over(batch, End::OutOfMemory { asked }),
            FromWorker::FixedSize { batch, size } => over(batch, End::FixedSize { size }),
            FromWorker::Settled { records } => Input::Settled { slot, records },
            FromWorker::DeviceLost { batch, text } => over(batch, End::DeviceLost { text }),
            FromWorker::BatchFailed { batch, text } => over(batch, End::Failed { text }),
        };
        if let Input::Over { batch, .. } = input
            && let Some(child) = self.stations[slot].child()
        {
            child.settle(batch);
        }
        if let Input::Done { .. } = input {
            self.ledger.done_at(slot);
        }
        self.tell(input);
    }
}
