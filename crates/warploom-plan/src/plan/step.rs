//! What a plan does, one thing after the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warploom_kernels::Dims;
use warploom_kernels::fuse::{Halo, Part};

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
        /// The kind of memory they are staged in on the way, if any.
        staging: Option<String>,
        /// Do they become pairs of `f32`, or numbers of 64 bits again? Some devices know no `f64`.
        pairs: bool,
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
        /// The values they are given, in the order of the program's inputs.
        reads: Vec<String>,
        /// The values they leave, in the order of the program's outputs.
        gives: Vec<String>,
        /// Launches, or passes of the processor.
        passes: u32,
        /// What of it runs on the host although it is on a device, with copies there and back.
        detours: Vec<String>,
        /// Operations that share a pass, and why others do not.
        fused: Vec<String>,
        /// Results that are written over what they are made of.
        in_place: Vec<InPlace>,
        /// Bytes of memory that only they use.
        scratch: u64,
        /// Bytes that loading the program takes, for all records: weights and tables.
        loaded: u64,
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
        /// What it is given, in the order of the program's inputs: images are cut, numbers go with
        /// every tile.
        reads: Vec<String>,
        /// The images that are put together, in the order of the program's outputs.
        gives: Vec<String>,
        /// How the images are cut.
        tiles: Tiles,
        /// Do numbers of 64 bits become pairs of `f32` on the device, and numbers again after it?
        pairs: bool,
        /// Launches per tile.
        passes: u32,
        /// What of it runs on the host although it is on a device, with copies there and back.
        detours: Vec<String>,
        /// Operations that share a pass, and why others do not.
        fused: Vec<String>,
        /// Bytes of memory that only they use, at most.
        scratch: u64,
        /// Bytes that loading the programs of all sizes of tiles takes: weights and tables.
        loaded: u64,
        /// Bytes copied in all, up and down.
        copied: u64,
        /// Bytes read and written on the device, in all.
        traffic: u64,
        /// Seconds it should take.
        seconds: f64,
    },
}

/// A result that is written over a value that nobody reads any more: both lie in the same place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InPlace {
    /// The result.
    pub value: String,
    /// What it is written over.
    pub over: String,
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

impl Tiles {
    /// The tiles of images of these extents, in the order in which they are worked on.
    pub fn parts(&self, dims: Dims) -> Vec<Part> {
        let halo = Halo {
            reach: self.reach,
            grain: self.grain,
        };
        halo.parts(dims, self.extents)
    }
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

    /// The values it is given, in the order of its program's inputs.
    pub fn reads(&self) -> &[String] {
        match self {
            Self::Copy { value, .. } => std::slice::from_ref(value),
            Self::Run { reads, .. } | Self::Tiled { reads, .. } => reads,
        }
    }

    /// The values it leaves, in the order of its program's outputs.
    pub fn gives(&self) -> &[String] {
        match self {
            Self::Copy { value, .. } => std::slice::from_ref(value),
            Self::Run { gives, .. } | Self::Tiled { gives, .. } => gives,
        }
    }

    /// The results it writes over what they are made of.
    pub fn in_place(&self) -> &[InPlace] {
        match self {
            Self::Run { in_place, .. } => in_place,
            Self::Copy { .. } | Self::Tiled { .. } => &[],
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
    pub params: BTreeMap<String, String>,
    /// Parameters that earlier operations compute.
    pub computed: Vec<PlanComputed>,
    /// The values it reads.
    pub reads: Vec<String>,
    /// What it gives.
    pub gives: String,
    /// The kinds of memory it reads in and leaves its result in. Where a value is elsewhere, a copy
    /// before it, which is a step of its own, brings it.
    pub kinds: Kinds,
}

/// The kinds of memory of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Kinds {
    /// Of each value it reads, in order.
    pub reads: Vec<String>,
    /// Of its result.
    pub gives: String,
    /// Who said so.
    pub by: KindsBy,
}

/// Who says in which memory an operation works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindsBy {
    /// The operation: only the processor can do it.
    Operation,
    /// The pipeline, its step, or its item of a chain.
    User,
    /// Nobody: it is where the rest of the pipeline runs, or where it had to go for tiles.
    Inferred,
}

impl KindsBy {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::User => "user",
            Self::Inferred => "inferred",
        }
    }
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
