//! Times of the CPU engine's global primitives, best of several, in Mpixel/s.
//!
//! `cargo run --release -p warploom-engine --example bench_global [NAME ...]`
#![expect(clippy::print_stdout, reason = "a program for people")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test images"
)]
#![expect(
    clippy::semicolon_if_nothing_returned,
    reason = "a call is all that a closure here does"
)]

use std::time::Instant;

use warploom_engine::convolve::{convolve, subtract_rolling_ball};
use warploom_engine::distance::{distance_transform, expand_labels};
use warploom_engine::fourier::{fft_convolve, phase_shift};
use warploom_engine::histogram::histogram;
use warploom_engine::label::{Connectivity, clear_border, fill_holes, label};
use warploom_engine::moves::{flip, transpose};
use warploom_engine::objects::{label_statistics, remove_small_labels};
use warploom_engine::percentile::percentiles;
use warploom_engine::resample::{Affine, affine_linear, resize_linear};
use warploom_engine::threshold::{Method, threshold};
use warploom_engine::tiles::{Fold, bin};
use warploom_engine::totals::totals;
use warploom_engine::watershed::watershed;
use warploom_engine::{View, ViewMut, project};
use warploom_flow::Boundary;

/// Smooth bumps with noise.
fn scene(dims: [usize; 3]) -> Vec<f32> {
    let mut state = 1_u32;
    let mut pixels = Vec::with_capacity(dims.iter().product());
    for z in 0..dims[0] {
        for y in 0..dims[1] {
            for x in 0..dims[2] {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let [z, y, x] = [z, y, x].map(|at| at as f32 * 0.21);
                let bumps = (z * 1.3).sin() + y.sin() * (x + (y * 0.1).sin()).sin();
                pixels.push(1000.0 + 400.0 * bumps + (state >> 24) as f32);
            }
        }
    }
    pixels
}

struct Bench {
    wanted: Vec<String>,
}

impl Bench {
    fn run(&self, name: &str, pixels: usize, mut work: impl FnMut()) {
        if !self.wanted.is_empty() && !self.wanted.iter().any(|part| name.contains(part.as_str())) {
            return;
        }
        work();
        let mut best = f64::INFINITY;
        let begun = Instant::now();
        let mut rounds = 0;
        while rounds < 5 || (begun.elapsed().as_secs_f64() < 0.5 && rounds < 50) {
            let start = Instant::now();
            work();
            best = best.min(start.elapsed().as_secs_f64());
            rounds += 1;
        }
        let rate = pixels as f64 / best / 1e6;
        println!("{name:32} {:9.3} ms {rate:9.1} Mpix/s", best * 1e3);
    }
}

fn main() {
    let bench = Bench {
        wanted: std::env::args().skip(1).collect(),
    };
    for dims in [[1, 2048, 2048], [64, 512, 512]] {
        on(&bench, dims);
    }
}

