//! Arithmetic on singles and doubles.

use super::values::{doubles, singles};
use crate::rig::{Out, check, check_that, pairs, triples};

/// What hardware gives for a single that is no number.
const NAN: u32 = 0x7fff_ffff;

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits(value: f32) -> u64 {
    u64::from(if value.is_nan() { NAN } else { value.to_bits() })
}

fn flushed(value: f32) -> f32 {
    if value.is_subnormal() {
        0f32.copysign(value)
    } else {
        value
    }
}

fn saturated(value: f32) -> f32 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(0.0, 1.0) + 0.0
    }
}

#[test]
fn singles_round_to_nearest() {
    type Op = fn(f32, f32, f32) -> f32;
    let operations: [(&str, &str, Op); 6] = [
        ("add", "%fa, %fb", |a, b, _| a + b),
        ("sub", "%fa, %fb", |a, b, _| a - b),
        ("mul", "%fa, %fb", |a, b, _| a * b),
        ("fma", "%fa, %fb, %fc", f32::mul_add),
        ("mad", "%fa, %fb, %fc", f32::mul_add),
        ("div", "%fa, %fb", |a, b, _| a / b),
    ];
    let inputs: Vec<_> = [pairs(&singles()), triples(&singles(), 20_000)].concat();
    for (name, operands, op) in operations {
        let go = |modifiers: &str, reference: &dyn Fn(f32, f32, f32) -> f32| {
            let body = format!("{name}.rn{modifiers}.f32 %fd, {operands}; mov.b32 %d32, %fd;");
            check(&body, Out::D32, &inputs, |a, b, c| {
                bits(reference(single(a), single(b), single(c)))
            });
        };
        go("", &op);
        go(".ftz", &|a, b, c| {
            flushed(op(flushed(a), flushed(b), flushed(c)))
        });
        if name != "div" {
            go(".sat", &|a, b, c| saturated(op(a, b, c)));
        }
    }
    // Registers without a type are as good as those of singles.
    check("add.f32 %d32, %a32, %b32;", Out::D32, &inputs, |a, b, _| {
        bits(single(a) + single(b))
    });
}

/// Compares doubles; which payload survives is left open.
fn check_doubles(body: &str, inputs: &[[u64; 3]], reference: impl Fn(f64, f64, f64) -> f64) {
    check_that(body, Out::D64, inputs, |operands, found| {
        let [a, b, c] = operands.map(f64::from_bits);
        let wanted = reference(a, b, c);
        let both_nan = wanted.is_nan() && f64::from_bits(found).is_nan();
        let same = wanted.to_bits() == found;
        (both_nan || same).then_some(()).ok_or(wanted.to_bits())
    });
}

#[test]
fn doubles_round_to_nearest() {
    let inputs: Vec<_> = [pairs(&doubles()), triples(&doubles(), 20_000)].concat();
    check_doubles("add.f64 %d64, %a64, %b64;", &inputs, |a, b, _| a + b);
    check_doubles("sub.rn.f64 %d64, %a64, %b64;", &inputs, |a, b, _| a - b);
    check_doubles(
        "mul.f64 %gd, %ga, %gb; mov.b64 %d64, %gd;",
        &inputs,
        |a, b, _| a * b,
    );
    check_doubles("div.rn.f64 %d64, %a64, %b64;", &inputs, |a, b, _| a / b);
    check_doubles("fma.rn.f64 %d64, %a64, %b64, %c64;", &inputs, f64::mul_add);
    check_doubles("sqrt.rn.f64 %d64, %a64;", &inputs, |a, _, _| a.sqrt());
    check_doubles("rcp.rn.f64 %d64, %a64;", &inputs, |a, _, _| 1.0 / a);
}

#[test]
fn roots_and_reciprocals_of_singles() {
    let inputs = pairs(&singles());
    for mode in [".rn", ".approx"] {
        let body = format!("sqrt{mode}.f32 %d32, %a32;");
        check(&body, Out::D32, &inputs, |a, _, _| bits(single(a).sqrt()));
        let body = format!("rcp{mode}.f32 %d32, %a32;");
        check(&body, Out::D32, &inputs, |a, _, _| bits(1.0 / single(a)));
        let body = format!("rcp{mode}.ftz.f32 %d32, %a32;");
        check(&body, Out::D32, &inputs, |a, _, _| {
            bits(flushed(1.0 / flushed(single(a))))
        });
    }
}

#[test]
fn approximate_quotients_of_large_divisors() {
    let limit = 2f32.powi(126);
    for (modifiers, flush) in [("", false), (".ftz", true)] {
        let body = format!("div.approx{modifiers}.f32 %d32, %a32, %b32;");
        check_that(&body, Out::D32, &pairs(&singles()), |[a, b, _], found| {
            let prepare = |x: u64| if flush { flushed(single(x)) } else { single(x) };
            let (a, b) = (prepare(a), prepare(b));
            let wanted = if b.abs() > limit && b.is_finite() && !a.is_nan() {
                if a.is_infinite() { f32::NAN } else { 0.0 }
            } else if flush {
                flushed(a / b)
            } else {
                a / b
            };
            let same = bits(wanted) == found || (wanted == 0.0 && single(found) == 0.0);
            same.then_some(()).ok_or(bits(wanted))
        });
    }
    check(
        "div.full.f32 %d32, %a32, %b32;",
        Out::D32,
        &pairs(&singles()),
        |a, b, _| bits(single(a) / single(b)),
    );
}

