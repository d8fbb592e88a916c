//! Operations on bits.

use super::values::integers;
use crate::rig::{Noise, Out, check, pairs, singles, triples};

const WIDTHS: [(u32, Out); 3] = [(16, Out::D16), (32, Out::D32), (64, Out::D64)];

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

#[test]
fn logic() {
    for (bits, out) in WIDTHS {
        let inputs = pairs(&integers(bits));
        let two = |name: &str| format!("{name}.b{bits} %d{bits}, %a{bits}, %b{bits};");
        check(&two("and"), out, &inputs, |a, b, _| a & b);
        check(&two("or"), out, &inputs, |a, b, _| a | b);
        check(&two("xor"), out, &inputs, |a, b, _| a ^ b);
        let one = |name: &str| format!("{name}.b{bits} %d{bits}, %a{bits};");
        check(&one("not"), out, &inputs, |a, _, _| !a & mask(bits));
        check(&one("cnot"), out, &inputs, |a, _, _| u64::from(a == 0));
    }
}

#[test]
fn logic_of_predicates() {
    let inputs = pairs(&[0, 1]);
    for (name, table) in [("and", 0b1000), ("or", 0b1110), ("xor", 0b0110)] {
        let body = format!("{name}.pred %pd, %pa, %pb; not.pred %pe, %pa;");
        check(&body, Out::Predicates, &inputs, |a, b, _| {
            (table >> (2 * a + b) & 1) | u64::from(a == 0) << 1
        });
    }
    let body = "mov.pred %pd, %pa; mov.pred %pe, -1;";
    check(body, Out::Predicates, &inputs, |a, _, _| a | 2);
    // Instructions that depend on a predicate or its opposite.
    let body = "mov.b32 %d32, 1; @%pa mov.b32 %d32, 2; @!%pb add.u32 %d32, %d32, 8;";
    check(body, Out::D32, &inputs, |a, b, _| 1 + a + 8 * (1 - b));
}

#[test]
fn shifts_by_any_amount() {
    let amounts = [
        0,
        1,
        5,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        200,
        0x8000_0000,
    ];
    for (bits, out) in WIDTHS {
        let mut inputs = Vec::new();
        for a in integers(bits) {
            inputs.extend(amounts.map(|amount| [a, amount, 0]));
        }
        let body = format!("shl.b{bits} %d{bits}, %a{bits}, %b32;");
        check(&body, out, &inputs, |a, n, _| {
            if n < u64::from(bits) {
                a << n & mask(bits)
            } else {
                0
            }
        });
        for ty in ["b", "u"] {
            let body = format!("shr.{ty}{bits} %d{bits}, %a{bits}, %b32;");
            check(&body, out, &inputs, |a, n, _| {
                if n < u64::from(bits) { a >> n } else { 0 }
            });
        }
        let body = format!("shr.s{bits} %d{bits}, %a{bits}, %b32;");
        check(&body, out, &inputs, |a, n, _| {
            let top = (a << (64 - bits)) as i64;
            let moved = top >> n.min(u64::from(bits) - 1) >> (64 - bits);
            moved as u64 & mask(bits)
        });
    }
}

/// What a shift makes of its amount.
type Amount = fn(u64) -> u64;

#[test]
fn funnel_shifts() {
    let mut inputs = Vec::new();
    for amount in [0, 1, 7, 31, 32, 33, 63, 64, 1000] {
        let words = integers(32);
        inputs.extend(pairs(&words).into_iter().map(|[a, b, _]| [a, b, amount]));
    }
    let modes: [(&str, Amount); 2] = [("clamp", |n| n.min(32)), ("wrap", |n| n & 31)];
    for (mode, amount) in modes {
        let body = format!("shf.l.{mode}.b32 %d32, %a32, %b32, %c32;");
        check(&body, Out::D32, &inputs, |a, b, n| {
            ((u128::from(b) << 32 | u128::from(a)) << amount(n) >> 32) as u64 & mask(32)
        });
        let body = format!("shf.r.{mode}.b32 %d32, %a32, %b32, %c32;");
        check(&body, Out::D32, &inputs, |a, b, n| {
            ((b << 32 | a) >> amount(n)) & mask(32)
        });
    }
}

/// Fields at many places: value, place and length.
fn fields(bits: u32) -> Vec<[u64; 3]> {
    let places = [0, 1, 4, 15, 16, 31, 32, 33, 63, 64, 255, 256, 0x105];
    let mut inputs = Vec::new();
    for a in integers(bits) {
        for place in places {
            inputs.extend(places.map(|length| [a, place, length]));
        }
    }
    inputs
}

#[test]
fn fields_are_extracted() {
    for (bits, out) in [(32, Out::D32), (64, Out::D64)] {
        for signed in [false, true] {
            let ty = if signed { "s" } else { "u" };
            let body = format!("bfe.{ty}{bits} %d{bits}, %a{bits}, %b32, %c32;");
            check(&body, out, &fields(bits), |a, place, length| {
                // As the manual has it, bit by bit.
                let (place, length) = (place & 0xff, length & 0xff);
                let last = u64::from(bits) - 1;
                let bit = |index: u64| a >> index & 1;
                let sign = if signed && length > 0 {
                    bit((place + length - 1).min(last))
                } else {
                    0
                };
                (0..=last)
                    .map(|i| {
                        if i < length && place + i <= last {
                            bit(place + i) << i
                        } else {
                            sign << i
                        }
                    })
                    .sum()
            });
        }
    }
}

