//! Ctrl-C: once finishes what is begun, twice ends at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warploom::CancelToken;
use warploom::run::status;

use crate::report::Problem;

/// How long workers have to be gone when they are stopped. They are killed and die in milliseconds; whoever
/// does not, dies with this process.
const LIMIT: Duration = Duration::from_millis(800);

/// What an interrupt does.
pub(super) struct Interrupt {
    /// Called off by the first.
    pub(super) cancel: CancelToken,
    /// Called off by the second, where workers are to be ended; nothing where this process does the work.
    pub(super) stop: Option<CancelToken>,
    /// Where it is noted down that the run was interrupted.
    pub(super) output: PathBuf,
}

impl Interrupt {
    /// Listens to interrupts from now on; the first is `told`.
    pub(super) fn watch(self, told: impl Fn() + Send + 'static) -> Result<(), Problem> {
        let asked = AtomicBool::new(false);
        let handler = move || {
            if asked.swap(true, Ordering::SeqCst) {
                self.end();
            }
            told();
            self.cancel.cancel();
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Problem::failure(format!("interrupts cannot be watched: {error}")))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "asked twice: what is half written has no name yet, and the next run removes it"
    )]
    fn end(&self) {
        if let Some(stop) = &self.stop {
            stop.cancel();
            // The run ends in order meanwhile, and this process with it.
            std::thread::sleep(LIMIT);
        }
        // Who ends at once cannot say that it could not say so.
        let _ = status::call_off(&self.output);
        std::process::exit(130);
    }
}
