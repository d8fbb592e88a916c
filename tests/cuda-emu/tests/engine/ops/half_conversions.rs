//! Conversions from and to halves: all of them.

use half::{bf16, f16};

use super::convert::whole;
use super::values::singles;
use crate::rig::{Out, check, check_that, pairs};

#[test]
fn halves_to_floats_and_back() {
    let halves: Vec<[u64; 3]> = (0..0x1_0000).map(|a| [a, 0, 0]).collect();
    let nan = |bits: u64, value: f32| if value.is_nan() { 0x7fff_ffff } else { bits };
    check("cvt.f32.f16 %d32, %a16;", Out::D32, &halves, |a, _, _| {
        let value = f16::from_bits(a as u16).to_f32();
        nan(u64::from(value.to_bits()), value)
    });
    check("cvt.f32.bf16 %d32, %a16;", Out::D32, &halves, |a, _, _| {
        nan(a << 16, f32::from_bits((a << 16) as u32))
    });
    check_that(
        "cvt.f64.f16 %d64, %a16;",
        Out::D64,
        &halves,
        |[a, _, _], found| {
            let wanted = f16::from_bits(a as u16).to_f64();
            let same =
                wanted.to_bits() == found || (wanted.is_nan() && f64::from_bits(found).is_nan());
            same.then_some(()).ok_or(wanted.to_bits())
        },
    );
    for mode in ["rni", "rzi", "rmi", "rpi"] {
        let body = format!("cvt.{mode}.f16.f16 %d16, %a16;");
        check(&body, Out::D16, &halves, |a, _, _| {
            let value = whole(mode, f16::from_bits(a as u16).to_f64());
            if value.is_nan() {
                0x7fff
            } else {
                u64::from(f16::from_f64(value).to_bits())
            }
        });
    }
}

/// Every half, its neighbours in single precision, and the points in the middle.
fn around_halves() -> Vec<[u64; 3]> {
    let mut floats = Vec::new();
    for bits in 0..=0x7c00u16 {
        let value = f16::from_bits(bits).to_f32();
        let next = f16::from_bits((bits + 1).min(0x7c00)).to_f32();
        let middle = if next.is_finite() {
            f32::midpoint(value, next)
        } else {
            65520.0
        };
        for x in [value, middle, middle.next_up(), middle.next_down()] {
            floats.extend([u64::from(x.to_bits()), u64::from((-x).to_bits())]);
        }
    }
    floats.extend(singles());
    floats.into_iter().map(|a| [a, 0, 0]).collect()
}

#[test]
fn floats_to_halves() {
    let floats = around_halves();
    check(
        "cvt.rn.f16.f32 %d16, %a32;",
        Out::D16,
        &floats,
        |a, _, _| {
            let x = f32::from_bits(a as u32);
            if x.is_nan() {
                0x7fff
            } else {
                u64::from(f16::from_f32(x).to_bits())
            }
        },
    );
    check(
        "cvt.rn.sat.f16.f32 %d16, %a32;",
        Out::D16,
        &floats,
        |a, _, _| {
            let x = f32::from_bits(a as u32);
            let x = if x.is_nan() {
                0.0
            } else {
                x.clamp(0.0, 1.0) + 0.0
            };
            u64::from(f16::from_f32(x).to_bits())
        },
    );
    check(
        "cvt.rn.relu.f16.f32 %d16, %a32;",
        Out::D16,
        &floats,
        |a, _, _| {
            let x = f32::from_bits(a as u32);
            if x.is_nan() {
                0x7fff
            } else {
                u64::from(f16::from_f32(x.max(0.0) + 0.0).to_bits())
            }
        },
    );
    check(
        "cvt.rz.f16.f32 %d16, %a32;",
        Out::D16,
        &floats,
        |a, _, _| {
            let x = f32::from_bits(a as u32);
            if x.is_nan() {
                return 0x7fff;
            }
            let near = f16::from_f32(x);
            let is_beyond = near.to_f32().abs() > x.abs();
            u64::from(near.to_bits()) - u64::from(is_beyond)
        },
    );
    check(
        "cvt.rn.bf16.f32 %d16, %a32;",
        Out::D16,
        &floats,
        |a, _, _| {
            let x = f32::from_bits(a as u32);
            if x.is_nan() {
                0x7fff
            } else {
                u64::from(bf16::from_f32(x).to_bits())
            }
        },
    );
    let body = "cvt.rn.f16x2.f32 %d32, %a32, %b32; cvt.rn.bf16x2.f32 %e32, %a32, %b32;";
    check(body, Out::Two, &pairs(&singles()), |a, b, _| {
        let x = [a, b].map(|bits| f32::from_bits(bits as u32));
        let half = x.map(|x| {
            if x.is_nan() {
                0x7fff
            } else {
                f16::from_f32(x).to_bits()
            }
        });
        let brain = x.map(|x| {
            if x.is_nan() {
                0x7fff
            } else {
                bf16::from_f32(x).to_bits()
            }
        });
        let pair = |[upper, lower]: [u16; 2]| u64::from(upper) << 16 | u64::from(lower);
        pair(brain) << 32 | pair(half)
    });
}
