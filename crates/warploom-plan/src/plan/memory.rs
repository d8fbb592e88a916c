//! Where a plan's bytes are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Is it for tiles alone? On the processor whole images are in a pool of the same memory beside it.
    pub tiles: bool,
    /// The most the plan may use; nothing when nobody knows.
    pub budget: Option<u64>,
    /// Bytes of one record in flight. Each is an allocation of its own.
    pub slot: u64,
    /// The least that any layout could need for one record in flight.
    pub bound: u64,
    /// Bytes that all records share: one more allocation.
    pub shared: u64,
    /// What all records share, and where in that allocation it lies.
    pub constants: Vec<Lodging>,
    /// Bytes that loading the programs takes: their weights and tables.
    pub loaded: u64,
    /// Bytes in all: slots times depth, what is shared and what is loaded.
    pub total: u64,
    /// The step at which it is fullest, from 1, and of which variant.
    pub fullest: Option<Peak>,
    /// The most bytes that live at each step, one list per variant.
    pub live: Vec<Vec<u64>>,
    /// What lies where in a slot, one list per variant.
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

/// What a place in a pool is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A value.
    Value,
    /// A value on its way between host and device.
    Staging,
    /// A tile of a value.
    Tile,
    /// Memory that only one step's program uses; it bears the name of the step's first operation.
    Scratch,
}

/// A place in a pool. Two that overlap are never needed at the same time: a step's passes come one
/// after the other, so what is written late may lie where something was read early. The one exception
/// is a result that its step writes [over](super::PlanStep::in_place) what it is made of: the pass that
/// reads the one writes the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lodging {
    /// Whose bytes.
    pub value: String,
    /// What for.
    pub role: Role,
    /// Where they start.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// From this step on, counted from 1.
    pub first: u32,
    /// Up to and with this one.
    pub last: u32,
    /// In the first step, from this pass of it on, counted from 1.
    pub first_pass: u32,
    /// In the last step, up to and with this pass of it.
    pub last_pass: u32,
}

impl Lodging {
    /// May both be needed at the same time?
    pub fn meets(&self, other: &Self) -> bool {
        let begins = |of: &Self| (of.first, of.first_pass);
        let ends = |of: &Self| (of.last, of.last_pass);
        begins(self) <= ends(other) && begins(other) <= ends(self)
    }
}

impl Pool {
    /// Where something lies at a step (from 1) of a variant: in the slot, or, for what all records
    /// share, in the shared allocation.
    pub fn lodging(&self, variant: usize, step: u32, role: Role, value: &str) -> Option<&Lodging> {
        let here = |lodging: &&Lodging| {
            let now = lodging.first <= step && step <= lodging.last;
            now && lodging.role == role && lodging.value == value
        };
        self.layout.get(variant)?.iter().find(here)
    }

    /// Where something that all records share lies in the shared allocation.
    pub fn constant(&self, name: &str) -> Option<&Lodging> {
        self.constants.iter().find(|lodging| lodging.value == name)
    }
}
