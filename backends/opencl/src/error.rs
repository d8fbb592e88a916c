//! What OpenCL's status codes mean to a caller.

use std::fmt;

use opencl3::error_codes::{
    CL_CONTEXT_TERMINATED_KHR, CL_DEVICE_NOT_AVAILABLE, CL_INVALID_COMMAND_QUEUE,
    CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    CL_PLATFORM_NOT_FOUND_KHR, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED,
    error_text,
};
use opencl3::types::cl_int;
use warploom_core::{DeviceError, DeviceId, LoadError, MemoryKind};

/// What a driver call returns.
pub(crate) type Driven<T> = Result<T, Failure>;

/// A driver call that failed, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) call: &'static str,
    pub(crate) code: cl_int,
}

/// Names the driver call in an error: `flush(queue).map_err(during("clFlush"))`.
pub(crate) fn during(call: &'static str) -> impl Fn(cl_int) -> Failure {
    move |code| Failure { call, code }
}

/// NVIDIA's undocumented answer to a kernel that touched memory it must not; the context is dead.
const ILLEGAL_ACCESS_NV: cl_int = -9999;

impl Failure {
    /// The error for callers of `device`.
    pub(crate) fn on(self, device: DeviceId) -> DeviceError {
        match self.code {
            // The queue is ours and alive, so the driver calling it invalid means that the driver
            // tore its context down: NVIDIA's answer to every call after a kernel has crashed.
            CL_DEVICE_NOT_AVAILABLE
            | CL_CONTEXT_TERMINATED_KHR
            | CL_INVALID_COMMAND_QUEUE
            | ILLEGAL_ACCESS_NV => DeviceError::lost(device, self.call, self),
            _ => DeviceError::driver(device, self.call, self),
        }
    }

    /// The error of a command that uses `asked` bytes of `kind`. Runtimes that allocate at first
    /// use report a full device here. `CL_OUT_OF_RESOURCES` is left alone: for a command it may
    /// as well mean registers.
    pub(crate) fn using(self, device: DeviceId, kind: MemoryKind, asked: u64) -> DeviceError {
        match self.code {
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_HOST_MEMORY => DeviceError::OutOfMemory {
                device,
                kind,
                asked,
                free: None,
            },
            _ => self.on(device),
        }
    }

    /// Does this failure of an allocation mean that there is no room?
    pub(crate) fn is_no_room(self) -> bool {
        matches!(
            self.code,
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY
        )
    }

    /// Why the backend cannot be loaded, when asking for platforms failed like this.
    pub(crate) fn on_load(self) -> LoadError {
        match self.code {
            DLOPEN_RUNTIME_LOAD_FAILED => {
                let library = if cfg!(target_os = "windows") {
                    "OpenCL.dll"
                } else if cfg!(target_os = "macos") {
                    "OpenCL.framework"
                } else {
                    "libOpenCL.so.1"
                };
                LoadError::absent(format!("{library} is not installed"))
            }
            CL_PLATFORM_NOT_FOUND_KHR => no_driver(),
            _ => LoadError::broken(format!("{}: {self}", self.call)),
        }
    }
}

/// The loader library is there, and nothing for it to load.
pub(crate) fn no_driver() -> LoadError {
    LoadError::absent("no OpenCL driver (ICD) is installed")
}

/// Symbolic name and number; the call is told by whoever prints this.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.code {
            DLOPEN_FUNCTION_NOT_AVAILABLE => "the OpenCL library lacks this function",
            ILLEGAL_ACCESS_NV => "illegal memory access in a kernel",
            code => match error_text(code) {
                "UNKNOWN_ERROR" => "an error without a name",
                name => name,
            },
        };
        write!(f, "{name} ({})", self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_core::memory::OPENCL_DEVICE;

    const DEVICE: DeviceId = DeviceId::new(crate::ID, 1);

    fn failed(code: cl_int) -> Failure {
        during("clFlush")(code)
    }

    #[rstest::rstest]
    #[case(-2, true)]
    #[case(-36, true)]
    #[case(-1121, true)]
    #[case(-9999, true)]
    #[case(-5, false)]
    #[case(-30, false)]
    #[case(-2001, false)]
    fn a_lost_device_is_told_from_a_failed_call(#[case] code: cl_int, #[case] lost: bool) {
        let error = failed(code).on(DEVICE);
        assert_eq!(matches!(error, DeviceError::Lost { .. }), lost, "{error}");
        assert!(error.to_string().contains(&code.to_string()), "{error}");
        assert!(error.to_string().contains("clFlush"), "{error}");
    }

    #[test]
    fn names_and_numbers_are_printed() {
        assert_eq!(failed(-5).to_string(), "CL_OUT_OF_RESOURCES (-5)");
        assert_eq!(failed(-777).to_string(), "an error without a name (-777)");
        assert_eq!(
            failed(-36).on(DEVICE).to_string(),
            "opencl:1 was lost in clFlush: CL_INVALID_COMMAND_QUEUE (-36)"
        );
    }

    #[test]
    fn a_full_device_is_out_of_memory_with_numbers() {
        let error = failed(-4).using(DEVICE, OPENCL_DEVICE, 4096);
        assert_eq!(
            error.to_string(),
            "opencl:1 has no room for 4.0 KiB of opencl.device"
        );
        let registers = failed(-5).using(DEVICE, OPENCL_DEVICE, 4096);
        assert!(matches!(registers, DeviceError::Driver { .. }));
        assert!(failed(-5).is_no_room());
        assert!(!failed(-30).is_no_room());
    }

    #[test]
    fn absence_is_told_from_breakage() {
        let absent = |code| matches!(failed(code).on_load(), LoadError::Absent { .. });
        assert!(absent(-2000));
        assert!(absent(-1001));
        assert!(!absent(-2001));
        assert!(!absent(-6));
        assert_eq!(
            failed(-6).on_load().to_string(),
            "clFlush: CL_OUT_OF_HOST_MEMORY (-6)"
        );
    }
}
