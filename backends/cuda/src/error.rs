//! Driver codes → `DeviceError`.

use std::ffi::c_int;

use warploom_core::{DeviceError, DeviceId, memory};

use crate::driver::Driver;

/// The driver's numbers that mean something to this backend. Plain numbers, because a newer driver
/// may answer with one that no header here knows.
pub(crate) mod code {
    use std::ffi::c_int;

    pub(crate) const SUCCESS: c_int = 0;
    pub(crate) const OUT_OF_MEMORY: c_int = 2;
    pub(crate) const NO_DEVICE: c_int = 100;
    pub(crate) const INVALID_IMAGE: c_int = 200;
    pub(crate) const NO_BINARY_FOR_GPU: c_int = 209;
    pub(crate) const INVALID_PTX: c_int = 218;
    pub(crate) const JIT_COMPILER_NOT_FOUND: c_int = 221;
    pub(crate) const UNSUPPORTED_PTX_VERSION: c_int = 222;
    pub(crate) const JIT_COMPILATION_DISABLED: c_int = 223;
    pub(crate) const INVALID_SOURCE: c_int = 300;
    pub(crate) const NOT_FOUND: c_int = 500;
    pub(crate) const NOT_READY: c_int = 600;
    pub(crate) const NOT_SUPPORTED: c_int = 801;
}

