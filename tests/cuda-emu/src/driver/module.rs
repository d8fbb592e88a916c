//! Loaded code: its variables have addresses in a context.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::context::Context;
use super::ffi::Handle;
use super::function::Function;
use super::handle;
use super::machine::Machine;
use super::memory::{Home, Origin, State, Where, address, charge};
use super::status::{Result, Status};
use crate::engine;

/// A module in a context.
#[derive(Debug)]
pub(crate) struct Module {
    handle: Handle,
    context: Arc<Context>,
    code: engine::Module,
    /// Address of each variable.
    bases: Vec<u64>,
    /// Functions callers have asked for.
    functions: Mutex<BTreeMap<String, Handle>>,
    unloaded: AtomicBool,
}

impl Module {
    /// Places the variables of `code` in a context.
    pub(crate) fn load(
        machine: &Machine,
        context: &Arc<Context>,
        code: engine::Module,
    ) -> Result<Arc<Self>> {
        let mut bases = Vec::new();
        for variable in code.globals() {
            match place(machine, context, variable) {
                Ok(base) => bases.push(base),
                Err(status) => {
                    release(machine, &bases);
                    return Err(status);
                }
            }
        }
        for (index, base) in bases.iter().enumerate() {
            write(*base, &code.initial_bytes(index, &bases));
        }
        let module = Arc::new(Self {
            handle: handle::fresh(),
            context: Arc::clone(context),
            code,
            bases,
            functions: Mutex::default(),
            unloaded: AtomicBool::new(false),
        });
        machine.modules.insert(module.handle, &module);
        Ok(module)
    }

    /// Ends the module and all handles to its functions.
    pub(crate) fn unload(&self, machine: &Machine) {
        if self.unloaded.swap(true, Ordering::SeqCst) {
            return;
        }
        let _ = machine.modules.remove(self.handle);
        let functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for function in functions.values() {
            let _ = machine.functions.remove(*function);
        }
        release(machine, &self.bases);
    }

    pub(crate) fn is_unloaded(&self) -> bool {
        self.unloaded.load(Ordering::SeqCst)
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn code(&self) -> &engine::Module {
        &self.code
    }

    pub(crate) fn bases(&self) -> &[u64] {
        &self.bases
    }

    /// The kernel of a name; always the same object.
    pub(crate) fn function(
        self: &Arc<Self>,
        machine: &Machine,
        name: &str,
    ) -> Result<Arc<Function>> {
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(name) {
            return machine.functions.get(*known);
        }
        let kernel = self.code.kernel(name).ok_or(Status::NOT_FOUND)?;
        let function = Function::new(self, kernel);
        machine.functions.insert(function.handle(), &function);
        functions.insert(name.to_owned(), function.handle());
        Ok(function)
    }

    /// Address and size of a variable.
    pub(crate) fn variable(&self, name: &str) -> Result<(u64, u64)> {
        let mut variables = self.code.globals().iter().zip(&self.bases);
        let found = variables.find(|(variable, _)| variable.name == name);
        let (variable, base) = found.ok_or(Status::NOT_FOUND)?;
        Ok((*base, variable.size))
    }
}

/// An address for a variable.
fn place(machine: &Machine, context: &Context, variable: &engine::GlobalVar) -> Result<u64> {
    // A variable without a size, to be found elsewhere, still needs an address of its own.
    let bytes = variable.size.max(1);
    let device = context.device();
    device.budget().take(charge(bytes))?;
    let home = Home::Device {
        device: device.index(),
        context: context.handle(),
        origin: Origin::Variable {
            constant: variable.constant,
        },
    };
    let place = Where::Device(device.index());
    let base = machine.memory.allocate(place, bytes, home, State::Live);
    base.ok_or_else(|| {
        device.budget().give(charge(bytes));
        Status::OUT_OF_MEMORY
    })
}

fn release(machine: &Machine, bases: &[u64]) {
    for base in bases {
        machine.end_block(*base);
    }
}

/// Writes the value of a variable nobody knows of yet.
fn write(base: u64, bytes: &[u8]) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(address(base));
    // SAFETY: the block at `base` was made for these bytes a moment ago, and its address has not
    // been told to anybody.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
}
