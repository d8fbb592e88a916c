//! Results that are a few numbers: totals, percentiles, a histogram, a shift.

use std::io::Write;

use serde_json::{Map, Value};

use crate::error::Fault;
use crate::table::{Column, Table, Values, json_number};

/// Numbers in a documented order, with or without names.
#[derive(Clone, PartialEq, Debug)]
pub struct Numbers {
    names: Option<Vec<String>>,
    values: Vec<f64>,
}

impl Numbers {
    /// A row of numbers.
    pub fn list(values: Vec<f64>) -> Self {
        Self {
            names: None,
            values,
        }
    }

    /// Numbers that have a name each.
    pub fn named<N: Into<String>>(pairs: impl IntoIterator<Item = (N, f64)>) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value));
        let (names, values) = pairs.unzip();
        Self {
            names: Some(names),
            values,
        }
    }

    /// The numbers, in order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// As JSON: an object if they have names, else a list. JSON has no infinities; those and NaN
    /// are the texts `"Infinity"`, `"-Infinity"` and `"NaN"`, which Python's `float`, JavaScript's
    /// `Number` and Rust's `parse` understand.
    pub fn to_json(&self) -> Value {
        let values = self.values.iter().map(|value| json_number(*value));
        match &self.names {
            Some(names) => Value::Object(names.iter().cloned().zip(values).collect::<Map<_, _>>()),
            None => Value::Array(values.collect()),
        }
    }

    /// As a table: one row if they have names, else a row for each.
    pub fn to_table(&self) -> Table {
        let column = |name: &str, values| Column {
            name: name.to_owned(),
            values: Values::Reals(values),
        };
        let columns = match &self.names {
            Some(names) => {
                let pairs = names.iter().zip(&self.values);
                pairs
                    .map(|(name, value)| column(name, vec![*value]))
                    .collect()
            }
            None => vec![column("value", self.values.clone())],
        };
        Table::of_equal(columns)
    }

    pub(crate) fn write_json(&self, file: &mut impl Write) -> Result<(), Fault> {
        let written = match &self.names {
            // Not through `to_json`, whose objects are sorted: the order is part of the result.
            Some(_) => crate::table::write_object(file, &self.to_table().columns, 0),
            None => serde_json::to_writer(&mut *file, &self.to_json()).map_err(Into::into),
        };
        written
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| Fault::write(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(numbers: &Numbers) -> String {
        let mut text = Vec::new();
        numbers.write_json(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn names_stay_in_order() {
        let totals = Numbers::named([("min", 0.5), ("max", 3.0), ("mean", f64::NAN)]);
        assert_eq!(
            json(&totals),
            "{\"min\":0.5,\"max\":3.0,\"mean\":\"NaN\"}\n"
        );
        let mut csv = Vec::new();
        totals.to_table().write_csv(&mut csv).unwrap();
        assert_eq!(csv, b"min,max,mean\n0.5,3.0,nan\n");
    }

    #[test]
    fn a_list_is_a_list() {
        let list = Numbers::list(vec![1.0, 0.1, f64::INFINITY]);
        assert_eq!(json(&list), "[1.0,0.1,\"Infinity\"]\n");
        let mut csv = Vec::new();
        list.to_table().write_csv(&mut csv).unwrap();
        assert_eq!(csv, b"value\n1.0\n0.1\ninf\n");
    }
}
