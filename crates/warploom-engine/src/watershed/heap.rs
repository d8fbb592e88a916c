//! Pixels in the order they are flooded from.

use std::hint::select_unpredictable;

use super::Order;

/// A binary heap of keys, each with a place. Equal keys come out in an order that depends on how the
/// heap is built; this one ends each step with every item where the reference's has it.
///
/// The reference lets the last item sink from the top: a child that is less, the right one when it is
/// less still, goes up in its stead until no child is less. Whether it is left or right is anyone's
/// guess, and a processor that guesses wrong half of the time is waiting most of it. Here the way down
/// is that of lesser children, left where they are equal, all the way to the lowest floor: while
/// a child is less than the item that sinks, that is the reference's choice too. Keys do not decrease
/// on the way, so what is less than the item is the beginning of the way, and that part moves up;
/// the item follows, and the rest stays. All of it is done without a branch.
#[derive(Debug)]
pub(super) struct Heap<K> {
    /// Those of positions 2n and 2n + 1, which are the children of position n; position 1 is the top, and
    /// there is no position 0. Positions that are free have the greatest key.
    keys: Vec<[K; 2]>,
    places: Vec<u32>,
    count: usize,
}

impl<K: Order> Heap<K> {
    pub(super) fn new() -> Self {
        Self {
            keys: vec![[K::GREATEST; 2]; 1],
            places: vec![0; 2],
            count: 0,
        }
    }

    /// A key is less than the greatest one.
    #[inline(always)]
    pub(super) fn push(&mut self, key: K, place: u32) {
        self.count += 1;
        if self.count == self.places.len() {
            self.keys.resize(self.count, [K::GREATEST; 2]);
            self.places.resize(2 * self.count, 0);
        }
        let mut at = self.count;
        while at > 1 {
            let above = self.keys[at / 4][at / 2 % 2];
            if key >= above {
                break;
            }
            self.keys[at / 2][at % 2] = above;
            self.places[at] = self.places[at / 2];
            at /= 2;
        }
        self.keys[at / 2][at % 2] = key;
        self.places[at] = place;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(K, u32)> {
        if self.count == 0 {
            return None;
        }
        let top = (self.keys[0][1], self.places[1]);
        let place = self.places[self.count];
        let key = std::mem::replace(&mut self.keys[self.count / 2][self.count % 2], K::GREATEST);
        self.count -= 1;
        if self.count > 0 {
            self.sink((key, place));
        }
        Some(top)
    }

    /// Puts an item in the place of the top, and then where it belongs.
    #[inline(always)]
    fn sink(&mut self, item: (K, u32)) {
        let mut at = 1;
        // What stays at this position if nothing goes up to it: the item, then what was there.
        let mut stays = item;
        for _ in 0..self.count.ilog2() {
            let [left, right] = self.keys[at];
            let is_right = right < left;
            let next = 2 * at + usize::from(is_right);
            let child = (
                select_unpredictable(is_right, right, left),
                self.places[next],
            );
            let rises = child.0 < item.0;
            self.keys[at / 2][at % 2] = select_unpredictable(rises, child.0, stays.0);
            self.places[at] = select_unpredictable(rises, child.1, stays.1);
            stays.0 = select_unpredictable(rises, item.0, child.0);
            stays.1 = select_unpredictable(rises, item.1, child.1);
            at = next;
        }
        self.keys[at / 2][at % 2] = stays.0;
        self.places[at] = stays.1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The reference's heap, as it is written there.
    #[derive(Default)]
    struct Plain {
        items: Vec<(u64, u32)>,
    }

    impl Plain {
        fn push(&mut self, new: (u64, u32)) {
            let mut at = self.items.len();
            self.items.push(new);
            while at > 0 {
                let parent = (at - 1) / 2;
                if new.0 >= self.items[parent].0 {
                    break;
                }
                self.items[at] = self.items[parent];
                at = parent;
            }
            self.items[at] = new;
        }

        fn pop(&mut self) -> Option<(u64, u32)> {
            let last = self.items.pop()?;
            let Some(&first) = self.items.first() else {
                return Some(last);
            };
            let mut at = 0;
            loop {
                let left = 2 * at + 1;
                if left >= self.items.len() {
                    break;
                }
                // The left child when it is less, then the right one when it is still less.
                let mut least = last;
                let mut next = at;
                if self.items[left].0 < least.0 {
                    (least, next) = (self.items[left], left);
                }
                if let Some(&right) = self.items.get(left + 1)
                    && right.0 < least.0
                {
                    (least, next) = (right, left + 1);
                }
                if next == at {
                    break;
                }
                self.items[at] = least;
                at = next;
            }
            self.items[at] = last;
            Some(first)
        }
    }

    proptest! {
        #[test]
        fn equal_keys_come_as_from_the_reference(
            keys in 1_u64..40,
            steps in proptest::collection::vec((0_u8..5, any::<u64>()), 0..600),
        ) {
            let (mut heap, mut wide, mut plain) = (Heap::new(), Heap::new(), Plain::default());
            let mut popped = 0;
            for (place, (what, key)) in (0..).zip(steps) {
                // More is put in than taken out, until all is taken out.
                if what < 3 {
                    heap.push(key % keys, place);
                    wide.push(u128::from(key % keys), place);
                    plain.push((key % keys, place));
                } else {
                    let want = plain.pop();
                    popped += u32::from(want.is_some());
                    prop_assert_eq!(heap.pop(), want);
                    prop_assert_eq!(wide.pop().map(|it| it.1), want.map(|it| it.1));
                }
                let order: Vec<u32> = heap.places[1..=heap.count].to_vec();
                let want: Vec<u32> = plain.items.iter().map(|item| item.1).collect();
                prop_assert_eq!(order, want);
            }
            while let Some(want) = plain.pop() {
                prop_assert_eq!(heap.pop(), Some(want));
                popped += 1;
            }
            prop_assert_eq!(heap.pop(), None);
            prop_assert!(popped as usize >= plain.items.len());
        }
    }
}
