//! Looks at files that may never answer: a disk that is gone, a pipe that nobody writes to.
//!
//! Before a run has stages nobody watches over them. So whoever looks at files does it on a thread of its own,
//! says what it looks at, and is left to itself when it says nothing for too long or the run is called off.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use warploom_core::CancelToken;
use warploom_sched::RunError;

use crate::error::RunFailure;

/// How often it is asked whether the run was called off.
const EVERY: Duration = Duration::from_millis(20);

/// What whoever looks says meanwhile.
enum Sign<T> {
    /// It looks at this file now.
    At(PathBuf),
    /// It is done.
    Done(T),
}

/// Where it is said what is looked at.
pub(crate) struct Signs<'s>(&'s dyn Fn(&Path));

impl Signs<'_> {
    /// For whoever does not care.
    pub(crate) const NONE: Signs<'static> = Signs(&|_| {});

    /// This file is looked at now.
    pub(crate) fn at(&self, path: &Path) {
        (self.0)(path);
    }
}

/// What `look` finds, if it says something every so often and is not called off.
///
/// # Errors
/// When it says nothing for so long, or is called off.
pub(crate) fn patiently<T: Send + 'static>(
    patience: Duration,
    cancel: &CancelToken,
    look: impl FnOnce(&Signs<'_>) -> T + Send + 'static,
) -> Result<T, RunFailure> {
    let (sender, signs) = channel();
    let work = move || {
        let say: &dyn Fn(&Path) = &|path: &Path| say(&sender, path);
        let found = look(&Signs(say));
        // Nobody listens any more where it took too long.
        let _ = sender.send(Sign::Done(found));
    };
    let thread = thread::Builder::new().name("lookout".into()).spawn(work);
    thread.map_err(|error| RunError::Thread {
        name: "lookout".to_owned(),
        reason: error.to_string(),
    })?;
    let (mut last, mut since) = (None, Instant::now());
    loop {
        if cancel.is_cancelled() {
            return Err(RunError::Cancelled { delivered: 0 }.into());
        }
        let left = patience.saturating_sub(since.elapsed());
        match signs.recv_timeout(left.min(EVERY)) {
            Ok(Sign::Done(found)) => return Ok(found),
            Ok(Sign::At(path)) => (last, since) = (Some(path), Instant::now()),
            Err(RecvTimeoutError::Timeout) if since.elapsed() < patience => {}
            Err(_) => {
                return Err(RunFailure::Silent {
                    path: last,
                    waited: since.elapsed(),
                });
            }
        }
    }
}

fn say<T>(sender: &Sender<Sign<T>>, path: &Path) {
    let _ = sender.send(Sign::At(path.to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_nothing_for_too_long_is_given_up_and_named() {
        let patience = Duration::from_millis(100);
        let cancel = CancelToken::new();
        let (hold, held) = channel::<()>();
        let begun = Instant::now();
        let found = patiently(patience, &cancel, move |signs| {
            signs.at(Path::new("a"));
            signs.at(Path::new("b"));
            let _ = held.recv();
        });
        let error = found.unwrap_err();
        assert!(begun.elapsed() >= patience);
        let RunFailure::Silent { path, waited } = &error else {
            panic!("{error}");
        };
        assert_eq!(path.as_deref(), Some(Path::new("b")));
        assert!(*waited >= patience);
        drop(hold);
    }

    #[test]
    fn whoever_gets_on_may_take_as_long_as_it_likes() {
        let patience = Duration::from_millis(400);
        let found = patiently(patience, &CancelToken::new(), |signs| {
            for _ in 0..50 {
                signs.at(Path::new("a"));
                thread::sleep(Duration::from_millis(10));
            }
            7
        });
        assert_eq!(found.unwrap(), 7);
    }

    #[test]
    fn a_call_off_waits_for_nobody() {
        let cancel = CancelToken::new();
        let (hold, held) = channel::<()>();
        let other = cancel.clone();
        let found = patiently(Duration::from_hours(1), &cancel, move |_| {
            other.cancel();
            let _ = held.recv();
        });
        assert!(found.unwrap_err().is_call_off());
        drop(hold);
    }
}
