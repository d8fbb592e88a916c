//! One pixel in, one pixel out.

use super::catalogue::{EXPONENTIAL, MAP, absent, passes, preset, required};
use super::info::{Bound, DTypeRule, Gives, OpInfo, Rule, ShapeRule, Tolerance};
use super::param::{ParamInfo, ParamKind, Span};

const fn number(name: &'static str, text: &'static str, doc: &'static str) -> ParamInfo {
    preset(name, ParamKind::Number(Span::FINITE), text, doc)
}

const WHITE: ParamInfo = absent(
    "maximum",
    ParamKind::Number(Span::FINITE),
    "the value that stands for white; left out, the image's largest",
);

const SCALE: ParamKind = ParamKind::Numbers(Span::FINITE, 1, 2);

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "affine_intensity",
        summary: "scale and offset intensities",
        formula: "a*scale + offset",
        own_params: &[
            number("scale", "1", "what intensities are multiplied with"),
            number("offset", "0", "what is added then"),
        ],
        reference: "a*scale + offset",
        ..MAP
    },
    OpInfo {
        name: "power",
        summary: "raise to a power",
        formula: "a ** exponent",
        own_params: &[required(
            "exponent",
            ParamKind::Number(Span::FINITE),
            "the power",
        )],
        nan: "NaN gives NaN, except that NaN**0 is 1; a negative base with a fractional exponent gives NaN",
        tolerance: EXPONENTIAL,
        reference: "numpy.power(a, exponent)",
        ..MAP
    },
    OpInfo {
        name: "gamma",
        summary: "brighten or darken mid-tones, white kept",
        formula: "(a/max)**gamma * max, max = the image's largest value",
        own_params: &[
            required(
                "gamma",
                ParamKind::Number(Span::FINITE),
                "below 1 brightens, above 1 darkens",
            ),
            WHITE,
        ],
        nan: "NaN pixels give NaN and do not count for the largest value",
        traffic: passes(2),
        tolerance: EXPONENTIAL,
        reference: "(a/a.max())**gamma * a.max()",
        ..MAP
    },
    OpInfo {
        name: "exp",
        summary: "exponential",
        formula: "exp(a*scale)",
        own_params: &[number("scale", "1", "what intensities are multiplied with")],
        tolerance: EXPONENTIAL,
        reference: "numpy.exp(a*scale)",
        ..MAP
    },
    OpInfo {
        name: "log1p",
        summary: "logarithm of 1 + intensity",
        formula: "log(1 + a)",
        nan: "NaN and values below -1 give NaN; -1 gives -infinity",
        reference: "numpy.log1p(a)",
        ..MAP
    },
    OpInfo {
        name: "sqrt",
        summary: "square root",
        formula: "sqrt(a)",
        nan: "NaN and negative values give NaN",
        reference: "numpy.sqrt(a)",
        ..MAP
    },
    OpInfo {
        name: "abs",
        summary: "distance from 0",
        formula: "|a|",
        reference: "numpy.abs(a)",
        ..MAP
    },
    OpInfo {
        name: "invert",
        summary: "turn dark into bright",
        formula: "max - a, max = the image's largest value",
        own_params: &[WHITE],
        nan: "NaN pixels give NaN and do not count for the largest value",
        traffic: passes(2),
        reference: "a.max() - a",
        ..MAP
    },
    OpInfo {
        name: "clip",
        summary: "limit intensities to a range",
        formula: "min(max(a, low), high)",
        own_params: &[
            absent(
                "low",
                ParamKind::Number(Span::ANY),
                "the smallest value left; left out, no limit",
            ),
            absent(
                "high",
                ParamKind::Number(Span::ANY),
                "the largest value left; left out, no limit",
            ),
        ],
        rules: &[Rule::Ordered("low", "high")],
        reference: "numpy.clip(a, low, high)",
        ..MAP
    },
    OpInfo {
        name: "cast",
        summary: "change the element type, on a fixed scale",
        formula: "(a - from_low) * (to_high-to_low)/(from_high-from_low) + to_low, rounded to nearest even, saturated",
        notes: &[
            "without scale_from and scale_to the values stay what they are",
            "with one of them, the other is the whole range of its type, 0 to 1 for f32 and f64",
            "never stretches by the image's own minimum and maximum",
            "the mapping is computed in f64; integers to integers without a scale are exact",
        ],
        own_params: &[
            required("type", ParamKind::DType, "the element type of the result"),
            preset(
                "mode",
                ParamKind::Choice(&["saturate", "wrap"]),
                "saturate",
                "whole numbers the type cannot hold become its nearest, or wrap around as in numpy's astype; from f32 and f64 they become its nearest either way",
            ),
            absent(
                "scale_from",
                SCALE,
                "the range mapped onto scale_to: low,high, or high alone with low = 0",
            ),
            absent(
                "scale_to",
                SCALE,
                "the range scale_from is mapped onto: low,high, or high alone with low = 0",
            ),
        ],
        rules: &[Rule::Scale("scale_from"), Rule::Scale("scale_to")],
        gives: Gives::Image {
            dtype: DTypeRule::Param("type"),
            shape: ShapeRule::Same,
        },
        nan: "NaN becomes 0 in integer types and stays NaN in f32 and f64",
        tolerance: Tolerance {
            reference: Bound::Exact,
            strict: Bound::Exact,
            wgpu: Bound::Ulp(1),
            fast: Bound::Ulp(1),
        },
        reference: "numpy.clip(numpy.rint(a*scale), type's min, type's max).astype(type)",
        ..MAP
    },
];
