//! When events were reached, on the device's clock.
//!
//! The driver measures from event to event, in milliseconds as `f32`: after an hour that is exact
//! to a quarter of a millisecond only. So points are measured from a base that is never much older
//! than they are, and the base moves on with the work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use warploom_core::Result;

use crate::context::Context;
use crate::event::Point;

/// After this long a younger base is looked for; `f32` milliseconds are then exact to 0.25 us,
/// finer than the device's own clock.
const REFRESH: Duration = Duration::from_secs(2);

/// A point that was reached, and when.
#[derive(Debug)]
pub(crate) struct Base {
    point: Arc<Point>,
    at: Duration,
}

impl Base {
    /// When `point` was reached, counted from when the device was opened.
    pub(crate) fn time_of(&self, point: &Point) -> Option<Duration> {
        Some(self.at + point.since(&self.point)?)
    }
}

/// The clock of one opened device.
#[derive(Debug)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Debug)]
struct State {
    base: Arc<Base>,
    next: Option<Arc<Point>>,
    since: Instant,
}

impl Clock {
    /// Starts counting now, on a stream made for the purpose.
    pub(crate) fn start(context: &Arc<Context>) -> Result<Self> {
        let driver = context.enter()?;
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current, and the place for the answer is writable.
        let status = unsafe { driver.cuStreamCreate(&raw mut stream, flags) };
        context.check(status)?;
        let point = Point::record(context, stream);
        let reached = point.and_then(|point| point.wait().map(|()| point));
        // SAFETY: the stream was made above and is not used again.
        let status = unsafe { driver.cuStreamDestroy_v2(stream) };
        context.check_freed(status);
        let base = Base {
            point: reached?,
            at: Duration::ZERO,
        };
        Ok(Self(Mutex::new(State {
            base: Arc::new(base),
            next: None,
            since: Instant::now(),
        })))
    }

    /// The base for a point that is recorded after this call: it is reached already, so no point
    /// lies before its base.
    pub(crate) fn base(&self) -> Arc<Base> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = state.next.take() {
            match next.reached() {
                Ok(true) => {
                    if let Some(at) = state.base.time_of(&next) {
                        state.base = Arc::new(Base { point: next, at });
                        state.since = Instant::now();
                    }
                }
                Ok(false) => state.next = Some(next),
                // A lost device has no time to tell; the old base does no harm.
                Err(_) => {}
            }
        }
        Arc::clone(&state.base)
    }

    /// Considers a point that was just recorded as the next base.
    pub(crate) fn offer(&self, point: &Arc<Point>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.next.is_none() && state.since.elapsed() >= REFRESH {
            state.next = Some(Arc::clone(point));
        }
    }
}
