//! Points in queues: the number of a submit, and the device's time there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warploom_core::{DeviceError, Event, Result};

use crate::context::Context;
use crate::stamp::Stamp;

#[derive(Debug)]
pub(crate) struct WgpuEvent {
    context: Arc<Context>,
    index: u64,
    stamp: Option<Arc<Stamp>>,
    // What was reached stays reached, even when the device is lost later.
    done: AtomicBool,
}

impl WgpuEvent {
    pub(crate) fn new(context: &Arc<Context>, index: u64, stamp: Option<Arc<Stamp>>) -> Self {
        Self {
            context: Arc::clone(context),
            index,
            stamp,
            done: AtomicBool::new(index == 0),
        }
    }

    /// The submit that it is the end of; 0 when there was none.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn stamp(&self) -> Option<Arc<Stamp>> {
        self.stamp.clone()
    }

    /// Is it a point on a queue of this opened device?
    pub(crate) fn belongs_to(&self, context: &Context) -> bool {
        self.context.id == context.id
    }

    fn is_past(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    fn reached(&self) {
        self.done.store(true, Ordering::Release);
    }
}

impl Event for WgpuEvent {
    fn is_done(&self) -> Result<bool> {
        if self.is_past() {
            return Ok(true);
        }
        self.context.alive()?;
        let done = self.context.is_reached(self.index)?;
        if done {
            self.reached();
        }
        Ok(done)
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        if self.is_past() {
            return Ok(());
        }
        self.context.alive()?;
        if self.context.wait(self.index, timeout)? {
            self.reached();
            return Ok(());
        }
        Err(DeviceError::Timeout {
            device: self.context.info.id,
            waited: timeout.unwrap_or(Duration::MAX),
        })
    }

    fn at(&self) -> Option<Duration> {
        let stamp = self.stamp.as_ref()?;
        if !self.is_done().unwrap_or(false) {
            return None;
        }
        // SAFETY: the stamp was recorded into submit `index` or an earlier one, and that is done.
        unsafe { stamp.read() }
    }
}
