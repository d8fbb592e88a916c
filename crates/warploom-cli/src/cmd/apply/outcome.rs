//! What an operation gave, on its way into a file.

use std::path::Path;

use warploom::io::{self, FileError, Image, Numbers, Table};
use warploom::kernels::ImageType;
use warploom::kernels::op::ValueType;
use warploom::run::content::{self, numbers};
use warploom::{DType, Shape};

use crate::report::Problem;

/// An image, numbers or a table.
#[derive(Debug)]
pub(super) enum Outcome {
    Image(Image),
    Numbers(Numbers),
    Table(Table),
}

/// Whether a file of this name can hold a result of this type; asked before it is computed.
pub(super) fn check(path: &Path, result: &ValueType) -> Result<(), Problem> {
    let checked = match result {
        ValueType::Image(image) => io::check_image(path, image.dtype, &shape(image)?),
        ValueType::Scalars { .. } => io::check_numbers(path),
        ValueType::Table { .. } => io::check_table(path),
    };
    Ok(checked?)
}

/// How many rows a table should have, if `result` is one: its first number.
pub(super) fn rows(result: &ValueType, bytes: &[u8]) -> Option<u64> {
    let ValueType::Table { .. } = result else {
        return None;
    };
    Some(content::rows(&numbers(DType::F64, bytes)))
}

impl Outcome {
    /// Makes bytes what they are; numbers were left as `dtype`.
    pub(super) fn new(result: &ValueType, dtype: DType, bytes: &[u8]) -> Result<Self, Problem> {
        Ok(match result {
            ValueType::Image(image) => {
                let made = Image::from_bytes(image.dtype, shape(image)?, bytes);
                Self::Image(made.map_err(Problem::failure)?)
            }
            ValueType::Scalars { names, .. } if names.is_empty() => {
                Self::Numbers(Numbers::list(numbers(dtype, bytes)))
            }
            ValueType::Scalars { names, .. } => {
                let pairs = names.iter().copied().zip(numbers(dtype, bytes));
                Self::Numbers(Numbers::named(pairs))
            }
            ValueType::Table { columns } => {
                let table = Table::new(content::table(columns, &numbers(dtype, bytes)));
                let uneven = || Problem::failure("a table has columns of different lengths");
                Self::Table(table.ok_or_else(uneven)?)
            }
        })
    }

    /// Writes it.
    pub(super) fn write(&self, path: &Path) -> Result<(), FileError> {
        match self {
            Self::Image(image) => io::write(path, image),
            Self::Numbers(numbers) => io::write_numbers(path, numbers),
            Self::Table(table) => io::write_table(path, table),
        }
    }
}

fn shape(image: &ImageType) -> Result<Shape, Problem> {
    Shape::new(image.shape()).map_err(Problem::failure)
}
