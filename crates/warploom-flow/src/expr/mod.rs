//! Expressions: a typed DAG in which equal terms are one node.
//!
//! A [`Graph`] is where expressions are built; [`Ex`] is a handle to one of them, with the usual
//! operators, so that an operation reads like its formula. A [`Dag`] is the finished thing: plain
//! data, compact, in an order in which every node follows its operands.
//!
//! The meaning of a node is exact: one IEEE operation in the type of its operands, nothing
//! contracted or reassociated. That is what makes results the same bits on every strict backend.

mod dag;
pub mod datum;
mod elementary;
mod eval;
mod fold;
mod graph;
mod node;
mod operators;

pub use dag::{Dag, Output};
pub use datum::Datum;
pub use eval::{Evaluator, Pixels, Source};
pub use graph::{Ex, Graph};
pub use node::{Bin, Id, Node, Ty, Un};
