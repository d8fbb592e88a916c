//! Who waits and does not look: stopped by Ctrl-Z, by a debugger, in a frozen container.
//!
//! A desk that waits adds one to a number in its share, again and again. Others compare what they
//! read with what they read before, by their own clocks. While a desk is asleep others pass it;
//! it keeps its place, and is first again when it wakes.

use std::time::{Duration, Instant};

use super::book::Owner;

/// So long without a beat is asleep. A waiter beats twenty times in it, so even a machine with
/// far too much to do does not look stopped.
const ASLEEP: Duration = Duration::from_secs(2);

/// The beats of other desks.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    /// The last beat of each desk that waits, and when it was first seen.
    beats: Vec<(Owner, Option<u64>, Instant)>,
    asleep: Vec<Owner>,
}

impl Sleepers {
    /// Who was asleep at the last watch.
    pub(crate) fn asleep(&self) -> &[Owner] {
        &self.asleep
    }

    /// Looks at every desk that waits. One whose beat cannot be read counts as awake.
    pub(crate) fn watch(
        &mut self,
        waiting: &[Owner],
        now: Instant,
        beat_of: impl Fn(Owner) -> Option<u64>,
    ) {
        self.beats.retain(|(owner, ..)| waiting.contains(owner));
        for &owner in waiting {
            let beat = beat_of(owner);
            let known = self.beats.iter_mut().find(|(other, ..)| *other == owner);
            match known {
                Some((_, last, _)) if beat.is_some() && *last == beat => {}
                Some(known) => *known = (owner, beat, now),
                None => self.beats.push((owner, beat, now)),
            }
        }
        let asleep = self.beats.iter();
        let asleep = asleep.filter(|(.., since)| now.duration_since(*since) >= ASLEEP);
        self.asleep = asleep.map(|(owner, ..)| *owner).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_not_beat_is_asleep_until_it_does() {
        let [one, two] = [1, 2].map(|id| Owner { id, pid: 9 });
        let start = Instant::now();
        let mut sleepers = Sleepers::default();
        let mut at = |seconds, waiting: &[Owner], beats: [Option<u64>; 2]| {
            let now = start + Duration::from_secs(seconds);
            let beat = |owner: Owner| beats[usize::from(owner == two)];
            sleepers.watch(waiting, now, beat);
            sleepers.asleep().to_vec()
        };
        assert_eq!(at(0, &[one, two], [Some(5), None]), []);
        assert_eq!(at(1, &[one, two], [Some(5), None]), []);
        assert_eq!(at(2, &[one, two], [Some(5), None]), [one]);
        assert_eq!(at(3, &[one, two], [Some(5), Some(1)]), [one]);
        assert_eq!(at(9, &[one, two], [Some(6), Some(1)]), [two]);
        // Who stops waiting is forgotten, and starts anew.
        assert_eq!(at(10, &[two], [Some(6), Some(2)]), []);
        assert_eq!(at(99, &[one, two], [Some(6), Some(3)]), []);
    }
}
