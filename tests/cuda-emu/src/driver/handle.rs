//! Objects that callers hold by number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::ffi::Handle;
use super::status::{Result, Status};

/// The next number. Small ones mean something to CUDA: 1 and 2 are streams.
static NEXT: AtomicUsize = AtomicUsize::new(0x1000);

/// A number nobody had before.
pub(crate) fn fresh() -> Handle {
    // Sixteen apart, to look like addresses to callers that use low bits for something else.
    Handle(NEXT.fetch_add(16, Ordering::Relaxed))
}

/// All living objects of one sort.
///
/// A handle that was destroyed, or belongs to an object of another sort, is refused, where a driver
/// would follow a pointer into freed memory.
#[derive(Debug)]
pub(crate) struct Table<T>(RwLock<HashMap<Handle, Arc<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Table<T> {
    /// Adds an object under a number made by [`fresh`].
    pub(crate) fn insert(&self, handle: Handle, object: &Arc<T>) {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(handle, Arc::clone(object));
    }

    pub(crate) fn get(&self, handle: Handle) -> Result<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .get(&handle)
            .map(Arc::clone)
            .ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.remove(&handle).ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.values().map(Arc::clone).collect()
    }

    /// Takes out all objects for which `gone` holds.
    pub(crate) fn remove_all(&self, gone: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let found = objects.extract_if(|_, object| gone(object));
        found.map(|(_, object)| object).collect()
    }
}
