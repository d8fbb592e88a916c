//! What Vulkan would tell, on systems where wgpu does not use it.

use std::time::Duration;

use warploom_core::PhysicalKey;

#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) key: PhysicalKey,
    pub(crate) total: u64,
    pub(crate) free: Option<u64>,
}

pub(crate) fn ask(_adapter: &wgpu::Adapter) -> Told {
    Told::default()
}

/// Never made here.
#[derive(Debug)]
pub(crate) enum Semaphore {}

impl Semaphore {
    pub(crate) fn new(_device: &wgpu::Device) -> Option<Self> {
        None
    }

    pub(crate) fn sign(&self, _queue: &wgpu::Queue, _value: u64) {
        match *self {}
    }

    pub(crate) fn unsign(&self, _queue: &wgpu::Queue) -> bool {
        match *self {}
    }

    pub(crate) fn reached(&self) -> Result<u64, String> {
        match *self {}
    }

    pub(crate) fn wait(&self, _value: u64, _timeout: Option<Duration>) -> Result<bool, String> {
        match *self {}
    }
}
