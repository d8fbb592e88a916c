//! Halves of both kinds, alone and in pairs.

use half::{bf16, f16};

use crate::rig::{Noise, Out, check_that, pairs, triples};

/// One of the two formats.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    wide: fn(u64) -> f64,
    narrow: fn(f64) -> u64,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "f16",
        wide: |bits| f16::from_bits(bits as u16).to_f64(),
        narrow: |value| u64::from(f16::from_f32(odd_single(value)).to_bits()),
    },
    Kind {
        name: "bf16",
        wide: |bits| bf16::from_bits(bits as u16).to_f64(),
        narrow: |value| u64::from(bf16::from_f32(odd_single(value)).to_bits()),
    },
];

/// A single next to the double, the odd one of the two: rounded once more, it rounds as the double
/// would. The conversions of the `half` crate from doubles look at 32 bits of them only.
fn odd_single(x: f64) -> f32 {
    let near = x as f32;
    let wide = f64::from(near);
    if x.is_nan() || wide == x || near.to_bits() & 1 == 1 {
        return near;
    }
    if near.is_infinite() {
        return f32::MAX.copysign(near);
    }
    if x > wide {
        near.next_up()
    } else {
        near.next_down()
    }
}

fn values() -> Vec<u64> {
    let mut values = vec![
        0, 1, 2, 0x3ff, 0x400, 0x401, 0x7f, 0x80, 0x81, 0x3bff, 0x3c00, 0x3c01, 0x3f80, 0x3f81,
        0x4000, 0x4248, 0x5640, 0x6bff, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7f7f, 0x7f80, 0x7fc0,
        0x7fff,
    ];
    let mut noise = Noise::new(51);
    values.extend((0..12).map(|_| noise.next() >> 49));
    let negative: Vec<u64> = values.iter().map(|bits| bits | 0x8000).collect();
    values.extend(negative);
    values
}

/// The exact sum of two doubles, made odd where it is not a double: rounded once more, it rounds as
/// the exact sum would.
fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let rest = (a - (sum - part)) + (b - part);
    if rest == 0.0 || !rest.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    if rest > 0.0 {
        sum.next_up()
    } else {
        sum.next_down()
    }
}

/// The exact quotient, likewise.
fn odd_quotient(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let rest = f64::mul_add(-quotient, b, a) * b.signum();
    if rest == 0.0 || !rest.is_finite() || !quotient.is_finite() || quotient.to_bits() & 1 == 1 {
        return quotient;
    }
    if rest > 0.0 {
        quotient.next_up()
    } else {
        quotient.next_down()
    }
}

fn check(kind: Kind, body: &str, inputs: &[[u64; 3]], reference: impl Fn(f64, f64, f64) -> f64) {
    let body = body.replace("TYPE", kind.name);
    check_that(&body, Out::D16, inputs, |operands, found| {
        let [a, b, c] = operands.map(kind.wide);
        let exact = reference(a, b, c);
        let wanted = if exact.is_nan() {
            0x7fff
        } else {
            (kind.narrow)(exact)
        };
        (found == wanted).then_some(()).ok_or(wanted)
    });
}

#[test]
fn arithmetic() {
    let inputs: Vec<_> = [pairs(&values()), triples(&values(), 20_000)].concat();
    for kind in KINDS {
        check(kind, "add.TYPE %d16, %a16, %b16;", &inputs, |a, b, _| {
            odd_sum(a, b)
        });
        check(kind, "sub.rn.TYPE %d16, %a16, %b16;", &inputs, |a, b, _| {
            odd_sum(a, -b)
        });
        check(kind, "mul.TYPE %d16, %a16, %b16;", &inputs, |a, b, _| a * b);
        check(
            kind,
            "fma.rn.TYPE %d16, %a16, %b16, %c16;",
            &inputs,
            |a, b, c| odd_sum(a * b, c),
        );
        check(
            kind,
            "fma.rn.relu.TYPE %d16, %a16, %b16, %c16;",
            &inputs,
            |a, b, c| {
                let sum = odd_sum(a * b, c);
                if sum < 0.0 || sum.is_sign_negative() && !sum.is_nan() {
                    0.0
                } else {
                    sum
                }
            },
        );
        if kind.name == "bf16" {
            continue;
        }
        check(
            kind,
            "add.sat.TYPE %d16, %a16, %b16;",
            &inputs,
            |a, b, _| {
                let sum = odd_sum(a, b);
                if sum.is_nan() {
                    0.0
                } else {
                    sum.clamp(0.0, 1.0) + 0.0
                }
            },
        );
        assert_eq!(odd_quotient(1.0, 4.0), 0.25);
    }
}

#[test]
fn subnormal_halves_are_flushed_if_told_to() {
    let flushed = |x: f64| {
        if x.abs() < 2f64.powi(-14) {
            0f64.copysign(x)
        } else {
            x
        }
    };
    let inputs = pairs(&values());
    check_that(
        "add.ftz.f16 %d16, %a16, %b16;",
        Out::D16,
        &inputs,
        |operands, found| {
            let [a, b, _] = operands.map(|bits| flushed((KINDS[0].wide)(bits)));
            let sum = f16::from_f64(a + b);
            let wanted = if sum.is_nan() {
                0x7fff
            } else {
                u64::from(f16::from_f64(flushed(sum.to_f64())).to_bits())
            };
            (found == wanted).then_some(()).ok_or(wanted)
        },
    );
}

