//! A dealer's decisions carried out: a thread for each device.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::crew::panic_text;
use super::error::StageError;
use crate::model::{Dealer, Task};

/// What the threads share.
struct Table {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    dealer: Dealer,
    failed: Option<StageError>,
}

impl Table {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does all of a dealer's work, with a thread for each device that calls `work` with the device and
/// the task; the dealer learns what each took, in seconds. Threads without a task sleep.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use warploom_sched::{Dealer, Work, deal};
///
/// // Two devices, of which the second is faster at the second stage.
/// let work = Work::new(vec![vec![1.0, 4.0], vec![1.0, 2.0]], 100);
/// let done = AtomicUsize::new(0);
/// deal(Dealer::best(work), |_device, _task| {
///     done.fetch_add(1, Ordering::Relaxed);
///     Ok(())
/// })?;
/// assert_eq!(done.into_inner(), 200);
/// # Ok::<(), warploom_sched::StageError>(())
/// ```
///
/// # Errors
/// The first failure or panic of a task. What is running then is waited for, and nothing else begun.
pub fn deal(
    dealer: Dealer,
    work: impl Fn(usize, Task) -> Result<(), StageError> + Sync,
) -> Result<(), StageError> {
    let devices = dealer.devices();
    let table = Table {
        state: Mutex::new(State {
            dealer,
            failed: None,
        }),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for device in 1..devices {
            let (table, work) = (&table, &work);
            scope.spawn(move || serve(table, device, work));
        }
        if devices > 0 {
            serve(&table, 0, &work);
        }
    });
    let state = table
        .state
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    state.failed.map_or(Ok(()), Err)
}

fn serve(
    table: &Table,
    device: usize,
    work: &(impl Fn(usize, Task) -> Result<(), StageError> + Sync),
) {
    let mut state = table.state();
    while !state.dealer.is_done() && state.failed.is_none() {
        let Some(task) = state.dealer.take(device, false) else {
            // What is left is dealt to others, or follows what they do.
            state = table
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        let begun = Instant::now();
        // The work is not called again after a panic, so nobody sees what it left half done.
        let call = std::panic::AssertUnwindSafe(|| work(device, task));
        let outcome = std::panic::catch_unwind(call)
            .unwrap_or_else(|panic| Err(StageError::Panicked(panic_text(&*panic))));
        let took = begun.elapsed();
        state = table.state();
        match outcome {
            Ok(()) => state.dealer.done(device, task, took.as_secs_f64()),
            Err(error) => {
                state.failed.get_or_insert(error);
            }
        }
        table.changed.notify_all();
    }
}
