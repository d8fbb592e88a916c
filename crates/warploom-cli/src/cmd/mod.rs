//! One file per verb.

pub(crate) mod apply;
pub(crate) mod calibrate;
pub(crate) mod detect;
pub(crate) mod explain;
pub(crate) mod ops;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod worker;
