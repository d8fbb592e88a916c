//! Several images, pixel by pixel.

use super::catalogue::{EXACT, MAP, NAN_MOVES, SAME, input, same_shape};
use super::info::{DTypeRule, Family, InputInfo, OpInfo, Role};

const TWO: &[InputInfo] = &[
    input("a", Role::Image, "the first image"),
    input("b", Role::Image, "the second image"),
];

const COMBINE: OpInfo = OpInfo {
    family: Family::Combine,
    inputs: TWO,
    nan: "NaN in either image gives NaN",
    ..MAP
};

const EXTREME: OpInfo = OpInfo {
    gives: same_shape(DTypeRule::Common),
    nan: "NaN in one image gives the other's value; in both, NaN",
    tolerance: EXACT,
    ..COMBINE
};

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "add_images",
        summary: "sum of two images",
        formula: "a + b",
        reference: "a + b",
        ..COMBINE
    },
    OpInfo {
        name: "subtract_images",
        summary: "difference of two images",
        formula: "a - b",
        reference: "a - b",
        ..COMBINE
    },
    OpInfo {
        name: "multiply_images",
        summary: "product of two images",
        formula: "a * b",
        reference: "a * b",
        ..COMBINE
    },
    OpInfo {
        name: "divide_images",
        summary: "quotient of two images",
        formula: "a / b",
        notes: &["division by zero gives infinity, and 0/0 NaN, as in IEEE 754"],
        reference: "a / b",
        ..COMBINE
    },
    OpInfo {
        name: "absolute_difference",
        summary: "distance between two images",
        formula: "|a - b|",
        reference: "numpy.abs(a - b)",
        ..COMBINE
    },
    OpInfo {
        name: "maximum_images",
        summary: "the larger of two images",
        formula: "max(a, b)",
        reference: "numpy.fmax(a, b)",
        ..EXTREME
    },
    OpInfo {
        name: "minimum_images",
        summary: "the smaller of two images",
        formula: "min(a, b)",
        reference: "numpy.fmin(a, b)",
        ..EXTREME
    },
    OpInfo {
        name: "mask_image",
        summary: "black out what a mask leaves out",
        formula: "a where mask != 0, else 0",
        inputs: &[
            input("image", Role::Image, "the image"),
            input("mask", Role::Mask, "kept where it is not 0"),
        ],
        gives: SAME,
        nan: "a NaN pixel is moved like any value; NaN in the mask is not 0",
        tolerance: EXACT,
        reference: "numpy.where(mask != 0, image, 0)",
        ..COMBINE
    },
    OpInfo {
        name: "select",
        summary: "one image inside a mask, another outside",
        formula: "a where mask != 0, else b",
        inputs: &[
            input("mask", Role::Mask, "chooses"),
            input("a", Role::Image, "taken where the mask is not 0"),
            input("b", Role::Image, "taken where the mask is 0"),
        ],
        gives: same_shape(DTypeRule::Common),
        nan: NAN_MOVES,
        tolerance: EXACT,
        reference: "numpy.where(mask != 0, a, b)",
        ..COMBINE
    },
];
