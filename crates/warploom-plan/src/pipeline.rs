//! A pipeline as a value: what a file or a program asks for, nothing resolved yet.

use std::fmt;

use serde::{Deserialize, Serialize};
use warploom_core::DType;
use warploom_kernels::op::GivenValue;

use crate::diagnostic::{Diagnostic, Place};
use crate::language;

/// A value and where it was written. Two are equal when their values are.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct At<T> {
    /// What was written.
    pub value: T,
    /// Where; nowhere when a program made it.
    pub place: Option<Place>,
}

impl<T> At<T> {
    /// At this place.
    pub fn new(value: T, place: Place) -> Self {
        Self {
            value,
            place: Some(place),
        }
    }
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self { value, place: None }
    }
}

impl From<&str> for At<String> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: fmt::Display> fmt::Display for At<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Its words in pipeline files.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// What a word means.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

words! {
    /// What the steps see of a record.
    Foreach {
        /// Whole images, stacks as stacks.
        #[default]
        Stack = "stack",
        /// One plane at a time.
        Plane = "plane",
    }
}

words! {
    /// Which bits a device may give.
    Math {
        /// The same bits on every strict device.
        #[default]
        Strict = "strict",
        /// What is fastest, within the bound each operation states.
        Fast = "fast",
    }
}

words! {
    /// Which card a pipeline goes to.
    Policy {
        /// The first that can, whatever is on it.
        First = "first",
        /// The one with the smallest share of its capacity taken.
        #[default]
        Spread = "spread",
        /// The one with the most bytes left, of those that have a place left.
        Fit = "fit",
        /// The one that is done first with what is on it already, the processor included.
        Cost = "cost",
    }
}

/// The element type of what operations give.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum DTypePolicy {
    /// What the operation's page says.
    #[default]
    Operation,
    /// That of the operation's first image, rounded and saturated, never stretched.
    Input,
    /// This one, rounded and saturated, never stretched.
    Fixed(DType),
}

/// Where work is asked to run. Nothing asked means: where the rest of the pipeline runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Whereabouts {
    /// Through this backend.
    pub backend: Option<At<String>>,
    /// In this kind of memory, by any of its names.
    pub memory: Option<At<String>>,
    /// On this card or face.
    pub device: Option<At<String>>,
}

impl Whereabouts {
    /// Is nothing asked?
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// One image of a record, under a name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Input {
    /// How steps call it.
    pub name: At<String>,
    /// Which channel it is; nothing for records without channels.
    pub channel: Option<At<String>>,
}

/// An image that is the same for all records: a flat field, a point spread function.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// How steps call it.
    pub name: At<String>,
    /// The file it comes from.
    pub path: At<String>,
}

/// A parameter's value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Argument {
    /// Known now.
    Given(GivenValue),
    /// A number that an earlier step computes.
    Computed {
        /// Which step.
        from: At<String>,
        /// Which of its numbers: a name, or a position from 0.
        item: At<String>,
    },
}

/// An operation with what it is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpUse {
    /// Its name in the catalogue.
    pub op: At<String>,
    /// Its parameters, in order.
    pub arguments: Vec<(At<String>, At<Argument>)>,
    /// Where, if it is not where its step says.
    pub whereabouts: Whereabouts,
}

impl OpUse {
    /// Without parameters.
    pub fn new(op: impl Into<At<String>>) -> Self {
        Self {
            op: op.into(),
            arguments: Vec::new(),
            whereabouts: Whereabouts::default(),
        }
    }

    /// Through this backend, whatever its step says.
    #[must_use]
    pub fn backend(mut self, backend: &str) -> Self {
        self.whereabouts.backend = Some(backend.into());
        self
    }

    /// In this kind of memory, whatever its step says.
    #[must_use]
    pub fn memory(mut self, kind: &str) -> Self {
        self.whereabouts.memory = Some(kind.into());
        self
    }

    /// On this card or face, whatever its step says.
    #[must_use]
    pub fn device(mut self, device: &str) -> Self {
        self.whereabouts.device = Some(device.into());
        self
    }

    /// With one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<GivenValue>) -> Self {
        let value = Argument::Given(value.into());
        self.arguments.push((name.into(), value.into()));
        self
    }

    /// With one more parameter, a number that an earlier step computes.
    #[must_use]
    pub fn with_computed(mut self, name: &str, from: &str, item: &str) -> Self {
        let value = Argument::Computed {
            from: from.into(),
            item: item.into(),
        };
        self.arguments.push((name.into(), value.into()));
        self
    }
}

/// What a step does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Operations in a row, one at least; each reads what the one before it gives.
    Chain(Vec<OpUse>),
    /// A chain for each value of an axis.
    Branch {
        /// The axis; `channel` so far.
        by: At<String>,
        /// Values and chains; an empty chain passes the image on.
        chains: Vec<(At<String>, Vec<OpUse>)>,
    },
}

