//! Who goes next on an engine that several plans share.

use std::time::Duration;

/// Work that is always let through, whatever it takes: one piece runs, the next is at hand.
const AT_HAND: usize = 2;

/// The most pieces of work on the way, however short they are.
const MOST: usize = 64;

/// How much work may be on the way, by what it is thought to take. More of it would be decided
/// about too early; less would leave engines idle while the host learns that something is done.
const AHEAD: Duration = Duration::from_millis(1);

/// What a piece of work is taken to last while nobody knows.
const GUESS: Duration = Duration::from_micros(100);

/// Virtual time: nanoseconds of the engine, divided by a weight, in parts this small.
const PARTS: u128 = 1 << 24;

/// Fair shares of one engine among tenants, by their weights: start-time fair queueing.
///
/// Each tenant has a clock that runs with what it was given, the slower the more weight it has, and
/// whoever has the earliest clock goes next. What work took is known only afterwards; it is charged
/// as it was guessed, and put right when it is done.
///
/// # What holds
/// - **It idles nothing**: while there is room and somebody is ready, somebody is chosen.
/// - **Shares**: of two tenants that are ready whenever the engine has room, the times they were
///   given, each divided by its weight, differ at most by what [`lead`](Self::lead) says, at
///   any moment and over any stretch.
/// - **Nobody starves**: a tenant that asks for nothing saves nothing up beyond that lead, so
///   another waits for a bounded time, whatever was or was not asked for before.
/// - **Nothing locks up**: what is on the way waits for nothing but what was let through before it
///   (a plan enqueues nothing whose waits are not enqueued), so in the order in which it was let
///   through it ends; and with every end there is room again.
#[derive(Clone, Debug, Default)]
pub struct Arbiter {
    tenants: Vec<Account>,
    /// The start of what was let through last, in virtual time.
    now: u128,
    /// The longest piece of any tenant by its weight, in virtual time.
    longest: u128,
    on_the_way: usize,
    /// What that is thought to take.
    ahead: Duration,
    turns: u64,
}

#[derive(Clone, Debug)]
struct Account {
    weight: u64,
    /// Until when it has been served, in virtual time.
    until: u128,
    served: Duration,
    on_the_way: usize,
    ahead: Duration,
    /// When it had its last turn: of equals the one who waited longest goes.
    turn: u64,
    has_left: bool,
}

/// Work that an arbiter let through: it is to be given back when the work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "work that is never done is in the way of all other"]
pub struct Passage {
    tenant: usize,
    charged: Duration,
}

impl Passage {
    /// Whose work it is.
    pub fn tenant(self) -> usize {
        self.tenant
    }
}

impl Arbiter {
    /// An engine that nobody uses.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tenant with this weight, at least 1. Answers its number.
    pub fn join(&mut self, weight: u32) -> usize {
        self.tenants.push(Account {
            weight: u64::from(weight.max(1)),
            until: self.now,
            served: Duration::ZERO,
            on_the_way: 0,
            ahead: Duration::ZERO,
            turn: 0,
            has_left: false,
        });
        self.tenants.len() - 1
    }

    /// Is there room for another piece of work?
    pub fn has_room(&self) -> bool {
        self.on_the_way < AT_HAND || (self.ahead < AHEAD && self.on_the_way < MOST)
    }

    /// Is nothing on the way?
    pub fn is_idle(&self) -> bool {
        self.on_the_way == 0
    }

    /// How many pieces of this tenant's work are on the way.
    pub fn on_the_way(&self, tenant: usize) -> usize {
        self.tenants[tenant].on_the_way
    }

    /// What this tenant was given, as far as it is known.
    pub fn served(&self, tenant: usize) -> Duration {
        self.tenants[tenant].served
    }

    /// Who of those who are ready goes next; `None` when there is no room, or nobody.
    pub fn choose(&self, ready: impl IntoIterator<Item = usize>) -> Option<usize> {
        if !self.has_room() {
            return None;
        }
        let due = |at: &usize| (self.start(*at), self.tenants[*at].turn, *at);
        ready
            .into_iter()
            .filter(|at| !self.tenants[*at].has_left)
            .min_by_key(due)
    }

    /// When a tenant's next piece begins, in virtual time. What was not asked for in time is gone,
    /// but for one longest piece: who was not ready for a moment loses nothing by it.
    fn start(&self, tenant: usize) -> u128 {
        let oldest = self.now.saturating_sub(self.longest);
        self.tenants[tenant].until.max(oldest)
    }

