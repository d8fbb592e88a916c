//! Weighted sums of neighbourhoods.

use super::catalogue::{
    BALL, LONG_WINDOWS, MAP, NAN_SPREADS, RADIUS, SUMMED, input, preset, required, sigma,
};
use super::info::{Family, OpInfo, Ranks, Role, Rule};
use super::param::{ParamKind, Span};

const FILTER: OpInfo = OpInfo {
    family: Family::Filter,
    boundary: true,
    nan: NAN_SPREADS,
    tolerance: SUMMED,
    ..MAP
};

const WINDOW: OpInfo = OpInfo {
    own_params: &[RADIUS],
    rules: &[Rule::SomeAxis("radius")],
    ..FILTER
};

/// What variances are made of, and what that costs where pixels are far from 0. A number to subtract
/// beforehand would have to be the same for every window that shares a sum, in every tile and on
/// every device, and without a pass over the image nobody knows a good one.
const SPREAD: &[&str] = &[
    "population variance, accumulated in f64, never below 0",
    "of whole numbers nothing is lost to an offset, in windows of up to 2^21 pixels",
    "of f32 and f64 images up to w*2^-51 of the square of the window's largest is lost, w the sum of the window's edges: where pixels are far from 0 beside their spread, subtract that first",
    "wgpu has 46 bits of f64 and loses up to w*2^-44 of that square, of whole numbers too",
];

const GRADIENT: OpInfo = OpInfo {
    formula: "(a[i+1] - a[i-1])/2, one-sided differences at the two ends",
    notes: &[
        "along an axis with one pixel the gradient is 0",
        "clamp stands for the one-sided differences; under the other rules of `boundary` the formula holds at the ends too, of the image as it goes on there",
    ],
    nan: "differences with NaN are NaN",
    ..FILTER
};

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "gaussian",
        summary: "blur with a bell",
        formula: "sum over k of w[k]*a[i+k] along each axis, w = exp(-k^2/(2*sigma^2)) made to sum to 1, |k| <= int(truncate*sigma + 0.5)",
        own_params: &[
            sigma("sigma"),
            preset(
                "truncate",
                ParamKind::Number(Span::above(0.0, 16.0)),
                "4",
                "how many standard deviations the bell reaches",
            ),
        ],
        reference: "scipy.ndimage.gaussian_filter(a, sigma, mode=\"nearest\", truncate=truncate)",
        ..FILTER
    },
    OpInfo {
        name: "mean_box",
        summary: "mean of a box",
        formula: "mean of the window of 2*radius+1 pixels along each axis",
        notes: &["cost does not depend on the radius"],
        reference: "scipy.ndimage.uniform_filter(a, 2*radius+1, mode=\"nearest\")",
        ..WINDOW
    },
    OpInfo {
        name: "mean_sphere",
        summary: "mean of a ball",
        formula: "mean of the pixels with sum((offset/radius)^2) <= 1",
        notes: &[LONG_WINDOWS],
        own_params: &[BALL],
        rules: &[Rule::SomeAxis("radius"), Rule::Window("radius")],
        reference: "scipy.ndimage.correlate(a, footprint/footprint.sum(), mode=\"nearest\")",
        ..WINDOW
    },
    OpInfo {
        name: "variance_box",
        summary: "variance of a box",
        formula: "mean of (a - window mean)^2 over the window of 2*radius+1 pixels along each axis",
        notes: SPREAD,
        reference: "scipy.ndimage.generic_filter(a, numpy.var, 2*radius+1, mode=\"nearest\")",
        ..WINDOW
    },
    OpInfo {
        name: "std_box",
        summary: "standard deviation of a box",
        formula: "sqrt(variance_box(a))",
        notes: &[
            "the population's, the root of variance_box with its rounding",
            SPREAD[1],
            SPREAD[2],
            SPREAD[3],
        ],
        reference: "scipy.ndimage.generic_filter(a, numpy.std, 2*radius+1, mode=\"nearest\")",
        ..WINDOW
    },
    OpInfo {
        name: "sobel",
        summary: "edge strength",
        formula: "sqrt(sum over axes of S^2), S = [-1 0 1] along the axis and [1 2 1] along the others",
        notes: &[
            "not normalised",
            "axes with one pixel are left out, so a stack of one plane is a plane",
        ],
        reference: "numpy.sqrt(sum(scipy.ndimage.sobel(a, axis, mode=\"nearest\")**2 for axis in axes))",
        ..FILTER
    },
    OpInfo {
        name: "gradient_x",
        summary: "slope along x",
        reference: "numpy.gradient(a, axis=-1)",
        ..GRADIENT
    },
    OpInfo {
        name: "gradient_y",
        summary: "slope along y",
        reference: "numpy.gradient(a, axis=-2)",
        ..GRADIENT
    },
    OpInfo {
        name: "gradient_z",
        summary: "slope along z",
        ranks: Ranks::Stack,
        reference: "numpy.gradient(a, axis=-3)",
        ..GRADIENT
    },
    OpInfo {
        name: "laplace_diamond",
        summary: "second differences, neighbours along the axes",
        formula: "2*d*a - sum of the 2*d neighbours along the d axes longer than 1",
        reference: "-scipy.ndimage.laplace(a, mode=\"nearest\")",
        ..FILTER
    },
    OpInfo {
        name: "laplace_box",
        summary: "second differences, all neighbours",
        formula: "(3^d - 1)*a - sum of the 3^d - 1 neighbours, d the number of axes longer than 1",
        reference: "scipy.ndimage.correlate(a, kernel, mode=\"nearest\"), kernel -1 but 3^d - 1 in the centre",
        ..FILTER
    },
    OpInfo {
        name: "difference_of_gaussian",
        summary: "details between two sizes",
        formula: "G(a, sigma1) - G(a, sigma2)",
        own_params: &[sigma("sigma1"), sigma("sigma2")],
        reference: "scipy.ndimage.gaussian_filter(a, sigma1, mode=\"nearest\") - scipy.ndimage.gaussian_filter(a, sigma2, mode=\"nearest\")",
        ..FILTER
    },
    OpInfo {
        name: "laplacian_of_gaussian",
        summary: "blobs of one size",
        formula: "sum over axes of the second derivative of the bell along it, the bell along the others",
        notes: &["as in scipy the weights of the second derivative are not made to sum to 0"],
        own_params: &[required(
            "sigma",
            ParamKind::PerAxis(Span::above(0.0, 10_000.0)),
            "standard deviation of the bell in pixels",
        )],
        reference: "scipy.ndimage.gaussian_laplace(a, sigma, mode=\"nearest\")",
        ..FILTER
    },
    OpInfo {
        name: "convolve",
        summary: "convolution with a kernel image",
        formula: "sum over k of kernel[k]*a[i + n//2 - k], n the kernel's extents",
        notes: &[
            "the kernel may be larger than the image",
            "the ulp is that of the largest sum of the terms' magnitudes: many terms may cancel",
            "on wgpu, kernels of more than 60,000 weights are applied on the host",
        ],
        inputs: &[
            input("image", Role::Image, "the image"),
            input(
                "kernel",
                Role::Kernel,
                "the weights, with as many axes as the image",
            ),
        ],
        reference: "scipy.ndimage.convolve(a, kernel, mode=\"nearest\")",
        ..FILTER
    },
];
