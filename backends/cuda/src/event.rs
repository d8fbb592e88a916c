//! Points in queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use warploom_core::{DeviceError, Event, Result};

use crate::clock::Base;
use crate::context::Context;
use crate::error::code;
use crate::handle::Foreign;

/// A driver event that was recorded once and is not recorded again while anybody holds it.
#[derive(Debug)]
pub(crate) struct Point {
    context: Arc<Context>,
    event: Foreign<sys::CUevent_st>,
}

impl Point {
    /// Records an event at the end of `stream`.
    pub(crate) fn record(context: &Arc<Context>, stream: sys::CUstream) -> Result<Arc<Self>> {
        let point = Self {
            event: context.take_event()?,
            context: Arc::clone(context),
        };
        let driver = context.enter()?;
        // SAFETY: event and stream are alive and belong to this context.
        let status = unsafe { driver.cuEventRecord(point.raw(), stream) };
        context.check(status)?;
        Ok(Arc::new(point))
    }

    pub(crate) fn raw(&self) -> sys::CUevent {
        self.event.raw()
    }

    /// Is it reached?
    pub(crate) fn reached(&self) -> Result<bool> {
        let driver = self.context.enter()?;
        // SAFETY: the event is alive.
        let status = unsafe { driver.cuEventQuery(self.raw()) };
        if status.code() == code::NOT_READY {
            return Ok(false);
        }
        self.context.check(status)?;
        Ok(true)
    }

    /// Sleeps until it is reached.
    pub(crate) fn wait(&self) -> Result<()> {
        let driver = self.context.enter()?;
        // SAFETY: the event is alive, and stays so because `self` is borrowed.
        let status = unsafe { driver.cuEventSynchronize(self.raw()) };
        self.context.check(status)
    }

    /// Time from `start` to this point; both must be reached, `start` first.
    pub(crate) fn since(&self, start: &Self) -> Option<Duration> {
        let driver = self.context.enter().ok()?;
        let mut ms = 0.0_f32;
        // SAFETY: both events are alive and timed, and the place for the answer is writable.
        let status = unsafe { driver.cuEventElapsedTime(&raw mut ms, start.raw(), self.raw()) };
        self.context.check(status).ok()?;
        // Neighbouring points may measure as a hair before each other.
        Duration::try_from_secs_f64(f64::from(ms.max(0.0)) / 1e3).ok()
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        self.context.return_event(self.event);
    }
}

/// An event as callers see it.
#[derive(Debug)]
pub(crate) struct CudaEvent {
    point: Arc<Point>,
    base: Arc<Base>,
    done: AtomicBool,
}

impl CudaEvent {
    /// `base` must have been reached before `point` was recorded.
    pub(crate) fn new(point: Arc<Point>, base: Arc<Base>) -> Self {
        Self {
            point,
            base,
            done: AtomicBool::new(false),
        }
    }

    /// What a stream waits for.
    pub(crate) fn point(&self) -> &Arc<Point> {
        &self.point
    }

    fn finish(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// The driver has no wait with a deadline, so this one polls: eagerly at first, because most
    /// waits are short, then ever more lazily.
    fn poll(&self, timeout: Duration) -> Result<()> {
        const SPINS: u32 = 64;
        const FIRST: Duration = Duration::from_micros(20);
        const LONGEST: Duration = Duration::from_millis(1);
        let start = Instant::now();
        let (mut spins, mut pause) = (0, FIRST);
        while !self.is_done()? {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(DeviceError::Timeout {
                    device: self.point.context.id(),
                    waited: timeout,
                });
            }
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::sleep(pause.min(left));
                pause = (pause * 2).min(LONGEST);
            }
        }
        Ok(())
    }
}

impl Event for CudaEvent {
    fn is_done(&self) -> Result<bool> {
        // Once reached, always reached, whatever becomes of the device.
        if self.done.load(Ordering::Acquire) {
            return Ok(true);
        }
        let reached = self.point.reached()?;
        if reached {
            self.finish();
        }
        Ok(reached)
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        match timeout {
            Some(timeout) => self.poll(timeout),
            None if self.done.load(Ordering::Acquire) => Ok(()),
            None => self.point.wait().inspect(|()| self.finish()),
        }
    }

    fn at(&self) -> Option<Duration> {
        self.is_done().ok().filter(|done| *done)?;
        self.base.time_of(&self.point)
    }
}
