//! wgpu's errors, which arrive through scopes, callbacks and panics, as results.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wgpu::ErrorFilter;

/// Runs `f` and returns the first error wgpu reports while it runs, running out of memory before
/// any consequence of it.
pub(crate) fn scoped<T>(device: &wgpu::Device, f: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
    let internal = device.push_error_scope(ErrorFilter::Internal);
    let validation = device.push_error_scope(ErrorFilter::Validation);
    let memory = device.push_error_scope(ErrorFilter::OutOfMemory);
    let value = f();
    // Scopes are popped in reverse order. The futures are ready at once: the pop has happened.
    let memory = pollster::block_on(memory.pop());
    let validation = pollster::block_on(validation.pop());
    let internal = pollster::block_on(internal.pop());
    match memory.or(validation).or(internal) {
        Some(error) => Err(error),
        None => Ok(value),
    }
}

/// An error without wgpu's heading, which says nothing.
pub(crate) fn text(error: &wgpu::Error) -> String {
    let text = error.to_string();
    let text = text.trim();
    let body = text.strip_prefix("Validation Error").unwrap_or(text).trim();
    let body = body.strip_prefix("Caused by:").unwrap_or(body);
    body.trim().to_owned()
}

/// Lets wgpu notice what is done. The text is a panic's: wgpu panics here when the device is lost.
pub(crate) fn poll(device: &wgpu::Device) -> Result<(), String> {
    let polled = catch_unwind(AssertUnwindSafe(|| device.poll(wgpu::PollType::Poll)));
    match polled {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(text.unwrap_or("the device was lost").to_owned())
        }
    }
}
