//! Error codes, with the names and words a driver has for them.

use std::ffi::{CStr, c_int};
use std::fmt;

/// What a driver call answers; zero is success.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub(crate) c_int);

/// What a call returns inside of the emulator.
pub(crate) type Result<T = ()> = std::result::Result<T, Status>;

macro_rules! statuses {
    ($($name:ident $code:literal $full:literal $words:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("Code ", $code, ".")]
                pub const $name: Self = Self($code);
            )*
        }

        const TABLE: &[Row] = &[$(Row { code: $code, full: $full, words: $words },)*];
    };
}

struct Row {
    code: c_int,
    full: &'static CStr,
    words: &'static CStr,
}

statuses! {
    SUCCESS 0 c"CUDA_SUCCESS" c"no error";
    INVALID_VALUE 1 c"CUDA_ERROR_INVALID_VALUE" c"invalid argument";
    OUT_OF_MEMORY 2 c"CUDA_ERROR_OUT_OF_MEMORY" c"out of memory";
    NOT_INITIALIZED 3 c"CUDA_ERROR_NOT_INITIALIZED" c"initialization error";
    DEINITIALIZED 4 c"CUDA_ERROR_DEINITIALIZED" c"driver shutting down";
    PROFILER_DISABLED 5 c"CUDA_ERROR_PROFILER_DISABLED" c"profiler disabled while using external profiling tool";
    PROFILER_NOT_INITIALIZED 6 c"CUDA_ERROR_PROFILER_NOT_INITIALIZED" c"profiler not initialized: call cuProfilerInitialize()";
    PROFILER_ALREADY_STARTED 7 c"CUDA_ERROR_PROFILER_ALREADY_STARTED" c"profiler already started";
    PROFILER_ALREADY_STOPPED 8 c"CUDA_ERROR_PROFILER_ALREADY_STOPPED" c"profiler already stopped";
    STUB_LIBRARY 34 c"CUDA_ERROR_STUB_LIBRARY" c"CUDA driver is a stub library";
    CALL_REQUIRES_NEWER_DRIVER 36 c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER" c"API call requires a newer CUDA driver";
    DEVICE_UNAVAILABLE 46 c"CUDA_ERROR_DEVICE_UNAVAILABLE" c"CUDA-capable device(s) is/are busy or unavailable";
    NO_DEVICE 100 c"CUDA_ERROR_NO_DEVICE" c"no CUDA-capable device is detected";
    INVALID_DEVICE 101 c"CUDA_ERROR_INVALID_DEVICE" c"invalid device ordinal";
    DEVICE_NOT_LICENSED 102 c"CUDA_ERROR_DEVICE_NOT_LICENSED" c"device doesn't have valid Grid license";
    INVALID_IMAGE 200 c"CUDA_ERROR_INVALID_IMAGE" c"device kernel image is invalid";
    INVALID_CONTEXT 201 c"CUDA_ERROR_INVALID_CONTEXT" c"invalid device context";
    CONTEXT_ALREADY_CURRENT 202 c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT" c"context already current";
    MAP_FAILED 205 c"CUDA_ERROR_MAP_FAILED" c"mapping of buffer object failed";
    UNMAP_FAILED 206 c"CUDA_ERROR_UNMAP_FAILED" c"unmapping of buffer object failed";
    ARRAY_IS_MAPPED 207 c"CUDA_ERROR_ARRAY_IS_MAPPED" c"array is mapped";
    ALREADY_MAPPED 208 c"CUDA_ERROR_ALREADY_MAPPED" c"resource already mapped";
    NO_BINARY_FOR_GPU 209 c"CUDA_ERROR_NO_BINARY_FOR_GPU" c"no kernel image is available for execution on the device";
    ALREADY_ACQUIRED 210 c"CUDA_ERROR_ALREADY_ACQUIRED" c"resource already acquired";
    NOT_MAPPED 211 c"CUDA_ERROR_NOT_MAPPED" c"resource not mapped";
    NOT_MAPPED_AS_ARRAY 212 c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY" c"resource not mapped as array";
    NOT_MAPPED_AS_POINTER 213 c"CUDA_ERROR_NOT_MAPPED_AS_POINTER" c"resource not mapped as pointer";
    ECC_UNCORRECTABLE 214 c"CUDA_ERROR_ECC_UNCORRECTABLE" c"uncorrectable ECC error encountered";
    UNSUPPORTED_LIMIT 215 c"CUDA_ERROR_UNSUPPORTED_LIMIT" c"limit is not supported on this architecture";
    CONTEXT_ALREADY_IN_USE 216 c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE" c"exclusive-thread device already in use by a different thread";
    PEER_ACCESS_UNSUPPORTED 217 c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED" c"peer access is not supported between these two devices";
    INVALID_PTX 218 c"CUDA_ERROR_INVALID_PTX" c"a PTX JIT compilation failed";
    INVALID_GRAPHICS_CONTEXT 219 c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT" c"invalid OpenGL or DirectX context";
    NVLINK_UNCORRECTABLE 220 c"CUDA_ERROR_NVLINK_UNCORRECTABLE" c"uncorrectable NVLink error detected during the execution";
    JIT_COMPILER_NOT_FOUND 221 c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND" c"PTX JIT compiler library not found";
    UNSUPPORTED_PTX_VERSION 222 c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION" c"the provided PTX was compiled with an unsupported toolchain.";
    JIT_COMPILATION_DISABLED 223 c"CUDA_ERROR_JIT_COMPILATION_DISABLED" c"PTX JIT compilation was disabled";
    UNSUPPORTED_EXEC_AFFINITY 224 c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY" c"the provided execution affinity is not supported";
    UNSUPPORTED_DEVSIDE_SYNC 225 c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC" c"the provided PTX contains unsupported call to cudaDeviceSynchronize";
    CONTAINED 226 c"CUDA_ERROR_CONTAINED" c"Invalid access of peer GPU memory over nvlink or a hardware error";
    INVALID_SOURCE 300 c"CUDA_ERROR_INVALID_SOURCE" c"device kernel image is invalid";
    FILE_NOT_FOUND 301 c"CUDA_ERROR_FILE_NOT_FOUND" c"file not found";
    SHARED_OBJECT_SYMBOL_NOT_FOUND 302 c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND" c"shared object symbol not found";
    SHARED_OBJECT_INIT_FAILED 303 c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED" c"shared object initialization failed";
    OPERATING_SYSTEM 304 c"CUDA_ERROR_OPERATING_SYSTEM" c"OS call failed or operation not supported on this OS";
    INVALID_HANDLE 400 c"CUDA_ERROR_INVALID_HANDLE" c"invalid resource handle";
    ILLEGAL_STATE 401 c"CUDA_ERROR_ILLEGAL_STATE" c"the operation cannot be performed in the present state";
    LOSSY_QUERY 402 c"CUDA_ERROR_LOSSY_QUERY" c"attempted introspection would be semantically lossy";
    NOT_FOUND 500 c"CUDA_ERROR_NOT_FOUND" c"named symbol not found";
    NOT_READY 600 c"CUDA_ERROR_NOT_READY" c"device not ready";
    ILLEGAL_ADDRESS 700 c"CUDA_ERROR_ILLEGAL_ADDRESS" c"an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES 701 c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" c"too many resources requested for launch";
    LAUNCH_TIMEOUT 702 c"CUDA_ERROR_LAUNCH_TIMEOUT" c"the launch timed out and was terminated";
    LAUNCH_INCOMPATIBLE_TEXTURING 703 c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING" c"launch uses incompatible texturing mode";
    PEER_ACCESS_ALREADY_ENABLED 704 c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED" c"peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED 705 c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED" c"peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE 708 c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE" c"cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED 709 c"CUDA_ERROR_CONTEXT_IS_DESTROYED" c"context is destroyed";
    ASSERT 710 c"CUDA_ERROR_ASSERT" c"device-side assert triggered";
    TOO_MANY_PEERS 711 c"CUDA_ERROR_TOO_MANY_PEERS" c"peer mapping resources exhausted";
    HOST_MEMORY_ALREADY_REGISTERED 712 c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" c"part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED 713 c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" c"pointer does not correspond to a registered memory region";
    HARDWARE_STACK_ERROR 714 c"CUDA_ERROR_HARDWARE_STACK_ERROR" c"hardware stack error";
    ILLEGAL_INSTRUCTION 715 c"CUDA_ERROR_ILLEGAL_INSTRUCTION" c"an illegal instruction was encountered";
    MISALIGNED_ADDRESS 716 c"CUDA_ERROR_MISALIGNED_ADDRESS" c"misaligned address";
    INVALID_ADDRESS_SPACE 717 c"CUDA_ERROR_INVALID_ADDRESS_SPACE" c"operation not supported on global/shared address space";
    INVALID_PC 718 c"CUDA_ERROR_INVALID_PC" c"invalid program counter";
    LAUNCH_FAILED 719 c"CUDA_ERROR_LAUNCH_FAILED" c"unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE 720 c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" c"too many blocks in cooperative launch";
    TENSOR_MEMORY_LEAK 721 c"CUDA_ERROR_TENSOR_MEMORY_LEAK" c"tensor memory not completely freed";
    NOT_PERMITTED 800 c"CUDA_ERROR_NOT_PERMITTED" c"operation not permitted";
    NOT_SUPPORTED 801 c"CUDA_ERROR_NOT_SUPPORTED" c"operation not supported";
    SYSTEM_NOT_READY 802 c"CUDA_ERROR_SYSTEM_NOT_READY" c"system not yet initialized";
    SYSTEM_DRIVER_MISMATCH 803 c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" c"system has unsupported display driver / cuda driver combination";
    COMPAT_NOT_SUPPORTED_ON_DEVICE 804 c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" c"forward compatibility was attempted on non supported HW";
    MPS_CONNECTION_FAILED 805 c"CUDA_ERROR_MPS_CONNECTION_FAILED" c"MPS client failed to connect to the MPS control daemon or the MPS server";
    MPS_RPC_FAILURE 806 c"CUDA_ERROR_MPS_RPC_FAILURE" c"the remote procedural call between the MPS server and the MPS client failed";
    MPS_SERVER_NOT_READY 807 c"CUDA_ERROR_MPS_SERVER_NOT_READY" c"MPS server is not ready to accept new MPS client requests";
    MPS_MAX_CLIENTS_REACHED 808 c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED" c"the hardware resources required to create MPS client have been exhausted";
    MPS_MAX_CONNECTIONS_REACHED 809 c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED" c"the hardware resources required to support device connections have been exhausted";
    MPS_CLIENT_TERMINATED 810 c"CUDA_ERROR_MPS_CLIENT_TERMINATED" c"the MPS client has been terminated by the server";
    STREAM_CAPTURE_UNSUPPORTED 900 c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" c"operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED 901 c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" c"operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE 902 c"CUDA_ERROR_STREAM_CAPTURE_MERGE" c"operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED 903 c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED" c"capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED 904 c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED" c"capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION 905 c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION" c"dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT 906 c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" c"operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT 907 c"CUDA_ERROR_CAPTURED_EVENT" c"operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD 908 c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" c"attempt to terminate a thread-local capture sequence from another thread";
    TIMEOUT 909 c"CUDA_ERROR_TIMEOUT" c"wait operation timed out";
    GRAPH_EXEC_UPDATE_FAILURE 910 c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE" c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    EXTERNAL_DEVICE 911 c"CUDA_ERROR_EXTERNAL_DEVICE" c"an async error has occured in external entity outside of CUDA";
    INVALID_CLUSTER_SIZE 912 c"CUDA_ERROR_INVALID_CLUSTER_SIZE" c"a kernel launch error has occurred due to cluster misconfiguration";
    FUNCTION_NOT_LOADED 913 c"CUDA_ERROR_FUNCTION_NOT_LOADED" c"the function handle is not loaded";
    INVALID_RESOURCE_TYPE 914 c"CUDA_ERROR_INVALID_RESOURCE_TYPE" c"one or more resources passed in are not valid resource types for the operation";
    INVALID_RESOURCE_CONFIGURATION 915 c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION" c"one or more resources are insufficient or non-applicable for the operation";
    UNKNOWN 999 c"CUDA_ERROR_UNKNOWN" c"unknown error";
}

