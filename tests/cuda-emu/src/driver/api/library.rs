//! Libraries: code that belongs to no context.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::driver::call::{Call, calls};
use crate::driver::current;
use crate::driver::ffi::{CUdevice, Handle, In, Out, Text};
use crate::driver::function::Function;
use crate::driver::image::{self, JitOptions};
use crate::driver::library::Library;
use crate::driver::status::{Result, Status};

calls! {
    /// Loads PTX.
    fn cuLibraryLoadData(
        library: Out<Handle>,
        image: In<u8>,
        options: In<c_uint>,
        values: *mut usize,
        count: c_uint,
        _library_options: In<c_uint>,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) |call| {
        load(call, library, image, JitOptions { count, options, values })
    }

    /// Loads PTX from a file.
    fn cuLibraryLoadFromFile(
        library: Out<Handle>,
        path: Text,
        options: In<c_uint>,
        values: *mut usize,
        count: c_uint,
        _library_options: In<c_uint>,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) |call| {
        call.machine()?;
        let mut image = std::fs::read(path.read()?).map_err(|_| Status::FILE_NOT_FOUND)?;
        image.push(0);
        load(call, library, In::new(image.as_ptr()), JitOptions { count, options, values })
    }

    /// Ends a library.
    fn cuLibraryUnload(library: Handle) |call| {
        let machine = call.machine()?;
        machine.libraries.remove(library)?.unload(machine);
        Ok(())
    }

    /// A kernel, which can be launched in any context.
    fn cuLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: Text) |call| {
        let machine = call.machine()?;
        let library = machine.libraries.get(library)?;
        kernel.put(library.kernel(machine, &name.read()?)?)
    }

    /// The library in the current context.
    fn cuLibraryGetModule(module: Out<Handle>, library: Handle) |call| {
        let context = call.context()?;
        let machine = call.machine()?;
        let library = machine.libraries.get(library)?;
        module.put(library.module(machine, &context)?.handle())
    }

    /// A variable in the current context.
    fn cuLibraryGetGlobal(
        address: Out<u64>,
        bytes: Out<usize>,
        library: Handle,
        name: Text,
    ) |call| {
        let context = call.context()?;
        let machine = call.machine()?;
        let module = machine.libraries.get(library)?.module(machine, &context)?;
        let (base, size) = module.variable(&name.read()?)?;
        address.put_if_wanted(base);
        bytes.put_if_wanted(usize::try_from(size).unwrap_or(usize::MAX));
        Ok(())
    }

    /// A kernel in the current context.
    fn cuKernelGetFunction(function: Out<Handle>, kernel: Handle) |call| {
        function.put(in_context(call, kernel)?.handle())
    }

    /// A property of a kernel. The device must be that of the current context.
    fn cuKernelGetAttribute(
        value: Out<c_int>,
        attribute: c_uint,
        kernel: Handle,
        device: CUdevice,
    ) |call| {
        value.put(on_device(call, kernel, device)?.attribute(attribute)?)
    }

    /// Sets one. The device must be that of the current context.
    fn cuKernelSetAttribute(
        attribute: c_uint,
        value: c_int,
        kernel: Handle,
        device: CUdevice,
    ) |call| {
        on_device(call, kernel, device)?.set_attribute(attribute, value)
    }
}

fn load(call: Call, place: Out<Handle>, image: In<u8>, options: JitOptions) -> Result {
    let machine = call.machine()?;
    place.wanted()?;
    options.check()?;
    // Without a context, the first device decides what is taken.
    let current = current::context();
    let device = current
        .as_ref()
        .map_or(&machine.devices[0], |context| context.device());
    let code = match image::compile(machine.plan, device, image) {
        Ok(code) => code,
        Err(refusal) => {
            options.log(&refusal.log)?;
            return Err(call.refuse(refusal.status, format_args!("{}", refusal.log)));
        }
    };
    options.log("")?;
    place.put(Library::new(machine, code).handle())
}

fn in_context(call: Call, kernel: Handle) -> Result<Arc<Function>> {
    let context = call.context()?;
    let machine = call.machine()?;
    machine.kernels.get(kernel)?.function(machine, &context)
}

fn on_device(call: Call, kernel: Handle, device: CUdevice) -> Result<Arc<Function>> {
    let asked = call.device(device)?;
    if call.context()?.device().index() != asked.index() {
        let text = format_args!("kernels of devices without a current context");
        return Err(call.refuse(Status::NOT_SUPPORTED, text));
    }
    in_context(call, kernel)
}
