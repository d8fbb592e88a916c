//! Failures on order.

use std::collections::BTreeMap;

use warploom_core::DeviceError;

/// A call that can be counted and made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Call {
    /// [`GpuBackend::open`](warploom_core::GpuBackend::open)
    Open,
    /// [`Device::alloc`](warploom_core::Device::alloc)
    Alloc,
    /// [`Device::queue`](warploom_core::Device::queue)
    Queue,
    /// [`Device::kernel`](warploom_core::Device::kernel)
    Kernel,
    /// [`Queue::upload`](warploom_core::Queue::upload)
    Upload,
    /// [`Queue::download`](warploom_core::Queue::download)
    Download,
    /// [`Queue::copy`](warploom_core::Queue::copy)
    Copy,
    /// [`Queue::launch`](warploom_core::Queue::launch)
    Launch,
    /// [`Queue::record`](warploom_core::Queue::record)
    Record,
    /// [`Queue::wait`](warploom_core::Queue::wait)
    Wait,
    /// [`Event::wait`](warploom_core::Event::wait)
    EventWait,
    /// [`Buffer::with_host`](warploom_core::Buffer::with_host)
    WithHost,
}

/// One failure on order.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) call: Call,
    /// Which call of its sort fails, counted from 1 over all openings of the device.
    pub(crate) nth: u64,
    pub(crate) error: DeviceError,
    /// Does the call succeed and its work fail later, where an event tells?
    pub(crate) late: bool,
}

/// What a call meets.
#[derive(Debug)]
pub(crate) enum Fate {
    Fine,
    /// The call is accepted and its work will fail.
    Doomed(DeviceError),
}

/// Counts calls and hands out failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    calls: BTreeMap<Call, u64>,
    faults: Vec<Fault>,
    /// The device is lost when this many launches were accepted.
    lose_after: Option<(u64, DeviceError)>,
    lost: Option<DeviceError>,
}

impl Script {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(crate) fn lose_after(&mut self, launches: u64, error: DeviceError) {
        self.lose_after = Some((launches, error));
    }

    pub(crate) fn lose(&mut self, error: DeviceError) {
        self.lost.get_or_insert(error);
    }

    pub(crate) fn lost(&self) -> Option<&DeviceError> {
        self.lost.as_ref()
    }

    pub(crate) fn calls(&self, call: Call) -> u64 {
        self.calls.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call and says what it meets. A lost device stays lost.
    pub(crate) fn admit(&mut self, call: Call) -> Result<Fate, DeviceError> {
        let count = self.calls.entry(call).or_insert(0);
        *count += 1;
        let count = *count;
        if let Some((launches, error)) = &self.lose_after
            && self.calls.get(&Call::Launch).copied().unwrap_or(0) > *launches
        {
            self.lost.get_or_insert_with(|| error.clone());
        }
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let fault = self
            .faults
            .iter()
            .find(|f| f.call == call && f.nth == count);
        match fault {
            Some(fault) if fault.late => Ok(Fate::Doomed(fault.error.clone())),
            Some(fault) => Err(fault.error.clone()),
            None => Ok(Fate::Fine),
        }
    }
}