/// The value that an exact result, `near` plus something of the sign of `rest`, is rounded to.
fn directed(mode: &str, near: f64, rest: f64, up: fn(f64) -> f64, down: fn(f64) -> f64) -> f64 {
    if rest == 0.0 || !near.is_finite() {
        return near;
    }
    let towards_plus = match mode {
        "rp" => true,
        "rm" => false,
        _ => near < 0.0 || (near == 0.0 && rest < 0.0),
    };
    match (towards_plus, rest > 0.0) {
        (true, true) => up(near),
        (false, false) => down(near),
        _ => near,
    }
}

/// A single, given the nearest double and the sign of what that leaves out.
fn directed_single(mode: &str, near: f64, rest: f64) -> f32 {
    if near.is_nan() {
        return f32::NAN;
    }
    let single = near as f32;
    // Overflow of a finite value, which the cast has made infinite.
    if single.is_infinite() && near.is_finite() {
        let stays = match mode {
            "rp" => near < 0.0,
            "rm" => near > 0.0,
            _ => true,
        };
        return if stays {
            f32::MAX.copysign(single)
        } else {
            single
        };
    }
    let difference = near - f64::from(single);
    let rest = if difference == 0.0 { rest } else { difference };
    if rest == 0.0 || rest.is_nan() || single.is_infinite() {
        return single;
    }
    let up = match mode {
        "rp" => true,
        "rm" => false,
        _ => single.is_sign_negative(),
    };
    match (up, rest > 0.0) {
        (true, true) => single.next_up(),
        (false, false) => single.next_down(),
        _ => single,
    }
}

/// The sum of two doubles and what it leaves out.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

#[test]
fn singles_round_in_all_directions() {
    let inputs: Vec<_> = [pairs(&singles()), triples(&singles(), 20_000)].concat();
    for mode in ["rz", "rm", "rp"] {
        let wide = |a: u64| f64::from(single(a));
        let zero_sum = |exact: (f64, f64), same_sign: bool| {
            // A sum that is exactly zero has the sign of the direction, unless both operands agree.
            let is_zero = exact.0 == 0.0 && exact.1 == 0.0 && !same_sign;
            is_zero.then(|| if mode == "rm" { -0.0 } else { 0.0f32 })
        };
        let body = format!("add.{mode}.f32 %d32, %a32, %b32;");
        check(&body, Out::D32, &inputs, |a, b, _| {
            let (a, b) = (wide(a), wide(b));
            let exact = two_sum(a, b);
            let same = a.is_sign_negative() == b.is_sign_negative();
            bits(zero_sum(exact, same).unwrap_or(directed_single(mode, exact.0, exact.1)))
        });
        let body = format!("mul.{mode}.f32 %d32, %a32, %b32;");
        check(&body, Out::D32, &inputs, |a, b, _| {
            bits(directed_single(mode, wide(a) * wide(b), 0.0))
        });
        let body = format!("fma.{mode}.f32 %d32, %a32, %b32, %c32;");
        check(&body, Out::D32, &inputs, |a, b, c| {
            let (product, c) = (wide(a) * wide(b), wide(c));
            let exact = two_sum(product, c);
            let same = product.is_sign_negative() == c.is_sign_negative();
            bits(zero_sum(exact, same).unwrap_or(directed_single(mode, exact.0, exact.1)))
        });
        let body = format!("div.{mode}.f32 %d32, %a32, %b32;");
        check(&body, Out::D32, &inputs, |a, b, _| {
            let (a, b) = (wide(a), wide(b));
            let quotient = a / b;
            let rest = f64::mul_add(-quotient, b, a) * b.signum();
            bits(directed_single(mode, quotient, rest))
        });
        let body = format!("sqrt.{mode}.f32 %d32, %a32;");
        check(&body, Out::D32, &inputs, |a, _, _| {
            let a = wide(a);
            let root = a.sqrt();
            bits(directed_single(mode, root, f64::mul_add(-root, root, a)))
        });
        let body = format!("rcp.{mode}.f32 %d32, %a32;");
        check(&body, Out::D32, &inputs, |a, _, _| {
            let a = wide(a);
            let quotient = 1.0 / a;
            let rest = f64::mul_add(-quotient, a, 1.0) * a.signum();
            bits(directed_single(mode, quotient, rest))
        });
    }
}

