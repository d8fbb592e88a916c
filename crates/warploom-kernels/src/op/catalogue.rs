//! All operations, and the patterns their tables start from.

use super::error::{OpError, shown};
use super::info::{
    Backends, Bound, DTypeRule, Family, Gives, InputInfo, OpInfo, Ranks, Role, ShapeRule,
    Tolerance, Traffic,
};
use super::param::{Fallback, ParamInfo, ParamKind, Span};
use super::params::near;
use super::{
    binary, combine, compare, filter, fourier, geometry, label, morphology, normalize, pointwise,
    rank, reduce, restore, threshold,
};

/// Every operation, by family.
pub fn ops() -> impl Iterator<Item = &'static OpInfo> {
    let families: [&[OpInfo]; 14] = [
        pointwise::OPS,
        compare::OPS,
        combine::OPS,
        normalize::OPS,
        filter::OPS,
        rank::OPS,
        morphology::OPS,
        binary::OPS,
        threshold::OPS,
        label::OPS,
        reduce::OPS,
        geometry::OPS,
        fourier::OPS,
        restore::OPS,
    ];
    families.into_iter().flatten()
}

/// The operation of this name.
pub fn find(name: &str) -> Result<&'static OpInfo, OpError> {
    let found = ops().find(|op| op.name == name);
    found.ok_or_else(|| OpError::UnknownOp {
        name: shown(name),
        near: near(name, ops().map(|op| op.name)),
    })
}

// ---- patterns the tables start from ---------------------------------------------------------

/// The same bits everywhere.
pub(super) const EXACT: Tolerance = Tolerance {
    reference: Bound::Exact,
    strict: Bound::Exact,
    wgpu: Bound::Exact,
    fast: Bound::Exact,
};

/// Rounded once or a few times.
pub(super) const ROUNDED: Tolerance = Tolerance {
    reference: Bound::Ulp(4),
    strict: Bound::Exact,
    wgpu: Bound::Ulp(4),
    fast: Bound::Ulp(16),
};

/// Exponentials: wgpu may round products that are added to something, which costs as many units as
/// the exponent is large.
pub(super) const EXPONENTIAL: Tolerance = Tolerance {
    reference: Bound::Ulp(4),
    strict: Bound::Exact,
    wgpu: Bound::Ulp(192),
    fast: Bound::Ulp(768),
};

/// Sums over many pixels.
pub(super) const SUMMED: Tolerance = Tolerance {
    reference: Bound::Ulp(16),
    strict: Bound::Exact,
    wgpu: Bound::Ulp(16),
    fast: Bound::Ulp(64),
};

/// Each input read once, nothing in between.
pub(super) const ONCE: Traffic = Traffic {
    passes: 1,
    scratch: 0,
};

/// Inputs read this often.
pub(super) const fn passes(passes: u32) -> Traffic {
    Traffic { passes, scratch: 0 }
}

/// An f32 image between passes.
pub(super) const fn scratch(passes: u32, scratch: u32) -> Traffic {
    Traffic { passes, scratch }
}

/// An image of real numbers as large as the input.
pub(super) const REAL: Gives = same_shape(DTypeRule::Real);
/// An image of the input's type and extents.
pub(super) const SAME: Gives = same_shape(DTypeRule::Same);
/// A mask as large as the input.
pub(super) const MASK: Gives = same_shape(DTypeRule::Mask);
/// Labels as large as the input.
pub(super) const LABELS: Gives = same_shape(DTypeRule::Labels);

pub(super) const fn same_shape(dtype: DTypeRule) -> Gives {
    Gives::Image {
        dtype,
        shape: ShapeRule::Same,
    }
}

pub(super) const fn input(name: &'static str, role: Role, doc: &'static str) -> InputInfo {
    InputInfo {
        name,
        doc,
        optional: false,
        role,
    }
}

pub(super) const fn optional(name: &'static str, role: Role, doc: &'static str) -> InputInfo {
    InputInfo {
        name,
        doc,
        optional: true,
        role,
    }
}

