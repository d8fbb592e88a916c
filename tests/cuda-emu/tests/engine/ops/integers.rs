//! Integer arithmetic.

use super::values::integers;
use crate::rig::{Out, check, pairs, singles, triples};

/// Types with their width and whether they are signed.
const TYPES: [(&str, u32, bool); 6] = [
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

fn out(bits: u32) -> Out {
    match bits {
        16 => Out::D16,
        32 => Out::D32,
        _ => Out::D64,
    }
}

/// The lowest `bits` bits as a number.
fn number(value: u64, bits: u32, signed: bool) -> i128 {
    let unused = 128 - bits;
    if signed {
        (i128::from(value) << unused) >> unused
    } else {
        ((u128::from(value) << unused) >> unused) as i128
    }
}

fn word(value: i128, bits: u32) -> u64 {
    (value as u128 & (u128::MAX >> (128 - bits))) as u64
}

/// Checks an operation of two operands in all types.
fn check_all(opcode: &str, reference: impl Fn(i128, i128, u32, bool) -> i128) {
    for (ty, bits, signed) in TYPES {
        let body = format!("{opcode}.{ty} %d{bits}, %a{bits}, %b{bits};");
        check(&body, out(bits), &pairs(&integers(bits)), |a, b, _| {
            let (a, b) = (number(a, bits, signed), number(b, bits, signed));
            word(reference(a, b, bits, signed), bits)
        });
    }
}

#[test]
fn sums_and_differences_wrap_around() {
    check_all("add", |a, b, _, _| a + b);
    check_all("sub", |a, b, _, _| a - b);
}

#[test]
fn sums_saturate_if_told_to() {
    for (opcode, sign) in [("add", 1), ("sub", -1)] {
        let body = format!("{opcode}.sat.s32 %d32, %a32, %b32;");
        check(&body, Out::D32, &pairs(&integers(32)), |a, b, _| {
            let (a, b) = (number(a, 32, true), number(b, 32, true));
            let sum = a + sign * b;
            word(sum.clamp(i128::from(i32::MIN), i128::from(i32::MAX)), 32)
        });
    }
}

#[test]
fn products_have_three_parts() {
    check_all("mul.lo", |a, b, _, _| a.wrapping_mul(b));
    check_all("mul.hi", |a, b, bits, signed| {
        if signed || bits < 64 {
            (a * b) >> bits
        } else {
            ((a as u128 * b as u128) >> bits) as i128
        }
    });
    for (ty, bits, signed) in TYPES.into_iter().filter(|(_, bits, _)| *bits < 64) {
        let wide = bits * 2;
        let body = format!("mul.wide.{ty} %d{wide}, %a{bits}, %b{bits};");
        check(&body, out(wide), &pairs(&integers(bits)), |a, b, _| {
            word(number(a, bits, signed) * number(b, bits, signed), wide)
        });
        let body = format!("mad.wide.{ty} %d{wide}, %a{bits}, %b{bits}, %c{wide};");
        check(&body, out(wide), &triples(&integers(64), 600), |a, b, c| {
            let product = number(a, bits, signed) * number(b, bits, signed);
            word(product + number(c, wide, signed), wide)
        });
    }
}

#[test]
fn products_are_added_to() {
    for (ty, bits, signed) in TYPES {
        let inputs = triples(&integers(bits), 600);
        let body = format!("mad.lo.{ty} %d{bits}, %a{bits}, %b{bits}, %c{bits};");
        check(&body, out(bits), &inputs, |a, b, c| {
            a.wrapping_mul(b).wrapping_add(c) & (u64::MAX >> (64 - bits))
        });
        let body = format!("mad.hi.{ty} %d{bits}, %a{bits}, %b{bits}, %c{bits};");
        check(&body, out(bits), &inputs, |a, b, c| {
            let (a, b) = (number(a, bits, signed), number(b, bits, signed));
            let high = if signed {
                (a * b) >> bits
            } else {
                ((a as u128 * b as u128) >> bits) as i128
            };
            word(high + i128::from(c), bits)
        });
    }
    let body = "mad.hi.sat.s32 %d32, %a32, %b32, %c32;";
    check(body, Out::D32, &triples(&integers(32), 600), |a, b, c| {
        let (a, b) = (number(a, 32, true), number(b, 32, true));
        let sum = ((a * b) >> 32) + number(c, 32, true);
        word(sum.clamp(i128::from(i32::MIN), i128::from(i32::MAX)), 32)
    });
}

#[test]
fn products_of_24_bits() {
    for (ty, signed) in [("u32", false), ("s32", true)] {
        for (part, shift) in [("lo", 0), ("hi", 16)] {
            let inputs = triples(&integers(32), 600);
            let product = move |a, b| (number(a, 24, signed) * number(b, 24, signed)) >> shift;
            let body = format!("mul24.{part}.{ty} %d32, %a32, %b32;");
            check(&body, Out::D32, &inputs, |a, b, _| word(product(a, b), 32));
            let body = format!("mad24.{part}.{ty} %d32, %a32, %b32, %c32;");
            check(&body, Out::D32, &inputs, |a, b, c| {
                word(product(a, b) + i128::from(c), 32)
            });
        }
    }
}

#[test]
fn quotients_and_remainders_never_trap() {
    check_all("div", |a, b, bits, _| match b {
        0 => (1 << bits) - 1,
        _ => a / b,
    });
    check_all("rem", |a, b, _, _| if b == 0 { a } else { a % b });
}

#[test]
fn extremes_and_distances() {
    check_all("min", |a, b, _, _| a.min(b));
    check_all("max", |a, b, _, _| a.max(b));
    for (ty, bits, signed) in TYPES {
        let body = format!("sad.{ty} %d{bits}, %a{bits}, %b{bits}, %c{bits};");
        check(
            &body,
            out(bits),
            &triples(&integers(bits), 600),
            |a, b, c| {
                let distance = (number(a, bits, signed) - number(b, bits, signed)).abs();
                word(distance + i128::from(c), bits)
            },
        );
    }
    let body = "max.relu.s32 %d32, %a32, %b32;";
    check(body, Out::D32, &pairs(&integers(32)), |a, b, _| {
        word(number(a, 32, true).max(number(b, 32, true)).max(0), 32)
    });
}

#[test]
fn signs_change() {
    for (ty, bits, signed) in TYPES.into_iter().filter(|(_, _, signed)| *signed) {
        let inputs = singles(&integers(bits));
        let body = format!("neg.{ty} %d{bits}, %a{bits};");
        check(&body, out(bits), &inputs, |a, _, _| {
            word(-number(a, bits, signed), bits)
        });
        let body = format!("abs.{ty} %d{bits}, %a{bits};");
        check(&body, out(bits), &inputs, |a, _, _| {
            word(number(a, bits, signed).abs(), bits)
        });
    }
}

#[test]
fn carries_join_words() {
    let inputs = pairs(&integers(64));
    let halves = "mov.b64 {%a32, %t32}, %a64; mov.b64 {%b32, %n}, %b64;";
    let body = format!("{halves} add.cc.u32 %d32, %a32, %b32; addc.u32 %e32, %t32, %n;");
    check(&body, Out::Two, &inputs, |a, b, _| a.wrapping_add(b));
    let body = format!("{halves} sub.cc.u32 %d32, %a32, %b32; subc.u32 %e32, %t32, %n;");
    check(&body, Out::Two, &inputs, |a, b, _| a.wrapping_sub(b));
    // The carry out of the upper halves, by a third pair of zeros.
    let body = format!(
        "{halves} add.cc.s32 %d32, %a32, %b32; addc.cc.s32 %d32, %t32, %n; addc.s32 %d32, 0, 0;"
    );
    check(&body, Out::D32, &inputs, |a, b, _| {
        u64::from(a.checked_add(b).is_none())
    });
    let body = format!(
        "{halves} sub.cc.u32 %d32, %a32, %b32; subc.cc.u32 %d32, %t32, %n; subc.u32 %d32, 0, 0;"
    );
    check(&body, Out::D32, &inputs, |a, b, _| {
        if a < b { 0xffff_ffff } else { 0 }
    });
    // 64-bit words, and an addition in between that leaves the carry alone.
    let body = "add.cc.u64 %d64, %a64, %b64; addc.u64 %e64, %a64, 0; addc.u64 %d64, 0, 0;";
    check(body, Out::D64, &inputs, |a, b, _| {
        u64::from(a.checked_add(b).is_none())
    });
}

#[test]
fn long_products_by_carries() {
    // The upper half of a product of 64 bits, from 32-bit pieces, as compilers write it.
    let body = "
    mov.b64 {%a32, %t32}, %a64; mov.b64 {%b32, %n}, %b64;
    mul.hi.u32 %d32, %a32, %b32;
    mad.lo.cc.u32 %d32, %t32, %b32, %d32;
    madc.hi.u32 %e32, %t32, %b32, 0;
    mad.lo.cc.u32 %d32, %a32, %n, %d32;
    madc.hi.cc.u32 %e32, %a32, %n, %e32;
    addc.u32 %c32, 0, 0;
    mad.lo.cc.u32 %e32, %t32, %n, %e32;
    madc.hi.u32 %c32, %t32, %n, %c32;
    mov.b32 %d32, %e32; mov.b32 %e32, %c32;";
    check(body, Out::Two, &pairs(&integers(64)), |a, b, _| {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    });
}