    /// Lets a tenant's work through that is thought to take this long, if anybody knows.
    pub fn admit(&mut self, tenant: usize, cost: Option<Duration>) -> Passage {
        let charged = cost.filter(|cost| !cost.is_zero()).unwrap_or(GUESS);
        let start = self.start(tenant);
        let length = virtual_time(charged, self.tenants[tenant].weight);
        self.longest = self.longest.max(length);
        self.now = self.now.max(start);
        self.turns += 1;
        let account = &mut self.tenants[tenant];
        account.until = start + length;
        account.turn = self.turns;
        account.on_the_way += 1;
        account.ahead += charged;
        self.on_the_way += 1;
        self.ahead += charged;
        Passage { tenant, charged }
    }

    /// Work is done, and the engine was busy with it for so long.
    pub fn finish(&mut self, passage: Passage, took: Duration) {
        let Passage { tenant, charged } = passage;
        let account = &mut self.tenants[tenant];
        account.served += took;
        let (thought, real) = (
            virtual_time(charged, account.weight),
            virtual_time(took, account.weight),
        );
        account.until = (account.until + real).saturating_sub(thought);
        self.longest = self.longest.max(real);
        if account.has_left {
            return;
        }
        account.on_the_way -= 1;
        account.ahead = account.ahead.saturating_sub(charged);
        self.on_the_way -= 1;
        self.ahead = self.ahead.saturating_sub(charged);
    }

    /// A tenant is given up: what it has on the way is in nobody's way any more.
    pub fn leave(&mut self, tenant: usize) {
        let account = &mut self.tenants[tenant];
        if std::mem::replace(&mut account.has_left, true) {
            return;
        }
        self.on_the_way -= account.on_the_way;
        self.ahead = self.ahead.saturating_sub(account.ahead);
    }

    /// How far the times of two tenants, each divided by its weight, can be apart, when no piece of
    /// the one takes longer than `first` and none of the other longer than `second`.
    pub fn lead(first: (Duration, u32), second: (Duration, u32)) -> Duration {
        // What is on the way is charged as it was guessed: as much as is at hand, or ahead.
        let apart = |(longest, weight): (Duration, u32)| {
            let pieces = u32::try_from(AT_HAND).unwrap_or(u32::MAX) + 2;
            (longest * pieces + AHEAD) / weight.max(1)
        };
        apart(first) + apart(second)
    }
}

