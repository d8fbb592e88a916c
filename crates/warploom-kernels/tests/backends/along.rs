//! Weighted sums and windows along one axis.

use warploom_core::DType;
use warploom_kernels::Boundary;
use warploom_kernels::flow::{Combine, Flow, ValueKind, Weights};

use super::case::{Case, DTYPES, image};
use super::devices::agree;

/// Extents: odd, one pixel along an axis, longer than a run, a stack.
const SHAPES: [[u64; 3]; 5] = [[1, 13, 70], [1, 1, 9], [1, 7, 1], [5, 6, 11], [1, 3, 200]];

fn taps(dtype: DType, dims: [u64; 3], axis: u8, weights: Weights, boundary: Boundary) -> Case {
    let mut flow = Flow::new();
    let name = format!("{weights:?} along {axis} of {dtype} {dims:?}, {boundary}");
    let input = flow.input(ValueKind::Image(image(dtype, dims)));
    let output = flow.taps(input, axis, weights, boundary);
    flow.output(output);
    Case::new(name, flow)
}

fn window(dtype: DType, dims: [u64; 3], axis: u8, radius: u32, combine: Combine) -> Case {
    let boundary = Boundary::ALL[(radius % 4) as usize];
    let mut flow = Flow::new();
    let name = format!("{combine:?} of {radius} along {axis} of {dtype} {dims:?}, {boundary}");
    let input = flow.input(ValueKind::Image(image(dtype, dims)));
    let sum = flow.real(input).0;
    let output = flow.window(input, axis, radius, combine, boundary, sum);
    flow.output(output);
    Case::new(name, flow)
}

fn even(radius: i32) -> Weights {
    Weights::Even((0..=radius).map(|k| 0.4 / f64::from(1 + k * k)).collect())
}

fn any(radius: i32) -> Weights {
    let weights = 0..=2 * radius;
    Weights::Any(weights.map(|k| 0.1 + f64::from(k) / 7.0).collect())
}

#[test]
fn taps_of_every_type() {
    agree(DTYPES.iter().flat_map(|dtype| {
        (0..3).map(|axis| taps(*dtype, [3, 5, 70], axis, even(2), Boundary::Clamp))
    }));
}

#[test]
fn taps_of_every_shape_beyond_every_edge() {
    let odd = || Weights::Odd(vec![0.5, 0.25, 0.125]);
    agree(Boundary::ALL.into_iter().flat_map(|boundary| {
        SHAPES.into_iter().flat_map(move |dims| {
            (0..3).flat_map(move |axis| {
                [even(0), even(4), even(30), odd(), any(1), any(12)]
                    .map(|weights| taps(DType::F32, dims, axis, weights, boundary))
            })
        })
    }));
}

#[test]
fn windows_of_every_type() {
    let combines = [Combine::Sum, Combine::Min, Combine::Max];
    agree(DTYPES.iter().flat_map(move |dtype| {
        combines.into_iter().flat_map(move |combine| {
            (0..3).flat_map(move |axis| {
                [4, 20].map(move |radius| window(*dtype, [3, 5, 70], axis, radius, combine))
            })
        })
    }));
}

#[test]
fn windows_of_every_shape_beyond_every_edge() {
    let combines = [Combine::Sum, Combine::Min, Combine::Max];
    agree(SHAPES.into_iter().flat_map(move |dims| {
        (0..3).flat_map(move |axis| {
            combines.into_iter().flat_map(move |combine| {
                [0, 1, 2, 3, 20, 21, 22, 23]
                    .map(move |radius| window(DType::F32, dims, axis, radius, combine))
            })
        })
    }));
}

/// Extents of more than one piece of what a processor works on at once, whole ones and others.
const PIECES: [[u64; 3]; 2] = [[1, 130, 64], [1, 5, 1100]];

#[test]
fn taps_of_several_pieces() {
    let odd = || Weights::Odd(vec![0.5, 0.25, 0.125, 0.0625, 0.5, 0.1]);
    agree(PIECES.into_iter().flat_map(|dims| {
        (1..3).flat_map(move |axis| {
            let weights = [even(9), odd(), any(6), even(70)];
            let cases = weights.into_iter().zip(Boundary::ALL);
            cases.map(move |(weights, boundary)| taps(DType::F32, dims, axis, weights, boundary))
        })
    }));
}

#[test]
fn windows_of_several_pieces() {
    let combines = [Combine::Sum, Combine::Min, Combine::Max];
    agree(PIECES.into_iter().flat_map(move |dims| {
        (1..3).flat_map(move |axis| {
            combines.into_iter().flat_map(move |combine| {
                [1, 3, 32, 33, 64, 65, 513]
                    .map(move |radius| window(DType::F32, dims, axis, radius, combine))
            })
        })
    }));
}

/// Which of two equal zeros is the extreme depends on the order in which they are looked at.
#[test]
fn zeros_of_both_signs_in_windows() {
    let pixels: Vec<f32> = (0_u32..130 * 70)
        .map(|at| match at.wrapping_mul(2_654_435_761) >> 29 {
            0 | 1 => -0.0,
            2 | 3 => 0.0,
            4 => f32::NAN,
            5 => -1.0,
            _ => 1.0,
        })
        .collect();
    agree((1..3).flat_map(|axis| {
        let pixels = pixels.clone();
        [Combine::Min, Combine::Max]
            .into_iter()
            .flat_map(move |combine| {
                let pixels = pixels.clone();
                [1, 2, 20].map(|radius| {
                    let case = window(DType::F32, [1, 130, 70], axis, radius, combine);
                    case.with_input(0, &pixels)
                })
            })
    }));
}
