//! What flows along a chain, as types.

use std::marker::PhantomData;

use warploom_core::{DType, Element, MemoryKind, MemoryType};
use warploom_kernels::op::ValueType;

/// An image of elements `T` in memory `M`. It is a type only: no pixel is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array<T, M>(PhantomData<fn() -> (T, M)>);

/// Numbers that a step computed, in memory `M`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers<M>(PhantomData<fn() -> M>);

/// A table that a step made, in memory `M`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table<M>(PhantomData<fn() -> M>);

/// What a type says of a value, to hold the real one against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// An image of these elements.
    Image(DType),
    /// Numbers.
    Numbers,
    /// A table.
    Table,
}

impl Expected {
    /// Is the value what the type says?
    pub(crate) fn is(self, value: &ValueType) -> bool {
        match (self, value) {
            (Self::Image(dtype), ValueType::Image(image)) => image.dtype == dtype,
            (Self::Numbers, ValueType::Scalars { .. }) | (Self::Table, ValueType::Table { .. }) => {
                true
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Image(dtype) => write!(f, "an image of {dtype}"),
            Self::Numbers => f.write_str("numbers"),
            Self::Table => f.write_str("a table"),
        }
    }
}

/// A type that stands for a value of a chain.
pub trait Flowing {
    /// The memory it is in.
    const MEMORY: MemoryKind;
    /// What the plan must find it to be.
    const EXPECTED: Expected;
}

impl<T: Element, M: MemoryType> Flowing for Array<T, M> {
    const MEMORY: MemoryKind = M::KIND;
    const EXPECTED: Expected = Expected::Image(T::DTYPE);
}

impl<M: MemoryType> Flowing for Numbers<M> {
    const MEMORY: MemoryKind = M::KIND;
    const EXPECTED: Expected = Expected::Numbers;
}

impl<M: MemoryType> Flowing for Table<M> {
    const MEMORY: MemoryKind = M::KIND;
    const EXPECTED: Expected = Expected::Table;
}

/// A value that the next step takes as it is: only the very same type does.
#[diagnostic::on_unimplemented(
    message = "a step that takes `{In}` cannot follow one that gives `{Self}`",
    label = "this step takes `{In}`",
    note = "`.to::<Memory>()` goes on in other memory, `.then(name, op::cast::<Element, _, _>())` with other elements"
)]
pub trait FlowsInto<In> {}

impl<V> FlowsInto<V> for V {}

/// Nothing is ever of this type. Without a second candidate the compiler would settle on the first
/// before it knows what the step takes, and then speak of a mismatch inside the trait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(hidden)]
pub struct Never<V>(PhantomData<fn() -> V>);

#[doc(hidden)]
impl<V> FlowsInto<Never<V>> for V {}

/// An element type of images that are worked on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element type of images that operations take",
    note = "they take u8, u16, i16, i32, u32, f32 and f64"
)]
pub trait Pixel: Element {
    /// What formulas of it are computed in: `f64` of `f64`, else `f32`.
    type Real: Pixel;
}

/// An element type of label images.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot number objects",
    note = "labels are whole numbers: u8, u16, i16, i32 or u32"
)]
pub trait Whole: Pixel {}

/// What formulas of two element types are computed in: `f64` if one is `f64`, else `f32`.
pub trait RealWith<U>: Pixel {
    /// That type.
    type Real: Pixel;
}

macro_rules! pixels {
    ($($pixel:ident $real:ident,)*) => {
        $(
            impl Pixel for $pixel {
                type Real = $real;
            }
            impl<U: Pixel> RealWith<U> for $pixel
            where
                $real: Wider<U::Real>,
            {
                type Real = <$real as Wider<U::Real>>::Of;
            }
        )*
    };
}

/// The wider of two real types.
pub trait Wider<U> {
    /// That type.
    type Of: Pixel;
}

impl Wider<f32> for f32 {
    type Of = f32;
}
impl<U> Wider<U> for f64 {
    type Of = f64;
}
impl Wider<f64> for f32 {
    type Of = f64;
}

pixels! {
    u8 f32,
    u16 f32,
    i16 f32,
    i32 f32,
    u32 f32,
    f32 f32,
    f64 f64,
}

impl Whole for u8 {}
impl Whole for u16 {}
impl Whole for i16 {}
impl Whole for i32 {}
impl Whole for u32 {}
