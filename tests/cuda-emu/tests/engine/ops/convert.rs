//! Conversions between all kinds of numbers; exhaustive where a kind is small.

use half::f16;

use super::values::{doubles, integers, singles};
use crate::rig::{Noise, Out, check, check_that, pairs};

const INTEGERS: [(&str, u32, bool); 8] = [
    ("u8", 8, false),
    ("s8", 8, true),
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

/// Registers hold 8-bit numbers in 16 bits.
fn register(bits: u32) -> u32 {
    bits.max(16)
}

fn out(bits: u32) -> Out {
    match register(bits) {
        16 => Out::D16,
        32 => Out::D32,
        _ => Out::D64,
    }
}

fn number(value: u64, bits: u32, signed: bool) -> i128 {
    let unused = 128 - bits;
    if signed {
        i128::from(value) << unused >> unused
    } else {
        ((u128::from(value) << unused) >> unused) as i128
    }
}

/// The number in a register, extended as its type says.
fn word(value: i128, bits: u32, signed: bool) -> u64 {
    let narrow = number(value as u64, bits, signed);
    (narrow as u64) & (u64::MAX >> (64 - register(bits)))
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// All values of kinds up to 16 bits, some of the others.
fn all(bits: u32) -> Vec<[u64; 3]> {
    let values = match bits {
        8 | 16 => (0..1 << bits).collect(),
        _ => integers(bits),
    };
    values.into_iter().map(|a| [a, 0, 0]).collect()
}

#[test]
fn integers_to_integers() {
    for (from, from_bits, from_signed) in INTEGERS {
        for (to, to_bits, to_signed) in INTEGERS {
            let (d, a) = (register(to_bits), register(from_bits));
            let read = |x| number(x, from_bits, from_signed);
            let body = format!("cvt.{to}.{from} %d{d}, %a{a};");
            check(&body, out(to_bits), &all(from_bits), |x, _, _| {
                word(read(x), to_bits, to_signed)
            });
            let (from_range, to_range) = (range(from_bits, from_signed), range(to_bits, to_signed));
            if to_range.0 <= from_range.0 && from_range.1 <= to_range.1 {
                continue;
            }
            let body = format!("cvt.sat.{to}.{from} %d{d}, %a{a};");
            check(&body, out(to_bits), &all(from_bits), |x, _, _| {
                let (low, high) = range(to_bits, to_signed);
                word(read(x).clamp(low, high), to_bits, to_signed)
            });
        }
    }
    // A register may be wider than the type that is read from it or written to it.
    check("cvt.s8.s32 %d32, %a32;", Out::D32, &all(32), |x, _, _| {
        u64::from(i32::from(x as u8 as i8) as u32)
    });
    check("cvt.u16.u64 %d64, %a64;", Out::D64, &all(64), |x, _, _| {
        x & 0xffff
    });
    check("cvt.s64.s16 %d64, %a32;", Out::D64, &all(32), |x, _, _| {
        x as u16 as i16 as u64
    });
}

/// Rounds to a whole number.
pub(super) fn whole(mode: &str, x: f64) -> f64 {
    match mode {
        "rni" => x.round_ties_even(),
        "rzi" => x.trunc(),
        "rmi" => x.floor(),
        _ => x.ceil(),
    }
}

/// A float, rounded and saturated, as hardware converts it.
fn to_integer(mode: &str, x: f64, bits: u32, signed: bool, is_double: bool) -> u64 {
    if x.is_nan() {
        let odd = if bits == 64 || is_double {
            1 << (bits - 1)
        } else {
            0
        };
        return word(odd, bits, signed);
    }
    let (low, high) = range(bits, signed);
    let x = whole(mode, x);
    let value = if x >= 2f64.powi(100) {
        high
    } else if x <= -2f64.powi(100) {
        low
    } else {
        (x as i128).clamp(low, high)
    };
    word(value, bits, signed)
}

#[test]
fn floats_to_integers() {
    let halves: Vec<[u64; 3]> = (0..0x1_0000).map(|a| [a, 0, 0]).collect();
    let mut noise = Noise::new(61);
    let mut floats = pairs(&singles());
    floats.extend((0..5000).map(|_| {
        let value = noise.below(200_000) as f32 / 256.0 - 300.0;
        [u64::from(value.to_bits()), 0, 0]
    }));
    for mode in ["rni", "rzi", "rmi", "rpi"] {
        for (to, bits, signed) in INTEGERS {
            let d = register(bits);
            let body = format!("cvt.{mode}.{to}.f16 %d{d}, %a16;");
            check(&body, out(bits), &halves, |a, _, _| {
                to_integer(mode, f16::from_bits(a as u16).to_f64(), bits, signed, false)
            });
            let body = format!("cvt.{mode}.{to}.f32 %d{d}, %a32;");
            check(&body, out(bits), &floats, |a, _, _| {
                let x = f64::from(f32::from_bits(a as u32));
                to_integer(mode, x, bits, signed, false)
            });
            let body = format!("cvt.{mode}.ftz.{to}.f32 %d{d}, %a32;");
            check(&body, out(bits), &floats, |a, _, _| {
                let x = f32::from_bits(a as u32);
                let x = if x.is_subnormal() { 0.0 } else { f64::from(x) };
                to_integer(mode, x, bits, signed, false)
            });
            let body = format!("cvt.{mode}.{to}.f64 %d{d}, %a64;");
            check(&body, out(bits), &pairs(&doubles()), |a, _, _| {
                to_integer(mode, f64::from_bits(a), bits, signed, true)
            });
        }
    }
}

/// The float that lies next to a whole number in a direction, for formats of up to 53 bits.
fn next_float(
    mode: &str,
    value: i128,
    near: f64,
    up: impl Fn(f64) -> f64,
    down: impl Fn(f64) -> f64,
) -> f64 {
    let rounded = near as i128;
    let too_large = near.is_infinite() || rounded > value;
    let too_small = near.is_finite() && rounded < value;
    match mode {
        "rz" if value >= 0 && too_large => down(near),
        "rz" if value < 0 && too_small => up(near),
        "rm" if too_large => down(near),
        "rp" if too_small => up(near),
        _ => near,
    }
}

#[test]
fn integers_to_floats() {
    for (from, bits, signed) in INTEGERS {
        let a = register(bits);
        for mode in ["rn", "rz", "rm", "rp"] {
            let body = format!("cvt.{mode}.f32.{from} %d32, %a{a};");
            check(&body, Out::D32, &all(bits), |x, _, _| {
                let value = number(x, bits, signed);
                let near = f64::from(value as f32);
                let float = next_float(
                    mode,
                    value,
                    near,
                    |x| f64::from((x as f32).next_up()),
                    |x| f64::from((x as f32).next_down()),
                );
                u64::from((float as f32).to_bits())
            });
            let body = format!("cvt.{mode}.f64.{from} %d64, %a{a};");
            check(&body, Out::D64, &all(bits), |x, _, _| {
                let value = number(x, bits, signed);
                let near = value as f64;
                next_float(mode, value, near, f64::next_up, f64::next_down).to_bits()
            });
            let body = format!("cvt.{mode}.f16.{from} %d16, %a{a};");
            check(&body, Out::D16, &all(bits), |x, _, _| {
                let value = number(x, bits, signed);
                // The nearest half of the nearest odd double is the nearest half.
                let step = |x: f64, by: i32| {
                    let bits = i32::from(f16::from_f64(x).to_bits());
                    let by = if x < 0.0 { -by } else { by };
                    f16::from_bits((bits + by) as u16).to_f64()
                };
                let near = f16::from_f64(value as f64);
                let near = near.to_f64();
                let float = next_float(mode, value, near, |x| step(x, 1), |x| step(x, -1));
                // Beyond the largest number only two directions give infinity.
                let float = match (near.is_infinite(), mode) {
                    (true, "rz") => f64::from(f16::MAX).copysign(near),
                    (true, "rm") if near > 0.0 => f64::from(f16::MAX),
                    (true, "rp") if near < 0.0 => f64::from(f16::MIN),
                    (true, _) => near,
                    _ => float,
                };
                u64::from(f16::from_f64(float).to_bits())
            });
        }
    }
}

#[test]
fn floats_to_floats() {
    let single = |bits: u64| f32::from_bits(bits as u32);
    let bits = |x: f32| u64::from(if x.is_nan() { 0x7fff_ffff } else { x.to_bits() });
    check_that(
        "cvt.f64.f32 %d64, %a32;",
        Out::D64,
        &pairs(&singles()),
        |[a, _, _], found| {
            let wanted = f64::from(single(a));
            let same =
                wanted.to_bits() == found || (wanted.is_nan() && f64::from_bits(found).is_nan());
            same.then_some(()).ok_or(wanted.to_bits())
        },
    );
    for mode in ["rn", "rz", "rm", "rp"] {
        let body = format!("cvt.{mode}.f32.f64 %d32, %a64;");
        check(&body, Out::D32, &pairs(&doubles()), |a, _, _| {
            let x = f64::from_bits(a);
            let near = x as f32;
            let above = f64::from(near) > x;
            let below = f64::from(near) < x;
            bits(match mode {
                "rz" if x > 0.0 && above => near.next_down(),
                "rz" if x < 0.0 && below => near.next_up(),
                "rm" if above => near.next_down(),
                "rp" if below => near.next_up(),
                _ => near,
            })
        });
    }
    for mode in ["rni", "rzi", "rmi", "rpi"] {
        let body = format!("cvt.{mode}.f32.f32 %d32, %a32;");
        check(&body, Out::D32, &pairs(&singles()), |a, _, _| {
            bits(whole(mode, f64::from(single(a))) as f32)
        });
        let body = format!("cvt.{mode}.f64.f64 %d64, %a64;");
        check_that(&body, Out::D64, &pairs(&doubles()), |[a, _, _], found| {
            let wanted = whole(mode, f64::from_bits(a));
            let both = wanted.is_nan() && f64::from_bits(found).is_nan();
            (both || wanted.to_bits() == found)
                .then_some(())
                .ok_or(wanted.to_bits())
        });
    }
    check(
        "cvt.sat.f32.f32 %d32, %a32;",
        Out::D32,
        &pairs(&singles()),
        |a, _, _| {
            let x = single(a);
            bits(if x.is_nan() {
                0.0
            } else {
                x.clamp(0.0, 1.0) + 0.0
            })
        },
    );
    check(
        "cvt.ftz.f32.f32 %d32, %a32;",
        Out::D32,
        &pairs(&singles()),
        |a, _, _| {
            let x = single(a);
            bits(if x.is_subnormal() {
                0f32.copysign(x)
            } else {
                x
            })
        },
    );
    check(
        "cvt.rn.ftz.f32.f64 %d32, %a64;",
        Out::D32,
        &pairs(&doubles()),
        |a, _, _| {
            let x = f64::from_bits(a) as f32;
            bits(if x.is_subnormal() {
                0f32.copysign(x)
            } else {
                x
            })
        },
    );
}