/// Numbers after which the context answers nothing else any more (the manual: "the process must be
/// terminated and relaunched"), or after which the driver or the card is gone.
pub(crate) const LOST: &[(c_int, &str)] = &[
    (4, "CUDA_ERROR_DEINITIALIZED"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (226, "CUDA_ERROR_CONTAINED"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (710, "CUDA_ERROR_ASSERT"),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (718, "CUDA_ERROR_INVALID_PC"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE"),
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
];

/// Numbers that speak of the code that was to be loaded, not of the device.
const BUILD: &[c_int] = &[
    code::INVALID_IMAGE,
    code::NO_BINARY_FOR_GPU,
    code::INVALID_PTX,
    code::JIT_COMPILER_NOT_FOUND,
    code::UNSUPPORTED_PTX_VERSION,
    code::JIT_COMPILATION_DISABLED,
    code::INVALID_SOURCE,
];

/// What a driver call answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Status {
    call: &'static str,
    code: c_int,
}

impl Status {
    pub(crate) const fn new(call: &'static str, code: c_int) -> Self {
        Self { call, code }
    }

    /// The driver's function.
    pub(crate) fn call(self) -> &'static str {
        self.call
    }

    /// The driver's number.
    pub(crate) fn code(self) -> c_int {
        self.code
    }

    pub(crate) fn is_ok(self) -> bool {
        self.code == code::SUCCESS
    }

    /// Does it end the device for this process?
    pub(crate) fn is_lost(self) -> bool {
        LOST.iter().any(|(code, _)| *code == self.code)
    }

    /// Did the driver refuse the code it was given?
    pub(crate) fn is_build(self) -> bool {
        BUILD.contains(&self.code)
    }

    /// Could the same kernel as machine code work where its PTX did not?
    pub(crate) fn asks_for_machine_code(self) -> bool {
        matches!(
            self.code,
            code::INVALID_PTX
                | code::UNSUPPORTED_PTX_VERSION
                | code::JIT_COMPILER_NOT_FOUND
                | code::JIT_COMPILATION_DISABLED
        )
    }

    /// Is it the doing of a kernel, which the driver does not name?
    pub(crate) fn blames_kernels(self) -> bool {
        matches!(self.code, 700 | 702 | 710 | 714..=719 | 721)
    }

    /// The error for callers. Of a lack of memory `Context` can tell more, where there is one.
    pub(crate) fn error(self, driver: &Driver, device: DeviceId) -> DeviceError {
        self.classify(device, &driver.explain(self))
    }

    fn classify(self, device: DeviceId, message: &str) -> DeviceError {
        if self.is_lost() {
            DeviceError::lost(device, self.call, message)
        } else if self.code == code::OUT_OF_MEMORY {
            DeviceError::OutOfMemory {
                device,
                kind: memory::CUDA_DEVICE,
                asked: 0,
                free: None,
            }
        } else if self.code == code::NOT_SUPPORTED {
            DeviceError::unsupported(device, format!("{}: {message}", self.call))
        } else {
            DeviceError::driver(device, self.call, message)
        }
    }
}

/// What a person can do about a driver that does not start, where that is known.
pub(crate) fn start_hint(status: Status) -> Option<&'static str> {
    Some(match status.code() {
        3 | 304 => "the kernel module is not loaded, or its device files cannot be opened",
        34 => "this is the toolkit's link stub, not the driver; take it out of the library path",
        802 => "the fabric manager is not running, or still starting",
        803 => "the library and the kernel module differ in version; restart the machine",
        804 => "the forward-compatibility library does not support this card",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ID;

    const DEVICE: DeviceId = DeviceId::new(ID, 1);

    fn kind(error: &DeviceError) -> &'static str {
        match error {
            DeviceError::Lost { .. } => "lost",
            DeviceError::Unsupported { .. } => "unsupported",
            DeviceError::Driver { .. } => "driver",
            DeviceError::OutOfMemory { .. } => "out of memory",
            _ => "other",
        }
    }

    #[rstest::rstest]
    #[case(1, "driver")]
    #[case(2, "out of memory")]
    #[case(4, "lost")]
    #[case(46, "driver")]
    #[case(201, "driver")]
    #[case(214, "lost")]
    #[case(218, "driver")]
    #[case(220, "lost")]
    #[case(226, "lost")]
    #[case(400, "driver")]
    #[case(500, "driver")]
    #[case(600, "driver")]
    #[case(700, "lost")]
    #[case(701, "driver")]
    #[case(702, "lost")]
    #[case(709, "lost")]
    #[case(710, "lost")]
    #[case(714, "lost")]
    #[case(715, "lost")]
    #[case(716, "lost")]
    #[case(717, "lost")]
    #[case(718, "lost")]
    #[case(719, "lost")]
    #[case(720, "driver")]
    #[case(721, "lost")]
    #[case(801, "unsupported")]
    #[case(806, "lost")]
    #[case(807, "driver")]
    #[case(810, "lost")]
    #[case(999, "driver")]
    #[case(123_456, "driver")]
    #[case(-1, "driver")]
    fn codes_become_errors(#[case] code: c_int, #[case] want: &str) {
        let error = Status::new("cuStreamSynchronize", code).classify(DEVICE, "NAME (0): words");
        assert_eq!(kind(&error), want, "{error}");
        let text = error.to_string();
        assert!(text.contains("cuda:1"), "{text}");
        if want != "out of memory" {
            for part in ["cuStreamSynchronize", "NAME (0): words"] {
                assert!(text.contains(part), "{text}");
            }
        }
    }

    #[test]
    fn the_table_of_lost_devices_agrees_with_the_bindings() {
        // Debug of cudarc's enum gives the header's names; those it has must be ours.
        use cudarc::driver::sys::CUresult as R;
        let known = [
            R::CUDA_ERROR_DEINITIALIZED,
            R::CUDA_ERROR_ECC_UNCORRECTABLE,
            R::CUDA_ERROR_NVLINK_UNCORRECTABLE,
            R::CUDA_ERROR_ILLEGAL_ADDRESS,
            R::CUDA_ERROR_LAUNCH_TIMEOUT,
            R::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            R::CUDA_ERROR_ASSERT,
            R::CUDA_ERROR_HARDWARE_STACK_ERROR,
            R::CUDA_ERROR_ILLEGAL_INSTRUCTION,
            R::CUDA_ERROR_MISALIGNED_ADDRESS,
            R::CUDA_ERROR_INVALID_ADDRESS_SPACE,
            R::CUDA_ERROR_INVALID_PC,
            R::CUDA_ERROR_LAUNCH_FAILED,
            R::CUDA_ERROR_MPS_RPC_FAILURE,
        ];
        for result in known {
            let entry = LOST.iter().find(|(code, _)| *code == result as c_int);
            assert_eq!(
                entry.map(|(_, name)| (*name).to_owned()),
                Some(format!("{result:?}"))
            );
        }
    }

    #[rstest::rstest]
    #[case(
        code::INVALID_IMAGE,
        cudarc::driver::sys::CUresult::CUDA_ERROR_INVALID_IMAGE
    )]
    #[case(
        code::NO_BINARY_FOR_GPU,
        cudarc::driver::sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
    )]
    #[case(
        code::INVALID_PTX,
        cudarc::driver::sys::CUresult::CUDA_ERROR_INVALID_PTX
    )]
    #[case(
        code::INVALID_SOURCE,
        cudarc::driver::sys::CUresult::CUDA_ERROR_INVALID_SOURCE
    )]
    #[case(code::NOT_FOUND, cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_FOUND)]
    #[case(code::NOT_READY, cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_READY)]
    #[case(
        code::NOT_SUPPORTED,
        cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_SUPPORTED
    )]
    #[case(
        code::OUT_OF_MEMORY,
        cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY
    )]
    #[case(code::NO_DEVICE, cudarc::driver::sys::CUresult::CUDA_ERROR_NO_DEVICE)]
    #[case(
        code::UNSUPPORTED_PTX_VERSION,
        cudarc::driver::sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    )]
    #[case(
        code::JIT_COMPILER_NOT_FOUND,
        cudarc::driver::sys::CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
    )]
    #[case(
        code::JIT_COMPILATION_DISABLED,
        cudarc::driver::sys::CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED
    )]
    fn numbers_are_the_header_s(
        #[case] ours: c_int,
        #[case] header: cudarc::driver::sys::CUresult,
    ) {
        assert_eq!(ours, header as c_int);
    }
}
