//! Masks: everything that is not 0 counts as set.

use super::catalogue::{EXACT, MAP, MASK, NAN_SET, REAL, input, preset, scratch};
use super::info::{Bound, Family, InputInfo, OpInfo, Role, Tolerance};
use super::param::{ParamInfo, ParamKind, Span};

const ONE: &[InputInfo] = &[input("mask", Role::Mask, "set where it is not 0")];
const TWO: &[InputInfo] = &[
    input("a", Role::Mask, "set where it is not 0"),
    input("b", Role::Mask, "set where it is not 0"),
];

const SHAPE: &[ParamInfo] = &[
    preset(
        "shape",
        ParamKind::Choice(&["box", "diamond"]),
        "box",
        "the neighbourhood: all 3^d pixels, or only those along the axes",
    ),
    preset(
        "iterations",
        ParamKind::Integer(Span::whole(1, 32_767)),
        "1",
        "how often; for opening and closing, how often each half",
    ),
];

const BINARY: OpInfo = OpInfo {
    family: Family::Binary,
    inputs: ONE,
    gives: MASK,
    nan: NAN_SET,
    tolerance: EXACT,
    ..MAP
};

const GROW: OpInfo = OpInfo {
    own_params: SHAPE,
    boundary: true,
    notes: &[
        "outside the image counts as set for erosion and as not set for dilation, which is what clamp comes to",
        "with boundary=zero it counts as not set for both, as with scipy's border_value=0",
    ],
    ..BINARY
};

const LOGIC: OpInfo = OpInfo {
    inputs: TWO,
    ..BINARY
};

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "binary_erode",
        summary: "shrink a mask",
        formula: "set where the whole neighbourhood is set",
        reference: "scipy.ndimage.binary_erosion(mask, structure, iterations, border_value=1)",
        ..GROW
    },
    OpInfo {
        name: "binary_dilate",
        summary: "grow a mask",
        formula: "set where some pixel of the neighbourhood is set",
        reference: "scipy.ndimage.binary_dilation(mask, structure, iterations)",
        ..GROW
    },
    OpInfo {
        name: "binary_open",
        summary: "remove what is smaller than the neighbourhood",
        formula: "binary_dilate(binary_erode(mask))",
        reference: "scipy.ndimage.binary_dilation(scipy.ndimage.binary_erosion(mask, structure, iterations, border_value=1), structure, iterations)",
        ..GROW
    },
    OpInfo {
        name: "binary_close",
        summary: "fill gaps smaller than the neighbourhood",
        formula: "binary_erode(binary_dilate(mask))",
        reference: "scipy.ndimage.binary_erosion(scipy.ndimage.binary_dilation(mask, structure, iterations), structure, iterations, border_value=1)",
        ..GROW
    },
    OpInfo {
        name: "binary_and",
        summary: "set in both",
        formula: "(a != 0) and (b != 0)",
        reference: "numpy.logical_and(a, b)",
        ..LOGIC
    },
    OpInfo {
        name: "binary_or",
        summary: "set in one or both",
        formula: "(a != 0) or (b != 0)",
        reference: "numpy.logical_or(a, b)",
        ..LOGIC
    },
    OpInfo {
        name: "binary_xor",
        summary: "set in exactly one",
        formula: "(a != 0) != (b != 0)",
        reference: "numpy.logical_xor(a, b)",
        ..LOGIC
    },
    OpInfo {
        name: "binary_not",
        summary: "set where the mask is not",
        formula: "a == 0",
        reference: "numpy.logical_not(mask)",
        ..BINARY
    },
    OpInfo {
        name: "fill_holes",
        summary: "fill what the background cannot reach",
        formula: "set, or not connected to the edge through pixels that are not set",
        notes: &["the background is connected along the axes only (4 or 6 neighbours)"],
        traffic: scratch(1, 4),
        reference: "scipy.ndimage.binary_fill_holes(mask)",
        ..BINARY
    },
    OpInfo {
        name: "distance_transform",
        summary: "distance to the nearest pixel that is not set",
        formula: "sqrt(min over unset j of |i - j|^2), 0 where not set",
        notes: &[
            "the squared distance is exact; its root is rounded once",
            "with no unset pixel at all, distances are to position -1 of the first axis, whatever its length, and 0 of the others, as in scipy",
            "extents whose squares sum to 2^31 or more (a diagonal of 46,341 pixels) are computed on the host",
        ],
        gives: REAL,
        traffic: scratch(1, 4),
        tolerance: Tolerance {
            reference: Bound::Ulp(1),
            strict: Bound::Exact,
            wgpu: Bound::Ulp(4),
            fast: Bound::Ulp(4),
        },
        reference: "scipy.ndimage.distance_transform_edt(mask)",
        ..BINARY
    },
];
