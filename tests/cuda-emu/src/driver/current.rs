//! What each thread has: a stack of contexts, default streams, and whether it is in a callback.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use super::context::Context;
use super::ffi::Handle;
use super::lane::Kind;
use super::status::{Result, Status};
use super::stream::Stream;

thread_local! {
    static STACK: RefCell<Vec<Arc<Context>>> = const { RefCell::new(Vec::new()) };
    static STREAMS: RefCell<HashMap<Handle, Arc<Stream>>> = RefCell::default();
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// The context calls of this thread work in, ended or not.
pub(crate) fn context() -> Option<Arc<Context>> {
    // A thread that is ending has none any more.
    STACK
        .try_with(|stack| stack.borrow().last().map(Arc::clone))
        .ok()?
}

/// Puts a context on top.
pub(crate) fn push(context: Arc<Context>) -> Result {
    let pushed = STACK.try_with(|stack| stack.borrow_mut().push(context));
    pushed.map_err(|_| Status::INVALID_CONTEXT)
}

/// Takes the top off.
pub(crate) fn pop() -> Option<Arc<Context>> {
    STACK.try_with(|stack| stack.borrow_mut().pop()).ok()?
}

/// Replaces the top; without a context, only takes it off.
pub(crate) fn set(context: Option<Arc<Context>>) -> Result {
    pop();
    context.map_or(Ok(()), push)
}

/// The default stream of this thread in a context.
pub(crate) fn thread_stream(context: &Arc<Context>) -> Result<Arc<Stream>> {
    let found = STREAMS.try_with(|streams| {
        let mut streams = streams.borrow_mut();
        streams.retain(|_, stream| stream.context().check_open().is_ok());
        let stream = streams
            .entry(context.handle())
            .or_insert_with(|| Stream::new(context, Kind::Blocking, 0));
        Arc::clone(stream)
    });
    found.map_err(|_| Status::INVALID_CONTEXT)
}

/// Whether this thread runs a host function right now, which must not call the driver.
pub(crate) fn in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Runs a host function.
pub(crate) fn callback(act: impl FnOnce()) {
    IN_CALLBACK.set(true);
    act();
    IN_CALLBACK.set(false);
}
