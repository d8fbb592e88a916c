//! What a plan keeps in memory, in enough detail to make a program of it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_kernels::flow::ValueKind;
use warploom_kernels::op::ValueType;

/// A value that has a place in memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanValue {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    #[schemars(with = "String")]
    pub dtype: DType,
    /// What its elements are.
    #[serde(flatten)]
    pub form: Form,
    /// Its bytes.
    pub bytes: u64,
}

/// What the elements of a value are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Form {
    /// Pixels, rows packed.
    Image {
        /// Extents along z, y, x.
        dims: [u64; 3],
        /// Axes people see: 2 for planes, 3 for stacks.
        rank: u8,
    },
    /// Numbers in a row.
    Numbers {
        /// How many.
        length: u64,
        /// What each is called; empty when they have only a position.
        names: Vec<String>,
    },
    /// The number of rows, then row by row the columns' numbers. There is room for more rows than
    /// there are.
    Table {
        /// Numbers there is room for.
        length: u64,
        /// The columns, in order.
        columns: Vec<String>,
    },
}

impl PlanValue {
    /// A value of this type that is kept this way.
    pub(crate) fn new(name: &str, of: &ValueType, kind: ValueKind) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let length = kind.elements();
        let form = match (of, kind) {
            (_, ValueKind::Image(ImageType { dims, rank, .. })) => Form::Image { dims, rank },
            (ValueType::Table { columns }, _) => Form::Table {
                length,
                columns: owned(columns),
            },
            (ValueType::Scalars { names, .. }, _) => Form::Numbers {
                length,
                names: owned(names),
            },
            (ValueType::Image(_), _) => Form::Numbers {
                length,
                names: Vec::new(),
            },
        };
        Self {
            name: name.to_owned(),
            dtype: kind.dtype(),
            form,
            bytes: kind.bytes(),
        }
    }

    /// The same for programs.
    pub fn kind(&self) -> ValueKind {
        let dtype = self.dtype;
        match self.form {
            Form::Image { dims, rank } => ValueKind::Image(ImageType { dtype, dims, rank }),
            Form::Numbers { length, .. } | Form::Table { length, .. } => {
                ValueKind::List { dtype, length }
            }
        }
    }
}
