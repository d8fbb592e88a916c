//! The entry points of `libcuda`, resolved once, all or none.
//!
//! cudarc finds and opens the library, names its types and fixes the signatures; the calls go
//! through pointers of our own. There are two reasons. cudarc resolves a symbol at its first call
//! and panics when it is missing, and its calls return a Rust enum, so that an error number a newer
//! driver invented would be undefined behaviour. Here a missing symbol is a [`LoadError`] and a
//! result is a plain number.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::OnceLock;

use cudarc::driver::sys;
use libloading::Library;
use warploom_core::LoadError;

use crate::error::{LOST, Status, code};

/// Declares the driver's entry points: the list that is checked at load, the pointers and the
/// calls are all made from it, so they cannot disagree.
///
/// * `bound` functions must be there, and their arguments are compared with cudarc's bindings at
///   compile time.
/// * `plain` functions must be there; cudarc binds them only in some versions, or with the enum.
/// * `optional` functions may be missing.
macro_rules! entry_points {
    (
        bound { $(fn $bound:ident($($bound_arg:ident: $bound_type:ty),*);)* }
        plain { $(fn $plain:ident($($plain_arg:ident: $plain_type:ty),*);)* }
        optional { $(fn $optional:ident($($optional_arg:ident: $optional_type:ty),*);)* }
    ) => {
        /// The resolved entry points.
        #[expect(non_snake_case, reason = "the fields have the driver's own names")]
        pub(crate) struct Driver {
            $($bound: unsafe extern "C" fn($($bound_type),*) -> c_int,)*
            $($plain: unsafe extern "C" fn($($plain_type),*) -> c_int,)*
            $($optional: Option<unsafe extern "C" fn($($optional_type),*) -> c_int>,)*
        }

        $(const _: unsafe fn($($bound_type),*) -> sys::CUresult = sys::$bound;)*

        impl Driver {
            fn resolve(library: &Library) -> Result<Self, LoadError> {
                Ok(Self {
                    $($bound: symbol(library, stringify!($bound)).ok_or_else(|| lacks(stringify!($bound)))?,)*
                    $($plain: symbol(library, stringify!($plain)).ok_or_else(|| lacks(stringify!($plain)))?,)*
                    $($optional: symbol(library, stringify!($optional)),)*
                })
            }
        }

        #[expect(non_snake_case, reason = "the driver's own names, so that its manual applies")]
        #[expect(clippy::too_many_arguments, reason = "the driver's own signatures")]
        impl Driver {
            $(
                /// # Safety
                /// As the driver's manual says of this call.
                pub(crate) unsafe fn $bound(&self $(, $bound_arg: $bound_type)*) -> Status {
                    // SAFETY: the pointer was resolved under this name with cudarc's argument
                    // types, and the caller answers for the arguments.
                    Status::new(stringify!($bound), unsafe { (self.$bound)($($bound_arg),*) })
                }
            )*
            $(
                /// # Safety
                /// As the driver's manual says of this call.
                pub(crate) unsafe fn $plain(&self $(, $plain_arg: $plain_type)*) -> Status {
                    // SAFETY: the pointer was resolved under this name, and the caller answers
                    // for the arguments.
                    Status::new(stringify!($plain), unsafe { (self.$plain)($($plain_arg),*) })
                }
            )*
            $(
                /// `None` where the driver lacks it.
                ///
                /// # Safety
                /// As the driver's manual says of this call.
                pub(crate) unsafe fn $optional(&self $(, $optional_arg: $optional_type)*) -> Option<Status> {
                    // SAFETY: the pointer was resolved under this name, and the caller answers
                    // for the arguments.
                    let call = |f: unsafe extern "C" fn($($optional_type),*) -> c_int| unsafe { f($($optional_arg),*) };
                    Some(Status::new(stringify!($optional), call(self.$optional?)))
                }
            )*
        }
    };
}

