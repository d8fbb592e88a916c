//! A pixel against a number.

use super::catalogue::{EXACT, MAP, MASK, required};
use super::info::{Family, OpInfo, Rule};
use super::param::{ParamInfo, ParamKind, Span};

const VALUE: &[ParamInfo] = &[required(
    "value",
    ParamKind::Number(Span::ANY),
    "what pixels are compared with",
)];

const COMPARE: OpInfo = OpInfo {
    family: Family::Compare,
    own_params: VALUE,
    notes: &[
        "exact for images of whole numbers, whatever the value; for f32 images it is rounded to f32",
    ],
    gives: MASK,
    nan: "no comparison with NaN holds: 0",
    tolerance: EXACT,
    ..MAP
};

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "greater",
        summary: "mask of pixels above a value",
        formula: "a > value",
        reference: "a > value",
        ..COMPARE
    },
    OpInfo {
        name: "greater_equal",
        summary: "mask of pixels at or above a value",
        formula: "a >= value",
        reference: "a >= value",
        ..COMPARE
    },
    OpInfo {
        name: "less",
        summary: "mask of pixels below a value",
        formula: "a < value",
        reference: "a < value",
        ..COMPARE
    },
    OpInfo {
        name: "less_equal",
        summary: "mask of pixels at or below a value",
        formula: "a <= value",
        reference: "a <= value",
        ..COMPARE
    },
    OpInfo {
        name: "equal",
        summary: "mask of pixels with a value",
        formula: "a == value",
        reference: "a == value",
        ..COMPARE
    },
    OpInfo {
        name: "between",
        summary: "mask of pixels in a range, ends included",
        formula: "low <= a <= high",
        notes: &[
            "exact for images of whole numbers; for f32 images low and high are rounded to f32",
        ],
        own_params: &[
            required(
                "low",
                ParamKind::Number(Span::ANY),
                "the smallest value set",
            ),
            required(
                "high",
                ParamKind::Number(Span::ANY),
                "the largest value set",
            ),
        ],
        rules: &[Rule::Ordered("low", "high")],
        reference: "(a >= low) & (a <= high)",
        ..COMPARE
    },
];
