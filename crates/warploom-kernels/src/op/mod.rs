//! The catalogue of operations: what each computes, takes and gives, as plain data; and calls of
//! them, checked before a pixel is touched.
//!
//! [`OpCall::new`] is the one way in. It refuses everything that makes no sense with an
//! [`OpError`], so whatever lowers a call may trust it.

mod binary;
mod call;
mod catalogue;
mod combine;
mod compare;
mod error;
mod filter;
mod fourier;
mod geometry;
mod given;
pub(crate) mod infer;
mod info;
mod label;
mod morphology;
mod normalize;
pub mod page;
mod param;
mod params;
mod pointwise;
mod rank;
mod reduce;
mod restore;
mod rule;
mod threshold;

pub use call::{OpCall, ValueType, image_type};
pub use catalogue::{find, ops};
pub use error::{MAX_ELEMENTS, OpError};
pub use given::{Given, GivenValue};
pub use info::{
    Backends, Bound, DTypeRule, Family, Gives, InputInfo, OpInfo, PIXELS, Ranks, Role, Rule,
    ScalarRule, ShapeRule, TableRule, Tolerance, Traffic, WHOLE,
};
pub use param::{Fallback, MAX_NUMBERS, ParamInfo, ParamKind, ParamValue, Span};
pub use params::Params;
