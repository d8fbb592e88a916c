//! Functions that compiled code calls.

pub(crate) mod atomics;
pub(crate) mod control;
pub(crate) mod numbers;
pub(crate) mod system;