impl Status {
    /// The answer a number stands for.
    pub const fn new(code: c_int) -> Self {
        Self(code)
    }

    /// The number.
    pub const fn code(self) -> c_int {
        self.0
    }

    /// The name in the header, `CUDA_ERROR_...`.
    pub fn name(self) -> Option<&'static CStr> {
        self.row().map(|row| row.full)
    }

    /// What a driver says about it.
    pub fn words(self) -> Option<&'static CStr> {
        self.row().map(|row| row.words)
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.code == self.0)
    }

    /// Reads `OUT_OF_MEMORY`, `CUDA_ERROR_OUT_OF_MEMORY` or `2`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(code) = text.parse() {
            return Some(Self(code)).filter(|status| status.row().is_some());
        }
        let full = if text.starts_with("CUDA_") {
            text.to_owned()
        } else {
            format!("CUDA_ERROR_{text}")
        };
        let row = TABLE
            .iter()
            .find(|row| row.full.to_bytes() == full.as_bytes());
        row.map(|row| Self(row.code))
    }

    /// Does a context that met it answer everything with it from then on?
    pub(crate) fn is_sticky(self) -> bool {
        matches!(
            self,
            Self::ECC_UNCORRECTABLE
                | Self::NVLINK_UNCORRECTABLE
                | Self::CONTAINED
                | Self::ILLEGAL_ADDRESS
                | Self::LAUNCH_TIMEOUT
                | Self::ASSERT
                | Self::HARDWARE_STACK_ERROR
                | Self::ILLEGAL_INSTRUCTION
                | Self::MISALIGNED_ADDRESS
                | Self::INVALID_ADDRESS_SPACE
                | Self::INVALID_PC
                | Self::LAUNCH_FAILED
                | Self::TENSOR_MEMORY_LEAK
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(&name.to_string_lossy()),
            None => write!(f, "CUDA error {}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_three_ways() {
        for text in ["OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY", "2"] {
            assert_eq!(Status::parse(text), Some(Status::OUT_OF_MEMORY), "{text}");
        }
        for text in ["", "CUDA_ERROR_", "NO_SUCH_ERROR", "12345", "-1"] {
            assert_eq!(Status::parse(text), None, "{text}");
        }
    }

    #[test]
    fn codes_are_unique_and_ascending() {
        assert!(TABLE.is_sorted_by(|a, b| a.code < b.code));
    }
}
