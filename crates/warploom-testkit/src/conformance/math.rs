//! Promises about numbers.

use warploom_core::{Arg, Caps, Slice};

use crate::case::{Stop, Verdict, cases};
use crate::noise::Noise;
use crate::programs::{EXACT, exact};
use crate::rig::{Rig, content, same};

cases! { Device "math":
    multiply_add_is_not_fused = "Strict math does not contract.";
    division_is_exact = "Strict division is correctly rounded.";
    root_is_exact = "A strict square root is correctly rounded.";
    small_numbers_survive = "Strict math gives the same bits on every strict backend, subnormal ones included.";
}

const COUNT: usize = 20_000;

/// Floats with any sign and mantissa, and exponents around one.
fn ordinary(seed: u64) -> Vec<f32> {
    let words = Noise::new(seed).words(COUNT);
    let float =
        |word: u32| f32::from_bits((word & 0x807f_ffff) | ((107 + (word >> 24) % 40) << 23));
    words.into_iter().map(float).collect()
}

fn check(rig: &Rig, op: u32, a: &[f32], b: &[f32], c: &[f32]) -> Verdict {
    if !rig.info().caps.contains(Caps::STRICT_MATH) {
        return Err(Stop::skip(
            "its strict math is not bit-exact, and it says so",
        ));
    }
    let mut queue = rig.queue()?;
    let kernel = rig.load(EXACT)?;
    let out = Slice::whole(&rig.buffer(4 * a.len() as u64)?);
    let mut args: Vec<Arg> = Vec::new();
    for values in [a, b, c] {
        args.push(rig.holding(&mut queue, values)?.into());
    }
    args.extend([out.clone().into(), op.into()]);
    kernel.line(&mut queue, a.len() as u64, &args)?;
    let want: Vec<f32> = a
        .iter()
        .zip(b)
        .zip(c)
        .map(|((a, b), c)| exact(op, *a, *b, *c))
        .collect();
    same("strict math", &content::<f32>(&mut queue, &out)?, &want)
}

fn multiply_add_is_not_fused(rig: &Rig) -> Verdict {
    let (a, b) = (ordinary(61), ordinary(62));
    // Near the product, where fusing shows.
    let c: Vec<f32> = a.iter().zip(&b).map(|(a, b)| -(a * b)).collect();
    check(rig, 0, &a, &b, &c)?;
    check(rig, 0, &a, &b, &ordinary(63))
}

fn division_is_exact(rig: &Rig) -> Verdict {
    let (a, b) = (ordinary(64), ordinary(65));
    check(rig, 1, &a, &b, &a)
}

fn root_is_exact(rig: &Rig) -> Verdict {
    let a: Vec<f32> = ordinary(66).iter().map(|a| a.abs()).collect();
    check(rig, 2, &a, &a, &a)
}

fn small_numbers_survive(rig: &Rig) -> Verdict {
    let tiny: Vec<f32> = ordinary(67).iter().map(|a| a * 1e-30 * 1e-10).collect();
    let ones = vec![1.0; COUNT];
    let zeros = vec![0.0; COUNT];
    check(rig, 0, &tiny, &ones, &zeros)?;
    check(rig, 1, &tiny, &ordinary(68), &zeros)
}
