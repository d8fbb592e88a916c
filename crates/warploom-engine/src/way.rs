//! Which way a pass goes through an image.
//!
//! A cache holds what was touched last. A pass that starts where the one before it started finds nothing of
//! an image larger than the cache, since every line was pushed out by those behind it; one that starts
//! where the other ended finds as much as the cache holds. So passes go down and up in turns, by strips
//! and bands; within one, rows always go down.

use std::sync::atomic::{AtomicBool, Ordering};

/// From the first row to the last, or from the last strip to the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Down,
    Up,
}

/// Did the last pass of this process go down? A guess is all it has to be: passes of several queues take
/// turns as they come, and no result depends on it.
static WENT_DOWN: AtomicBool = AtomicBool::new(false);

impl Way {
    /// The way of the next pass.
    pub(crate) fn next() -> Self {
        if WENT_DOWN.fetch_xor(true, Ordering::Relaxed) {
            Self::Up
        } else {
            Self::Down
        }
    }

    /// Does both on all threads; a single thread would begin with `first`, or on the way up with `second`.
    pub(crate) fn join(self, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
        match self {
            Self::Down => rayon::join(first, second),
            Self::Up => rayon::join(second, first),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::Way;

    #[test]
    fn a_single_thread_begins_at_the_end_it_is_told() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.expect("a thread");
        for (way, wanted) in [(Way::Down, [1, 2]), (Way::Up, [2, 1])] {
            let order = Mutex::new(Vec::new());
            let push = |it: i32| order.lock().expect("not poisoned").push(it);
            pool.install(|| way.join(|| push(1), || push(2)));
            assert_eq!(order.into_inner().expect("not poisoned"), wanted);
        }
    }
}
