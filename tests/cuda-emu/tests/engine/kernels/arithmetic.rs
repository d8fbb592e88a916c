//! Numbers of all sorts.

use half::{bf16, f16};

use super::{each, texts};
use crate::args;
use crate::rig::{Noise, Rig, Shape};

/// Runs a kernel `(a, b, out, n)` that gives `per` results for each pair.
fn columns<A, B, C>(rig: &Rig, kernel: &str, a: &[A], b: &[B], per: usize) -> Vec<C>
where
    A: bytemuck::Pod,
    B: bytemuck::Pod,
    C: bytemuck::Pod,
{
    let n = a.len();
    let from = rig.memory.buffer(a);
    let other = rig.memory.buffer(b);
    let to = rig.memory.zeros::<C>(n * per);
    let blocks = (n as u32).div_ceil(64);
    rig.run(
        kernel,
        Shape::line(blocks, 64),
        args!(from, other, to, n as i32),
    );
    rig.memory.read(to, n * per)
}

#[test]
fn intrinsics_on_bits() {
    let mut noise = Noise::new(11);
    let mut a: Vec<u32> = (0..300).map(|_| noise.next() as u32).collect();
    let mut b: Vec<u32> = (0..300)
        .map(|_| noise.next() as u32 >> noise.below(32))
        .collect();
    a.extend([0, 1, u32::MAX, 1 << 31]);
    b.extend([0, u32::MAX, 1, 5]);
    each(texts!("bits"), |rig| {
        let found: Vec<u32> = columns(rig, "bits", &a, &b, 14);
        for (i, row) in found.chunks(14).enumerate() {
            let (x, y) = (a[i], b[i]);
            let (sx, sy) = (x as i32, y as i32);
            let ffs = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
            let concat = u64::from(y) << 32 | u64::from(x);
            let bytes = concat.to_le_bytes();
            let dot = (0..4).fold(9i32, |sum, k| {
                let byte = |word: u32| i32::from(word.to_le_bytes()[k] as i8);
                sum.wrapping_add(byte(x) * byte(y))
            });
            let quotients = x.checked_div(y).map_or(0, |quotient| {
                let signed = sx.wrapping_div(sy | 1) as u32;
                let rest = (x % y).wrapping_mul(3);
                quotient.wrapping_add(rest).wrapping_add(signed)
            });
            let signed_24 = |v: i32| i64::from(v << 8 >> 8);
            let expected = [
                x.count_ones() + y.leading_zeros() * 100 + ffs * 10000,
                x.reverse_bits(),
                u32::from_le_bytes([bytes[0], bytes[4], bytes[2], bytes[6]]),
                (concat << 7 >> 32) as u32,
                (concat >> y.min(32)) as u32,
                ((u64::from(x) * u64::from(y)) >> 32) as u32,
                ((i64::from(sx) * i64::from(sy)) >> 32) as u32,
                x.abs_diff(y).wrapping_add(5),
                (signed_24(sx) * signed_24(sy)) as u32,
                (x >> 5 & 0x3ff) | (y & 7) << 20,
                (x & y) ^ (!x | y),
                (sx >> (y & 63).min(31)) as u32,
                dot as u32,
                quotients,
            ];
            assert_eq!(row, expected, "{x:#x} {y:#x}");
        }
    });
}

#[test]
fn integers_of_64_bits() {
    let mut noise = Noise::new(12);
    let mut value = || noise.next() as i64 >> noise.below(60);
    let mut a: Vec<i64> = (0..200).map(|_| value()).collect();
    let mut b: Vec<i64> = (0..200).map(|_| value()).collect();
    a.extend([i64::MIN, i64::MAX, 0, -1]);
    b.extend([-1, i64::MIN, 0, 1]);
    each(texts!("wide"), |rig| {
        let found: Vec<i64> = columns(rig, "wide", &a, &b, 10);
        for (i, row) in found.chunks(10).enumerate() {
            let (x, y) = (a[i], b[i]);
            let (ux, uy) = (x as u64, y as u64);
            let ffs = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
            let counts = x.count_ones() + y.leading_zeros() + ffs;
            let expected = [
                x.wrapping_mul(y).wrapping_add(3),
                if y == 0 { 0 } else { x.wrapping_div(y) },
                if y == 0 { 0 } else { x.wrapping_rem(y) },
                if y == 0 { 0 } else { (ux / uy) as i64 },
                ((i128::from(x) * i128::from(y)) >> 64) as i64,
                ((u128::from(ux) * u128::from(uy)) >> 64) as i64,
                (x << (y & 63)) ^ (x >> (y & 31)),
                i64::from(counts),
                x.reverse_bits() ^ x.min(y) ^ ux.max(uy) as i64,
                ((ux.wrapping_mul(uy) >> 32) as i64).wrapping_add(y.wrapping_abs()),
            ];
            assert_eq!(row, expected, "{x:#x} {y:#x}");
        }
    });
}

#[test]
fn double_precision() {
    let mut noise = Noise::new(13);
    let mut value = || noise.below(1 << 40) as f64 / 1e6 - 5e5;
    let a: Vec<f64> = (0..300).map(|_| value()).collect();
    let b: Vec<f64> = (0..300).map(|_| value()).collect();
    each(texts!("double"), |rig| {
        let found: Vec<f64> = columns(rig, "doubles", &a, &b, 10);
        for (i, row) in found.chunks(10).enumerate() {
            let (x, y) = (a[i], b[i]);
            let expected = [
                x + y,
                f64::mul_add(x, y, -1.0),
                x / y,
                x.abs().sqrt(),
                x.min(y),
                x.max(y),
                x.floor() + y.ceil() + x.trunc() + y.round_ties_even(),
                f64::from(x as f32),
                x as i64 as f64,
            ];
            assert_eq!(row[..9], expected, "{x} {y}");
            // The last one adds three results that are rounded in different directions.
            let near = f64::mul_add(x, y, x) + (x + y) - x * y;
            let unit = (x * y).abs() * f64::EPSILON * 4.0 + f64::EPSILON;
            assert!((row[9] - near).abs() <= unit, "{x} {y}");
        }
    });
}

