//! The parameters of one operation, checked and complete.

use std::fmt;

use serde::{Serialize, Serializer};
use warploom_core::{DType, nearest};

use super::error::{OpError, shown};
use super::given::{Given, GivenValue};
use super::info::OpInfo;
use super::param::{Fallback, ParamInfo, ParamValue};
use crate::boundary::Boundary;

/// Every parameter of an operation that has a value, in the order of its table.
///
/// The typed accessors are for whoever lowers the operation: they panic when the catalogue has no
/// such parameter of that kind, which is a mistake in the program, not in what was typed.
#[derive(Clone, PartialEq, Debug)]
pub struct Params {
    values: Vec<(&'static str, ParamValue)>,
}

impl Params {
    /// Checks what was given against the operation's table and fills in the rest.
    pub fn read(op: &'static OpInfo, given: &Given) -> Result<Self, OpError> {
        Self::read_with(op, given, &[])
    }

    /// As [`Params::read`], where an earlier operation computes these parameters.
    ///
    /// # Errors
    /// As [`Params::read`]; also when one of them is given as well, or computed twice.
    pub fn read_with(
        op: &'static OpInfo,
        given: &Given,
        computed: &[&str],
    ) -> Result<Self, OpError> {
        for (name, _) in given.iter() {
            if op.param(name).is_none() {
                let known = op.params().map(|param| param.name);
                let near = near(name, known);
                let name = shown(name);
                return Err(OpError::UnknownParam { op, name, near });
            }
        }
        let mut values = Vec::new();
        for param in op.params() {
            let mut named = given.iter().filter(|(name, _)| *name == param.name);
            let late = computed.iter().filter(|name| **name == param.name).count();
            if late > 1 {
                let name = param.name;
                return Err(OpError::RepeatedParam { op, name });
            }
            let late = late == 1;
            let value = match (named.next(), param.fallback) {
                (None, _) if late => Some(ParamValue::Computed),
                (Some(_), _) if late => {
                    let name = param.name;
                    return Err(OpError::RepeatedParam { op, name });
                }
                (Some((_, value)), _) => Some(read(op, param, value)?),
                (None, Fallback::Text(text)) => Some(read(op, param, &GivenValue::from(text))?),
                (None, Fallback::Absent) => None,
                (None, Fallback::Required) => {
                    return Err(OpError::MissingParam {
                        op,
                        name: param.name,
                        doc: param.doc,
                    });
                }
            };
            if named.next().is_some() {
                return Err(OpError::RepeatedParam {
                    op,
                    name: param.name,
                });
            }
            values.extend(value.map(|value| (param.name, value)));
        }
        Ok(Self { values })
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ParamValue)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }

    /// A parameter that may have been left out.
    pub fn value(&self, name: &str) -> Option<&ParamValue> {
        let found = self.values.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// A number, whole or not, that may have been left out, or is not known yet.
    ///
    /// # Panics
    /// When the parameter is of another kind.
    pub fn maybe_number(&self, name: &str) -> Option<f64> {
        self.value(name).and_then(|value| match value {
            ParamValue::Number(number) => Some(*number),
            // Whole-number parameters are limited far below 2^53.
            ParamValue::Integer(number) => Some(*number as f64),
            ParamValue::Computed => None,
            other => mistaken(name, "a number", other),
        })
    }

    /// A number.
    ///
    /// # Panics
    /// When the operation has no such number with a value.
    pub fn number(&self, name: &str) -> f64 {
        self.maybe_number(name).unwrap_or_else(|| lacking(name))
    }

    /// A whole number that may have been left out.
    ///
    /// # Panics
    /// When the parameter is of another kind.
    pub fn maybe_integer(&self, name: &str) -> Option<i64> {
        self.value(name).map(|value| match value {
            ParamValue::Integer(number) => *number,
            other => mistaken(name, "a whole number", other),
        })
    }

    /// A whole number.
    ///
    /// # Panics
    /// When the operation has no such whole number with a value.
    pub fn integer(&self, name: &str) -> i64 {
        self.maybe_integer(name).unwrap_or_else(|| lacking(name))
    }

    /// A number for every axis or one per axis, as given, that may have been left out.
    ///
    /// # Panics
    /// When the parameter is of another kind.
    pub fn maybe_per_axis(&self, name: &str) -> Option<&[f64]> {
        self.value(name).map(|value| match value {
            ParamValue::PerAxis(list) => list.as_slice(),
            other => mistaken(name, "one per axis", other),
        })
    }

    /// A word.
    ///
    /// # Panics
    /// When the operation has no such choice.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Some(ParamValue::Choice(word)) => word,
            Some(other) => mistaken(name, "a choice", other),
            None => lacking(name),
        }
    }

    /// What lies beyond the edge; [`Boundary::Clamp`] for operations that never look there.
    pub fn boundary(&self) -> Boundary {
        match self.value("boundary") {
            Some(ParamValue::Choice(word)) => word.parse().unwrap_or_default(),
            _ => Boundary::default(),
        }
    }

    /// An element type.
    ///
    /// # Panics
    /// When the operation has no such type.
    pub fn dtype(&self, name: &str) -> DType {
        match self.value(name) {
            Some(ParamValue::DType(dtype)) => *dtype,
            Some(other) => mistaken(name, "an element type", other),
            None => lacking(name),
        }
    }

    /// A list of numbers; empty when it was left out.
    ///
    /// # Panics
    /// When the parameter is of another kind.
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.value(name) {
            Some(ParamValue::Numbers(list)) => list,
            Some(other) => mistaken(name, "a list", other),
            None => &[],
        }
    }

    /// The rows of a matrix as they were written: a single one where nobody said where they end.
    ///
    /// # Panics
    /// When the operation has no such matrix.
    pub fn matrix(&self, name: &str) -> &[Vec<f64>] {
        match self.value(name) {
            Some(ParamValue::Matrix(rows)) => rows,
            Some(other) => mistaken(name, "a matrix", other),
            None => lacking(name),
        }
    }

    /// Yes or no.
    ///
    /// # Panics
    /// When the operation has no such switch.
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Some(ParamValue::Flag(flag)) => *flag,
            Some(other) => mistaken(name, "a switch", other),
            None => lacking(name),
        }
    }
}

/// What was probably meant.
pub(super) fn near(text: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    const LONGEST: usize = 64;
    if text.len() > LONGEST {
        return None;
    }
    nearest(&text.to_ascii_lowercase(), known)
}

fn read(
    op: &'static OpInfo,
    param: &'static ParamInfo,
    given: &GivenValue,
) -> Result<ParamValue, OpError> {
    param.kind.read(given).ok_or_else(|| OpError::BadValue {
        op,
        name: param.name,
        given: shown(&given.to_string()),
        takes: param.kind.to_string(),
    })
}

fn lacking(name: &str) -> ! {
    panic!("the catalogue promises no value for parameter `{name}`")
}

fn mistaken(name: &str, wanted: &str, found: &ParamValue) -> ! {
    panic!("parameter `{name}` is no {wanted} in the catalogue: {found:?}")
}

/// `sigma=2, boundary=clamp`.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        f.write_str(&texts.join(", "))
    }
}

impl Serialize for Params {
    /// As texts, which [`Given`] reads back to the same values.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(name, value)| (name, value.to_string())))
    }
}
