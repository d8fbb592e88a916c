//! From image to mask.

use super::catalogue::{MAP, MASK, NAN_OUT, NAN_SPREADS, RADIUS, passes, preset};
use super::info::{Backends, Bound, Family, OpInfo, Rule, Tolerance};
use super::param::{ParamInfo, ParamKind, Span};

const BINS: &[ParamInfo] = &[preset(
    "bins",
    ParamKind::Integer(Span::whole(2, 65_536)),
    "256",
    "bins of the histogram of f32 and f64 images",
)];

const UNUSED_BINS: &[ParamInfo] = &[preset(
    "bins",
    ParamKind::Integer(Span::whole(2, 65_536)),
    "256",
    "accepted as for the other thresholds, and changes nothing: this method uses no histogram",
)];

/// The threshold itself is a number; a pixel closer to it than the rounding may fall either side.
const THRESHOLDED: Tolerance = Tolerance {
    reference: Bound::Exact,
    strict: Bound::Exact,
    wgpu: Bound::Exact,
    fast: Bound::Exact,
};

/// Where integers do not have a bin each, and what is done for i32 and u32 by whom.
const FAR_APART: &str = "integers 2^26 or more apart are counted in `bins` bins, as f32 is";
const ON_HOST: &str = "of i32 and u32 images the threshold is found on the host, on every device";

/// What `--fast` leaves open.
const TIPS: &str = "with --fast, a pixel within rounding of the threshold may fall either side";

/// What bins cannot be made for.
const INFINITE: &str =
    "with an infinite pixel no bin has a width: the mask is empty; clip infinities first";

/// Where scikit-image is less exact.
const EDGES: &str = "edges of bins are double precision, those of f32 images too: as scikit-image has them for a.astype(float64)";

const HISTOGRAM: &[&str] = &[
    "as in scikit-image, integer images have one bin per value from their smallest to their largest",
    FAR_APART,
    EDGES,
    ON_HOST,
    TIPS,
    INFINITE,
    FORMULA_END,
];

const THRESHOLD: OpInfo = OpInfo {
    family: Family::Threshold,
    own_params: BINS,
    notes: HISTOGRAM,
    gives: MASK,
    nan: NAN_OUT,
    traffic: passes(3),
    tolerance: THRESHOLDED,
    ..MAP
};

const FORMULA_END: &str = "an image of one value has nothing above it: the mask is empty";

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "threshold_otsu",
        summary: "threshold between two classes, by variance",
        formula: "a > t, t the bin centre with the largest variance between the classes below and above",
        reference: "a > skimage.filters.threshold_otsu(a, bins)",
        ..THRESHOLD
    },
    OpInfo {
        name: "threshold_triangle",
        summary: "threshold beside one large peak",
        formula: "a > t, t the bin farthest from the line between the histogram's peak and its longer tail",
        reference: "a > skimage.filters.threshold_triangle(a, bins)",
        ..THRESHOLD
    },
    OpInfo {
        name: "threshold_li",
        summary: "threshold by minimum cross entropy",
        formula: "a > t, t the fixed point of (mean above - mean below)/(log(mean above) - log(mean below)), from the mean",
        notes: &[
            "iterated until two steps differ by at most half the smallest gap between values, as in scikit-image",
            "infinite pixels are left out of the means",
            TIPS,
            FORMULA_END,
        ],
        own_params: UNUSED_BINS,
        reference: "a > skimage.filters.threshold_li(a)",
        backends: Backends::CpuOnly {
            why: "it looks at all pixels again until it settles, and only the pixels tell how often",
        },
        ..THRESHOLD
    },
    OpInfo {
        name: "threshold_yen",
        summary: "threshold by correlation",
        notes: &[
            "as in scikit-image, integer images have one bin per value from their smallest to their largest",
            FAR_APART,
            EDGES,
            ON_HOST,
            TIPS,
            INFINITE,
            "an image of one value: the mask is empty, but full for f32 and f64, as in scikit-image",
        ],
        formula: "a > t, t the bin with the largest Yen criterion log((P1*(1-P1))^2 / (S1*S2))",
        reference: "a > skimage.filters.threshold_yen(a, bins)",
        ..THRESHOLD
    },
    OpInfo {
        name: "threshold_isodata",
        summary: "threshold halfway between the classes' means",
        formula: "a > t, t the lowest bin centre within one bin of the mean of the two classes' means",
        reference: "a > skimage.filters.threshold_isodata(a, bins)",
        ..THRESHOLD
    },
    OpInfo {
        name: "threshold_mean",
        summary: "threshold at the mean",
        formula: "a > mean(a)",
        notes: &[TIPS, FORMULA_END],
        own_params: UNUSED_BINS,
        traffic: passes(2),
        reference: "a > skimage.filters.threshold_mean(a)",
        ..THRESHOLD
    },
    OpInfo {
        name: "threshold_local",
        summary: "threshold against the surroundings",
        formula: "a > mean_box(a, radius) + offset",
        notes: &[
            "whole numbers are compared with all their digits, in windows of up to 2^21 pixels",
            "f32 and f64 pixels are compared with mean_box's mean: one within its rounding, 16 ulp, may fall either side",
            TIPS,
        ],
        own_params: &[
            RADIUS,
            preset(
                "offset",
                ParamKind::Number(Span::FINITE),
                "0",
                "how far above its surroundings a pixel must be",
            ),
        ],
        boundary: true,
        rules: &[Rule::SomeAxis("radius")],
        nan: NAN_SPREADS,
        traffic: passes(1),
        reference: "a > scipy.ndimage.uniform_filter(a, 2*radius+1, mode=\"nearest\") + offset",
        ..THRESHOLD
    },
];
