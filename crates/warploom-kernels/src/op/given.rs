//! Parameters as they were given: `key=value` on a command line, a table in a file.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{OpError, shown};

/// One value as it was given, not yet checked against a parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GivenValue {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text, read as the parameter's kind wants it.
    Text(String),
    /// Several values, such as one per axis; rows of a matrix may be lists themselves.
    List(Vec<GivenValue>),
}

impl GivenValue {
    /// As one number.
    pub fn number(&self) -> Option<f64> {
        match self {
            // Whole numbers beyond 2^53 round; no parameter goes that far.
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Flag(_) | Self::List(_) => None,
        }
    }

    /// As one whole number; `3.0` is one.
    pub fn integer(&self) -> Option<i64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if let Self::Integer(number) = self {
            return Some(*number);
        }
        if let Self::Text(text) = self
            && let Ok(number) = text.trim().parse()
        {
            return Some(number);
        }
        let number = self.number()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and below 2^53 in magnitude"
        )]
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
    }

    /// As a list of at most `most` numbers: one, several with commas, or a list.
    pub fn numbers(&self, most: usize) -> Option<Vec<f64>> {
        let mut list = Vec::new();
        self.gather(most, &mut list).then_some(list)
    }

    fn gather(&self, most: usize, list: &mut Vec<f64>) -> bool {
        let mut add = |number: Option<f64>| {
            let fits = number.filter(|_| list.len() < most);
            list.extend(fits);
            fits.is_some()
        };
        match self {
            Self::Text(text) => text
                .trim()
                .trim_end_matches(';')
                .split([',', ';'])
                .all(|part| add(part.trim().parse().ok())),
            Self::List(values) => values.iter().all(|value| value.gather(most, list)),
            one => add(one.number()),
        }
    }

    /// As rows of together at most `most` numbers: `;` ends a row in a text, and a list of lists has
    /// a row for each. Numbers in a single list are one row.
    pub fn rows(&self, most: usize) -> Option<Vec<Vec<f64>>> {
        let mut rows = Vec::new();
        self.gather_rows(most, &mut rows)?;
        Some(rows)
    }

    /// Adds these rows, as long as there are at most `most` numbers; `None` when there are more, or
    /// what is no number, or nothing.
    fn gather_rows(&self, most: usize, rows: &mut Vec<Vec<f64>>) -> Option<()> {
        let row = |value: &Self, rows: &mut Vec<Vec<f64>>| {
            let so_far: usize = rows.iter().map(Vec::len).sum();
            let numbers = value.numbers(most.checked_sub(so_far)?)?;
            rows.push(numbers);
            Some(())
        };
        match self {
            Self::Text(text) => {
                let mut parts = text.trim().trim_end_matches(';').split(';');
                parts.try_for_each(|part| row(&Self::Text(part.to_owned()), rows))
            }
            Self::List(values) if values.is_empty() => None,
            Self::List(values) if values.iter().any(|value| value.number().is_none()) => values
                .iter()
                .try_for_each(|value| value.gather_rows(most, rows)),
            one => row(one, rows),
        }
    }

    /// As a word.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As yes or no.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Text(text) => match text.trim() {
                "true" | "yes" | "1" => Some(true),
                "false" | "no" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Display for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::List(values) => {
                let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident;)*) => {
        $(
            impl From<$type> for GivenValue {
                fn from(value: $type) -> Self {
                    Self::$variant(value.into())
                }
            }
        )*
    };
}

from! {
    bool => Flag;
    i32 => Integer;
    i64 => Integer;
    u32 => Integer;
    f32 => Number;
    f64 => Number;
    &str => Text;
    String => Text;
}

impl<T: Into<GivenValue>, const N: usize> From<[T; N]> for GivenValue {
    fn from(values: [T; N]) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

/// The parameters of one call as they were given, in that order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Given(Vec<(String, GivenValue)>);

impl Given {
    /// Nothing given.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<GivenValue>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// Reads `key=value` texts, as on a command line.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, OpError> {
        let pair = |text: T| {
            let text = text.as_ref();
            match text.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                    Ok((name.trim().to_owned(), GivenValue::from(value.trim())))
                }
                _ => Err(OpError::NotAssignment { text: shown(text) }),
            }
        };
        texts
            .into_iter()
            .map(pair)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Names and values in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &GivenValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Given {
    /// From a table. A name that comes twice is kept twice, to be refused with the op's name.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Given;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = map.next_entry::<Cow<'_, str>, GivenValue>()? {
                    pairs.push((name.into_owned(), value));
                }
                Ok(Given(pairs))
            }
        }
        from.deserialize_map(Table)
    }
}
