//! The plan: everything that was decided, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{Foreach, Math};

/// The version of plans this crate writes and reads.
pub const VERSION: u32 = 1;

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
    /// The images a record consists of and the images all records share.
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
    /// What is done, in order.
    pub steps: Vec<PlanStep>,
    /// What is written.
    pub outputs: Vec<Written>,
}

/// One thing that is done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "does", rename_all = "lowercase")]
pub enum PlanStep {
    /// Bytes change their place.
    Copy {
        /// Which value.
        value: String,
        /// The kind of memory they leave.
        from: String,
        /// The kind of memory they reach.
        to: String,
        /// The face that copies.
        device: String,
        /// How many.
        bytes: u64,
        /// Seconds it should take.
        seconds: f64,
        /// Why.
        why: CopyReason,
    },
    /// Operations run, fused as far as it pays.
    Run {
        /// The face they run on.
        device: String,
        /// The kind of memory they work in.
        memory: String,
        /// The operations, in order.
        ops: Vec<PlanOp>,
        /// Launches, or passes of the processor.
        passes: u32,
        /// Operations that share a pass, and why others do not.
        fused: Vec<String>,
        /// Bytes of memory that only they use.
        scratch: u64,
        /// Bytes they read and write.
        traffic: u64,
        /// Seconds it should take.
        seconds: f64,
    },
    /// Operations run on one tile after the other: each is copied to the device with what
    /// surrounds it, worked on, and its inner part copied back into the whole image on the host.
    Tiled {
        /// The face they run on.
        device: String,
        /// The kind of memory they work in.
        memory: String,
        /// The operations, in order.
        ops: Vec<PlanOp>,
        /// How the images are cut.
        tiles: Tiles,
        /// Launches per tile.
        passes: u32,
        /// Bytes of memory that only they use.
        scratch: u64,
        /// Bytes copied in all, up and down.
        copied: u64,
        /// Bytes read and written on the device, in all.
        traffic: u64,
        /// Seconds it should take.
        seconds: f64,
    },
}

/// How images are cut. A tile that starts at `s` along an axis reads from
/// `floor((s - reach) / grain) * grain` to its end plus `reach`, inside the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tiles {
    /// How many.
    pub count: u64,
    /// What one gives at most, along z, y, x.
    pub extents: [u64; 3],
    /// Pixels around it that it reads.
    pub reach: [u64; 3],
    /// What it reads starts at a multiple of this.
    pub grain: [u64; 3],
}

impl PlanStep {
    /// Seconds it should take.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Copy { seconds, .. }
            | Self::Run { seconds, .. }
            | Self::Tiled { seconds, .. } => *seconds,
        }
    }

    /// The operations it runs.
    pub fn ops(&self) -> &[PlanOp] {
        match self {
            Self::Copy { .. } => &[],
            Self::Run { ops, .. } | Self::Tiled { ops, .. } => ops,
        }
    }

    /// The face that does it.
    pub fn device(&self) -> &str {
        match self {
            Self::Copy { device, .. } | Self::Run { device, .. } | Self::Tiled { device, .. } => {
                device
            }
        }
    }
}

/// Why a value is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CopyReason {
    /// Records come from the host.
    Input,
    /// Results go to the host.
    Output,
    /// The next step works in other memory.
    Route,
    /// Once, before the first record.
    Constant,
}

/// An operation as it runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanOp {
    /// The step's name; with a position where a step has several operations.
    pub name: String,
    /// The operation.
    pub op: String,
    /// Its parameters, complete, as texts that read back to the same values.
    pub params: std::collections::BTreeMap<String, String>,
    /// Parameters that earlier operations compute.
    pub computed: Vec<PlanComputed>,
    /// The values it reads.
    pub reads: Vec<String>,
    /// What it gives.
    pub gives: String,
}

/// A parameter that an earlier operation computes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanComputed {
    /// Which parameter.
    pub param: String,
    /// The operation that computes it.
    pub from: String,
    /// Which of its numbers.
    pub index: u32,
}

/// A result that leaves the plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Which value.
    pub value: String,
    /// What it is.
    pub gives: String,
    /// Where it goes; nowhere when the caller takes it.
    pub file: Option<String>,
}

/// Where the bytes go.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Records in flight.
    pub depth: u32,
    /// Memory of each kind.
    pub pools: Vec<Pool>,
}

/// Memory of one kind on one device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// The kind.
    pub memory: String,
    /// The face it belongs to.
    pub device: String,
    /// The most the plan may use; nothing when nobody knows.
    pub budget: Option<u64>,
    /// Bytes of one record in flight.
    pub slot: u64,
    /// The least that any layout could need for one record in flight.
    pub bound: u64,
    /// Bytes that all records share.
    pub shared: u64,
    /// Bytes in all: slots times depth, and what is shared.
    pub total: u64,
    /// The step at which it is fullest, from 1, and of which variant.
    pub fullest: Option<Peak>,
    /// What lies where, one list per variant.
    pub layout: Vec<Vec<Lodging>>,
}

/// The fullest moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Of which variant, from 0.
    pub variant: u32,
    /// At which of its steps, from 1.
    pub step: u32,
    /// Bytes that live then.
    pub bytes: u64,
}

/// A value's place in a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lodging {
    /// Whose bytes.
    pub value: String,
    /// Where they start.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// From this step on.
    pub first: u32,
    /// Up to and with this one.
    pub last: u32,
}

/// What it should take.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Units in a record.
    pub units: u64,
    /// Seconds for one record, one thing after the other.
    pub seconds: f64,
    /// Seconds per record when copies and work overlap.
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
