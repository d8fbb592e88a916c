//! Images made sharper than they were taken.

use super::catalogue::{MAP, NAN_SPREADS, absent, input, optional, preset, scratch};
use super::info::{Bound, Family, OpInfo, Role, Rule, Tolerance};
use super::param::{ParamKind, Span};

pub(super) static OPS: &[OpInfo] = &[OpInfo {
    name: "richardson_lucy",
    family: Family::Restore,
    summary: "undo a known blur",
    formula: "u <- u * H'(a / max(H u, 1e-12)), u = 1 at first; H the blur, H' the mirrored blur",
    notes: &[
        "the blur is a bell of `sigma`, or the `psf` image made to sum to 1",
        "`boundary` is that of both blurs",
    ],
    inputs: &[
        input("image", Role::Image, "the blurred image"),
        optional(
            "psf",
            Role::Kernel,
            "what a point looks like, centred; instead of sigma",
        ),
    ],
    own_params: &[
        absent(
            "sigma",
            ParamKind::PerAxis(Span::above(0.0, 1000.0)),
            "standard deviation of a bell-shaped blur in pixels; instead of psf",
        ),
        preset(
            "iterations",
            ParamKind::Integer(Span::whole(1, 100_000)),
            "10",
            "how many steps",
        ),
    ],
    boundary: true,
    rules: &[Rule::ParamOrInput("sigma", "psf")],
    nan: NAN_SPREADS,
    traffic: scratch(1, 8),
    tolerance: Tolerance {
        reference: Bound::Ulp(256),
        strict: Bound::Exact,
        wgpu: Bound::Ulp(256),
        fast: Bound::Ulp(1024),
    },
    reference: "u *= correlate(a/numpy.maximum(convolve(u, psf, mode=\"nearest\"), 1e-12), psf, mode=\"nearest\")",
    ..MAP
}];
