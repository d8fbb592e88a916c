//! What the caller decides: budgets, policies, and what was measured of the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warploom_kernels::fuse::Speed;

use crate::pipeline::Policy;

/// What a compilation may be told beside pipeline, records and survey.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Options {
    /// Bytes the plan may use on its card; less than the card has.
    pub budget: Option<u64>,
    /// Records in flight; as many as pay and fit when it is not given.
    pub depth: Option<u32>,
    /// Which card; the pipeline's own wish when it is not given.
    pub placement: Option<Policy>,
    /// Only these cards or faces; empty for all.
    pub devices: Vec<String>,
    /// Pipelines that are on each card already, by its name.
    pub loads: BTreeMap<String, u32>,
    /// What was measured, by the name of the face (`cuda:0`).
    pub calibration: BTreeMap<String, Speed>,
}
