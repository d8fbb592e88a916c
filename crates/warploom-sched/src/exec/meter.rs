//! Where the time of a run went, thread by thread and queue by queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use warploom_core::Event;

use super::report::{Owner, Usage};
use super::threads::DRIVER;
use super::wiring::Wires;
use crate::model::{Plan, StageId};

/// Turns on a queue whose end has not been looked up are at most so many.
const PENDING: usize = 512;

/// A turn on a queue, between two events.
type Pending = (Arc<dyn Event>, Arc<dyn Event>);

/// One owner of time, and when its last turn ended.
#[derive(Debug)]
struct Account {
    usage: Usage,
    last: Option<Duration>,
}

impl Account {
    fn new(owner: Owner) -> Self {
        Self {
            usage: Usage::new(owner),
            last: None,
        }
    }

    /// A turn. What is before the first of them is idle, what is between them blocked.
    fn turn(&mut self, start: Duration, begin: Duration, end: Duration) {
        let since = self.last.unwrap_or(start);
        let gap = begin.saturating_sub(since);
        if self.last.is_some() {
            self.usage.blocked += gap;
        } else {
            self.usage.idle += gap;
        }
        self.usage.busy += end.saturating_sub(begin.max(since));
        self.usage.turns += 1;
        self.last = Some(end.max(since));
    }
}

/// Measures what each thread and queue does with its time.
#[derive(Debug)]
pub(super) struct Meter {
    start: Duration,
    driver: Account,
    threads: Vec<Account>,
    queues: Vec<(Account, VecDeque<Pending>)>,
    /// For each stage of the host, its thread; the driver's have none.
    thread_of: Vec<Option<usize>>,
    /// Where the device's clock stood at some moment of the crew's.
    clocks: Option<(Duration, Duration)>,
    most: usize,
    lost: u64,
}

impl Meter {
    /// With `clocks`, what the device's clock said when the crew's said that.
    pub(super) fn new(
        plan: &Plan,
        wires: &[Wires],
        clocks: Option<(Duration, Duration)>,
        start: Duration,
    ) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut thread_of = vec![None; wires.len()];
        for (at, own) in wires.iter().enumerate() {
            let name = own.thread.as_deref();
            let name = name.unwrap_or(&plan.graph().stages()[at].name);
            if own.queue.is_some() || name == DRIVER {
                continue;
            }
            let known = names.iter().position(|known| *known == name);
            thread_of[at] = Some(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(name);
            }
        }
        let threads = names.iter().map(|name| Owner::Thread((*name).to_owned()));
        let queues = plan.queues().iter().map(|queue| {
            let account = Account::new(Owner::Queue(queue.name.clone()));
            (account, VecDeque::with_capacity(PENDING))
        });
        Self {
            start,
            driver: Account::new(Owner::Driver),
            threads: threads.map(Account::new).collect(),
            queues: queues.collect(),
            thread_of,
            clocks,
            most: PENDING,
            lost: 0,
        }
    }

    /// The driver had something to do.
    pub(super) fn drove(&mut self, time: Duration) {
        self.driver.usage.busy += time;
        self.driver.usage.turns += 1;
    }

    /// The driver had to wait.
    pub(super) fn waited(&mut self, time: Duration) {
        self.driver.usage.blocked += time;
    }

    /// A host stage has run.
    pub(super) fn ran(&mut self, stage: StageId, span: Option<(Duration, Duration)>) {
        let Some(thread) = self.thread_of[stage.0] else {
            return;
        };
        match span {
            Some((begin, end)) => self.threads[thread].turn(self.start, begin, end),
            None => self.lost += 1,
        }
    }

    /// A stage was enqueued between two events.
    pub(super) fn enqueued(&mut self, queue: usize, begin: Arc<dyn Event>, end: Arc<dyn Event>) {
        self.collect(queue);
        let pending = &mut self.queues[queue].1;
        if pending.len() == self.most {
            // What is too old to wait for is missing from the account, and that is said.
            pending.pop_front();
            self.lost += 1;
        }
        pending.push_back((begin, end));
    }

    fn collect(&mut self, queue: usize) {
        let (account, pending) = &mut self.queues[queue];
        while let Some((begin, end)) = pending.front() {
            if matches!(end.is_done(), Ok(false)) {
                return;
            }
            match (self.clocks, begin.at(), end.at()) {
                (Some((device, crew)), Some(begin), Some(end)) => {
                    let told = |at: Duration| (crew + at).saturating_sub(device);
                    account.turn(self.start, told(begin), told(end));
                }
                _ => self.lost += 1,
            }
            pending.pop_front();
        }
    }

    /// The account when everything is over. What never had a turn is not in it.
    pub(super) fn conclude(&mut self, now: Duration) -> (Vec<Usage>, u64) {
        for queue in 0..self.queues.len() {
            self.collect(queue);
        }
        let lost = self.lost
            + self
                .queues
                .iter()
                .map(|queue| queue.1.len() as u64)
                .sum::<u64>();
        let wall = now.saturating_sub(self.start);
        let mut driver = self.driver.usage.clone();
        // Whoever called the run had the thread to himself in between.
        driver.idle = wall.saturating_sub(driver.busy + driver.blocked);
        let queues = self.queues.iter().map(|queue| &queue.0);
        let others = self.threads.iter().chain(queues).filter_map(|account| {
            let mut usage = account.usage.clone();
            usage.idle += now.saturating_sub(account.last?);
            Some(usage)
        });
        (std::iter::once(driver).chain(others).collect(), lost)
    }
}

