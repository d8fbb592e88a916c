//! Fewer numbers than pixels.

use super::catalogue::{EXACT, MAP, NAN_IGNORED, ROUNDED, SUMMED, absent, preset, required};
use super::info::{DTypeRule, Family, Gives, OpInfo, Ranks, Rule, ScalarRule, ShapeRule};
use super::param::{MAX_NUMBERS, ParamKind, Span};
use super::rank::ZEROS;

const fn plane(dtype: DTypeRule) -> Gives {
    Gives::Image {
        dtype,
        shape: ShapeRule::DropZ,
    }
}

const PROJECT: OpInfo = OpInfo {
    family: Family::Reduce,
    ranks: Ranks::Stack,
    gives: plane(DTypeRule::Real),
    nan: "a column that holds a NaN gives NaN",
    tolerance: SUMMED,
    ..MAP
};

const EXTREME: OpInfo = OpInfo {
    gives: plane(DTypeRule::Same),
    nan: NAN_IGNORED,
    tolerance: EXACT,
    ..PROJECT
};

const REDUCE: OpInfo = OpInfo {
    family: Family::Reduce,
    tolerance: SUMMED,
    ..MAP
};

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "sum_z",
        summary: "sum along z",
        formula: "sum over z of a",
        notes: &["accumulated in f64"],
        reference: "a.sum(axis=0)",
        ..PROJECT
    },
    OpInfo {
        name: "max_z",
        summary: "largest along z",
        formula: "max over z of a",
        reference: "a.max(axis=0)",
        ..EXTREME
    },
    OpInfo {
        name: "min_z",
        summary: "smallest along z",
        formula: "min over z of a",
        reference: "a.min(axis=0)",
        ..EXTREME
    },
    OpInfo {
        name: "mean_z",
        summary: "mean along z",
        formula: "mean over z of a",
        notes: &["accumulated in f64"],
        reference: "a.mean(axis=0)",
        ..PROJECT
    },
    OpInfo {
        name: "std_z",
        summary: "standard deviation along z",
        formula: "sqrt(mean over z of (a - mean over z)^2)",
        notes: &["the population's, accumulated in f64"],
        reference: "a.std(axis=0)",
        ..PROJECT
    },
    OpInfo {
        name: "median_z",
        summary: "median along z",
        formula: "the middle of the sorted column; the mean of the two middle ones of an even number",
        notes: &[ZEROS],
        tolerance: ROUNDED,
        reference: "numpy.median(a, axis=0)",
        ..PROJECT
    },
    OpInfo {
        name: "argmax_z",
        summary: "where along z the largest is",
        formula: "the first z at which a is largest",
        gives: plane(DTypeRule::Index),
        nan: "NaN is ignored; a column of NaN only gives 0",
        tolerance: EXACT,
        reference: "a.argmax(axis=0)",
        ..PROJECT
    },
    OpInfo {
        name: "totals",
        summary: "smallest, largest, sum, mean and standard deviation of all pixels",
        formula: "min, max, sum, mean, std, in this order",
        notes: &["sums are accumulated in f64; std is the population's"],
        gives: Gives::Scalars(ScalarRule::Named(&["min", "max", "sum", "mean", "std"])),
        nan: "sum, mean and std become NaN; min and max ignore NaN",
        reference: "a.min(), a.max(), a.sum(), a.mean(), a.std()",
        ..REDUCE
    },
    OpInfo {
        name: "histogram",
        summary: "how many pixels have which intensity",
        formula: "counts of `bins` equal bins from low to high, each without its right edge but the last",
        notes: &[
            "as in numpy, values outside low..high are not counted",
            "low = high stands for low - 0.5 to high + 0.5, as in numpy",
            "where low or high is left out and the image's is infinite, bins have no width and the counts no meaning (numpy refuses such images): give both",
        ],
        own_params: &[
            preset(
                "bins",
                ParamKind::Integer(Span::whole(1, 1 << 20)),
                "256",
                "how many bins",
            ),
            absent(
                "low",
                ParamKind::Number(Span::FINITE),
                "left edge of the first bin; left out, the image's smallest value",
            ),
            absent(
                "high",
                ParamKind::Number(Span::FINITE),
                "right edge of the last bin; left out, the image's largest value",
            ),
        ],
        rules: &[Rule::Ordered("low", "high")],
        gives: Gives::Scalars(ScalarRule::Count("bins")),
        nan: "NaN pixels are not counted",
        tolerance: EXACT,
        reference: "numpy.histogram(a, bins, range=(low, high))[0]",
        ..REDUCE
    },
    OpInfo {
        name: "percentiles",
        summary: "percentiles of all pixels",
        formula: "sorted a at position q/100*(n-1), interpolated linearly; one per q, in the order asked",
        notes: &[
            "exact, not from a histogram",
            "more than 64 of them are found on the host, on every device",
        ],
        own_params: &[required(
            "q",
            ParamKind::Numbers(Span::between(0.0, 100.0), 1, MAX_NUMBERS),
            "the percentiles wanted",
        )],
        gives: Gives::Scalars(ScalarRule::Each("q")),
        nan: "NaN pixels are left out; an image of NaN only gives NaN",
        tolerance: ROUNDED,
        reference: "numpy.percentile(a, q)",
        ..REDUCE
    },
];
