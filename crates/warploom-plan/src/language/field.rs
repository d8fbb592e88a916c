//! The fields of pipeline files: one list for the reader, the schema and the documentation, so that
//! none of them knows a field the others do not.

use crate::pipeline::{Foreach, Math, Policy};

/// What a field takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A text.
    Text,
    /// Yes or no.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A word, or an element type.
    DType(&'static [&'static str]),
    /// The name of a step, input or constant, or several.
    Names,
    /// Operations in a row.
    Chain,
    /// A table of parameters.
    Params,
    /// A table of texts by name.
    Texts,
    /// A table with these fields.
    Table(&'static [Field]),
    /// Tables by name, each with these fields.
    Tables(&'static [Field]),
    /// A list of tables with these fields.
    List(&'static [Field]),
    /// A table: `by`, and a chain for each value.
    Branch,
}

/// A field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Must it be there?
    pub needed: bool,
    /// What it means.
    pub doc: &'static str,
}

const fn field(name: &'static str, takes: Takes, doc: &'static str) -> Field {
    Field {
        name,
        takes,
        needed: false,
        doc,
    }
}

const fn needed(name: &'static str, takes: Takes, doc: &'static str) -> Field {
    Field {
        name,
        takes,
        needed: true,
        doc,
    }
}

/// The one thing that can be strict so far.
pub const STRICT: &[&str] = &["no-host-copy"];
/// What a step does: exactly one of these fields is there.
pub const WORK: &[&str] = &["op", "chain", "branch"];
/// The axes a step may branch by.
pub const BRANCH_AXES: &[&str] = &["channel"];
const DTYPES: &[&str] = &["operation", "input"];

/// Fields that say where work runs; pipelines, steps and items of chains have them.
const BACKEND: Field = field(
    "backend",
    Takes::Text,
    "the backend it runs through: `cpu`, `opencl`, `wgpu`, `cuda` or one of your own",
);
const MEMORY: Field = field(
    "memory",
    Takes::Text,
    "the kind of memory it works in: `host`, `cuda.device`, ..., or a name such as `numpy`, `cupy`, `torch`, `tensorflow`, `jax`, `pyclesperanto`",
);
const DEVICE: Field = field(
    "device",
    Takes::Text,
    "the card (`gpu0`, `cpu`) or the face of one (`cuda:0`) it runs on",
);
const DTYPE: Field = field(
    "dtype",
    Takes::DType(DTYPES),
    "the element type of results: `operation` (what the operation's page says), `input` (that of its first image) or a type; values are rounded and saturated, never stretched",
);

/// What a pipeline has.
pub const PIPELINE: &[Field] = &[
    field("name", Takes::Text, "what the pipeline is called"),
    field(
        "foreach",
        Takes::Word(Foreach::WORDS),
        "what the steps see of a record: `stack`, whole images, or `plane`, one plane at a time",
    ),
    BACKEND,
    MEMORY,
    DEVICE,
    field(
        "strict",
        Takes::Word(STRICT),
        "`no-host-copy` refuses plans in which a value travels through host memory between steps",
    ),
    field(
        "spread_steps",
        Takes::Flag,
        "may steps of one record run on several cards",
    ),
    field(
        "math",
        Takes::Word(Math::WORDS),
        "`strict`, the same bits on every strict device, or `fast`",
    ),
    DTYPE,
    field(
        "placement",
        Takes::Word(Policy::WORDS),
        "which card it goes to: the `first` that can, `spread` over all, the one with the most memory left (`fit`), or the one that is done first (`cost`)",
    ),
    field(
        "inputs",
        Takes::Tables(INPUT),
        "names for the images of a record; without it there is one, `image`",
    ),
    field(
        "constants",
        Takes::Texts,
        "images that all records share, by name, each with its file",
    ),
    needed("step", Takes::List(STEP), "the work"),
    field(
        "output",
        Takes::List(OUTPUT),
        "what is written; without it, the last step's result",
    ),
];

/// What a named input has.
pub const INPUT: &[Field] = &[field(
    "channel",
    Takes::Text,
    "the channel of the record that it is",
)];

/// What a step has, beside the parameters of its operation.
pub const STEP: &[Field] = &[
    field(
        "name",
        Takes::Text,
        "what other steps call it; without it, the name of its operation",
    ),
    field(
        "op",
        Takes::Text,
        "the operation; its parameters are fields of the step too",
    ),
    field("chain", Takes::Chain, "operations in a row"),
    field(
        "branch",
        Takes::Branch,
        "a chain for each value of an axis: `by = \"channel\"`, then one key per channel",
    ),
    field(
        "input",
        Takes::Names,
        "what it reads, or a list for operations of several images; without it, the step before it in the file, or the record",
    ),
    field(
        "params",
        Takes::Params,
        "parameters whose names are fields of steps",
    ),
    BACKEND,
    MEMORY,
    DEVICE,
    DTYPE,
];

/// What an item of a chain has, beside the parameters of its operation.
pub const ITEM: &[Field] = &[
    needed(
        "op",
        Takes::Text,
        "the operation; its parameters are fields of the item too",
    ),
    field(
        "params",
        Takes::Params,
        "parameters whose names are fields of items",
    ),
    BACKEND,
    MEMORY,
    DEVICE,
];

/// What an output has.
pub const OUTPUT: &[Field] = &[
    needed("of", Takes::Text, "the step whose result is written"),
    needed(
        "write",
        Takes::Text,
        "where to; `{record}` and `{channel}` stand for names of the record",
    ),
];