#[test]
fn extremes_signs_and_comparisons() {
    let inputs = pairs(&values());
    for kind in KINDS {
        for (name, is_min) in [("min", true), ("max", false)] {
            for nan in ["", ".NaN"] {
                let body = format!("{name}{nan}.TYPE %d16, %a16, %b16;");
                check(kind, &body, &inputs, |a, b, _| {
                    let less = a < b || (a == b && a.is_sign_negative());
                    match (a.is_nan(), b.is_nan()) {
                        (true, true) => f64::NAN,
                        (true, false) | (false, true) if !nan.is_empty() => f64::NAN,
                        (true, false) => b,
                        (false, true) => a,
                        _ if less == is_min => a,
                        _ => b,
                    }
                });
            }
        }
        let name = kind.name;
        let plain = |body: String, reference: &dyn Fn(u64) -> u64| {
            check_that(&body, Out::D16, &inputs, |[a, _, _], found| {
                (found == reference(a)).then_some(()).ok_or(reference(a))
            });
        };
        plain(format!("neg.{name} %d16, %a16;"), &|a| a ^ 0x8000);
        plain(format!("abs.{name} %d16, %a16;"), &|a| a & 0x7fff);
        let body = format!("setp.lt.{name} %pd, %a16, %b16; setp.neu.{name} %pe, %a16, %b16;");
        check_that(&body, Out::Predicates, &inputs, |[a, b, _], found| {
            let (a, b) = ((kind.wide)(a), (kind.wide)(b));
            let wanted = u64::from(a < b) | u64::from(a != b) << 1;
            (found == wanted).then_some(()).ok_or(wanted)
        });
    }
}

type Op = fn(f64, f64, f64) -> f64;

#[test]
fn pairs_are_two_halves() {
    let mut noise = Noise::new(53);
    let values = values();
    let inputs: Vec<[u64; 3]> = (0..5000)
        .map(|_| std::array::from_fn(|_| noise.pick(&values) << 16 | noise.pick(&values)))
        .collect();
    let operations: [(&str, &str, Op); 4] = [
        ("add", "%a32, %b32", |a, b, _| odd_sum(a, b)),
        ("sub", "%a32, %b32", |a, b, _| odd_sum(a, -b)),
        ("mul", "%a32, %b32", |a, b, _| a * b),
        ("fma.rn", "%a32, %b32, %c32", |a, b, c| odd_sum(a * b, c)),
    ];
    for kind in KINDS {
        for (name, operands, reference) in operations {
            let body = format!("{name}.{}x2 %d32, {operands};", kind.name);
            check_that(&body, Out::D32, &inputs, |operands, found| {
                let half = |place: u32| {
                    let [a, b, c] = operands.map(|word| (kind.wide)(word >> place & 0xffff));
                    let exact = reference(a, b, c);
                    if exact.is_nan() {
                        0x7fff
                    } else {
                        (kind.narrow)(exact)
                    }
                };
                let wanted = half(16) << 16 | half(0);
                (found == wanted).then_some(()).ok_or(wanted)
            });
        }
        let body = format!("neg.{0}x2 %d32, %a32; abs.{0}x2 %e32, %a32;", kind.name);
        check_that(&body, Out::Two, &inputs, |[a, _, _], found| {
            let wanted = (a & 0x7fff_7fff) << 32 | (a ^ 0x8000_8000);
            (found == wanted).then_some(()).ok_or(wanted)
        });
        let body = format!("setp.ge.{0}x2 %pd|%pe, %a32, %b32;", kind.name);
        check_that(&body, Out::Predicates, &inputs, |[a, b, _], found| {
            let holds = |place: u32| {
                let part = |word: u64| (kind.wide)(word >> place & 0xffff);
                u64::from(part(a) >= part(b))
            };
            let wanted = holds(0) | holds(16) << 1;
            (found == wanted).then_some(()).ok_or(wanted)
        });
        // As numbers in each half, and as masks.
        let one = (kind.narrow)(1.0);
        let body = format!(
            "set.lt.{0}x2.{0}x2 %d32, %a32, %b32; set.geu.u32.{0}x2 %e32, %a32, %b32;",
            kind.name
        );
        check_that(&body, Out::Two, &inputs, |[a, b, _], found| {
            let less = |place: u32| {
                let part = |word: u64| (kind.wide)(word >> place & 0xffff);
                part(a) < part(b)
            };
            let pick = |value: u64, wanted: bool| {
                let half = |place: u32| {
                    if less(place) == wanted {
                        value << place
                    } else {
                        0
                    }
                };
                half(0) | half(16)
            };
            let wanted = pick(0xffff, false) << 32 | pick(one, true);
            (found == wanted).then_some(()).ok_or(wanted)
        });
    }
}

#[test]
fn functions_of_halves() {
    let inputs: Vec<[u64; 3]> = (0..0x1_0000).map(|a| [a, 0, 0]).collect();
    for kind in KINDS {
        let ftz = if kind.name == "bf16" { ".ftz" } else { "" };
        check(
            kind,
            &format!("ex2.approx{ftz}.TYPE %d16, %a16;"),
            &inputs,
            |a, _, _| a.exp2(),
        );
        check(kind, "tanh.approx.TYPE %d16, %a16;", &inputs, |a, _, _| {
            a.tanh()
        });
    }
}
