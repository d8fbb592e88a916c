//! What the driver hands out.

/// A foreign handle: a context, stream, event, module, function or pinned address.
///
/// Who owns it and when it ends is the business of the type that holds it.
pub(crate) struct Foreign<T>(*mut T);

impl<T> Foreign<T> {
    /// Wraps what a driver call returned.
    pub(crate) fn new(raw: *mut T) -> Self {
        Self(raw)
    }

    /// For the next driver call.
    pub(crate) fn raw(self) -> *mut T {
        self.0
    }
}

// Not derived: that would ask `T` to be `Copy`.
impl<T> Clone for Foreign<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Foreign<T> {}

impl<T> std::fmt::Debug for Foreign<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

// SAFETY: the handle is a name, not a place this crate reads through. The driver's manual allows
// any handle on any thread on which its context is current, which every call here sees to.
unsafe impl<T> Send for Foreign<T> {}

// SAFETY: the driver API is thread-safe ("Difference between the driver and runtime APIs" and the
// notes on context management); concurrent calls on one handle are ordered inside the driver.
unsafe impl<T> Sync for Foreign<T> {}
