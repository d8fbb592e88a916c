//! Kernels as callers hold them.

use std::ffi::{CString, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use super::attributes::{MAX_SHARED, MAX_SHARED_OPTIN, MAX_THREADS};
use super::ffi::Handle;
use super::handle;
use super::module::Module;
use super::status::{Result, Status};
use crate::engine::{Entry, Kernel};

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct Function {
    handle: Handle,
    module: Arc<Module>,
    kernel: Kernel,
    name: CString,
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
    dynamic_shared: AtomicI32,
    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`, a hint.
    carveout: AtomicI32,
}

impl Function {
    pub(crate) fn new(module: &Arc<Module>, kernel: Kernel) -> Arc<Self> {
        let usual = i64::from(MAX_SHARED) - i64::from(kernel.entry().static_shared);
        let name = CString::new(kernel.name()).unwrap_or_default();
        Arc::new(Self {
            handle: handle::fresh(),
            module: Arc::clone(module),
            kernel,
            name,
            dynamic_shared: AtomicI32::new(c_int::try_from(usual.max(0)).unwrap_or(0)),
            carveout: AtomicI32::new(-1),
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(crate) fn entry(&self) -> &Entry {
        self.kernel.entry()
    }

    pub(crate) fn name(&self) -> &CString {
        &self.name
    }

    /// Most threads of a block.
    pub(crate) fn max_threads(&self) -> u32 {
        self.entry()
            .max_threads
            .map_or(MAX_THREADS, |most| most.min(MAX_THREADS))
    }

    /// Most bytes of dynamic shared memory.
    pub(crate) fn max_dynamic_shared(&self) -> u32 {
        u32::try_from(self.dynamic_shared.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// `CUfunction_attribute`.
    pub(crate) fn attribute(&self, attribute: u32) -> Result<c_int> {
        let entry = self.entry();
        let header = self.module.code().header();
        let constants = self
            .module
            .code()
            .globals()
            .iter()
            .filter(|global| global.constant);
        let (major, minor) = self.module.context().device().spec().capability;
        let value = match attribute {
            0 => u64::from(self.max_threads()),
            1 => u64::from(entry.static_shared),
            2 => constants.map(|constant| constant.size).sum(),
            3 => u64::from(entry.local_bytes),
            4 => u64::from(entry.registers),
            5 => u64::from(header.version.0 * 10 + header.version.1),
            6 => u64::from(major * 10 + minor),
            8 => u64::from(self.max_dynamic_shared()),
            9 => return Ok(self.carveout.load(Ordering::Relaxed)),
            7 | 10..=16 => 0,
            _ => return Err(Status::INVALID_VALUE),
        };
        Ok(c_int::try_from(value).unwrap_or(c_int::MAX))
    }

    pub(crate) fn set_attribute(&self, attribute: u32, value: c_int) -> Result {
        match attribute {
            8 => {
                let asked = u32::try_from(value).map_err(|_| Status::INVALID_VALUE)?;
                let sum = asked.checked_add(self.entry().static_shared);
                if sum.is_none_or(|sum| sum > MAX_SHARED_OPTIN) {
                    return Err(Status::INVALID_VALUE);
                }
                self.dynamic_shared.store(value, Ordering::Relaxed);
            }
            9 if (-1..=100).contains(&value) => self.carveout.store(value, Ordering::Relaxed),
            // Clusters, which are not emulated; the rest cannot be set.
            10..=15 => return Err(Status::NOT_SUPPORTED),
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }

    /// Blocks that fit one processor together, by threads, shared memory and registers.
    pub(crate) fn blocks_per_processor(&self, threads: u32, dynamic_shared: usize) -> u32 {
        use super::attributes::{BLOCKS, PROCESSOR_SHARED, PROCESSOR_THREADS, REGISTERS};
        let shared = u64::from(self.entry().static_shared) + dynamic_shared as u64;
        if threads == 0
            || threads > self.max_threads()
            || shared > u64::from(self.entry().static_shared + self.max_dynamic_shared())
        {
            return 0;
        }
        let registers = u64::from(self.entry().registers.max(1)) * u64::from(threads);
        let by_shared = u64::from(PROCESSOR_SHARED).checked_div(shared);
        let fit = [
            u64::from(BLOCKS),
            u64::from(PROCESSOR_THREADS / threads),
            by_shared.unwrap_or(u64::MAX),
            u64::from(REGISTERS) / registers,
        ];
        let least = fit.into_iter().min().unwrap_or(0);
        u32::try_from(least).unwrap_or(u32::MAX)
    }
}
