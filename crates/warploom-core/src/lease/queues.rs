//! The books of one process and who waits in them: plain data, no clock, no threads.
//!
//! Whoever leaves serves: leaving hands what became free to the oldest waiters, so that there is
//! never a waiter who could be served and is not. A property test holds it to that.

use super::book::{Book, Entry, Ticket};
use super::request::{Ask, LeaseCapacity};

#[derive(Debug)]
pub(crate) struct Queues {
    capacities: Vec<LeaseCapacity>,
    books: Vec<Book>,
    /// Where each waiting request queues, in no order.
    waiting: Vec<(Ticket, Vec<usize>)>,
}

impl Queues {
    pub(crate) fn new(capacities: Vec<LeaseCapacity>) -> Self {
        Self {
            books: vec![Book::default(); capacities.len()],
            capacities,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn book(&self, place: usize) -> &Book {
        &self.books[place]
    }

    /// Takes a place where nobody waits and the request fits: the first, or of any the least
    /// loaded.
    pub(crate) fn take(&mut self, ask: &Ask, ticket: Ticket, now_ms: u64) -> Option<usize> {
        let mut open = ask.places.iter().copied().filter(|&place| {
            let book = &self.books[place];
            book.first_waiting(&[]).is_none()
                && book.has_room(ask.slots, ask.bytes, self.capacities[place])
        });
        let place = if ask.any {
            open.min_by_key(|&place| self.books[place].load(self.capacities[place]))
        } else {
            open.next()
        }?;
        self.books[place].insert(entry(ask, ticket, true, now_ms));
        Some(place)
    }

    /// Waits at every place the request names.
    pub(crate) fn wait(&mut self, ask: &Ask, ticket: Ticket, now_ms: u64) {
        for &place in &ask.places {
            self.books[place].insert(entry(ask, ticket, false, now_ms));
        }
        self.waiting.push((ticket, ask.places.clone()));
    }

    /// Strikes out a holder, and tells whom that lets in, and where.
    pub(crate) fn release(
        &mut self,
        ticket: Ticket,
        place: usize,
        now_ms: u64,
    ) -> Vec<(Ticket, usize)> {
        self.books[place].remove(ticket);
        self.serve(&[place], now_ms)
    }

    /// Strikes out a waiter, and tells whom that lets in, and where.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, now_ms: u64) -> Vec<(Ticket, usize)> {
        let places = self.forget(ticket);
        for &place in &places {
            self.books[place].remove(ticket);
        }
        self.serve(&places, now_ms)
    }

    /// Where this request waits.
    pub(crate) fn places_of(&self, ticket: Ticket) -> &[usize] {
        let waiting = self.waiting.iter().find(|(other, _)| *other == ticket);
        waiting.map_or(&[], |(_, places)| places)
    }

    fn forget(&mut self, ticket: Ticket) -> Vec<usize> {
        let at = self.waiting.iter().position(|(other, _)| *other == ticket);
        at.map_or_else(Vec::new, |at| self.waiting.swap_remove(at).1)
    }

    /// Grants what can be granted at these places.
    fn serve(&mut self, places: &[usize], now_ms: u64) -> Vec<(Ticket, usize)> {
        let mut served = Vec::new();
        if self.waiting.is_empty() {
            return served;
        }
        let mut touched = places.to_vec();
        while let Some(place) = touched.pop() {
            while let Some(ticket) = self.books[place].first_waiting(&[]) {
                let capacity = self.capacities[place];
                if !self.books[place].may_take(ticket, capacity, &[]) {
                    break;
                }
                self.books[place].grant(ticket, now_ms);
                // It leaves its other queues, and may have been in the way there: those are
                // looked at again, until nothing moves.
                for other in self.forget(ticket) {
                    if other != place {
                        self.books[other].remove(ticket);
                        touched.push(other);
                    }
                }
                served.push((ticket, place));
            }
        }
        served
    }
}

fn entry(ask: &Ask, ticket: Ticket, held: bool, since_ms: u64) -> Entry {
    Entry {
        ticket,
        held,
        slots: ask.slots,
        bytes: ask.bytes,
        since_ms,
        label: ask.label,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::book::{Label, Owner};
    use super::*;

    const CAPACITIES: [LeaseCapacity; 3] = [
        LeaseCapacity {
            slots: 3,
            bytes: 100,
        },
        LeaseCapacity {
            slots: 1,
            bytes: 1000,
        },
        LeaseCapacity {
            slots: 8,
            bytes: 60,
        },
    ];

    #[derive(Clone, Debug)]
    enum Act {
        Ask(Ask),
        /// The n-th holder lets go.
        Release(prop::sample::Index),
        /// The n-th waiter gives up.
        Withdraw(prop::sample::Index),
    }

    fn ask() -> impl Strategy<Value = Ask> {
        let places = prop::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
        let sizes = (1_u32..=3, 0_u64..=60);
        (places, sizes, any::<bool>()).prop_map(|(places, (slots, bytes), any)| {
            let covers = |&at: &usize| slots <= CAPACITIES[at].slots;
            let mut places: Vec<usize> = places.into_iter().filter(covers).collect();
            if places.is_empty() {
                places.push(2);
            }
            Ask {
                slots,
                bytes,
                label: Label::new("model"),
                any,
                places,
            }
        })
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            4 => ask().prop_map(Act::Ask),
            3 => any::<prop::sample::Index>().prop_map(Act::Release),
            1 => any::<prop::sample::Index>().prop_map(Act::Withdraw),
        ]
    }

    fn ticket(number: u64) -> Ticket {
        Ticket {
            number,
            owner: Owner { id: 0, pid: 1 },
        }
    }

    /// The rules, told once more without books: who asked for what, in the order of arrival.
    #[derive(Default)]
    struct Model {
        waiting: Vec<(Ticket, Ask)>,
        held: Vec<(Ticket, Ask, usize)>,
    }

    impl Model {
        fn fits(&self, ask: &Ask, place: usize) -> bool {
            let here = self.held.iter().filter(|(.., at)| *at == place);
            let (slots, bytes) = here.fold((ask.slots, ask.bytes), |(slots, bytes), (_, a, _)| {
                (slots + a.slots, bytes + a.bytes)
            });
            slots <= CAPACITIES[place].slots && bytes <= CAPACITIES[place].bytes
        }

        fn first_at(&self, place: usize) -> Option<&(Ticket, Ask)> {
            let mut here = self.waiting.iter();
            here.find(|(_, ask)| ask.places.contains(&place))
        }

        /// A grant is right if it is the oldest one's there, and fits.
        fn grant(&mut self, ticket: Ticket, place: usize) -> Result<(), TestCaseError> {
            let first = self.first_at(place).map(|(ticket, _)| *ticket);
            prop_assert_eq!(first, Some(ticket), "served out of turn at {}", place);
            let at = self.waiting.iter().position(|(t, _)| *t == ticket).unwrap();
            let (_, ask) = self.waiting.remove(at);
            prop_assert!(self.fits(&ask, place), "too much at {}", place);
            self.held.push((ticket, ask, place));
            Ok(())
        }

        /// Nobody may wait who could be served, and the books must say what the model says.
        fn check(&self, queues: &Queues) -> Result<(), TestCaseError> {
            for place in 0..CAPACITIES.len() {
                if let Some((ticket, ask)) = self.first_at(place) {
                    prop_assert!(!self.fits(ask, place), "{:?} was forgotten", ticket);
                }
                let entries = queues.book(place).entries().iter();
                let (held, waiting): (Vec<&Entry>, Vec<&Entry>) =
                    entries.partition(|entry| entry.held);
                let mut expected: Vec<Ticket> = self
                    .held
                    .iter()
                    .filter(|(.., at)| *at == place)
                    .map(|(ticket, ..)| *ticket)
                    .collect();
                expected.sort_unstable();
                let held: Vec<Ticket> = held.iter().map(|entry| entry.ticket).collect();
                prop_assert_eq!(held, expected);
                let expected = self.waiting.iter();
                let expected = expected.filter(|(_, ask)| ask.places.contains(&place));
                let expected: Vec<Ticket> = expected.map(|(ticket, _)| *ticket).collect();
                let waiting: Vec<Ticket> = waiting.iter().map(|entry| entry.ticket).collect();
                prop_assert_eq!(waiting, expected);
            }
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn queues_keep_the_rules(acts in proptest::collection::vec(act(), 1..60)) {
            let mut queues = Queues::new(CAPACITIES.to_vec());
            let mut model = Model::default();
            for (number, act) in (0..).zip(acts) {
                let served = match act {
                    Act::Ask(ask) => {
                        let ticket = ticket(number);
                        if let Some(place) = queues.take(&ask, ticket, 0) {
                            prop_assert!(ask.places.contains(&place));
                            model.waiting.push((ticket, ask));
                            vec![(ticket, place)]
                        } else {
                            queues.wait(&ask, ticket, 0);
                            model.waiting.push((ticket, ask));
                            vec![]
                        }
                    }
                    Act::Release(_) if model.held.is_empty() => continue,
                    Act::Release(at) => {
                        let at = at.index(model.held.len());
                        let (ticket, _, place) = model.held.remove(at);
                        queues.release(ticket, place, 0)
                    }
                    Act::Withdraw(_) if model.waiting.is_empty() => continue,
                    Act::Withdraw(at) => {
                        let at = at.index(model.waiting.len());
                        let (ticket, ask) = model.waiting.remove(at);
                        prop_assert_eq!(queues.places_of(ticket), &ask.places[..]);
                        queues.withdraw(ticket, 0)
                    }
                };
                for (ticket, place) in served {
                    model.grant(ticket, place)?;
                }
                model.check(&queues)?;
            }
            // When everybody lets go, everybody is served, and the books are empty.
            while let Some((ticket, _, place)) = model.held.pop() {
                for (ticket, place) in queues.release(ticket, place, 0) {
                    model.grant(ticket, place)?;
                }
            }
            prop_assert!(model.waiting.is_empty());
            model.check(&queues)?;
        }
    }

    #[test]
    fn any_takes_the_least_loaded_and_a_list_its_first() {
        let mut queues = Queues::new(vec![CAPACITIES[0]; 2]);
        let mut ask = Ask {
            slots: 1,
            bytes: 0,
            label: Label::new(""),
            any: true,
            places: vec![0, 1],
        };
        assert_eq!(queues.take(&ask, ticket(0), 0), Some(0));
        assert_eq!(queues.take(&ask, ticket(1), 0), Some(1));
        ask.any = false;
        assert_eq!(queues.take(&ask, ticket(2), 0), Some(0));
        assert_eq!(queues.take(&ask, ticket(3), 0), Some(0));
        assert_eq!(queues.take(&ask, ticket(4), 0), Some(1));
    }
}