entry_points! {
    bound {
        fn cuInit(flags: c_uint);
        fn cuDriverGetVersion(version: *mut c_int);
        fn cuDeviceGetCount(count: *mut c_int);
        fn cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int);
        fn cuDeviceGetName(name: *mut c_char, len: c_int, device: sys::CUdevice);
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: sys::CUdevice);
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: sys::CUdevice_attribute, device: sys::CUdevice);
        fn cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: sys::CUdevice);
        fn cuDevicePrimaryCtxRelease_v2(device: sys::CUdevice);
        fn cuCtxSetCurrent(context: sys::CUcontext);
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        fn cuMemAlloc_v2(address: *mut sys::CUdeviceptr, bytes: usize);
        fn cuMemFree_v2(address: sys::CUdeviceptr);
        fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
        fn cuMemFreeHost(address: *mut c_void);
        fn cuMemcpyAsync(dst: sys::CUdeviceptr, src: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
        fn cuMemcpyHtoDAsync_v2(dst: sys::CUdeviceptr, src: *const c_void, bytes: usize, stream: sys::CUstream);
        fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
        fn cuMemcpyDtoDAsync_v2(dst: sys::CUdeviceptr, src: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
        fn cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint);
        fn cuStreamSynchronize(stream: sys::CUstream);
        fn cuStreamDestroy_v2(stream: sys::CUstream);
        fn cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint);
        fn cuEventCreate(event: *mut sys::CUevent, flags: c_uint);
        fn cuEventRecord(event: sys::CUevent, stream: sys::CUstream);
        fn cuEventQuery(event: sys::CUevent);
        fn cuEventSynchronize(event: sys::CUevent);
        fn cuEventDestroy_v2(event: sys::CUevent);
        fn cuModuleLoadDataEx(
            module: *mut sys::CUmodule, image: *const c_void,
            count: c_uint, options: *mut sys::CUjit_option, values: *mut *mut c_void
        );
        fn cuModuleUnload(module: sys::CUmodule);
        fn cuModuleGetFunction(function: *mut sys::CUfunction, module: sys::CUmodule, name: *const c_char);
        fn cuFuncGetAttribute(value: *mut c_int, attribute: sys::CUfunction_attribute, function: sys::CUfunction);
        fn cuLaunchKernel(
            function: sys::CUfunction,
            grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
            block_x: c_uint, block_y: c_uint, block_z: c_uint,
            shared_bytes: c_uint, stream: sys::CUstream,
            params: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
    plain {
        // Bindings from 13.0 on have only `_v2`, which drivers before 12.8 lack; this one is in all.
        fn cuEventElapsedTime(milliseconds: *mut f32, start: sys::CUevent, end: sys::CUevent);
    }
    optional {
        fn cuGetErrorName(error: c_int, text: *mut *const c_char);
        fn cuGetErrorString(error: c_int, text: *mut *const c_char);
        fn cuDeviceGetUuid(uuid: *mut sys::CUuuid, device: sys::CUdevice);
        fn cuDeviceGetUuid_v2(uuid: *mut sys::CUuuid, device: sys::CUdevice);
        fn cuDeviceGetLuid(luid: *mut c_char, node_mask: *mut c_uint, device: sys::CUdevice);
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

/// What the file is called here, for messages.
const FILE: &str = if cfg!(windows) {
    "nvcuda.dll"
} else {
    "libcuda.so.1"
};

fn lacks(symbol: &str) -> LoadError {
    LoadError::broken(format!(
        "libcuda lacks {symbol}; the driver is too old: update it"
    ))
}

/// The symbol as a function pointer of type `F`, if the library has it.
fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: `F` is a function pointer type (all callers are in `entry_points!`), as large as an
    // address; its signature is the one the driver documents for this name.
    let found = unsafe { library.get::<F>(name) };
    found.ok().map(|symbol| *symbol)
}

impl Driver {
    /// The driver of this process. Success is remembered; failure is not, so that a driver that
    /// was installed or repaired meanwhile is found.
    ///
    /// # Errors
    /// Absent without the library, broken without one of its symbols.
    pub(crate) fn load() -> Result<&'static Self, LoadError> {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        // SAFETY: opening libcuda runs its constructors, which touch no state of ours.
        if !unsafe { sys::is_culib_present() } {
            return Err(LoadError::absent(format!(
                "{FILE} is not installed (no NVIDIA driver)"
            )));
        }
        // SAFETY: as above; it was opened a moment ago, so this does not panic.
        let library = unsafe { sys::culib() };
        let driver = Self::resolve(library)?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    /// Starts the driver; further calls are free. `false` when it works but has no device.
    pub(crate) fn init(&self) -> Result<bool, Status> {
        // SAFETY: no condition; the flags must be 0.
        let status = unsafe { self.cuInit(0) };
        match status.code() {
            code::SUCCESS => Ok(true),
            code::NO_DEVICE => Ok(false),
            _ => Err(status),
        }
    }

    /// The driver's name and text for a status: `CUDA_ERROR_UNKNOWN (999): unknown error`.
    pub(crate) fn explain(&self, status: Status) -> String {
        let number = status.code();
        // SAFETY: any number may be asked for, and the pointer to the answer is writable.
        let name = text(|at| unsafe { self.cuGetErrorName(number, at) });
        // SAFETY: as above.
        let words = text(|at| unsafe { self.cuGetErrorString(number, at) });
        let listed = LOST.iter().find(|(code, _)| *code == number);
        let name = name.or(listed.map(|(_, name)| *name));
        let name = name.unwrap_or("CUDA error");
        match words {
            Some(words) => format!("{name} ({number}): {words}"),
            None => format!("{name} ({number})"),
        }
    }
}

/// Asks for one of the driver's static texts.
fn text(ask: impl FnOnce(*mut *const c_char) -> Option<Status>) -> Option<&'static str> {
    let mut at: *const c_char = std::ptr::null();
    let status = ask(&raw mut at)?;
    if !status.is_ok() || at.is_null() {
        return None;
    }
    // SAFETY: on success it is a NUL-terminated string in the driver's read-only data, which is
    // never unloaded (cudarc keeps the library in a static).
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().ok()
}