#[test]
fn doubles_round_in_all_directions() {
    // Far from underflow and overflow, where what a rounding leaves out is a double itself.
    let is_moderate = |bits: &u64| {
        let size = f64::from_bits(*bits).abs();
        (1e-90..1e90).contains(&size)
    };
    let values: Vec<u64> = doubles().into_iter().filter(is_moderate).collect();
    let inputs = pairs(&values);
    for mode in ["rz", "rm", "rp"] {
        let go = |near: f64, rest: f64| directed(mode, near, rest, f64::next_up, f64::next_down);
        let body = format!("add.{mode}.f64 %d64, %a64, %b64;");
        check_doubles(&body, &inputs, |a, b, _| {
            let (sum, rest) = two_sum(a, b);
            if sum == 0.0 && mode == "rm" {
                -0.0
            } else {
                go(sum, rest)
            }
        });
        let body = format!("mul.{mode}.f64 %d64, %a64, %b64;");
        check_doubles(&body, &inputs, |a, b, _| {
            go(a * b, f64::mul_add(a, b, -(a * b)))
        });
        let body = format!("div.{mode}.f64 %d64, %a64, %b64;");
        check_doubles(&body, &inputs, |a, b, _| {
            go(a / b, f64::mul_add(-(a / b), b, a) * b.signum())
        });
        let body = format!("sqrt.{mode}.f64 %d64, %a64;");
        check_doubles(&body, &inputs, |a, _, _| {
            go(a.sqrt(), f64::mul_add(-a.sqrt(), a.sqrt(), a))
        });
        // A product that is exact makes the fused sum one that is easy to follow.
        let body = format!("fma.{mode}.f64 %d64, %a64, 0d4008000000000000, %b64;");
        let thirds: Vec<_> = values.iter().map(|v| v & !0xff).collect();
        check_doubles(&body, &pairs(&thirds), |a, b, _| {
            let (sum, rest) = two_sum(a * 3.0, b);
            if sum == 0.0 && rest == 0.0 && mode == "rm" {
                -0.0
            } else {
                go(sum, rest)
            }
        });
    }
}

#[test]
fn extremes_and_signs() {
    let key = |x: f32| (x, x.is_sign_positive());
    for (name, is_min) in [("min", true), ("max", false)] {
        let pick = move |a: f32, b: f32| {
            let a_is_less = key(a).partial_cmp(&key(b)) == Some(std::cmp::Ordering::Less);
            match (a.is_nan(), b.is_nan()) {
                (true, _) => b,
                (_, true) => a,
                _ if a_is_less == is_min => a,
                _ => b,
            }
        };
        let inputs: Vec<_> = [pairs(&singles()), triples(&singles(), 5000)].concat();
        let body = format!("{name}.f32 %d32, %a32, %b32;");
        check(&body, Out::D32, &inputs, |a, b, _| {
            bits(pick(single(a), single(b)))
        });
        let body = format!("{name}.ftz.f32 %d32, %a32, %b32;");
        check(&body, Out::D32, &inputs, |a, b, _| {
            bits(pick(flushed(single(a)), flushed(single(b))))
        });
        let body = format!("{name}.NaN.f32 %d32, %a32, %b32;");
        check(&body, Out::D32, &inputs, |a, b, _| {
            let (a, b) = (single(a), single(b));
            bits(if a.is_nan() || b.is_nan() {
                f32::NAN
            } else {
                pick(a, b)
            })
        });
        let body = format!("{name}.f32 %d32, %a32, %b32, %c32;");
        check(&body, Out::D32, &inputs, |a, b, c| {
            bits(pick(pick(single(a), single(b)), single(c)))
        });
        let body = format!("{name}.f64 %d64, %a64, %b64;");
        check_doubles(&body, &pairs(&doubles()), |a, b, _| {
            match (a.is_nan(), b.is_nan()) {
                (true, _) => b,
                (_, true) => a,
                _ if is_min => a.minimum_of(b),
                _ => -((-a).minimum_of(-b)),
            }
        });
    }
    let inputs = pairs(&singles());
    check("neg.f32 %d32, %a32;", Out::D32, &inputs, |a, _, _| {
        a ^ 1 << 31
    });
    check("abs.f32 %d32, %a32;", Out::D32, &inputs, |a, _, _| {
        a & 0x7fff_ffff
    });
    check("abs.ftz.f32 %d32, %a32;", Out::D32, &inputs, |a, _, _| {
        u64::from(flushed(single(a)).to_bits()) & 0x7fff_ffff
    });
    check(
        "copysign.f32 %d32, %a32, %b32;",
        Out::D32,
        &inputs,
        |a, b, _| (a & 1 << 31) | (b & 0x7fff_ffff),
    );
    let inputs = pairs(&doubles());
    check("neg.f64 %d64, %a64;", Out::D64, &inputs, |a, _, _| {
        a ^ 1 << 63
    });
    check("abs.f64 %d64, %a64;", Out::D64, &inputs, |a, _, _| {
        a << 1 >> 1
    });
    check(
        "copysign.f64 %d64, %a64, %b64;",
        Out::D64,
        &inputs,
        |a, b, _| (a & 1 << 63) | (b << 1 >> 1),
    );
}

/// The smaller of two numbers; minus zero is smaller than zero.
trait MinimumOf {
    fn minimum_of(self, other: Self) -> Self;
}

impl MinimumOf for f64 {
    fn minimum_of(self, other: Self) -> Self {
        if self < other || (self == other && self.is_sign_negative()) {
            self
        } else {
            other
        }
    }
}