fn virtual_time(time: Duration, weight: u64) -> u128 {
    time.as_nanos() * PARTS / u128::from(weight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// An engine that takes one piece at a time, in the order in which they were let through.
    struct Engine {
        arbiter: Arbiter,
        waiting: std::collections::VecDeque<(Passage, Duration)>,
    }

    impl Engine {
        fn new(weights: &[u32]) -> Self {
            let mut arbiter = Arbiter::new();
            for weight in weights {
                arbiter.join(*weight);
            }
            let waiting = std::collections::VecDeque::new();
            Self { arbiter, waiting }
        }

        /// Lets through what there is room for, then ends one.
        fn round(&mut self, ready: &[usize], mut cost: impl FnMut(usize) -> (Duration, Duration)) {
            while let Some(tenant) = self.arbiter.choose(ready.iter().copied()) {
                let (thought, real) = cost(tenant);
                let passage = self.arbiter.admit(tenant, Some(thought));
                self.waiting.push_back((passage, real));
            }
            assert!(self.waiting.len() <= MOST);
            if let Some((passage, took)) = self.waiting.pop_front() {
                self.arbiter.finish(passage, took);
            }
        }
    }

    #[test]
    fn three_to_one_is_three_to_one() {
        let mut engine = Engine::new(&[3, 1]);
        for _ in 0..400 {
            engine.round(&[0, 1], |_| (us(2000), us(2000)));
        }
        let served = [0, 1].map(|at| engine.arbiter.served(at).as_millis());
        assert!((594..=606).contains(&served[0]), "{served:?}");
    }

    #[test]
    fn whoever_asks_late_gets_its_share_from_then_on_and_no_more() {
        let mut engine = Engine::new(&[1, 1]);
        for _ in 0..100 {
            engine.round(&[0], |_| (us(2000), us(2000)));
        }
        let before = engine.arbiter.served(0);
        for _ in 0..100 {
            engine.round(&[0, 1], |_| (us(2000), us(2000)));
        }
        let late = engine.arbiter.served(1).as_millis();
        let other = engine.arbiter.served(0).abs_diff(before).as_millis();
        assert!((94..=106).contains(&late), "{late}");
        assert!((94..=106).contains(&other), "{other}");
    }

    #[test]
    fn whoever_is_given_up_is_in_nobodys_way() {
        let mut arbiter = Arbiter::new();
        let (hanging, other) = (arbiter.join(1), arbiter.join(1));
        let first = arbiter.admit(hanging, Some(us(5000)));
        let _second = arbiter.admit(hanging, Some(us(5000)));
        assert_eq!(arbiter.choose([hanging, other]), None);
        arbiter.leave(hanging);
        arbiter.leave(hanging);
        assert_eq!(arbiter.choose([hanging, other]), Some(other));
        let next = arbiter.admit(other, Some(us(10)));
        // What comes after all is no longer counted.
        arbiter.finish(first, us(5000));
        arbiter.finish(next, us(10));
        assert!(arbiter.is_idle());
    }

    #[test]
    fn short_work_goes_ahead_in_numbers_and_long_work_does_not() {
        let count = |cost| {
            let mut arbiter = Arbiter::new();
            let tenant = arbiter.join(1);
            let mut count = 0;
            while arbiter.choose([tenant]).is_some() {
                let _ = arbiter.admit(tenant, Some(cost));
                count += 1;
            }
            count
        };
        assert_eq!(count(us(5000)), AT_HAND);
        assert_eq!(count(us(100)), 10);
        assert_eq!(count(us(1)), MOST);
    }

    proptest! {
        /// Weights, costs and wrong guesses at random; all are ready all the time.
        #[test]
        fn shares_stay_within_the_lead_at_any_moment(
            weights in proptest::collection::vec(1_u32..20, 2..5),
            seed in any::<u64>(),
        ) {
            let longest = us(4000);
            let mut state = seed | 1;
            let mut dice = move |most: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % most
            };
            let mut engine = Engine::new(&weights);
            let all: Vec<usize> = (0..weights.len()).collect();
            for round in 0..600 {
                engine.round(&all, |_| (us(1 + dice(4000)), us(1 + dice(4000))));
                if round < 10 {
                    continue;
                }
                for first in &all {
                    for second in &all[first + 1..] {
                        let time = |at: usize| {
                            engine.arbiter.served(at).as_secs_f64() / f64::from(weights[at])
                        };
                        let apart = (time(*first) - time(*second)).abs();
                        let most = Arbiter::lead(
                            (longest, weights[*first]),
                            (longest, weights[*second]),
                        );
                        prop_assert!(
                            apart <= most.as_secs_f64(),
                            "{} and {}: {apart} of {most:?} in round {round}",
                            weights[*first], weights[*second]
                        );
                    }
                }
            }
        }

        /// Whatever the others do, who is ready is served again within a bounded number of turns.
        #[test]
        fn nobody_who_is_ready_waits_for_ever(
            weights in proptest::collection::vec(1_u32..10, 2..5),
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let mut dice = move |most: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % most
            };
            let mut engine = Engine::new(&weights);
            let mut since = 0;
            for _ in 0..2000 {
                // The first is always ready, the others come and go.
                let mut ready = vec![0];
                ready.extend((1..weights.len()).filter(|_| dice(3) > 0));
                let before = engine.arbiter.served(0);
                engine.round(&ready, |_| (us(100 + dice(900)), us(100 + dice(900))));
                since = if engine.arbiter.served(0) > before { 0 } else { since + 1 };
                // Ten times the weight, ten times the length, all others and what is on the way.
                prop_assert!(since < 10 * 10 * weights.len() + 2 * MOST, "{since}");
            }
        }
    }

    /// Every order of ends, every set of ready tenants, three pieces each: something can always
    /// happen until all is done.
    #[test]
    fn nothing_locks_up_in_any_order() {
        fn explore(arbiter: &Arbiter, left: [u32; 3], flying: &[Passage], states: &mut usize) {
            *states += 1;
            let ready: Vec<usize> = (0..3).filter(|at| left[*at] > 0).collect();
            let chosen = arbiter.choose(ready.iter().copied());
            let is_done = ready.is_empty() && flying.is_empty();
            assert!(is_done || chosen.is_some() || !flying.is_empty(), "stuck");
            if let Some(tenant) = chosen {
                let mut next = arbiter.clone();
                let mut left = left;
                left[tenant] -= 1;
                let mut flying = flying.to_vec();
                flying.push(next.admit(tenant, Some(us(900))));
                explore(&next, left, &flying, states);
            }
            for at in 0..flying.len() {
                let mut next = arbiter.clone();
                let mut flying = flying.to_vec();
                next.finish(flying.remove(at), us(700));
                explore(&next, left, &flying, states);
            }
        }
        let mut arbiter = Arbiter::new();
        for weight in [1, 2, 5] {
            arbiter.join(weight);
        }
        let mut states = 0;
        explore(&arbiter, [3; 3], &[], &mut states);
        assert!(states > 1000, "{states}");
    }
}
