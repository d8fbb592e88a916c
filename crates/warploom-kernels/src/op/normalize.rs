//! Intensities made comparable.

use super::catalogue::{
    LONG_WINDOWS, MAP, NAN_SPREADS, SUMMED, absent, input, optional, passes, preset, required,
    sigma,
};
use super::info::{Family, OpInfo, Role, Rule};
use super::param::{ParamKind, Span};

const NORMALIZE: OpInfo = OpInfo {
    family: Family::Normalize,
    ..MAP
};

const BACKGROUND: OpInfo = OpInfo {
    own_params: &[sigma("sigma")],
    boundary: true,
    nan: NAN_SPREADS,
    tolerance: SUMMED,
    ..NORMALIZE
};

const PERCENT: ParamKind = ParamKind::Number(Span::between(0.0, 100.0));

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "minmax_normalize",
        summary: "stretch the image's own range to 0..1",
        formula: "(a - min) / (max - min)",
        notes: &["an image of one value gives 0/0, NaN"],
        nan: "NaN pixels give NaN and do not count for min and max",
        traffic: passes(2),
        reference: "(a - a.min()) / (a.max() - a.min())",
        ..NORMALIZE
    },
    OpInfo {
        name: "percentile_normalize",
        summary: "stretch between two percentiles to 0..1",
        formula: "clip((a - p_low) / (p_high - p_low), 0, 1)",
        notes: &[
            "percentiles are exact, interpolated linearly between order statistics",
            "where both percentiles are one value, pixels of that value give 0/0, NaN",
        ],
        own_params: &[
            preset("low", PERCENT, "1", "the percentile that becomes 0"),
            preset("high", PERCENT, "99", "the percentile that becomes 1"),
        ],
        rules: &[Rule::Below("low", "high")],
        nan: "NaN pixels give NaN and do not count for the percentiles",
        traffic: passes(3),
        reference: "numpy.clip((a - p[0])/(p[1] - p[0]), 0, 1), p = numpy.percentile(a, [low, high])",
        ..NORMALIZE
    },
    OpInfo {
        name: "flat_field",
        summary: "even out the illumination with an image of an empty field",
        formula: "(a - dark) / (flat - dark) * mean(flat - dark)",
        notes: &["dark is a number or a third image; left out, it is 0"],
        own_params: &[absent(
            "dark",
            ParamKind::Number(Span::FINITE),
            "what the camera gives in the dark, where it is the same for every pixel",
        )],
        inputs: &[
            input("image", Role::Image, "the image"),
            input(
                "flat",
                Role::Image,
                "an image of an empty, evenly lit field",
            ),
            optional(
                "dark",
                Role::Image,
                "an image taken in the dark; instead of the number",
            ),
        ],
        rules: &[Rule::NotBoth("dark", "dark")],
        nan: "a NaN pixel gives NaN; one NaN in flat or in a dark image makes the mean, and so everything, NaN",
        reference: "(a - dark) / (flat - dark) * (flat - dark).mean()",
        ..NORMALIZE
    },
    OpInfo {
        name: "subtract_gaussian_background",
        summary: "take a smooth background away",
        formula: "a - G(a, sigma)",
        reference: "a - scipy.ndimage.gaussian_filter(a, sigma, mode=\"nearest\")",
        ..BACKGROUND
    },
    OpInfo {
        name: "divide_gaussian_background",
        summary: "divide by a smooth background",
        formula: "a / G(a, sigma)",
        notes: &[
            "division by zero gives infinity, and 0/0 NaN, as in IEEE 754",
            "G(a) is rounded by up to 16 ulp of the largest pixel: where it is smaller than that pixel, the quotient is off by as many times more",
        ],
        reference: "a / scipy.ndimage.gaussian_filter(a, sigma, mode=\"nearest\")",
        ..BACKGROUND
    },
    OpInfo {
        name: "subtract_rolling_ball",
        summary: "take away the background under a rolling ball",
        formula: "a - min over |d| <= radius of (a[i+d] + radius - sqrt(radius^2 - |d|^2))",
        notes: &[
            "the ball's height is measured in intensities, as in scikit-image",
            "outside the image there is nothing for the ball to touch, which is what clamp and reflect come to; with boundary=zero or wrap it touches zeros or the other side",
            "the background is not rounded to the image's type before it is subtracted",
            LONG_WINDOWS,
        ],
        own_params: &[required(
            "radius",
            ParamKind::Number(Span::above(0.0, 1000.0)),
            "the ball's radius in pixels, and in intensities",
        )],
        boundary: true,
        rules: &[Rule::Window("radius"), Rule::Margin("radius")],
        nan: "NaN holds no ball up; a NaN pixel gives NaN",
        reference: "a - skimage.restoration.rolling_ball(a, radius=radius)",
        ..NORMALIZE
    },
    OpInfo {
        name: "unsharp",
        summary: "sharpen by what a blur takes away",
        formula: "a + amount*(a - G(a, sigma))",
        notes: &[
            "the blur's rounding is multiplied, too: bounds are of the largest pixel times 1 + |amount|",
        ],
        own_params: &[
            sigma("sigma"),
            preset(
                "amount",
                ParamKind::Number(Span::FINITE),
                "1",
                "how much of the difference is added",
            ),
        ],
        reference: "a + amount*(a - scipy.ndimage.gaussian_filter(a, sigma, mode=\"nearest\"))",
        ..BACKGROUND
    },
];
