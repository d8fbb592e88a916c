//! Bytes that a device left, made what they are: images, numbers or tables.

use std::path::Path;

use warploom_core::{DType, Shape};
use warploom_io::{
    Column, FileError, Header, Numbers, Sync, Table, Values, check_image, check_numbers,
    check_table, write_image, write_numbers, write_table,
};
use warploom_plan::plan::{Form, PlanValue};

/// Numbers as devices leave them: counts of pixels are `u32`, everything else is `f64`.
pub fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
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

/// How many rows a table should have: its first number. There may be room for fewer.
pub fn rows(numbers: &[f64]) -> u64 {
    let rows = numbers.first().copied().unwrap_or(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of objects, of which there are fewer than pixels"
    )]
    let rows = rows as u64;
    rows
}

/// A table: the number of rows, then row by row the columns' values. Rows beyond the count are room
/// that was not needed.
pub fn table(columns: &[impl AsRef<str>], numbers: &[f64]) -> Vec<Column> {
    let values = numbers.get(1..).unwrap_or_default();
    let count = usize::try_from(rows(numbers)).unwrap_or(usize::MAX);
    let column = |(at, name): (usize, &_)| {
        let name: &str = AsRef::as_ref(name);
        let values = values.chunks_exact(columns.len()).map(|row| row[at]);
        let values = values.take(count);
        Column {
            name: name.to_owned(),
            values: if is_whole(name) {
                Values::Whole(values.map(whole).collect())
            } else {
                Values::Reals(values.collect())
            },
        }
    };
    columns.iter().enumerate().map(column).collect()
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

/// What a result of a whole record is, put together of those of its planes.
#[derive(Debug)]
pub(crate) struct Gathered<'v> {
    value: &'v PlanValue,
    planes: u64,
    spacing: [Option<f64>; 3],
}

impl<'v> Gathered<'v> {
    pub(crate) fn new(value: &'v PlanValue, planes: u64, spacing: [Option<f64>; 3]) -> Self {
        Self {
            value,
            planes: planes.max(1),
            spacing,
        }
    }

    fn shape(&self) -> Option<Shape> {
        let Form::Image { dims, rank } = &self.value.form else {
            return None;
        };
        let [z, y, x] = *dims;
        let dims = match (*rank, self.planes) {
            (2, 1) => vec![y, x],
            (2, planes) => vec![planes, y, x],
            (_, 1) => vec![z, y, x],
            (_, planes) => vec![planes * z, y, x],
        };
        Shape::new(&dims).ok()
    }

    /// Can it go into a file of this name?
    pub(crate) fn check(&self, path: &Path) -> Result<(), FileError> {
        match (&self.value.form, self.shape()) {
            (Form::Image { .. }, Some(shape)) => check_image(path, self.value.dtype, &shape),
            (Form::Numbers { .. }, _) => check_numbers(path),
            _ => check_table(path),
        }
    }

