//! Modules.

use std::ffi::c_uint;
use std::sync::Arc;

use crate::driver::call::{Call, calls};
use crate::driver::ffi::{Handle, In, Out, Text};
use crate::driver::image::{self, JitOptions};
use crate::driver::module::Module;
use crate::driver::status::{Result, Status};

/// `CU_MODULE_EAGER_LOADING`.
const EAGER: c_uint = 1;

calls! {
    /// Loads PTX.
    fn cuModuleLoadData(module: Out<Handle>, image: In<u8>) |call| {
        load(call, module, image, JitOptions::NONE)
    }

    /// Loads PTX, and says what is wrong with it where the options want it.
    fn cuModuleLoadDataEx(
        module: Out<Handle>,
        image: In<u8>,
        count: c_uint,
        options: In<c_uint>,
        values: *mut usize,
    ) |call| {
        load(call, module, image, JitOptions { count, options, values })
    }

    /// Refuses what is no PTX.
    fn cuModuleLoadFatBinary(module: Out<Handle>, image: In<u8>) |call| {
        load(call, module, image, JitOptions::NONE)
    }

    /// Loads PTX from a file.
    fn cuModuleLoad(module: Out<Handle>, path: Text) |call| {
        call.context()?;
        let mut image = std::fs::read(path.read()?).map_err(|_| Status::FILE_NOT_FOUND)?;
        image.push(0);
        load(call, module, In::new(image.as_ptr()), JitOptions::NONE)
    }

    /// Ends a module. A kernel of it that has not run yet is at fault.
    fn cuModuleUnload(module: Handle) |call| {
        let machine = call.machine()?;
        let module = machine.modules.get(module)?;
        module.unload(machine);
        module.context().check()
    }

    /// A kernel.
    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) |call| {
        let module = given(call, module)?;
        let name = name.read()?;
        let found = module.function(call.machine()?, &name);
        if found.is_err() {
            let names: Vec<&str> = module.code().kernel_names().collect();
            let text = format_args!("no kernel `{name}`; there are {names:?}");
            return Err(call.refuse(Status::NOT_FOUND, text));
        }
        function.put(found?.handle())
    }

    /// A variable.
    fn cuModuleGetGlobal_v2(
        address: Out<u64>,
        bytes: Out<usize>,
        module: Handle,
        name: Text,
    ) |call| {
        let (base, size) = given(call, module)?.variable(&name.read()?)?;
        address.put_if_wanted(base);
        bytes.put_if_wanted(usize::try_from(size).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Whether code is loaded when it is needed or at once: at once.
    fn cuModuleGetLoadingMode(mode: Out<c_uint>) |call| {
        call.machine()?;
        mode.put(EAGER)
    }

    /// How many kernels there are.
    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle) |call| {
        let module = given(call, module)?;
        let kernels = module.code().kernel_names().count();
        count.put(c_uint::try_from(kernels).unwrap_or(c_uint::MAX))
    }

    /// The kernels.
    fn cuModuleEnumerateFunctions(functions: *mut Handle, count: c_uint, module: Handle) |call| {
        let module = given(call, module)?;
        for (i, name) in module.code().kernel_names().enumerate().take(count as usize) {
            let function = module.function(call.machine()?, name)?;
            Out::new(functions.wrapping_add(i)).put(function.handle())?;
        }
        Ok(())
    }
}

/// A module of a context that works.
fn given(call: Call, module: Handle) -> Result<Arc<Module>> {
    call.context()?;
    let module = call.machine()?.modules.get(module)?;
    module.context().check()?;
    Ok(module)
}

fn load(call: Call, place: Out<Handle>, image: In<u8>, options: JitOptions) -> Result {
    let context = call.context()?;
    place.wanted()?;
    options.check()?;
    let machine = call.machine()?;
    let code = match image::compile(machine.plan, context.device(), image) {
        Ok(code) => code,
        Err(refusal) => {
            options.log(&refusal.log)?;
            return Err(call.refuse(refusal.status, format_args!("{}", refusal.log)));
        }
    };
    options.log("")?;
    place.put(Module::load(machine, &context, code)?.handle())
}
