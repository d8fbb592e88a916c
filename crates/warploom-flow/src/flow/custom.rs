//! Operations that somebody else wrote.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use warploom_core::Element;

use super::value::ValueKind;

/// What an operation of one's own computes, in Rust: the processor runs this, and every other
/// device is held against it.
pub trait CustomOp: fmt::Debug + Send + Sync + Any {
    /// What people call it.
    fn name(&self) -> &str;

    /// Computes every output from the inputs, which are in the node's order.
    fn run(&self, inputs: &[CustomInput<'_>], outputs: &mut [CustomOutput<'_>]);
}

/// An operation of one's own in a flow. Two are equal when they are the same one.
#[derive(Clone)]
pub struct Custom(Arc<dyn CustomOp>);

impl Custom {
    /// This operation.
    pub fn new(op: impl CustomOp) -> Self {
        Self(Arc::new(op))
    }

    /// The operation.
    pub fn op(&self) -> &dyn CustomOp {
        &*self.0
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Custom").field(&self.0.name()).finish()
    }
}

/// A value that is read.
#[derive(Clone, Copy, Debug)]
pub struct CustomInput<'a> {
    /// Type and extents.
    pub kind: ValueKind,
    bytes: &'a [u8],
}

impl<'a> CustomInput<'a> {
    /// A value of `kind` in these bytes, which may be more than it needs.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn new(kind: ValueKind, bytes: &'a [u8]) -> Self {
        let bytes = &bytes[..length(&kind)];
        Self { kind, bytes }
    }

    /// Its elements in C order.
    ///
    /// # Panics
    /// When they are of another type.
    pub fn elements<T: Element>(&self) -> &'a [T] {
        assert_eq!(T::DTYPE, self.kind.dtype(), "the value's own type");
        bytemuck::cast_slice(self.bytes)
    }
}

/// A value that is written.
#[derive(Debug)]
pub struct CustomOutput<'a> {
    /// Type and extents.
    pub kind: ValueKind,
    bytes: &'a mut [u8],
}

impl<'a> CustomOutput<'a> {
    /// A value of `kind` in these bytes, which may be more than it needs.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn new(kind: ValueKind, bytes: &'a mut [u8]) -> Self {
        let bytes = &mut bytes[..length(&kind)];
        Self { kind, bytes }
    }

    /// Its elements in C order.
    ///
    /// # Panics
    /// When they are of another type.
    pub fn elements<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(T::DTYPE, self.kind.dtype(), "the value's own type");
        bytemuck::cast_slice_mut(self.bytes)
    }
}

fn length(kind: &ValueKind) -> usize {
    usize::try_from(kind.bytes()).expect("a value fits the host")
}