    /// Writes it; `bytes` are those of all planes, one after the other. Answers how many rows of a
    /// table had no room, which makes it a failure of the record.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<u64, FileError> {
        let each = usize::try_from(self.value.bytes).unwrap_or(usize::MAX);
        let parts = || bytes.chunks_exact(each.max(1)).zip(0_i64..);
        match &self.value.form {
            Form::Image { .. } => {
                let shape = self.shape().expect("a plan counts the bytes of its images");
                let header = Header::new(self.value.dtype, shape).with_spacing(self.spacing);
                write_image(path, &header, bytes, Sync::No)?;
                Ok(0)
            }
            Form::Numbers { names, .. } => {
                let all = numbers(self.value.dtype, bytes);
                if self.planes == 1 {
                    let numbers = if names.is_empty() {
                        Numbers::list(all)
                    } else {
                        Numbers::named(names.iter().cloned().zip(all))
                    };
                    return write_numbers(path, &numbers).map(|()| 0);
                }
                if path
                    .extension()
                    .is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
                {
                    return write_numbers(path, &Numbers::list(all)).map(|()| 0);
                }
                let columns = if names.is_empty() {
                    vec!["value".to_owned()]
                } else {
                    names.clone()
                };
                let mut gathered = Rows::new(&columns);
                for (part, plane) in parts() {
                    let values = numbers(self.value.dtype, part);
                    let count = values.len() / columns.len();
                    let mut headed = vec![count as f64];
                    headed.extend(values);
                    gathered.add(plane, &columns, &headed);
                }
                write_table(path, &gathered.table()).map(|()| 0)
            }
            Form::Table { columns, length } => {
                let room = (length.saturating_sub(1)) / (columns.len() as u64).max(1);
                let mut lost = 0;
                let mut gathered = Rows::new(columns);
                for (part, plane) in parts() {
                    let values = numbers(self.value.dtype, part);
                    lost += rows(&values).saturating_sub(room);
                    gathered.add(plane, columns, &values);
                }
                if self.planes == 1 {
                    gathered.plane = None;
                }
                write_table(path, &gathered.table())?;
                Ok(lost)
            }
        }
    }
}

/// Rows of several planes, with the plane they are of.
struct Rows {
    plane: Option<Vec<i64>>,
    columns: Vec<Column>,
}

impl Rows {
    fn new(columns: &[String]) -> Self {
        Self {
            plane: Some(Vec::new()),
            columns: table(columns, &[0.0]),
        }
    }

    fn add(&mut self, plane: i64, columns: &[String], numbers: &[f64]) {
        let more = table(columns, numbers);
        let count = more.first().map_or(0, |column| column.values.len());
        if let Some(planes) = &mut self.plane {
            planes.extend(std::iter::repeat_n(plane, count));
        }
        for (column, more) in self.columns.iter_mut().zip(more) {
            match (&mut column.values, more.values) {
                (Values::Whole(all), Values::Whole(more)) => all.extend(more),
                (Values::Reals(all), Values::Reals(more)) => all.extend(more),
                _ => {}
            }
        }
    }

    fn table(self) -> Table {
        let mut columns = Vec::new();
        if let Some(planes) = self.plane {
            columns.push(Column {
                name: "z".to_owned(),
                values: Values::Whole(planes),
            });
        }
        columns.extend(self.columns);
        Table::new(columns).expect("columns grow together")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_rows_it_says() {
        let numbers = [2.0, 1.0, 0.5, 7.0, 1.5, 0.0, 0.0];
        let columns = table(&["label", "mean"], &numbers);
        assert_eq!(columns[0].values, Values::Whole(vec![1, 7]));
        assert_eq!(columns[1].values, Values::Reals(vec![0.5, 1.5]));
        assert_eq!(rows(&numbers), 2);
    }

    #[test]
    fn counts_are_numbers_too() {
        let counts: Vec<u8> = [3_u32, 0, 7].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert_eq!(numbers(DType::U32, &counts), [3.0, 0.0, 7.0]);
    }

    #[test]
    fn a_table_without_rows_is_a_table() {
        let columns = table(&["label", "mean"], &[0.0, 9.0, 9.0]);
        assert!(columns.iter().all(|column| column.values.is_empty()));
        assert_eq!(rows(&[]), 0);
    }

    #[test]
    fn rows_of_planes_say_which() {
        let columns = ["label".to_owned(), "mean".to_owned()];
        let mut rows = Rows::new(&columns);
        rows.add(0, &columns, &[1.0, 1.0, 0.5]);
        rows.add(1, &columns, &[0.0]);
        rows.add(2, &columns, &[2.0, 1.0, 0.25, 2.0, 0.75]);
        let table = rows.table();
        assert_eq!(table.columns()[0].values, Values::Whole(vec![0, 2, 2]));
        assert_eq!(table.columns()[1].values, Values::Whole(vec![1, 1, 2]));
        assert_eq!(table.rows(), 3);
    }
}
