//! Comparisons and selections.

use super::values::{doubles, integers, singles};
use crate::rig::{Out, check, pairs, triples};

const ORDERED: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

fn holds<T: PartialOrd>(name: &str, a: &T, b: &T) -> bool {
    // What cannot be ordered fulfils none of these, not even `ne`.
    let Some(order) = a.partial_cmp(b) else {
        return false;
    };
    match name {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" | "lo" => order.is_lt(),
        "le" | "ls" => order.is_le(),
        "gt" | "hi" => order.is_gt(),
        "ge" | "hs" => order.is_ge(),
        _ => panic!("{name}"),
    }
}

#[test]
fn integers_compare() {
    for bits in [16u32, 32, 64] {
        let inputs = pairs(&integers(bits));
        let unused = 64 - bits;
        for name in ORDERED {
            let unsigned = format!("setp.{name}.u{bits} %pd|%pe, %a{bits}, %b{bits};");
            check(&unsigned, Out::Predicates, &inputs, |a, b, _| {
                1 + u64::from(!holds(name, &a, &b))
            });
            let signed = format!("setp.{name}.s{bits} %pd, %a{bits}, %b{bits}; mov.pred %pe, 0;");
            check(&signed, Out::Predicates, &inputs, |a, b, _| {
                let number = |x: u64| (x << unused) as i64 >> unused;
                u64::from(holds(name, &number(a), &number(b)))
            });
        }
        for name in ["lo", "ls", "hi", "hs"] {
            let body = format!("setp.{name}.u{bits} %pd, %a{bits}, %b{bits}; mov.pred %pe, 0;");
            check(&body, Out::Predicates, &inputs, |a, b, _| {
                holds(name, &a, &b).into()
            });
        }
        let body = format!("setp.eq.b{bits} %pd, %a{bits}, %b{bits}; mov.pred %pe, 0;");
        check(&body, Out::Predicates, &inputs, |a, b, _| u64::from(a == b));
    }
}

/// All comparisons of numbers that may be none.
fn compare(name: &str, a: f64, b: f64) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match name {
        "num" => !unordered,
        "nan" => unordered,
        _ => match name.strip_suffix('u') {
            Some(name) => unordered || holds(name, &a, &b),
            None => holds(name, &a, &b),
        },
    }
}

