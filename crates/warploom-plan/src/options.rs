//! What the caller decides: budgets, policies, and what was measured of the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warploom_kernels::fuse::Machine;

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

/// What was measured of one device.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Speed {
    /// Its memory and arithmetic.
    pub machine: Machine,
    /// Bytes a second between host and device, either way.
    pub link: f64,
    /// Seconds that any launch costs.
    pub launch: f64,
}

impl Speed {
    /// What a device of this sort is taken for until it was measured: orders of magnitude, enough
    /// to prefer a card to the processor for large images and not for small ones.
    pub fn guess(discrete: bool, software: bool) -> Self {
        let machine = |bytes_per_second, operations_per_second| Machine {
            bytes_per_second,
            operations_per_second,
        };
        if software {
            Self {
                machine: machine(12e9, 25e9),
                link: 8e9,
                launch: 2e-6,
            }
        } else if discrete {
            Self {
                machine: machine(400e9, 5e12),
                link: 12e9,
                launch: 8e-6,
            }
        } else {
            Self {
                machine: machine(60e9, 1e12),
                link: 20e9,
                launch: 8e-6,
            }
        }
    }
}
