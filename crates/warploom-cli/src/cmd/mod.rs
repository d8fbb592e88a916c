//! One file per verb.

pub(crate) mod detect;
pub(crate) mod ops;
