//! Bind groups that are kept, because making one costs several times what a launch costs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// More than any pipeline uses; when it is full, all are forgotten.
const MOST: usize = 4096;

/// A slice of a buffer as a program sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    pub(crate) id: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// The groups of one opened device. A group keeps its buffers' memory, so it is forgotten with the
/// first of them that is dropped.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    known: Mutex<HashMap<Key, wgpu::BindGroup>>,
}

/// Program, feed, and three words for each slice.
type Key = Box<[u64]>;

/// The key's words before the slices.
const HEAD: usize = 2;
/// The key's words for one slice, of which the first is the buffer.
const EACH: usize = 3;

impl Groups {
    pub(crate) fn key(program: u64, feed: u64, bindings: &[Binding<'_>]) -> Vec<u64> {
        let mut key = Vec::with_capacity(HEAD + EACH * bindings.len());
        key.extend([program, feed]);
        for binding in bindings {
            key.extend([binding.id, binding.start, binding.len]);
        }
        key
    }

    pub(crate) fn find(&self, key: &[u64]) -> Option<wgpu::BindGroup> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).cloned()
    }

    pub(crate) fn keep(&self, key: Vec<u64>, group: &wgpu::BindGroup) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key.into(), group.clone());
    }

    /// The buffer is going away.
    pub(crate) fn forget(&self, buffer: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|key, _| key[HEAD..].iter().step_by(EACH).all(|id| *id != buffer));
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.lock().unwrap().is_empty()
    }
}