#[test]
fn fields_are_inserted() {
    for (bits, out) in [(32, Out::D32), (64, Out::D64)] {
        // Place and length share the third operand.
        let inputs: Vec<[u64; 3]> = fields(bits)
            .into_iter()
            .map(|[a, place, length]| [a, a.rotate_left(13) & mask(bits), length << 16 | place])
            .collect();
        let body = format!(
            "shr.u32 %t32, %c32, 16; and.b32 %c32, %c32, 0xffff;
            bfi.b{bits} %d{bits}, %a{bits}, %b{bits}, %c32, %t32;"
        );
        check(&body, out, &inputs, |a, b, c| {
            let (place, length) = (c & 0xff, c >> 16 & 0xff);
            (0..length).fold(b, |word, i| {
                if place + i < u64::from(bits) {
                    word & !(1 << (place + i)) | (a >> i & 1) << (place + i)
                } else {
                    word
                }
            })
        });
    }
}

#[test]
fn bits_are_found_and_counted() {
    for (bits, out) in [(32, Out::D32), (64, Out::D64)] {
        let inputs = singles(&integers(bits));
        let unused = 64 - bits;
        let count = |name: &str| format!("{name}.b{bits} %d32, %a{bits};");
        check(&count("popc"), Out::D32, &inputs, |a, _, _| {
            a.count_ones().into()
        });
        check(&count("clz"), Out::D32, &inputs, |a, _, _| {
            (a.leading_zeros() - unused).into()
        });
        let body = format!("brev.b{bits} %d{bits}, %a{bits};");
        check(&body, out, &inputs, |a, _, _| a.reverse_bits() >> unused);
        for (ty, signed) in [("u", false), ("s", true)] {
            let top = |a: u64| {
                let is_negative = signed && a >> (bits - 1) & 1 == 1;
                let a = if is_negative { !a & mask(bits) } else { a };
                (0..bits).rev().find(|place| a >> place & 1 == 1)
            };
            let body = format!("bfind.{ty}{bits} %d32, %a{bits};");
            check(&body, Out::D32, &inputs, |a, _, _| {
                top(a).map_or(0xffff_ffff, u64::from)
            });
            let body = format!("bfind.shiftamt.{ty}{bits} %d32, %a{bits};");
            check(&body, Out::D32, &inputs, |a, _, _| {
                top(a).map_or(0xffff_ffff, |place| u64::from(bits - 1 - place))
            });
        }
    }
}

#[test]
fn bytes_are_permuted() {
    let mut noise = Noise::new(21);
    let inputs: Vec<[u64; 3]> = (0..2000)
        .map(|_| {
            [
                noise.next() & mask(32),
                noise.next() & mask(32),
                noise.next() & mask(32),
            ]
        })
        .collect();
    let byte = |a: u64, b: u64, place: u64| (b << 32 | a) >> (8 * (place & 7)) & 0xff;
    check(
        "prmt.b32 %d32, %a32, %b32, %c32;",
        Out::D32,
        &inputs,
        |a, b, c| {
            (0..4)
                .map(|i| {
                    let nibble = c >> (4 * i) & 15;
                    let value = byte(a, b, nibble);
                    let copied = if value >> 7 == 1 { 0xff } else { 0 };
                    (if nibble >= 8 { copied } else { value }) << (8 * i)
                })
                .sum()
        },
    );
    // The tables of the manual: which byte goes where, for selectors 0 to 3.
    let tables = [
        ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
        ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
        ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
        ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
        ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
        ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
    ];
    for (mode, table) in tables {
        let body = format!("prmt.b32.{mode} %d32, %a32, %b32, %c32;");
        check(&body, Out::D32, &inputs, |a, b, c| {
            let row = table[(c & 3) as usize];
            (0..4)
                .map(|i| byte(a, b, row >> (4 * i) & 7) << (8 * i))
                .sum()
        });
    }
}

#[test]
fn functions_of_three_bits() {
    let inputs = triples(&integers(32), 200);
    for table in 0u64..256 {
        let body = format!("lop3.b32 %d32, %a32, %b32, %c32, {table};");
        check(&body, Out::D32, &inputs, |a, b, c| {
            (0..32)
                .map(|i| {
                    let row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
                    (table >> row & 1) << i
                })
                .sum()
        });
    }
}

#[test]
fn the_nth_set_bit() {
    let mut inputs = Vec::new();
    for mask in [
        0,
        1,
        0xff,
        0xf0f0_f0f0,
        0xaaaa_5555,
        0xffff_ffff,
        0x8000_0001,
    ] {
        for base in [0, 3, 16, 31] {
            inputs.extend((-5i32..6).map(|offset| [mask, base, u64::from(offset as u32)]));
        }
    }
    check(
        "fns.b32 %d32, %a32, %b32, %c32;",
        Out::D32,
        &inputs,
        |mask, base, offset| {
            // As the manual has it.
            let (mut offset, base) = (offset as u32 as i32, base as i32);
            let (mut place, step, mut count) =
                (base, if offset < 0 { -1 } else { 1 }, offset.abs());
            if offset == 0 {
                return if mask >> base & 1 == 1 {
                    base as u64
                } else {
                    0xffff_ffff
                };
            }
            offset = 0;
            while (0..32).contains(&place) {
                if mask >> place & 1 == 1 {
                    count -= 1;
                    if count == offset {
                        return place as u64;
                    }
                }
                place += step;
            }
            0xffff_ffff
        },
    );
}
