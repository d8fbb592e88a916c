//! What an operation gave, on its way into a file.

use std::path::Path;

use warploom::io::{self, Column, FileError, Image, Numbers, Table, Values};
use warploom::kernels::ImageType;
use warploom::kernels::op::ValueType;
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
    let rows = numbers(DType::F64, bytes).first().copied()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of objects, of which there are fewer than pixels"
    )]
    Some(rows as u64)
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
            ValueType::Table { columns } => Self::Table(table(columns, &numbers(dtype, bytes))?),
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

/// Numbers as devices leave them: counts of pixels are `u32`, everything else is `f64`.
fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    if dtype == DType::U32 {
        let (counts, _) = bytes.as_chunks::<{ size_of::<u32>() }>();
        return counts
            .iter()
            .map(|n| u32::from_ne_bytes(*n).into())
            .collect();
    }
    let (numbers, _) = bytes.as_chunks::<{ size_of::<f64>() }>();
    numbers.iter().map(|n| f64::from_ne_bytes(*n)).collect()
}

/// The number of rows, then row by row the columns' values.
fn table(columns: &[&str], numbers: &[f64]) -> Result<Table, Problem> {
    let rows = numbers.get(1..).unwrap_or_default();
    let count = numbers.first().copied().unwrap_or(0.0);
    let column = |(at, name): (usize, &&str)| {
        let values = rows.chunks_exact(columns.len()).map(|row| row[at]);
        // Rows beyond the count are room that was not needed.
        let values = values
            .zip(0_u32..)
            .take_while(|(_, row)| f64::from(*row) < count);
        let values = values.map(|(value, _)| value);
        Column {
            name: (*name).to_owned(),
            values: if is_whole(name) {
                Values::Whole(values.map(whole).collect())
            } else {
                Values::Reals(values.collect())
            },
        }
    };
    let columns = columns.iter().enumerate().map(column).collect();
    Table::new(columns).ok_or_else(|| Problem::failure("a table has columns of different lengths"))
}

/// Labels, counts and positions are whole numbers, and are written as such.
fn is_whole(column: &str) -> bool {
    let positions = ["start_", "stop_"];
    matches!(column, "label" | "area") || positions.iter().any(|p| column.starts_with(p))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "labels and positions are below 2^53, and `as` saturates"
)]
fn whole(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_rows_it_says() {
        let numbers = [2.0, 1.0, 0.5, 7.0, 1.5, 0.0, 0.0];
        let table = table(&["label", "mean"], &numbers).unwrap();
        assert_eq!(table.rows(), 2);
        assert_eq!(table.columns()[0].values, Values::Whole(vec![1, 7]));
        assert_eq!(table.columns()[1].values, Values::Reals(vec![0.5, 1.5]));
    }

    #[test]
    fn counts_are_numbers_too() {
        let counts: Vec<u8> = [3_u32, 0, 7].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert_eq!(numbers(DType::U32, &counts), [3.0, 0.0, 7.0]);
    }

    #[test]
    fn a_table_without_rows_is_a_table() {
        let table = table(&["label", "mean"], &[0.0, 9.0, 9.0]).unwrap();
        assert_eq!(table.rows(), 0);
        let result = ValueType::Table { columns: vec![] };
        assert_eq!(rows(&result, &3.0_f64.to_ne_bytes()), Some(3));
    }
}
