//! Which submits are done. Submits are numbered from 1, and run in the order of their numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::poll;
use crate::vulkan::Semaphore;

/// How far a device has come. The errors are texts; they all mean that the device is lost.
#[derive(Debug)]
pub(crate) struct Timeline {
    // The highest number known to be reached: most questions are about the past.
    reached: Arc<AtomicU64>,
    clock: Clock,
}

#[derive(Debug)]
enum Clock {
    /// The driver's own counter; waiting takes no lock of wgpu.
    Semaphore(Box<Semaphore>),
    /// wgpu's callbacks, which run while someone polls.
    Callbacks,
}

impl Timeline {
    pub(crate) fn new(device: &wgpu::Device) -> Self {
        let semaphore = Semaphore::new(device).map(Box::new);
        Self {
            reached: Arc::default(),
            clock: semaphore.map_or(Clock::Callbacks, Clock::Semaphore),
        }
    }

    #[cfg(test)]
    pub(crate) fn without_semaphore() -> Self {
        Self {
            reached: Arc::default(),
            clock: Clock::Callbacks,
        }
    }

    /// Submits through `submit` as number `index`. The caller holds the lock that keeps submits
    /// in order. wgpu drops the submits of a dying device without a word: that is `false`.
    pub(crate) fn submit<E>(
        &self,
        queue: &wgpu::Queue,
        index: u64,
        submit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        match &self.clock {
            Clock::Semaphore(semaphore) => {
                semaphore.sign(queue, index);
                let submitted = submit();
                let dropped = semaphore.unsign(queue);
                submitted.map(|()| !dropped)
            }
            Clock::Callbacks => {
                submit()?;
                let reached = Arc::clone(&self.reached);
                queue.on_submitted_work_done(move || {
                    reached.fetch_max(index, Ordering::Release);
                });
                Ok(true)
            }
        }
    }

    /// The number of the latest submit that is done. Never blocks.
    pub(crate) fn reached(&self, device: &wgpu::Device) -> Result<u64, String> {
        match &self.clock {
            Clock::Semaphore(semaphore) => {
                let value = semaphore.reached()?;
                self.reached.fetch_max(value, Ordering::Release);
                Ok(value)
            }
            Clock::Callbacks => {
                poll(device)?;
                Ok(self.reached.load(Ordering::Acquire))
            }
        }
    }

    /// Is submit `index` done? Never blocks, and asks the driver only when it must.
    pub(crate) fn is_reached(&self, device: &wgpu::Device, index: u64) -> Result<bool, String> {
        if self.reached.load(Ordering::Acquire) >= index {
            return Ok(true);
        }
        Ok(self.reached(device)? >= index)
    }

    /// Blocks until submit `index` is done; `false` when the time is up before.
    pub(crate) fn wait(
        &self,
        device: &wgpu::Device,
        index: u64,
        timeout: Option<Duration>,
    ) -> Result<bool, String> {
        if self.reached.load(Ordering::Acquire) >= index {
            return Ok(true);
        }
        match &self.clock {
            Clock::Semaphore(semaphore) => {
                let done = semaphore.wait(index, timeout)?;
                if done {
                    self.reached.fetch_max(index, Ordering::Release);
                }
                Ok(done)
            }
            Clock::Callbacks => self.poll_until(device, index, timeout),
        }
    }

    /// wgpu's own wait with a time limit asserts what another polling thread can make untrue, so
    /// this sleeps between polls: shortly at first, then at most half a millisecond.
    fn poll_until(
        &self,
        device: &wgpu::Device,
        index: u64,
        timeout: Option<Duration>,
    ) -> Result<bool, String> {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(10);
        loop {
            if self.reached(device)? >= index {
                return Ok(true);
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
            pause = (pause * 2).min(Duration::from_micros(500));
        }
    }
}
