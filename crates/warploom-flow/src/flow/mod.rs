//! What an operation is made of: primitives over typed values.
//!
//! A [`Flow`] is a DAG in which each node is a [`Prim`], a primitive that every backend knows.
//! Operations of the catalogue lower into flows; fusion cuts a flow into groups; a group becomes
//! launches on a GPU or one call of the CPU engine. It is plain data and knows no device.

mod builder;
mod custom;
mod footprint;
mod number;
mod prim;
mod taps;
mod value;

pub use builder::Flow;
pub use custom::{Custom, CustomInput, CustomOp, CustomOutput};
pub use footprint::{Footprint, Reach};
pub use number::{Number, Numbers};
pub use prim::real;
pub use prim::{Combine, Connectivity, Prim, Project, ThresholdMethod, Tile};
pub use taps::{Taps, Weights};
pub use value::{Node, NodeId, Value, ValueId, ValueKind};
