//! Routines against the same sums done one number at a time.
#![expect(
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "conversions by `as` are the rule that is tested; equal means equal"
)]

use super::{Bin, BinB, Element, Ins, Routine, Un, Value, Width};
use proptest::prelude::*;

mod bytewise;
mod doubles;
mod merge;
mod rows;

use bytewise::of_bytes;

const WORD: Element = Element::Word;

fn widths() -> Vec<Width> {
    let all = [Width::Bits256, Width::Bits512];
    let there: Vec<Width> = all.into_iter().filter(|width| width.is_there()).collect();
    if there.is_empty() {
        println!("skipped: this machine has no vectors that routines are made for");
    }
    there
}

fn row(index: u8) -> Ins {
    Ins::Row {
        row: index,
        element: WORD,
    }
}

fn put(out: u8, value: Value) -> Ins {
    Ins::Put {
        out,
        element: WORD,
        value,
    }
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

/// Runs a routine on rows of words and gives its outputs.
fn run(routine: &Routine, rows: &[Vec<u8>], outs: usize, along: i32, count: usize) -> Vec<Vec<u8>> {
    let mut memory = vec![f32::NAN; routine.memory()];
    routine.start(&mut memory);
    for (number, bits) in (0..).zip(NUMBERS).take(usize::from(routine.numbers())) {
        routine.set_number(&mut memory, number, bits);
    }
    let mut results = vec![vec![0xaa_u8; count * 4]; outs];
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut outs: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    routine.run(&mut memory, &rows, &mut outs, along, count);
    past(routine, &mut memory, &rows, &results, along, count);
    results
}

/// What goes past the caches is the same, wherever it lies.
fn past(
    routine: &Routine,
    memory: &mut [f32],
    rows: &[&[u8]],
    results: &[Vec<u8>],
    along: i32,
    count: usize,
) {
    for off in [0, 1, 16] {
        let mut room: Vec<Vec<u8>> = results
            .iter()
            .map(|it| vec![0xaa; it.len() + 128])
            .collect();
        let mut outs: Vec<&mut [u8]> = Vec::new();
        for (room, result) in room.iter_mut().zip(results) {
            let start = room.as_ptr().addr().next_multiple_of(64) - room.as_ptr().addr() + off;
            outs.push(&mut room[start..start + result.len()]);
        }
        routine.run_past(memory, rows, &mut outs, along, count);
        for (out, result) in outs.iter().zip(results) {
            assert_eq!(*out, result, "{off} bytes off");
        }
    }
}

const UNARY: [Un; 14] = [
    Un::NegF,
    Un::AbsF,
    Un::Sqrt,
    Un::Floor,
    Un::Ceil,
    Un::Round,
    Un::IsNan,
    Un::NegI,
    Un::AbsI,
    Un::Not,
    Un::IntToFloat,
    Un::UnsignedToFloat,
    Un::FloatToInt,
    Un::FloatToUnsigned,
];

fn unary(op: Un, a: u32) -> u32 {
    let f = f32::from_bits(a);
    let truth = |is: bool| if is { u32::MAX } else { 0 };
    match op {
        Un::NegF => (-f).to_bits(),
        Un::AbsF => f.abs().to_bits(),
        Un::Sqrt => f.sqrt().to_bits(),
        Un::Floor => f.floor().to_bits(),
        Un::Ceil => f.ceil().to_bits(),
        Un::Round => f.round_ties_even().to_bits(),
        Un::IsNan => truth(f.is_nan()),
        Un::NegI => a.wrapping_neg(),
        Un::AbsI => a.cast_signed().wrapping_abs().cast_unsigned(),
        Un::Not => !a,
        Un::IntToFloat => (a.cast_signed() as f32).to_bits(),
        Un::UnsignedToFloat => (a as f32).to_bits(),
        Un::FloatToInt if f >= 2_147_483_648.0 || f.is_nan() => 0x8000_0000,
        Un::FloatToInt => (f as i32).cast_unsigned(),
        Un::FloatToUnsigned => f as u32,
        Un::TruthToInt => u32::from(a != 0),
        Un::TruthToFloat => (f32::from(a != 0)).to_bits(),
    }
}

const BINARY: [Bin; 37] = [
    Bin::AddF,
    Bin::SubF,
    Bin::MulF,
    Bin::DivF,
    Bin::MinF,
    Bin::MaxF,
    Bin::LtF,
    Bin::LeF,
    Bin::EqF,
    Bin::NeF,
    Bin::AddI,
    Bin::SubI,
    Bin::MulI,
    Bin::MinI,
    Bin::MaxI,
    Bin::MinU,
    Bin::MaxU,
    Bin::LtI,
    Bin::LeI,
    Bin::LtU,
    Bin::LeU,
    Bin::EqI,
    Bin::NeI,
    Bin::And,
    Bin::Or,
    Bin::Xor,
    Bin::Shl,
    Bin::ShrI,
    Bin::ShrU,
    Bin::Bytes(BinB::Add),
    Bin::Bytes(BinB::Sub),
    Bin::Bytes(BinB::Min),
    Bin::Bytes(BinB::Max),
    Bin::Bytes(BinB::Lt),
    Bin::Bytes(BinB::Le),
    Bin::Bytes(BinB::Eq),
    Bin::Bytes(BinB::Ne),
];

fn binary(op: Bin, a: u32, b: u32) -> u32 {
    let (f, g) = (f32::from_bits(a), f32::from_bits(b));
    let (i, j) = (a.cast_signed(), b.cast_signed());
    let truth = |is: bool| if is { u32::MAX } else { 0 };
    match op {
        Bin::AddF => (f + g).to_bits(),
        Bin::SubF => (f - g).to_bits(),
        Bin::MulF => (f * g).to_bits(),
        Bin::DivF => (f / g).to_bits(),
        Bin::MinF => {
            if g < f {
                b
            } else {
                a
            }
        }
        Bin::MaxF => {
            if g > f {
                b
            } else {
                a
            }
        }
        Bin::LtF => truth(f < g),
        Bin::LeF => truth(f <= g),
        Bin::EqF => truth(f == g),
        Bin::NeF => truth(f != g),
        Bin::AddI => a.wrapping_add(b),
        Bin::SubI => a.wrapping_sub(b),
        Bin::MulI => a.wrapping_mul(b),
        Bin::MinI => i.min(j).cast_unsigned(),
        Bin::MaxI => i.max(j).cast_unsigned(),
        Bin::MinU => a.min(b),
        Bin::MaxU => a.max(b),
        Bin::LtI => truth(i < j),
        Bin::LeI => truth(i <= j),
        Bin::LtU => truth(a < b),
        Bin::LeU => truth(a <= b),
        Bin::EqI => truth(a == b),
        Bin::NeI => truth(a != b),
        Bin::And => a & b,
        Bin::Or => a | b,
        Bin::Xor => a ^ b,
        Bin::Shl => a << (b & 31),
        Bin::ShrI => (i >> (b & 31)).cast_unsigned(),
        Bin::ShrU => a >> (b & 31),
        Bin::Bytes(op) => {
            let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
            u32::from_ne_bytes(std::array::from_fn(|i| of_bytes(op, a[i], b[i])))
        }
    }
}

/// Equal, or both not a number: which one it is, no two machines agree on.
fn same(a: u32, b: u32) -> bool {
    a == b || (f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan())
}

/// Bits that are likely to find a fault.
fn bits() -> impl Strategy<Value = u32> {
    let odd = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        f32::INFINITY,
        -1e-40,
        2_147_483_648.0,
        4.3e9,
        3e9,
    ];
    prop_oneof![
        any::<u32>().prop_filter("a number", |bits| !f32::from_bits(*bits).is_nan()),
        (-100_i32..100).prop_map(|v| (v as f32 / 4.0).to_bits()),
        (-100_i32..100).prop_map(i32::cast_unsigned),
        prop::sample::select(odd.map(f32::to_bits).to_vec()),
    ]
}