#[test]
fn half_precision() {
    let mut noise = Noise::new(14);
    let mut value = || f16::from_f32(noise.below(4000) as f32 / 64.0 - 31.0);
    let a: Vec<f16> = (0..300).map(|_| value()).collect();
    let b: Vec<f16> = (0..300).map(|_| value()).collect();
    let wide = |x: f16| x.to_f64();
    each(texts!("half"), |rig| {
        let found: Vec<f16> = columns(rig, "half1", &a, &b, 12);
        for (i, row) in found.chunks(12).enumerate() {
            let (x, y) = (a[i], b[i]);
            let (wx, wy) = (wide(x), wide(y));
            let expected = [
                f16::from_f64(wx + wy),
                f16::from_f64(wx - wy),
                f16::from_f64(wx * wy),
                f16::from_f64(wx * wy + wx),
                -x,
                f16::from_f64(wy.abs()),
                f16::from_f64(wx / wy),
                if x < y { x } else { y },
                f16::from_f64(wx * 1.5),
                f16::from_f64(wx.trunc()),
                f16::from_f64(wy.sqrt()),
                f16::from_f64((wx + wy).clamp(0.0, 1.0)),
            ];
            for (k, (found, wanted)) in row.iter().zip(expected).enumerate() {
                let both_nan = found.is_nan() && wanted.is_nan();
                assert!(
                    both_nan || *found == wanted,
                    "{k}: {x} {y}: {found} {wanted}"
                );
            }
        }
        let pairs = |values: &[f16]| -> Vec<[f16; 2]> {
            values.chunks(2).map(|pair| [pair[0], pair[1]]).collect()
        };
        let (pa, pb) = (pairs(&a), pairs(&b));
        let found: Vec<[f16; 2]> = columns(rig, "half2x", &pa, &pb, 4);
        for (i, row) in found.chunks(4).enumerate() {
            for k in 0..2 {
                let (wx, wy) = (wide(pa[i][k]), wide(pb[i][k]));
                assert_eq!(row[0][k], f16::from_f64(wx + wy));
                assert_eq!(row[1][k], f16::from_f64(wx * wy));
                assert_eq!(row[2][k], f16::from_f64(wx * wy + wy));
            }
            assert_eq!(row[3], [pa[i][1], pb[i][0]]);
        }
        let small: Vec<bf16> = a.iter().map(|x| bf16::from_f32(x.to_f32())).collect();
        let floats: Vec<f32> = b.iter().map(|x| x.to_f32()).collect();
        let found: Vec<bf16> = columns(rig, "bhalf", &small, &floats, 1);
        for (i, found) in found.iter().enumerate() {
            assert_eq!(*found, bf16::from_f32(small[i].to_f32() * floats[i]));
        }
    });
}

#[test]
fn functions_of_the_mathematical_library() {
    let mut noise = Noise::new(15);
    let x: Vec<f32> = (0..500)
        .map(|_| noise.below(20_000) as f32 / 1000.0 - 10.0)
        .collect();
    each(texts!("maths"), |rig| {
        let n = x.len();
        let from = rig.memory.buffer(&x);
        let to = rig.memory.zeros::<f32>(n * 14);
        rig.run("maths", Shape::line(8, 64), args!(from, to, n as i32));
        let found: Vec<f32> = rig.memory.read(to, n * 14);
        for (x, row) in x.iter().zip(found.chunks(14)) {
            let w = f64::from(*x);
            let expected = [
                w.exp(),
                w.abs().ln(),
                w.sin(),
                w.cos(),
                w.abs().powf(f64::from(1.7f32)),
                w.tanh(),
                w.atan2(2.0),
                1.0 / w.abs().sqrt(),
                w.cbrt(),
                w % f64::from(0.7f32),
                w.round() + w.floor() + w.round_ties_even(),
                1.0 / w,
                f64::NAN,
                w.hypot(3.0),
            ];
            for (k, (found, wanted)) in row.iter().zip(expected).enumerate() {
                if k == 12 {
                    // There is no error function in Rust to compare with.
                    assert!(found.abs() <= 1.0 && found.signum() == x.signum());
                    continue;
                }
                let error = (f64::from(*found) - wanted).abs();
                let unit = f64::from(f32::EPSILON) * wanted.abs().max(1e-30);
                assert!(
                    error <= 8.0 * unit || f64::from(*found) == wanted,
                    "{k} of {x}: {found} {wanted}"
                );
            }
        }
        let x: Vec<f64> = x.iter().map(|x| f64::from(*x) * 1.1).collect();
        let from = rig.memory.buffer(&x);
        let to = rig.memory.zeros::<f64>(n * 4);
        rig.run("mathd", Shape::line(8, 64), args!(from, to, n as i32));
        let found: Vec<f64> = rig.memory.read(to, n * 4);
        for (x, row) in x.iter().zip(found.chunks(4)) {
            let expected = [x.exp(), x.abs().ln(), x.sin(), x.abs().powf(1.7)];
            for (found, wanted) in row.iter().zip(expected) {
                let error = (found - wanted).abs();
                assert!(
                    error <= 8.0 * f64::EPSILON * wanted.abs(),
                    "{x}: {found} {wanted}"
                );
            }
        }
    });
}