#[expect(clippy::too_many_lines, reason = "one line for each operation")]
fn on(bench: &Bench, dims: [usize; 3]) {
    let pixels = scene(dims);
    let count = pixels.len();
    let shorts: Vec<u16> = pixels.iter().map(|&value| value as u16).collect();
    let mask: Vec<u8> = pixels
        .iter()
        .map(|&value| u8::from(value > 1200.0))
        .collect();
    let image = View::packed(&pixels, dims);
    let short = View::packed(&shorts, dims);
    let mask = View::packed(&mask, dims);
    let mut real = vec![0.0_f32; count];
    let mut labels = vec![0_u32; count];
    let mut other = vec![0_u32; count];
    let mut bytes = vec![0_u8; count];
    let at = |name: &str| format!("{name} {}", if dims[0] > 1 { "3d" } else { "2d" });
    let run = |name: &str, work: &mut dyn FnMut()| bench.run(&at(name), count, work);

    run("totals f32", &mut || {
        totals(image);
    });
    run("totals u16", &mut || {
        totals(short);
    });
    let mut counts = vec![0; 256];
    run("histogram f32", &mut || {
        histogram(image, 0.0, 2000.0, &mut counts)
    });
    run("histogram u16", &mut || {
        histogram(short, 0.0, 2000.0, &mut counts)
    });
    run("percentiles f32", &mut || {
        drop(percentiles(image, &[1.0, 50.0, 99.8]))
    });
    run("percentiles u16", &mut || {
        drop(percentiles(short, &[1.0, 50.0, 99.8]))
    });
    for method in [Method::Otsu, Method::Li, Method::Triangle] {
        run(&format!("threshold {method:?}"), &mut || {
            threshold(image, method, 256);
        });
    }
    for connectivity in [Connectivity::Diamond, Connectivity::Box] {
        run(&format!("label {connectivity:?}"), &mut || {
            label(mask, connectivity, ViewMut::packed(&mut labels, dims));
        });
    }
    label(
        mask,
        Connectivity::Diamond,
        ViewMut::packed(&mut labels, dims),
    );
    let named = View::packed(&labels, dims);
    run("fill_holes", &mut || {
        fill_holes(mask, ViewMut::packed(&mut bytes, dims))
    });
    run("clear_border", &mut || {
        clear_border(named, ViewMut::packed(&mut other, dims))
    });
    run("remove_small_labels", &mut || {
        remove_small_labels(named, 30, true, ViewMut::packed(&mut other, dims));
    });
    run("expand_labels", &mut || {
        expand_labels(named, 4.0, ViewMut::packed(&mut other, dims))
    });
    run("label_statistics", &mut || {
        drop(label_statistics(named, image))
    });
    run("distance_transform", &mut || {
        distance_transform(mask, ViewMut::packed(&mut real, dims));
    });
    run("watershed", &mut || {
        watershed(short, named, None, ViewMut::packed(&mut other, dims));
    });
    if dims[0] > 1 {
        let plane = [1, dims[1], dims[2]];
        run("sum_z", &mut || {
            project::sum_z(image, ViewMut::packed(&mut real, plane))
        });
        run("std_z", &mut || {
            project::std_z(image, ViewMut::packed(&mut real, plane))
        });
        run("median_z", &mut || {
            project::median_z(image, ViewMut::packed(&mut real, plane))
        });
        run("max_z", &mut || {
            project::max_z(image, ViewMut::packed(&mut real, plane))
        });
        run("argmax_z", &mut || {
            project::argmax_z(image, ViewMut::packed(&mut other, plane))
        });
        let turned = [dims[2], dims[1], dims[0]];
        run("transpose_xz", &mut || {
            transpose(image, (0, 2), ViewMut::packed(&mut real, turned))
        });
    }
    let turned = [dims[0], dims[2], dims[1]];
    run("transpose_xy", &mut || {
        transpose(image, (1, 2), ViewMut::packed(&mut real, turned))
    });
    run("flip_x", &mut || {
        flip(image, 2, ViewMut::packed(&mut real, dims))
    });
    let half = dims.map(|n| n.div_ceil(2));
    let factor = dims.map(|n| if n > 1 { 2 } else { 1 });
    run("bin_mean", &mut || {
        bin(image, factor, Fold::Mean, ViewMut::packed(&mut real, half))
    });
    run("shift_linear", &mut || {
        affine_linear(
            image,
            &Affine::shift([0.0, 1.5, -2.25]),
            ViewMut::packed(&mut real, dims),
        );
    });
    run("rotate_linear", &mut || {
        affine_linear(
            image,
            &Affine::rotation(30.0, dims),
            ViewMut::packed(&mut real, dims),
        );
    });
    run("resize_linear", &mut || {
        resize_linear(image, ViewMut::packed(&mut real, half))
    });
    let extents = dims.map(|n| n.min(5));
    let weights = vec![0.04_f32; extents.iter().product()];
    let kernel = View::packed(&weights, extents);
    run("convolve 5^d", &mut || {
        convolve(
            image,
            kernel,
            Boundary::Clamp,
            ViewMut::packed(&mut real, dims),
        );
    });
    run("fft_convolve 5^d", &mut || {
        fft_convolve(
            image,
            kernel,
            Boundary::Clamp,
            ViewMut::packed(&mut real, dims),
        );
    });
    run("phase_shift", &mut || {
        phase_shift(image, short);
    });
    if dims[0] == 1 {
        run("subtract_rolling_ball 12", &mut || {
            subtract_rolling_ball(image, 12.0, ViewMut::packed(&mut real, dims));
        });
    }
}
