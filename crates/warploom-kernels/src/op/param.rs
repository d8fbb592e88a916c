//! Parameters: what an operation takes, and a text or typed value made into one.

use std::fmt;

use warploom_core::DType;

use super::given::GivenValue;
use super::info::PIXELS;
use crate::boundary::Boundary;

/// One parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct ParamInfo {
    /// What people write before the `=`.
    pub name: &'static str,
    /// What they may write after it.
    pub kind: ParamKind,
    /// What holds when they do not.
    pub fallback: Fallback,
    /// What it means, in a clause.
    pub doc: &'static str,
}

/// What holds when a parameter is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// It must be given.
    Required,
    /// Nothing; the parameter's text says what that means.
    Absent,
    /// This text, as if it had been given.
    Text(&'static str),
}

/// What values a parameter takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParamKind {
    /// A number.
    Number(Span),
    /// A whole number.
    Integer(Span),
    /// A number for all axes longer than 1, or one per axis in z, y, x order.
    PerAxis(Span),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An element type.
    DType,
    /// A list of numbers, this many at least and at most.
    Numbers(Span, usize, usize),
    /// Numbers row by row.
    Matrix,
    /// Yes or no.
    Flag,
}

/// Which numbers are allowed. NaN never is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// Is the smallest itself refused?
    pub above: bool,
    /// Only whole numbers?
    pub whole: bool,
}

impl Span {
    /// Every number, infinities included.
    pub const ANY: Self = Self {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        above: false,
        whole: false,
    };
    /// Every finite number.
    pub const FINITE: Self = Self::between(f64::MIN, f64::MAX);

    /// These and all between.
    pub const fn between(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            ..Self::ANY
        }
    }

    /// All between, and the second, but not the first.
    pub const fn above(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            above: true,
            whole: false,
        }
    }

    /// Whole numbers, these and all between.
    pub const fn whole(low: i64, high: i64) -> Self {
        Self {
            // Limits are small numbers written in the tables.
            low: low as f64,
            high: high as f64,
            above: false,
            whole: true,
        }
    }

    /// Is this number allowed?
    pub fn contains(&self, number: f64) -> bool {
        let low_ok = number > self.low || (number >= self.low && !self.above);
        low_ok && number <= self.high && (!self.whole || number.fract() == 0.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What no image could have anyway is no limit worth reading.
        let limited = self.high < f64::from(i32::MAX);
        match (self.low > f64::MIN, limited) {
            (false, false) if self.low.is_finite() => write!(f, "finite"),
            (false, false) => write!(f, "infinities included"),
            (true, false) if self.above => write!(f, "above {}", self.low),
            (true, false) => write!(f, "from {}", self.low),
            (false, true) => write!(f, "up to {}", self.high),
            (true, true) if self.above => write!(f, "above {}, up to {}", self.low, self.high),
            (true, true) => write!(f, "from {} to {}", self.low, self.high),
        }
    }
}

/// A parameter's value, checked.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamValue {
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// One number for all axes longer than 1, or one per axis.
    PerAxis(Vec<f64>),
    /// One of the words the parameter allows.
    Choice(&'static str),
    /// An element type.
    DType(DType),
    /// A list.
    Numbers(Vec<f64>),
    /// Rows as they were written; a single row may stand for all, cut when the image is known.
    Matrix(Vec<Vec<f64>>),
    /// Yes or no.
    Flag(bool),
    /// A number that is computed before the operation runs: see [`OpInfo::computable`].
    ///
    /// [`OpInfo::computable`]: super::OpInfo::computable
    Computed,
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::PerAxis(list) | Self::Numbers(list) => f.write_str(&listed(list)),
            Self::Matrix(rows) => {
                let texts: Vec<String> = rows.iter().map(|row| listed(row)).collect();
                f.write_str(&texts.join(";"))
            }
            Self::Choice(word) => f.write_str(word),
            Self::DType(dtype) => write!(f, "{dtype}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Computed => f.write_str("computed"),
        }
    }
}