#[cfg(test)]
mod tests {
    use warploom_core::{QueueClass, Result, Space};

    use super::*;
    use crate::exec::wiring::wire;
    use crate::model::{Options, Resource, Stage, StageGraph, plan};

    /// A moment of a device's clock that is reached or never will be.
    #[derive(Debug)]
    struct Moment(Option<u64>);

    impl Event for Moment {
        fn is_done(&self) -> Result<bool> {
            Ok(self.0.is_some())
        }
        fn wait(&self, _timeout: Option<Duration>) -> Result<()> {
            Ok(())
        }
        fn at(&self) -> Option<Duration> {
            self.0.map(Duration::from_millis)
        }
    }

    fn meter(clocks: Option<(Duration, Duration)>) -> Meter {
        let mut graph = StageGraph::new();
        let image = graph.resource(Resource::new("image", Space::Pinned, 64));
        graph.stage(Stage::host("read").writes(image));
        graph.stage(
            Stage::device("work", QueueClass::Compute)
                .on("compute")
                .reads(image),
        );
        let plan = plan(&graph, &Options::default()).expect("a plan");
        Meter::new(&plan, &wire(&plan), clocks, Duration::ZERO)
    }

    fn at(moment: u64) -> Arc<dyn Event> {
        Arc::new(Moment(Some(moment)))
    }

    fn never() -> Arc<dyn Event> {
        Arc::new(Moment(None))
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_queue_is_idle_before_and_after_and_blocked_between() {
        // The device's clock is 100 ms ahead.
        let mut meter = meter(Some((ms(105), ms(5))));
        meter.enqueued(0, at(110), at(130));
        meter.enqueued(0, at(140), at(141));
        let (usages, lost) = meter.conclude(ms(50));
        let queue = usages.last().expect("the queue");
        assert_eq!(queue.owner, Owner::Queue("compute".into()));
        assert_eq!((queue.turns, lost), (2, 0));
        assert_eq!(
            [queue.busy, queue.blocked, queue.idle],
            [ms(21), ms(10), ms(19)]
        );
        // The thread that never had a turn is absent, not zero.
        assert_eq!(usages.len(), 2);
    }

    #[test]
    fn what_cannot_be_measured_is_counted_as_lost() {
        let mut meter = meter(Some((ms(0), ms(0))));
        meter.most = 2;
        meter.enqueued(0, at(1), at(2));
        for _ in 0..5 {
            meter.enqueued(0, at(2), never());
        }
        // Three were pushed out, two are left.
        assert_eq!(meter.conclude(ms(9)).1, 5);
        let mut clockless = self::meter(None);
        clockless.enqueued(0, at(1), at(2));
        clockless.ran(StageId(0), None);
        assert_eq!(clockless.conclude(ms(9)).1, 2);
    }
}
