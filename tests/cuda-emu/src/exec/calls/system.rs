//! Functions that CUDA provides to kernels, with the signature of compiled functions.

use crate::engine::FaultKind;
use crate::exec::checks::{self, status};
use crate::exec::context::ThreadContext;
use crate::exec::printf;
use crate::exec::worker::Stop;

/// Longest text that is read for a message.
const LONGEST: u64 = 4096;

/// The parameter of `T` at `offset`.
unsafe fn param<T: Copy>(params: u64, offset: u64) -> T {
    let place = (params + offset) as *const T;
    // SAFETY: the caller vouches for the block of parameters.
    unsafe { place.read_unaligned() }
}

unsafe fn give<T>(returns: u64, value: T) {
    let place = returns as *mut T;
    // SAFETY: the caller vouches for the block of results.
    unsafe { place.write_unaligned(value) };
}

/// `int vprintf(const char *format, const void *arguments)`.
pub(crate) unsafe extern "C" fn vprintf(
    context: *const ThreadContext,
    params: u64,
    returns: u64,
) -> u32 {
    // SAFETY: compiled code passes on the context it was called with, which outlives the call.
    let context = unsafe { &*context };
    let worker = context.worker();
    // SAFETY: the declaration was checked to have two parameters of eight bytes.
    let format = unsafe { param(params, 0) };
    // SAFETY: likewise.
    let arguments = unsafe { param(params, 8) };
    match printf::format(worker, context, format, arguments) {
        Ok((text, count)) => {
            (worker.grid.launch.print)(&text);
            // SAFETY: the declaration was checked to have a result of four bytes.
            unsafe { give(returns, count) };
            0
        }
        Err(kind) => status(Err(worker.fault(context, context.line.get(), kind))),
    }
}

/// `void __assertfail(message, file, line, function, character size)`.
pub(crate) unsafe extern "C" fn assertfail(
    context: *const ThreadContext,
    params: u64,
    _returns: u64,
) -> u32 {
    // SAFETY: as in `vprintf`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let text = |offset| {
        // SAFETY: the declaration was checked to have parameters of 8, 8, 4, 8 and 8 bytes.
        let address = unsafe { param(params, offset) };
        checks::read_text(worker, context, address, LONGEST)
    };
    // SAFETY: likewise.
    let source_line = unsafe { param(params, 16) };
    let kind = text(0).and_then(|message| {
        Ok(FaultKind::Assert {
            message: message.into(),
            file: text(8)?.into(),
            source_line,
            function: text(24)?.into(),
        })
    });
    let kind = kind.unwrap_or_else(|fault| fault);
    status(Err(worker.fault(context, context.line.get(), kind)))
}

/// `void *malloc(size_t bytes)`.
pub(crate) unsafe extern "C" fn malloc(
    context: *const ThreadContext,
    params: u64,
    returns: u64,
) -> u32 {
    // SAFETY: as in `vprintf`.
    let context = unsafe { &*context };
    // SAFETY: the declaration was checked to have a parameter of eight bytes.
    let bytes = unsafe { param(params, 0) };
    let address = context.worker().grid.launch.memory.allocate(bytes);
    // SAFETY: and a result of eight bytes.
    unsafe { give(returns, address.unwrap_or(0)) };
    0
}

/// `void free(void *pointer)`.
pub(crate) unsafe extern "C" fn free(
    context: *const ThreadContext,
    params: u64,
    _returns: u64,
) -> u32 {
    // SAFETY: as in `vprintf`.
    let context = unsafe { &*context };
    let worker = context.worker();
    // SAFETY: the declaration was checked to have a parameter of eight bytes.
    let address = unsafe { param(params, 0) };
    if address == 0 {
        return 0;
    }
    let answer = worker.grid.launch.memory.release(address);
    // What was remembered about the region may no longer hold.
    worker.slots.forget();
    let answer = answer.map_err(|why| -> Stop {
        let kind = FaultKind::IllegalAddress {
            space: crate::engine::Space::Generic,
            address,
            bytes: 0,
            access: crate::engine::Access::Write,
            why,
        };
        worker.fault(context, context.line.get(), kind)
    });
    status(answer)
}
