//! The plan: everything that was decided, as plain data.

mod memory;
mod pace;
mod rebuild;
mod step;
mod value;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use memory::{Lodging, Memory, Peak, Pool, Role};
pub use pace::slots_that_pay;
pub(crate) use pace::{is_straight, stage_seconds};
pub use step::{CopyReason, InPlace, Kinds, KindsBy, PlanComputed, PlanOp, PlanStep, Tiles};
pub use value::{Form, PlanValue};

use warploom_core::DType;

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{Foreach, Math};

/// The version of plans this crate writes and reads.
pub const VERSION: u32 = 2;

/// Everything that was decided before anything ran.
///
/// Names stand for devices, kinds and types (`cuda:0`, `cuda.device`, `2048x2048 f32`), so that a
/// plan can be read by people, compared line by line and sent to another process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ExecutionPlan {
    /// The version of this format.
    pub version: u32,
    /// A fingerprint of everything below.
    pub hash: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// What the steps see of a record.
    pub foreach: Foreach,
    /// Which bits devices may give.
    pub math: Math,
    /// The card it was placed on.
    pub device: Placed,
    /// Further cards, when steps may be spread.
    pub others: Vec<Placed>,
    /// What a record looks like and how it is taken apart.
    pub record: Units,
    /// The images a unit consists of and the images all records share.
    pub sources: Vec<Source>,
    /// The work for one unit of a record, once for each branch.
    pub variants: Vec<Variant>,
    /// Where the bytes go.
    pub memory: Memory,
    /// What it should take.
    pub estimate: Estimate,
    /// Every decision and why.
    pub reasons: Vec<Reason>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
}

/// A card.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Placed {
    /// What users call it, `gpu0`.
    pub name: String,
    /// What other processes call it.
    pub key: String,
    /// What its driver calls it.
    pub label: String,
    /// The faces the plan uses.
    pub faces: Vec<String>,
}

/// How a record is taken apart: every variant runs once for each unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Units {
    /// The type of a record's elements.
    #[schemars(with = "String")]
    pub dtype: DType,
    /// Extents of one channel along z, y, x.
    pub dims: [u64; 3],
    /// Axes people see: 2 for planes, 3 for stacks.
    pub rank: u8,
    /// What its channels are called; empty when it has no such axis.
    pub channels: Vec<String>,
    /// Planes that are worked on one by one; 1 when a unit is all of a channel.
    pub planes: u64,
    /// Does every channel go through the one variant there is, one after the other? If not, a
    /// variant is of one channel, or its sources name theirs.
    pub each_channel: bool,
}

/// Something a pipeline is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The channel of the record it is.
    pub channel: Option<String>,
    /// The file, for what all records share.
    pub file: Option<String>,
    /// Its type.
    pub image: String,
    /// Its bytes.
    pub bytes: u64,
}

/// The work for one unit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// The channel it is for; all of them when there is none.
    pub channel: Option<String>,
    /// Everything that has a place in memory: sources, and what steps give to each other.
    pub values: Vec<PlanValue>,
    /// What is done, in order.
    pub steps: Vec<PlanStep>,
    /// What is written.
    pub outputs: Vec<Written>,
}

/// A result that leaves the plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// The step whose result it is.
    pub of: String,
    /// Which value.
    pub value: String,
    /// What it is, of one unit.
    pub gives: String,
    /// Units whose results make one: planes are stacked, tables and numbers follow each other.
    pub planes: u64,
    /// What it is, of a record.
    pub whole: String,
    /// Where it goes; nowhere when the caller takes it.
    pub file: Option<String>,
}

/// What it should take.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Units in a record.
    pub units: u64,
    /// Seconds for one record, one thing after the other.
    pub seconds: f64,
    /// Seconds per record when copies and work overlap, as far as they do.
    pub paced: f64,
    /// What limits the rate.
    pub limit: String,
    /// Was the device measured, or is this a guess?
    pub measured: bool,
}

/// A decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What was decided.
    pub about: String,
    /// Why.
    pub why: String,
}

impl ExecutionPlan {
    /// The same with its fingerprint.
    pub(crate) fn sealed(mut self) -> Self {
        self.hash = self.fingerprint();
        self
    }

    /// A fingerprint of everything but itself: FNV-1a of the canonical JSON, 128 bits wide, enough
    /// to tell plans apart; nobody is meant to forge one.
    pub fn fingerprint(&self) -> String {
        let mut bare = self.clone();
        bare.hash = String::new();
        let text = serde_json::to_string(&bare).unwrap_or_default();
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for byte in text.bytes() {
            hash ^= u128::from(byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        format!("{hash:032x}")
    }

    /// As JSON, for files and other processes.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads a plan that [`ExecutionPlan::to_json`] wrote.
    ///
    /// # Errors
    /// When it is no plan, of another version, or was changed by hand.
    pub fn from_json(text: &str) -> Result<Self, Box<Diagnostic>> {
        let refuse = |message: String| {
            let finding = Diagnostic::error(Problem::PlanVersion, message);
            Box::new(finding.help("compile the pipeline again"))
        };
        let version = serde_json::from_str::<serde_json::Value>(text)
            .map_err(|error| refuse(format!("this is no plan: {error}")))?;
        let version = version.get("version").and_then(serde_json::Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            let said = version.map_or("no version".to_owned(), |v| format!("version {v}"));
            return Err(refuse(format!(
                "the plan has {said}; version {VERSION} is read here"
            )));
        }
        let plan: Self = serde_json::from_str(text)
            .map_err(|error| refuse(format!("this is no plan: {error}")))?;
        if plan.hash != plan.fingerprint() {
            return Err(refuse("the plan was changed after it was made".to_owned()));
        }
        Ok(plan)
    }

    /// The format as a JSON schema.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(ExecutionPlan).to_value()
    }
}