/// Numbers that every program may use.
const NUMBERS: [u32; 4] = [0, 0x4040_0000, 0xc120_0000, 9];

/// Instructions made of choices, with the value each has at every pixel.
fn program(picks: &[u64], rows: &[Vec<u32>]) -> (Vec<Ins>, Vec<Vec<u32>>) {
    let count = rows[0].len();
    let mut code: Vec<Ins> = (0..rows.len() as u8).map(row).collect();
    let mut values: Vec<Vec<u32>> = rows.to_vec();
    for (number, bits) in (0..).zip(NUMBERS) {
        code.push(Ins::Number(number));
        values.push(vec![bits; count]);
    }
    for &pick in picks {
        let operand = |shift: u32| (pick >> shift) as usize % code.len();
        let [a, b, c] = [8, 24, 40].map(operand);
        let at = |v: usize, i: usize| values[v][i];
        let (ins, made): (Ins, Vec<u32>) = match pick % 8 {
            0 | 1 => {
                let op = UNARY[(pick >> 56) as usize % UNARY.len()];
                let made = (0..count).map(|i| unary(op, at(a, i)));
                (Ins::Un(op, a as Value), made.collect())
            }
            2 => {
                let made = (0..count).map(|i| {
                    let [a, b, c] = [a, b, c].map(|v| f32::from_bits(at(v, i)));
                    a.mul_add(b, c).to_bits()
                });
                (Ins::Fma(a as Value, b as Value, c as Value), made.collect())
            }
            3 => {
                // A truth to choose by.
                let less = (0..count).map(|i| binary(Bin::LtI, at(a, i), at(b, i)));
                let less: Vec<u32> = less.collect();
                let made = (0..count).map(|i| if less[i] != 0 { at(b, i) } else { at(c, i) });
                let made: Vec<u32> = made.collect();
                code.push(Ins::Bin(Bin::LtI, a as Value, b as Value));
                values.push(less);
                let truth = (code.len() - 1) as Value;
                (Ins::Select(truth, b as Value, c as Value), made)
            }
            _ => {
                let op = BINARY[(pick >> 56) as usize % BINARY.len()];
                // Counts of shifts are small by contract; every operation of two is tested with them elsewhere.
                if matches!(op, Bin::Shl | Bin::ShrI | Bin::ShrU) {
                    continue;
                }
                let made = (0..count).map(|i| binary(op, at(a, i), at(b, i)));
                (Ins::Bin(op, a as Value, b as Value), made.collect())
            }
        };
        // Of two different NaNs any may be the result; with the one that operations make, all is known.
        let strange = |v: &u32| f32::from_bits(*v).is_nan() && *v != 0xffc0_0000;
        if made.iter().any(strange) {
            continue;
        }
        code.push(ins);
        values.push(made);
    }
    (code, values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_value_of_a_random_program_is_right(
        picks in prop::collection::vec(any::<u64>(), 1..90),
        data in prop::collection::vec(bits(), 16 * 7),
        many in 1..7_usize,
    ) {
        let rows: Vec<Vec<u32>> = data.chunks(16).take(many).map(<[u32]>::to_vec).collect();
        let (mut code, mut values) = program(&picks, &rows);
        // Every value is kept alive to the end by a sum of all, so that registers do not suffice.
        let last = code.len();
        for value in 0..last {
            let sum = if value == 0 { 0 } else { code.len() - 1 };
            let made = (0..16).map(|i| values[sum][i] ^ values[value][i]).collect();
            code.push(Ins::Bin(Bin::Xor, sum as Value, value as Value));
            values.push(made);
        }
        let shown: Vec<usize> = (0..6).map(|k| (picks[0] as usize).wrapping_mul(k + 7) % last).chain([code.len() - 1]).collect();
        for (out, &value) in (0..).zip(&shown) {
            code.push(put(out, value as Value));
        }
        for width in widths() {
            let routine = Routine::new(&code, width).expect("code can be made here");
            let rows: Vec<Vec<u8>> = rows.iter().map(|row| bytes(row)).collect();
            let outs = run(&routine, &rows, shown.len(), 0, 16);
            for (out, &value) in outs.iter().zip(&shown) {
                prop_assert_eq!(&words(out), &values[value], "{:?} {:?}", width, value);
            }
        }
    }
}

#[test]
fn every_operation_of_one_operand() {
    let odd = [
        0.0_f32,
        -0.0,
        1.5,
        -2.5,
        1e-40,
        3e9,
        5e9,
        -7e9,
        f32::NAN,
        f32::INFINITY,
    ];
    let numbers: Vec<u32> = odd
        .map(f32::to_bits)
        .into_iter()
        .chain([1, 7, u32::MAX, 1 << 31, 99, 1 << 24])
        .collect();
    for width in widths() {
        for op in UNARY {
            let routine = Routine::new(&[row(0), Ins::Un(op, 0), put(0, 1)], width).unwrap();
            let found = words(&run(&routine, &[bytes(&numbers)], 1, 0, 16)[0]);
            for (&a, found) in numbers.iter().zip(found) {
                assert!(
                    same(found, unary(op, a)),
                    "{width:?} {op:?} of {a:#x}: {found:#x}"
                );
            }
        }
        for op in [Un::TruthToInt, Un::TruthToFloat] {
            let truths: Vec<u32> = (0..16)
                .map(|i| if i % 3 == 0 { u32::MAX } else { 0 })
                .collect();
            let routine = Routine::new(&[row(0), Ins::Un(op, 0), put(0, 1)], width).unwrap();
            let found = words(&run(&routine, &[bytes(&truths)], 1, 0, 16)[0]);
            let wanted: Vec<u32> = truths.iter().map(|&a| unary(op, a)).collect();
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn every_operation_of_two_operands() {
    let odd = [0.0_f32, -0.0, 1.5, -2.5, f32::NAN, f32::INFINITY].map(f32::to_bits);
    let numbers: Vec<u32> = odd.into_iter().chain([1, 31, u32::MAX, 1 << 31]).collect();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for &a in &numbers {
        for &b in &numbers {
            left.push(a);
            right.push(b);
        }
    }
    left.resize(112, 5);
    right.resize(112, 3);
    for width in widths() {
        for op in BINARY {
            let by: Vec<u32> = match op {
                Bin::Shl | Bin::ShrI | Bin::ShrU => right.iter().map(|b| b & 31).collect(),
                _ => right.clone(),
            };
            let routine =
                Routine::new(&[row(0), row(1), Ins::Bin(op, 0, 1), put(0, 2)], width).unwrap();
            let found = words(&run(&routine, &[bytes(&left), bytes(&by)], 1, 0, 112)[0]);
            for ((&a, &b), found) in left.iter().zip(&by).zip(found) {
                let wanted = binary(op, a, b);
                assert!(
                    same(found, wanted),
                    "{width:?} {op:?} {a:#x} {b:#x}: {found:#x}"
                );
            }
        }
    }
}

#[test]
fn small_elements_are_read_and_written() {
    for width in widths() {
        for element in [Element::U8, Element::U16, Element::I16] {
            let code = [
                Ins::Row { row: 0, element },
                Ins::Put {
                    out: 0,
                    element,
                    value: 0,
                },
                put(1, 0),
                Ins::Along,
                Ins::Put {
                    out: 2,
                    element,
                    value: 3,
                },
            ];
            let routine = Routine::new(&code, width).unwrap();
            let data: Vec<u8> = (0..64 * element.bytes())
                .map(|i| (i * 37 + 100) as u8)
                .collect();
            let outs = run(&routine, std::slice::from_ref(&data), 3, -20, 64);
            assert_eq!(outs[0][..data.len()], data, "{width:?} {element:?}");
            assert!(
                outs[0][data.len()..].iter().all(|&b| b == 0xaa),
                "nothing behind the end"
            );
            for (i, word) in words(&outs[1]).into_iter().enumerate() {
                let at = i * element.bytes();
                let wanted = match element {
                    Element::U8 => i32::from(data[at]),
                    Element::U16 => i32::from(u16::from_ne_bytes([data[at], data[at + 1]])),
                    _ => i32::from(i16::from_ne_bytes([data[at], data[at + 1]])),
                };
                assert_eq!(word.cast_signed(), wanted);
            }
            let along: Vec<u8> = (-20_i32..44)
                .flat_map(|x| x.to_ne_bytes()[..element.bytes()].to_vec())
                .collect();
            assert_eq!(
                outs[2][..along.len()],
                along,
                "positions wrap to the element"
            );
        }
    }
}

#[test]
fn many_rows_share_the_pointers() {
    for width in widths() {
        let mut code: Vec<Ins> = (0..40).map(row).collect();
        let mut sum = 0;
        for value in 1..40 {
            code.push(Ins::Bin(Bin::AddI, sum, value));
            sum = (code.len() - 1) as Value;
        }
        code.push(put(0, sum));
        code.push(put(1, sum));
        let routine = Routine::new(&code, width).unwrap();
        let rows: Vec<Vec<u8>> = (0..40).map(|k| bytes(&[1 << (k % 20); 32])).collect();
        let outs = run(&routine, &rows, 2, 0, 32);
        let wanted = 2 * ((1 << 20) - 1);
        assert!(outs.iter().all(|out| words(out) == [wanted; 32]));
        let more: Vec<Ins> = (0..160).map(row).chain([put(0, 0)]).collect();
        assert!(Routine::new(&more, width).is_none(), "too many rows");
    }
}

#[test]
fn contradictions_are_refused() {
    let Some(width) = Width::best() else { return };
    let bytes = Ins::Row {
        row: 0,
        element: Element::U8,
    };
    assert!(Routine::new(&[row(0), bytes, put(0, 1)], width).is_none());
    // A row between others that is never read has no type.
    assert!(Routine::new(&[row(1), put(0, 0)], width).is_none());
}

#[test]
#[should_panic(expected = "no result before it")]
fn operands_come_before() {
    let width = Width::best().expect("no result before it");
    let _ = Routine::new(&[row(0), Ins::Un(Un::Not, 1)], width);
}

#[test]
#[should_panic(expected = "a row is too short")]
fn short_rows_are_noticed() {
    let width = Width::best().expect("a row is too short");
    let routine = Routine::new(&[row(0), put(0, 0)], width).unwrap();
    run(&routine, &[vec![0; 63]], 1, 0, 16);
}
