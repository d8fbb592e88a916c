//! Functions that hardware approximates, within the bounds of the manual.

use super::values::{doubles, singles};
use crate::rig::{Noise, Out, check_that};

fn inputs(values: Vec<u64>) -> Vec<[u64; 3]> {
    values.into_iter().map(|a| [a, 0, 0]).collect()
}

fn moderate() -> Vec<u64> {
    let mut noise = Noise::new(41);
    let mut values: Vec<u64> = (0..5000)
        .map(|_| u64::from((noise.below(2000) as f32 / 37.0 - 27.0).to_bits()))
        .collect();
    values.extend(singles());
    values
}

#[test]
fn singles_are_close() {
    type Op = fn(f64) -> f64;
    // Relative and absolute bounds.
    let functions: [(&str, Op, f64, f64); 6] = [
        ("sin.approx", f64::sin, 0.0, 2e-6),
        ("cos.approx", f64::cos, 0.0, 2e-6),
        ("lg2.approx", f64::log2, 0.0, 6e-7),
        ("ex2.approx", f64::exp2, 2.5e-7, 0.0),
        ("rsqrt.approx", |x| 1.0 / x.sqrt(), 2.4e-7, 0.0),
        ("tanh.approx", f64::tanh, 5e-4, 0.0),
    ];
    for (name, function, relative, absolute) in functions {
        for flush in [false, true] {
            if flush && name == "tanh.approx" {
                continue;
            }
            let modifier = if flush { ".ftz" } else { "" };
            let body = format!("{name}{modifier}.f32 %d32, %a32;");
            check_that(&body, Out::D32, &inputs(moderate()), |[a, _, _], found| {
                let x = f32::from_bits(a as u32);
                let x = if flush && x.is_subnormal() {
                    0f32.copysign(x)
                } else {
                    x
                };
                let wanted = function(f64::from(x));
                let narrow = wanted as f32;
                let narrow = if flush && narrow.is_subnormal() {
                    0f32.copysign(narrow)
                } else {
                    narrow
                };
                let found_value = f32::from_bits(found as u32);
                let error = (f64::from(found_value) - wanted).abs();
                let bound = absolute.max(relative * wanted.abs());
                let is_fine = (narrow.is_nan() && found == 0x7fff_ffff)
                    || found_value.to_bits() == narrow.to_bits()
                    || error <= bound;
                is_fine.then_some(()).ok_or(u64::from(narrow.to_bits()))
            });
        }
    }
}

#[test]
fn doubles_have_twenty_bits() {
    type Op = fn(f64) -> f64;
    let functions: [(&str, Op); 2] = [
        ("rcp.approx.ftz.f64", |x| 1.0 / x),
        ("rsqrt.approx.ftz.f64", |x| 1.0 / x.sqrt()),
    ];
    let flushed = |x: f64| {
        if x.is_subnormal() {
            0f64.copysign(x)
        } else {
            x
        }
    };
    for (name, function) in functions {
        let body = format!("{name} %d64, %a64;");
        check_that(&body, Out::D64, &inputs(doubles()), |[a, _, _], found| {
            let upper = f64::from_bits(a >> 32 << 32);
            let wanted = flushed(function(flushed(upper)));
            let value = f64::from_bits(found);
            let close = (value - wanted).abs() <= wanted.abs() * 2f64.powi(-20);
            let is_fine = (value.is_nan() && wanted.is_nan())
                || (value == wanted || close) && found << 32 == 0;
            is_fine.then_some(()).ok_or(wanted.to_bits())
        });
    }
    check_that(
        "rsqrt.approx.f64 %d64, %a64;",
        Out::D64,
        &inputs(doubles()),
        |[a, _, _], found| {
            let wanted = 1.0 / f64::from_bits(a).sqrt();
            let value = f64::from_bits(found);
            let same = value == wanted || (value.is_nan() && wanted.is_nan());
            same.then_some(()).ok_or(wanted.to_bits())
        },
    );
}