const ALL: [&str; 14] = [
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

#[test]
fn numbers_compare() {
    let wide = |a: u64| f64::from(f32::from_bits(a as u32));
    let flushed = |a: u64| {
        let x = f32::from_bits(a as u32);
        f64::from(if x.is_subnormal() { 0.0 } else { x })
    };
    for name in ALL {
        let body = format!("setp.{name}.f32 %pd|%pe, %a32, %b32;");
        check(&body, Out::Predicates, &pairs(&singles()), |a, b, _| {
            1 + u64::from(!compare(name, wide(a), wide(b)))
        });
        let body = format!("setp.{name}.ftz.f32 %pd, %fa, %fb; mov.pred %pe, 0;");
        check(&body, Out::Predicates, &pairs(&singles()), |a, b, _| {
            compare(name, flushed(a), flushed(b)).into()
        });
        let body = format!("setp.{name}.f64 %pd, %a64, %b64; mov.pred %pe, 0;");
        check(&body, Out::Predicates, &pairs(&doubles()), |a, b, _| {
            compare(name, f64::from_bits(a), f64::from_bits(b)).into()
        });
    }
}

#[test]
fn comparisons_combine_with_predicates() {
    let inputs = triples(&[0, 1, 2, 3], 64);
    for (name, table) in [("and", 0b1000), ("or", 0b1110), ("xor", 0b0110)] {
        for negated in [false, true] {
            let other = if negated { "!%pc" } else { "%pc" };
            let body = format!("setp.lt.{name}.s32 %pd|%pe, %a32, %b32, {other};");
            check(&body, Out::Predicates, &inputs, |a, b, c| {
                let third = u64::from((c != 0) != negated);
                let both = |found: u64| table >> (2 * found + third) & 1;
                both(u64::from(a < b)) | both(u64::from(a >= b)) << 1
            });
        }
    }
}

#[test]
fn sets_give_numbers() {
    let inputs = pairs(&singles());
    let less = |a: u64, b: u64| f32::from_bits(a as u32) < f32::from_bits(b as u32);
    check(
        "set.lt.u32.f32 %d32, %a32, %b32;",
        Out::D32,
        &inputs,
        |a, b, _| {
            if less(a, b) { 0xffff_ffff } else { 0 }
        },
    );
    check(
        "set.lt.f32.f32 %d32, %a32, %b32;",
        Out::D32,
        &inputs,
        |a, b, _| {
            if less(a, b) { 0x3f80_0000 } else { 0 }
        },
    );
    check(
        "set.lt.and.s32.f32 %d32, %a32, %b32, %pc;",
        Out::D32,
        &inputs,
        |a, b, c| {
            if less(a, b) && c != 0 { 0xffff_ffff } else { 0 }
        },
    );
    check(
        "set.gt.f32.s32 %d32, %a32, %b32;",
        Out::D32,
        &pairs(&integers(32)),
        |a, b, _| {
            if a as i32 > b as i32 { 0x3f80_0000 } else { 0 }
        },
    );
}

#[test]
fn selections() {
    let inputs = triples(&[0, 1, 5, 0xffff_ffff, 0x8000_0000], 200);
    check(
        "selp.b32 %d32, %a32, %b32, %pc;",
        Out::D32,
        &inputs,
        |a, b, c| {
            if c != 0 { a } else { b }
        },
    );
    check(
        "selp.f64 %gd, %ga, %gb, !%pc; mov.b64 %d64, %gd;",
        Out::D64,
        &inputs,
        |a, b, c| {
            if c == 0 { a } else { b }
        },
    );
    check("selp.u16 %d16, 1, 0, %pc;", Out::D16, &inputs, |_, _, c| {
        u64::from(c != 0)
    });
    check(
        "slct.u32.s32 %d32, %a32, %b32, %c32;",
        Out::D32,
        &inputs,
        |a, b, c| {
            let is_negative = c >> 31 & 1 == 1;
            if is_negative { b } else { a }
        },
    );
    let floats: Vec<[u64; 3]> = singles().into_iter().map(|c| [1, 2, c]).collect();
    check(
        "slct.b64.f32 %d64, %a64, %b64, %c32;",
        Out::D64,
        &floats,
        |a, b, c| {
            if f32::from_bits(c as u32) >= 0.0 {
                a
            } else {
                b
            }
        },
    );
    check(
        "slct.ftz.b64.f32 %d64, %a64, %b64, %c32;",
        Out::D64,
        &floats,
        |a, b, c| {
            let c = f32::from_bits(c as u32);
            if c >= 0.0 || c.is_subnormal() { a } else { b }
        },
    );
}

#[test]
fn properties_of_numbers() {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    let properties: [(&str, &[std::num::FpCategory]); 6] = [
        ("finite", &[Normal, Subnormal, Zero]),
        ("infinite", &[Infinite]),
        ("number", &[Normal, Subnormal, Zero, Infinite]),
        ("notanumber", &[Nan]),
        ("normal", &[Normal]),
        ("subnormal", &[Subnormal]),
    ];
    for (name, categories) in properties {
        let body = format!("testp.{name}.f32 %pd, %a32; mov.pred %pe, 0;");
        check(&body, Out::Predicates, &pairs(&singles()), |a, _, _| {
            let found = f32::from_bits(a as u32).classify();
            categories.contains(&found).into()
        });
        let body = format!("testp.{name}.f64 %pd, %a64; mov.pred %pe, 0;");
        check(&body, Out::Predicates, &pairs(&doubles()), |a, _, _| {
            categories.contains(&f64::from_bits(a).classify()).into()
        });
    }
}
