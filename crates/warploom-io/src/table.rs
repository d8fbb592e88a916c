//! Results that are a table: one row per object.

use std::io::{self, Write};

use serde_json::{Number, Value};

use crate::error::Fault;

/// A column's values.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Values {
    /// Whole numbers: labels, areas, positions.
    Whole(Vec<i64>),
    /// Real numbers.
    Reals(Vec<f64>),
    /// Texts: names of records, of channels.
    Texts(Vec<String>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Reals(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn json(&self, row: usize) -> Value {
        match self {
            Self::Whole(values) => Value::from(values[row]),
            Self::Reals(values) => json_number(values[row]),
            Self::Texts(values) => values[row].as_str().into(),
        }
    }

    fn write_csv(&self, file: &mut impl Write, row: usize) -> io::Result<()> {
        match self {
            Self::Whole(values) => write!(file, "{}", values[row]),
            // The words that Python's readers know.
            Self::Reals(values) if values[row].is_nan() => file.write_all(b"nan"),
            // As few digits as read back to the same number.
            Self::Reals(values) => write!(file, "{:?}", values[row]),
            Self::Texts(values) => file.write_all(quoted(&values[row]).as_bytes()),
        }
    }
}

/// A number in JSON, which has no infinities and no NaN: those are texts that `float` in Python,
/// `Number` in JavaScript and `parse` in Rust understand.
pub(crate) fn json_number(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// A column: its name and one value per row.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// Columns of equal length.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    pub(crate) columns: Vec<Column>,
    rows: usize,
}

impl Table {
    /// A table of these columns; `None` where one is shorter than another.
    pub fn new(columns: Vec<Column>) -> Option<Self> {
        let rows = columns.first().map_or(0, |column| column.values.len());
        let equal = columns.iter().all(|column| column.values.len() == rows);
        equal.then_some(Self { columns, rows })
    }

    /// A table of columns that were just made equally long.
    pub(crate) fn of_equal(columns: Vec<Column>) -> Self {
        let rows = columns.first().map_or(0, |column| column.values.len());
        Self { columns, rows }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn write_csv(&self, file: &mut impl Write) -> Result<(), Fault> {
        self.csv_into(file).map_err(|error| Fault::write(&error))
    }

    fn csv_into(&self, file: &mut impl Write) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|c| quoted(&c.name)).collect();
        writeln!(file, "{}", names.join(","))?;
        for row in 0..self.rows {
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    file.write_all(b",")?;
                }
                column.values.write_csv(file, row)?;
            }
            file.write_all(b"\n")?;
        }
        Ok(())
    }

    pub(crate) fn write_json(&self, file: &mut impl Write) -> Result<(), Fault> {
        self.json_into(file).map_err(|error| Fault::write(&error))
    }

    /// `{"columns": [...], "rows": [{column: value}]}`, a row per line.
    fn json_into(&self, file: &mut impl Write) -> io::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        file.write_all(b"{\"columns\":")?;
        serde_json::to_writer(&mut *file, &names)?;
        file.write_all(b",\"rows\":[")?;
        for row in 0..self.rows {
            file.write_all(if row == 0 { b"\n" } else { b",\n" })?;
            write_object(file, &self.columns, row)?;
        }
        file.write_all(b"\n]}\n")
    }
}

/// One row as an object whose members are in the order of the columns.
pub(crate) fn write_object(
    file: &mut impl Write,
    columns: &[Column],
    row: usize,
) -> io::Result<()> {
    for (at, column) in columns.iter().enumerate() {
        file.write_all(if at == 0 { b"{" } else { b"," })?;
        serde_json::to_writer(&mut *file, &column.name)?;
        file.write_all(b":")?;
        serde_json::to_writer(&mut *file, &column.values.json(row))?;
    }
    file.write_all(if columns.is_empty() { b"{}" } else { b"}" })
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(vec![
            Column {
                name: "label".into(),
                values: Values::Whole(vec![1, 2]),
            },
            Column {
                name: "mean, \"raw\"".into(),
                values: Values::Reals(vec![0.1, f64::NEG_INFINITY]),
            },
        ])
        .unwrap()
    }

    #[test]
    fn csv_has_a_line_per_row() {
        let mut text = Vec::new();
        table().write_csv(&mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "label,\"mean, \"\"raw\"\"\"\n1,0.1\n2,-inf\n"
        );
    }

    #[test]
    fn json_keeps_the_order_of_columns() {
        let mut text = Vec::new();
        table().write_json(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "{\"columns\":[\"label\",\"mean, \\\"raw\\\"\"],\"rows\":[\n\
             {\"label\":1,\"mean, \\\"raw\\\"\":0.1},\n\
             {\"label\":2,\"mean, \\\"raw\\\"\":\"-Infinity\"}\n]}\n"
        );
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn an_empty_table_has_columns_and_no_rows() {
        let empty = Table::new(vec![Column {
            name: "label".into(),
            values: Values::Whole(Vec::new()),
        }])
        .unwrap();
        let mut text = Vec::new();
        empty.write_json(&mut text).unwrap();
        assert_eq!(text, b"{\"columns\":[\"label\"],\"rows\":[\n]}\n");
        let uneven = vec![table().columns[0].clone(), empty.columns[0].clone()];
        assert_eq!(Table::new(uneven), None);
    }
}
