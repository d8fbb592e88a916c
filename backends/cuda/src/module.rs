//! Code in a device: PTX or machine code the driver has loaded.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::Arc;

use cudarc::driver::sys;
use warploom_core::{DeviceError, Result, memory};

use crate::context::Context;
use crate::error::{Status, code};
use crate::handle::Foreign;

/// Room for what the driver's compiler has to say.
const LOG_BYTES: usize = 16 << 10;

/// A loaded module, unloaded when dropped. Whoever drops it knows that no work uses it.
#[derive(Debug)]
pub(crate) struct Module {
    context: Arc<Context>,
    handle: Foreign<sys::CUmod_st>,
}

/// Why a module was not loaded.
#[derive(Debug)]
pub(crate) enum ModuleError {
    /// The driver does not take this code; the log is its compiler's.
    Refused { status: Status, log: String },
    /// Something else.
    Device(DeviceError),
}

impl From<DeviceError> for ModuleError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl ModuleError {
    /// Could machine code work where this PTX did not?
    pub(crate) fn asks_for_machine_code(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if status.asks_for_machine_code())
    }

    /// The same as an error about `kernel`.
    pub(crate) fn about(self, context: &Context, kernel: &str) -> DeviceError {
        match self {
            Self::Device(error) => error,
            Self::Refused { log, .. } => DeviceError::Build {
                device: context.id(),
                kernel: kernel.to_owned(),
                log,
            },
        }
    }
}

impl Module {
    /// Loads PTX text or a cubin.
    pub(crate) fn load(context: &Arc<Context>, image: &[u8]) -> Result<Self, ModuleError> {
        // PTX is read up to its NUL; a cubin knows its length and does not mind one more byte.
        let mut image = image.to_vec();
        image.push(0);
        let driver = context.enter()?;
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes numbers in the place of pointers. One byte less than there is, so that
        // the log ends in a NUL whatever the driver does.
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES - 1),
        ];
        let mut handle = std::ptr::null_mut();
        // SAFETY: a context is current; the image ends in a NUL; options and values are two each,
        // of the types the manual gives, and the log has room for the size that is told.
        let status = unsafe {
            driver.cuModuleLoadDataEx(
                &raw mut handle,
                image.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if status.code() == code::OUT_OF_MEMORY {
            let error = context.no_room(memory::CUDA_DEVICE, image.len() as u64);
            return Err(error.into());
        }
        if status.is_build() {
            let words = CStr::from_bytes_until_nul(&log).unwrap_or_default();
            let words = words.to_string_lossy();
            let log = format!("{}\n{}", driver.explain(status), words.trim());
            return Err(ModuleError::Refused {
                status,
                // It ends an error message, and those have no full stop.
                log: log.trim_end().trim_end_matches('.').to_owned(),
            });
        }
        context.check(status)?;
        Ok(Self {
            context: Arc::clone(context),
            handle: Foreign::new(handle),
        })
    }

    /// The kernel called `name`; it lives as long as the module.
    pub(crate) fn function(&self, name: &str) -> Result<Foreign<sys::CUfunc_st>> {
        let missing = || DeviceError::Build {
            device: self.context.id(),
            kernel: name.to_owned(),
            log: "the code compiles, but has no kernel of this name; is it `extern \"C\"`?".into(),
        };
        let symbol = CString::new(name).map_err(|_| missing())?;
        let driver = self.context.enter()?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends in a NUL, and the place for the answer is
        // writable.
        let status = unsafe {
            driver.cuModuleGetFunction(&raw mut function, self.handle.raw(), symbol.as_ptr())
        };
        if status.code() == code::NOT_FOUND {
            return Err(missing());
        }
        self.context.check(status)?;
        Ok(Foreign::new(function))
    }

    /// How many items a work group of `function` may have, given the registers it uses.
    pub(crate) fn group_limit(&self, function: Foreign<sys::CUfunc_st>) -> Result<u64> {
        let driver = self.context.enter()?;
        let mut limit: c_int = 0;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: the function is of this loaded module, and the place for the answer is writable.
        let status =
            unsafe { driver.cuFuncGetAttribute(&raw mut limit, attribute, function.raw()) };
        self.context.check(status)?;
        Ok(u64::try_from(limit).unwrap_or(0))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(driver) = self.context.enter_to_free() {
            // SAFETY: loaded once and unloaded once; lanes kept the kernel until all its work was
            // done.
            let status = unsafe { driver.cuModuleUnload(self.handle.raw()) };
            self.context.check_freed(status);
        }
    }
}
