//! By Fourier transform.

use super::catalogue::{MAP, input, scratch};
use super::info::{Backends, Bound, Family, Gives, OpInfo, Role, ScalarRule, Tolerance};

const FOURIER: OpInfo = OpInfo {
    family: Family::Fourier,
    traffic: scratch(1, 16),
    nan: "one NaN makes everything NaN",
    backends: Backends::CpuOnly {
        why: "strict numbers need the same transform on every device, and so far only the CPU has one",
    },
    ..MAP
};

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "fft_convolve",
        summary: "convolution with a large kernel image",
        formula: "sum over k of kernel[k]*a[i + n//2 - k], n the kernel's extents, by Fourier transform",
        notes: &[
            "the numbers of `convolve`; its cost hardly depends on the kernel's size",
            "the ulp is that of the largest sum of the terms' magnitudes: many terms may cancel",
        ],
        inputs: &[
            input("image", Role::Image, "the image"),
            input(
                "kernel",
                Role::Kernel,
                "the weights, with as many axes as the image",
            ),
        ],
        boundary: true,
        tolerance: Tolerance {
            reference: Bound::Ulp(64),
            strict: Bound::Exact,
            wgpu: Bound::Ulp(64),
            fast: Bound::Ulp(128),
        },
        reference: "numpy.fft.irfftn(numpy.fft.rfftn(padded a)*numpy.fft.rfftn(padded kernel)), cut to a",
        ..FOURIER
    },
    OpInfo {
        name: "phase_shift",
        summary: "by how many whole pixels one image is moved against another",
        formula: "position of the largest value of F^-1(A*conj(B)/|A*conj(B)|), wrapped to -n/2..n/2; (dz,) dy, dx",
        notes: &[
            "a moved by (dy, dx) against b: numpy.roll(b, (dy, dx)) is a",
            "of several largest values, the first in scan order",
        ],
        inputs: &[
            input("a", Role::Image, "the image that moved"),
            input("b", Role::Image, "the image it is held against"),
        ],
        gives: Gives::Scalars(ScalarRule::Shift),
        tolerance: super::catalogue::EXACT,
        reference: "skimage.registration.phase_cross_correlation(a, b)[0]",
        ..FOURIER
    },
];
