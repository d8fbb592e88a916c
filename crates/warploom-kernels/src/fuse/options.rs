//! How far fusion may go on a device.

use warploom_core::DeviceInfo;

use super::cost::Machine;
use crate::gpu::Tuning;
use crate::kernel::Target;

/// How far fusion may go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// The device's speeds.
    pub machine: Machine,
    /// The most buffers one kernel may have.
    pub buffers: usize,
    /// The most terms one expression may have.
    pub terms: usize,
    /// Does the processor's engine run it, which keeps rows in its caches?
    pub rows: bool,
    /// How its kernels are cut, which says what expressions have room in them; `None`: none has.
    pub holes: Option<Tuning>,
}

impl Options {
    /// For a device that was not measured.
    pub fn of(info: &DeviceInfo) -> Self {
        let tuning = Tuning::of(info);
        Self {
            buffers: info.limits.max_slices as usize,
            rows: tuning.is_none(),
            holes: tuning,
            ..Self::default()
        }
    }

    /// The same, for a device that was measured.
    #[must_use]
    pub fn measured(self, machine: Machine) -> Self {
        Self { machine, ..self }
    }
}

impl Default for Options {
    /// For a device that runs kernels and promises little.
    fn default() -> Self {
        Self {
            machine: Machine::default(),
            buffers: 8,
            terms: 600,
            rows: false,
            holes: Some(Tuning::gpu(Target::OpenCl)),
        }
    }
}
