//! Ctrl-C: once finishes what is begun, twice ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

use warploom::CancelToken;

use crate::report::Problem;

/// Calls `token` off at the first interrupt, which is `told`, and ends the process at the second.
pub(super) fn watch(token: &CancelToken, told: impl Fn() + Send + 'static) -> Result<(), Problem> {
    let token = token.clone();
    let asked = AtomicBool::new(false);
    let handler = move || {
        if asked.swap(true, Ordering::SeqCst) {
            end();
        }
        told();
        token.cancel();
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Problem::failure(format!("interrupts cannot be watched: {error}")))
}

#[expect(
    clippy::disallowed_methods,
    reason = "asked twice: what is half written has no name yet, and the next run removes it"
)]
fn end() {
    std::process::exit(130);
}