/// Numbers with commas between them.
pub(super) fn listed(list: &[f64]) -> String {
    let texts: Vec<String> = list.iter().map(f64::to_string).collect();
    texts.join(",")
}

/// The most numbers one parameter may list.
pub const MAX_NUMBERS: usize = 4096;

const BOUNDARIES: [&str; 4] = [
    Boundary::ALL[0].name(),
    Boundary::ALL[1].name(),
    Boundary::ALL[2].name(),
    Boundary::ALL[3].name(),
];

/// The kind of a parameter that names a boundary rule.
pub(super) const BOUNDARY_KIND: ParamKind = ParamKind::Choice(&BOUNDARIES);

/// What every neighbourhood operation takes.
pub(super) const BOUNDARY: ParamInfo = ParamInfo {
    name: "boundary",
    kind: BOUNDARY_KIND,
    fallback: Fallback::Text("clamp"),
    doc: "what lies beyond the edge: the edge pixel, zeros, the mirrored or the repeated image",
};

impl ParamKind {
    /// The value that was given, or `None` if it is none of this kind.
    pub fn read(&self, given: &GivenValue) -> Option<ParamValue> {
        match self {
            Self::Number(span) => {
                let number = given.number()?;
                span.contains(number).then_some(ParamValue::Number(number))
            }
            Self::Integer(span) => {
                let number = given.integer()?;
                // Limits are far below 2^53, beyond which this could round.
                span.contains(number as f64)
                    .then_some(ParamValue::Integer(number))
            }
            Self::PerAxis(span) => numbers(given, *span, 1, 3).map(ParamValue::PerAxis),
            Self::Choice(words) => {
                let text = given.text()?.trim();
                let word = words.iter().find(|word| **word == text)?;
                Some(ParamValue::Choice(word))
            }
            Self::DType => {
                let dtype: DType = given.text()?.trim().parse().ok()?;
                PIXELS.contains(&dtype).then_some(ParamValue::DType(dtype))
            }
            Self::Numbers(span, least, most) => {
                numbers(given, *span, *least, *most).map(ParamValue::Numbers)
            }
            Self::Matrix => {
                let rows = given.rows(16)?;
                let all = || rows.iter().flatten();
                let fits = all().count() >= 4 && all().all(|number| Span::FINITE.contains(*number));
                fits.then_some(ParamValue::Matrix(rows))
            }
            Self::Flag => given.flag().map(ParamValue::Flag),
        }
    }
}

fn numbers(given: &GivenValue, span: Span, least: usize, most: usize) -> Option<Vec<f64>> {
    let list = given.numbers(most)?;
    let fits = list.len() >= least && list.iter().all(|number| span.contains(*number));
    fits.then_some(list)
}

/// In words, after "takes".
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(span) if *span == Span::FINITE => f.write_str("a number"),
            Self::Number(span) => write!(f, "a number, {span}"),
            Self::Integer(span) => write!(f, "a whole number, {span}"),
            Self::PerAxis(span) => {
                let whole = if span.whole { "whole " } else { "" };
                if *span == Span::FINITE {
                    return f.write_str("a number, or one per axis as z,y,x");
                }
                write!(f, "a {whole}number, or one per axis as z,y,x, {span}")
            }
            Self::Choice(words) => write!(f, "{}", words.join(" | ")),
            Self::DType => {
                let names: Vec<&str> = PIXELS.iter().map(|dtype| dtype.name()).collect();
                write!(f, "{}", names.join(" | "))
            }
            Self::Numbers(_, 1, 2) => f.write_str("1 or 2 numbers separated by commas"),
            Self::Numbers(span, _, most) => {
                write!(f, "at most {most} numbers separated by commas, {span}")
            }
            Self::Matrix => {
                f.write_str("numbers row by row, separated by commas; `;` ends a row, if any do")
            }
            Self::Flag => f.write_str("true | false"),
        }
    }
}
