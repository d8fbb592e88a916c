//! Several small integers in one register.

use super::values::integers;
use crate::rig::{Noise, Out, check, triples};

fn words(count: usize) -> Vec<[u64; 3]> {
    let mut noise = Noise::new(31);
    let mut inputs = triples(&integers(32), count / 2);
    inputs.extend((0..count / 2).map(|_| std::array::from_fn(|_| noise.next() & 0xffff_ffff)));
    inputs
}

fn part(word: u64, place: u32, bits: u32, signed: bool) -> i64 {
    let raw = (word >> place & ((1 << bits) - 1)) as i64;
    if signed && raw >> (bits - 1) == 1 {
        raw - (1 << bits)
    } else {
        raw
    }
}

#[test]
fn dot_products() {
    for (a_ty, a_signed) in [("u32", false), ("s32", true)] {
        for (b_ty, b_signed) in [("u32", false), ("s32", true)] {
            let body = format!("dp4a.{a_ty}.{b_ty} %d32, %a32, %b32, %c32;");
            check(&body, Out::D32, &words(1000), |a, b, c| {
                let product = |i: u32| part(a, 8 * i, 8, a_signed) * part(b, 8 * i, 8, b_signed);
                let sum = c as i64 + (0..4).map(product).sum::<i64>();
                u64::from(sum as u32)
            });
            for (half, start) in [("lo", 0), ("hi", 16)] {
                let body = format!("dp2a.{half}.{a_ty}.{b_ty} %d32, %a32, %b32, %c32;");
                check(&body, Out::D32, &words(1000), |a, b, c| {
                    let low = part(a, 0, 16, a_signed) * part(b, start, 8, b_signed);
                    let high = part(a, 16, 16, a_signed) * part(b, start + 8, 8, b_signed);
                    u64::from((c as i64 + low + high) as u32)
                });
            }
        }
    }
}

#[test]
fn video_instructions() {
    type Combine = fn(i64, i64) -> i64;
    let operations: [(&str, Combine); 6] = [
        ("vadd", |a, b| a + b),
        ("vsub", |a, b| a - b),
        ("vabsdiff", |a, b| (a - b).abs()),
        ("vmin", i64::min),
        ("vmax", i64::max),
        ("vavrg", |a, b| {
            (a + b + i64::from(a + b >= 0)).div_euclid(2)
        }),
    ];
    for (name, combine) in operations {
        for (suffix, bits) in [(4, 8), (2, 16)] {
            for (ty, signed) in [("u32", false), ("s32", true)] {
                let opcode = format!("{name}{suffix}.{ty}.{ty}.{ty}");
                let lanes = |a: u64, b: u64| {
                    let places = (0..32).step_by(bits as usize);
                    let values = places.map(move |place| {
                        let (a, b) = (part(a, place, bits, signed), part(b, place, bits, signed));
                        (place, combine(a, b))
                    });
                    values.collect::<Vec<_>>()
                };
                let pack = |values: Vec<(u32, i64)>| {
                    let word =
                        |(place, value): (u32, i64)| (value as u64 & ((1 << bits) - 1)) << place;
                    values.into_iter().map(word).sum::<u64>()
                };
                let body = format!("{opcode} %d32, %a32, %b32, %c32;");
                check(&body, Out::D32, &words(500), |a, b, _| pack(lanes(a, b)));
                let body = format!("{opcode}.sat %d32, %a32, %b32, %c32;");
                check(&body, Out::D32, &words(500), |a, b, _| {
                    let (low, high) = if signed {
                        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
                    } else {
                        (0, (1 << bits) - 1)
                    };
                    let values = lanes(a, b).into_iter();
                    pack(
                        values
                            .map(|(place, v)| (place, v.clamp(low, high)))
                            .collect(),
                    )
                });
                let body = format!("{opcode}.add %d32, %a32, %b32, %c32;");
                check(&body, Out::D32, &words(500), |a, b, c| {
                    let sum: i64 = lanes(a, b).iter().map(|(_, value)| value).sum();
                    u64::from((c as i64 + sum) as u32)
                });
            }
        }
    }
}

#[test]
fn two_integers_of_16_bits() {
    let halves = |word: u64, signed: bool| [part(word, 0, 16, signed), part(word, 16, 16, signed)];
    let pack = |[low, high]: [i64; 2]| (high as u64 & 0xffff) << 16 | (low as u64 & 0xffff);
    for (ty, signed) in [("u16x2", false), ("s16x2", true)] {
        let go = |opcode: &str, combine: fn(i64, i64) -> i64| {
            let body = format!("{opcode}.{ty} %d32, %a32, %b32;");
            check(&body, Out::D32, &words(1000), |a, b, _| {
                let (a, b) = (halves(a, signed), halves(b, signed));
                pack([combine(a[0], b[0]), combine(a[1], b[1])])
            });
        };
        go("add", |a, b| a + b);
        go("min", i64::min);
        go("max", i64::max);
        if signed {
            go("max.relu", |a, b| a.max(b).max(0));
        }
    }
}