/// The one image of most operations.
pub(super) const IMAGE: &[InputInfo] = &[input("image", Role::Image, "the image")];

pub(super) const fn required(name: &'static str, kind: ParamKind, doc: &'static str) -> ParamInfo {
    ParamInfo {
        name,
        kind,
        fallback: Fallback::Required,
        doc,
    }
}

pub(super) const fn preset(
    name: &'static str,
    kind: ParamKind,
    text: &'static str,
    doc: &'static str,
) -> ParamInfo {
    ParamInfo {
        name,
        kind,
        fallback: Fallback::Text(text),
        doc,
    }
}

pub(super) const fn absent(name: &'static str, kind: ParamKind, doc: &'static str) -> ParamInfo {
    ParamInfo {
        name,
        kind,
        fallback: Fallback::Absent,
        doc,
    }
}

/// The longest radius: a window of 65535 pixels.
const MAX_RADIUS: i64 = 32_767;
/// The widest bell: a window of 80001 pixels.
const MAX_SIGMA: f64 = 10_000.0;

/// Whole pixels to each side.
pub(super) const RADIUS: ParamInfo = required(
    "radius",
    ParamKind::PerAxis(Span::whole(0, MAX_RADIUS)),
    "pixels to each side of the centre; the window is 2*radius+1 long",
);

/// The radius of a ball.
pub(super) const BALL: ParamInfo = required(
    "radius",
    ParamKind::PerAxis(Span::between(0.0, MAX_RADIUS as f64)),
    "half axes r of the ball: pixels with sum((offset/r)^2) <= 1",
);

/// A bell's width.
pub(super) const fn sigma(name: &'static str) -> ParamInfo {
    required(
        name,
        ParamKind::PerAxis(Span::between(0.0, MAX_SIGMA)),
        "standard deviation of the bell in pixels; an axis with 0 is left as it is",
    )
}

/// Windows that are gone through pixel by pixel.
pub(super) const LONG_WINDOWS: &str =
    "on wgpu, windows of more than 60,000 pixels are computed on the host";

/// What becomes of NaN in one pixel out of the same pixel.
pub(super) const NAN_STAYS: &str = "a NaN pixel gives NaN";
/// What becomes of NaN in sums over windows.
pub(super) const NAN_SPREADS: &str = "every window that holds a NaN gives NaN";
/// What becomes of NaN in minima and maxima.
pub(super) const NAN_IGNORED: &str =
    "NaN is ignored; a window of NaN only gives infinity (minimum) or -infinity (maximum)";
/// What becomes of NaN where pixels are counted or compared.
pub(super) const NAN_OUT: &str = "NaN pixels are left out of every count and are 0 in the mask";
/// What becomes of NaN where only zero and not zero matter.
pub(super) const NAN_SET: &str = "NaN is not 0, so it counts as set";
/// What becomes of NaN where there is none.
pub(super) const NAN_NONE: &str = "labels are whole numbers";
/// What becomes of NaN where pixels only move.
pub(super) const NAN_MOVES: &str = "NaN is moved like any value";

