//! Ending a run from outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::error::FleetError;

/// What was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wish {
    GoOn,
    Drain,
    Stop,
}

/// Ends a run from another thread or on a signal. Clones end the same run.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<State>);

#[derive(Debug)]
struct State {
    wish: AtomicU8,
    bell: OwnedFd,
}

impl Stopper {
    /// One that has not been used yet.
    ///
    /// # Errors
    /// [`FleetError::System`] when the system has no descriptors left.
    pub fn new() -> Result<Self, FleetError> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| FleetError::system("eventfd", error))?;
        let wish = AtomicU8::new(Wish::GoOn as u8);
        Ok(Self(Arc::new(State { wish, bell })))
    }

    /// Begins nothing new; the run ends when what is under way is done.
    pub fn drain(&self) {
        self.wish(Wish::Drain);
    }

    /// Ends the run now. What is under way is not done.
    pub fn stop(&self) {
        self.wish(Wish::Stop);
    }

    /// Drains at the first SIGINT or SIGTERM, stops at the second, and lets the third do what it does to
    /// any process. Workers have process groups of their own, so that Ctrl-C does not reach them.
    ///
    /// # Errors
    /// [`FleetError::System`] when the system refuses.
    pub fn on_signals(&self) -> Result<Listening, FleetError> {
        let mut signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| FleetError::system("sigaction", error))?;
        let handle = signals.handle();
        let stopper = self.clone();
        let wait = move || {
            for (count, signal) in signals.forever().enumerate() {
                match count {
                    0 => stopper.drain(),
                    1 => stopper.stop(),
                    _ => {
                        let _ = emulate_default_handler(signal);
                    }
                }
            }
        };
        thread::Builder::new()
            .name("fleet-signals".into())
            .spawn(wait)
            .map_err(|error| FleetError::system("clone", error))?;
        Ok(Listening { handle })
    }

    fn wish(&self, wish: Wish) {
        self.0.wish.fetch_max(wish as u8, Ordering::SeqCst);
        self.ring();
    }

    pub(crate) fn wished(&self) -> Wish {
        match self.0.wish.load(Ordering::SeqCst) {
            0 => Wish::GoOn,
            1 => Wish::Drain,
            _ => Wish::Stop,
        }
    }

    /// Wakes the supervisor.
    pub(crate) fn ring(&self) {
        // A bell that has been rung too often to count is still ringing.
        let _ = rustix::io::write(&self.0.bell, &1_u64.to_ne_bytes());
    }

    /// The supervisor is awake.
    pub(crate) fn hush(&self) {
        let _ = rustix::io::read(&self.0.bell, &mut [0; 8]);
    }
}

impl AsFd for Stopper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }
}

/// Signals mean what [`Stopper::on_signals`] says for as long as this lives, and nothing after it.
#[derive(Debug)]
#[must_use = "signals are listened to for as long as this lives"]
pub struct Listening {
    handle: Handle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handle.close();
    }
}
