//! One file per verb.

pub(crate) mod apply;
pub(crate) mod detect;
pub(crate) mod ops;