/// A named piece of work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    pub name: At<String>,
    /// What it reads; empty for: what the step before it in the file gives, or the record.
    pub inputs: Vec<At<String>>,
    /// What it does.
    pub work: Work,
    /// Where.
    pub whereabouts: Whereabouts,
    /// The element type of its result, if it is not the pipeline's policy's.
    pub dtype: Option<DTypePolicy>,
}

impl Step {
    /// A step of one operation.
    pub fn new(name: &str, op: OpUse) -> Self {
        Self::chain(name, [op])
    }

    /// A step of operations in a row.
    pub fn chain(name: &str, ops: impl IntoIterator<Item = OpUse>) -> Self {
        Self {
            name: name.into(),
            inputs: Vec::new(),
            work: Work::Chain(ops.into_iter().collect()),
            whereabouts: Whereabouts::default(),
            dtype: None,
        }
    }

    /// A step of a chain per channel.
    pub fn by_channel(
        name: &str,
        chains: impl IntoIterator<Item = (&'static str, Vec<OpUse>)>,
    ) -> Self {
        let chains = chains.into_iter().map(|(key, ops)| (key.into(), ops));
        Self {
            work: Work::Branch {
                by: "channel".into(),
                chains: chains.collect(),
            },
            ..Self::chain(name, [])
        }
    }

    /// Where it was written: its name, or else its first operation.
    pub fn place(&self) -> Option<Place> {
        let chains: Vec<&[OpUse]> = match &self.work {
            Work::Chain(ops) => vec![ops],
            Work::Branch { chains, .. } => chains.iter().map(|(_, ops)| ops.as_slice()).collect(),
        };
        let mut ops = chains.into_iter().flatten();
        self.name
            .place
            .or_else(|| ops.find_map(|used| used.op.place))
    }

    /// Reading these.
    #[must_use]
    pub fn reads<'a>(mut self, inputs: impl IntoIterator<Item = &'a str>) -> Self {
        self.inputs = inputs.into_iter().map(Into::into).collect();
        self
    }

    /// Through this backend.
    #[must_use]
    pub fn backend(mut self, backend: &str) -> Self {
        self.whereabouts.backend = Some(backend.into());
        self
    }

    /// In this kind of memory.
    #[must_use]
    pub fn memory(mut self, kind: &str) -> Self {
        self.whereabouts.memory = Some(kind.into());
        self
    }

    /// On this card or face.
    #[must_use]
    pub fn device(mut self, device: &str) -> Self {
        self.whereabouts.device = Some(device.into());
        self
    }

    /// Giving this element type.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(DTypePolicy::Fixed(dtype));
        self
    }
}

/// A result that is written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// Which step's.
    pub of: At<String>,
    /// Where to; `{record}` and `{channel}` stand for the record's name and channel.
    pub write: At<String>,
}

/// What to do with every record.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pipeline {
    /// Its name.
    pub name: At<String>,
    /// What the steps see of a record.
    pub foreach: Foreach,
    /// Where steps run that do not say it themselves.
    pub whereabouts: Whereabouts,
    /// Are copies through the host refused?
    pub no_host_copy: bool,
    /// May steps of one record run on several cards?
    pub spread_steps: bool,
    /// Which bits devices may give.
    pub math: Math,
    /// The element type of results.
    pub dtype: DTypePolicy,
    /// Which card it goes to, if the caller does not say.
    pub placement: Option<Policy>,
    /// Names for the images of a record; none for one image called `image`.
    pub inputs: Vec<Input>,
    /// Images that all records share.
    pub constants: Vec<Constant>,
    /// The work.
    pub steps: Vec<Step>,
    /// What is written; empty for: the last step's result.
    pub outputs: Vec<Output>,
}

impl Pipeline {
    /// Without steps yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Reads a pipeline file.
    ///
    /// # Errors
    /// Everything that is wrong with it as a text, at once.
    pub fn from_toml(text: &str) -> Result<Self, Vec<Diagnostic>> {
        language::read(text)
    }

    /// With one more step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// With one more named image of the record.
    #[must_use]
    pub fn input(mut self, name: &str, channel: Option<&str>) -> Self {
        self.inputs.push(Input {
            name: name.into(),
            channel: channel.map(Into::into),
        });
        self
    }

    /// With one more image that all records share.
    #[must_use]
    pub fn constant(mut self, name: &str, path: &str) -> Self {
        self.constants.push(Constant {
            name: name.into(),
            path: path.into(),
        });
        self
    }

    /// With one more result that is written.
    #[must_use]
    pub fn output(mut self, of: &str, write: &str) -> Self {
        self.outputs.push(Output {
            of: of.into(),
            write: write.into(),
        });
        self
    }
}
