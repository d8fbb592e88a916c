//! Runs code that may hang, and does not hang with it.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Why guarded code gave no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// It panicked with this text.
    Panicked(String),
    /// It did not end in time. Its thread is left behind: a thread inside a driver cannot be
    /// stopped, and a test binary ends soon.
    Hung(Duration),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Hung(limit) => write!(f, "did not end within {limit:?}"),
        }
    }
}

/// Runs `work` on a thread called `name`, for at most `limit`.
pub(crate) fn guarded<T: Send + 'static>(
    name: &str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    let (send, receive) = sync_channel(1);
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Nobody listens after the limit, and then nobody minds.
        let _ = send.send(work());
    });
    let thread = match spawned {
        Ok(thread) => thread,
        Err(error) => return Err(Trouble::Panicked(format!("no thread: {error}"))),
    };
    match receive.recv_timeout(limit) {
        Ok(value) => {
            // The thread's last breath; its value is here already.
            let _ = thread.join();
            Ok(value)
        }
        Err(RecvTimeoutError::Timeout) => Err(Trouble::Hung(limit)),
        // The sender is gone without a word: the thread is unwinding.
        Err(RecvTimeoutError::Disconnected) => Err(Trouble::Panicked(match thread.join() {
            Err(payload) => panic_text(payload.as_ref()).to_owned(),
            Ok(()) => "ended without a word".to_owned(),
        })),
    }
}

/// The words of a panic.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back() {
        assert_eq!(guarded("seven", Duration::from_secs(9), || 7), Ok(7));
    }

    #[test]
    fn a_panic_comes_back_as_text() {
        let trouble = guarded::<()>("bad", Duration::from_secs(9), || panic!("on purpose"));
        assert_eq!(trouble, Err(Trouble::Panicked("on purpose".into())));
    }

    #[test]
    fn a_hang_is_left_behind() {
        let limit = Duration::from_millis(20);
        let trouble = guarded("slow", limit, || thread::sleep(Duration::from_secs(2)));
        assert_eq!(trouble, Err(Trouble::Hung(limit)));
    }
}
