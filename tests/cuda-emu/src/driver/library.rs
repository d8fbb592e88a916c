//! Code that is loaded once and used in any context.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::context::Context;
use super::ffi::Handle;
use super::function::Function;
use super::handle;
use super::machine::Machine;
use super::module::Module;
use super::status::{Result, Status};
use crate::engine;

/// Code without a context.
#[derive(Debug)]
pub(crate) struct Library {
    handle: Handle,
    code: engine::Module,
    /// The module in each context that used it.
    modules: Mutex<BTreeMap<usize, Arc<Module>>>,
    kernels: Mutex<BTreeMap<String, Handle>>,
}

/// A kernel of a library.
#[derive(Debug)]
pub(crate) struct LibraryKernel {
    library: Weak<Library>,
    name: String,
}

impl Library {
    pub(crate) fn new(machine: &Machine, code: engine::Module) -> Arc<Self> {
        let library = Arc::new(Self {
            handle: handle::fresh(),
            code,
            modules: Mutex::default(),
            kernels: Mutex::default(),
        });
        machine.libraries.insert(library.handle, &library);
        library
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Ends the library, its kernels and its modules.
    pub(crate) fn unload(&self, machine: &Machine) {
        for kernel in self
            .kernels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            let _ = machine.kernels.remove(*kernel);
        }
        for module in self
            .modules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            module.unload(machine);
        }
    }

    /// The library in a context.
    pub(crate) fn module(&self, machine: &Machine, context: &Arc<Context>) -> Result<Arc<Module>> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.retain(|_, module| module.context().check_open().is_ok());
        if let Some(module) = modules.get(&context.handle().0) {
            return Ok(Arc::clone(module));
        }
        let module = Module::load(machine, context, self.code.clone())?;
        modules.insert(context.handle().0, Arc::clone(&module));
        Ok(module)
    }

    /// The kernel of a name; always the same handle.
    pub(crate) fn kernel(self: &Arc<Self>, machine: &Machine, name: &str) -> Result<Handle> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(name) {
            return Ok(*known);
        }
        self.code.kernel(name).ok_or(Status::NOT_FOUND)?;
        let handle = handle::fresh();
        let kernel = Arc::new(LibraryKernel {
            library: Arc::downgrade(self),
            name: name.to_owned(),
        });
        machine.kernels.insert(handle, &kernel);
        kernels.insert(name.to_owned(), handle);
        Ok(handle)
    }
}

impl LibraryKernel {
    /// The kernel in a context.
    pub(crate) fn function(
        &self,
        machine: &Machine,
        context: &Arc<Context>,
    ) -> Result<Arc<Function>> {
        let library = self.library.upgrade().ok_or(Status::INVALID_HANDLE)?;
        library
            .module(machine, context)?
            .function(machine, &self.name)
    }
}