/// What most tables fill in the rest from: an exact map of one image to one of real numbers.
pub(super) const MAP: OpInfo = OpInfo {
    name: "",
    family: Family::Pointwise,
    summary: "",
    formula: "",
    notes: &[],
    inputs: IMAGE,
    own_params: &[],
    boundary: false,
    rules: &[],
    ranks: Ranks::Any,
    gives: REAL,
    nan: NAN_STAYS,
    traffic: ONCE,
    reference: "",
    tolerance: ROUNDED,
    backends: Backends::All,
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::op::Family;
    use crate::op::given::GivenValue;
    use crate::op::info::Rule;

    /// The names people were promised.
    const PROMISED: &str = "
        affine_intensity power gamma exp log1p sqrt abs invert clip
        greater greater_equal less less_equal equal between
        add_images subtract_images multiply_images divide_images absolute_difference
        maximum_images minimum_images mask_image select cast
        minmax_normalize percentile_normalize flat_field
        subtract_gaussian_background divide_gaussian_background subtract_rolling_ball unsharp
        gaussian mean_box mean_sphere median_box median_sphere percentile_box
        minimum_box maximum_box minimum_sphere maximum_sphere variance_box std_box
        sobel gradient_x gradient_y gradient_z laplace_diamond laplace_box
        difference_of_gaussian laplacian_of_gaussian convolve
        opening_box closing_box top_hat_box bottom_hat_box
        opening_sphere closing_sphere top_hat_sphere bottom_hat_sphere
        binary_erode binary_dilate binary_open binary_close
        binary_and binary_or binary_xor binary_not fill_holes distance_transform
        threshold_otsu threshold_triangle threshold_li threshold_yen threshold_isodata
        threshold_mean threshold_local
        label_box label_diamond remove_small_labels remove_large_labels
        clear_border expand_labels relabel_sequential watershed local_maxima label_statistics
        sum_z max_z min_z mean_z std_z median_z argmax_z totals histogram percentiles
        crop pad flip_x flip_y flip_z transpose_xy transpose_xz transpose_yz
        bin_mean bin_sum bin_max
        shift_linear rotate_linear affine_linear resize_linear resize_nearest
        fft_convolve phase_shift richardson_lucy blend_two
    ";

    #[test]
    fn every_promised_operation_is_there_once() {
        let promised: BTreeSet<&str> = PROMISED.split_whitespace().collect();
        let there: Vec<&str> = ops().map(|op| op.name).collect();
        assert_eq!(there.iter().copied().collect::<BTreeSet<_>>(), promised);
        assert_eq!(there.len(), promised.len(), "a name comes twice");
    }

    #[test]
    fn families_are_listed_in_order() {
        let families: Vec<Family> = ops().map(|op| op.family).collect();
        assert!(families.is_sorted());
        assert_eq!(BTreeSet::from_iter(families).len(), Family::ALL.len());
    }

    #[test]
    fn at_most_eight_operations_need_the_cpu() {
        let cpu = |op: &&OpInfo| matches!(op.backends, Backends::CpuOnly { .. });
        assert!(ops().filter(cpu).count() <= 8);
    }

    #[test]
    fn tables_are_complete_and_consistent() {
        for op in ops() {
            for text in [op.summary, op.formula, op.nan, op.reference] {
                assert!(!text.is_empty(), "{} lacks a text", op.name);
            }
            let optional: Vec<bool> = op.inputs.iter().map(|input| input.optional).collect();
            assert!(optional.is_sorted() && !optional[0], "{}", op.name);
            for param in op.params() {
                let twins = op.params().filter(|other| other.name == param.name);
                assert_eq!(twins.count(), 1, "{} {}", op.name, param.name);
                if let Fallback::Text(text) = param.fallback {
                    let value = param.kind.read(&GivenValue::from(text));
                    assert_eq!(
                        value.map(|value| value.to_string()).as_deref(),
                        Some(text),
                        "{} {}",
                        op.name,
                        param.name
                    );
                }
            }
            for rule in op.rules {
                let names = match *rule {
                    Rule::Ordered(a, b) | Rule::Below(a, b) => vec![a, b],
                    Rule::SomeAxis(a)
                    | Rule::Window(a)
                    | Rule::StackParam(a)
                    | Rule::AffineMatrix(a)
                    | Rule::Scale(a)
                    | Rule::Margin(a)
                    | Rule::NotBoth(a, _)
                    | Rule::ParamOrInput(a, _) => vec![a],
                };
                for name in names {
                    assert!(op.param(name).is_some(), "{} {name}", op.name);
                }
            }
        }
    }

    #[test]
    fn near_misses_are_named() {
        let error = find("gausian").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no operation `gausian`; did you mean `gaussian`?"
        );
        let error = find("zebra").unwrap_err();
        assert_eq!(error.to_string(), "there is no operation `zebra`");
    }
}
