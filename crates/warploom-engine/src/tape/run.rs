//! The interpreter.

use fearless_simd::prelude::*;

use super::super::block::Block;
use super::super::lanes::{Simd, greater, lesser, load, store, widest};
use super::SLOT;
use super::ins::{Ins, One, Op, Src};
use super::row::{RowIn, RowOut};
use super::wide;

/// Vectors in the accumulator: enough to hide how long an operation takes, and to share out the
/// cost of finding out which it is.
const WIDTH: usize = 8;

/// Lanes of the widest vector of any machine.
const WIDEST: usize = widest::<i32>();

// Loops over an accumulator are written out: what is handed to the library's functions over arrays
// as a closure is compiled without the vector instructions of its surroundings, and then called.
type Acc<S> = [<S as Simd>::f32s; WIDTH];

/// Rows a tail is copied for without asking for memory.
const FEW: usize = 40;

/// One row of every output.
#[inline(always)]
pub(super) fn row<S: Simd>(
    simd: S,
    code: &[Ins],
    memory: &mut [f32],
    tail: &mut Block,
    rows: &[RowIn<'_>],
    outs: &mut [RowOut<'_>],
    at: [i32; 2],
    width: usize,
) {
    let count = WIDTH * S::f32s::LEN;
    let mut x = 0;
    while x + count <= width {
        piece(simd, code, memory, rows, outs, [at[0], at[1], x as i32], x);
        x += count;
    }
    if x == width {
        return;
    }
    // The last piece is computed beside the rows, which end before it does.
    let copies = tail.reserve::<f64>((rows.len() + outs.len()) * SLOT);
    let (inputs, results) = copies.split_at_mut(rows.len() * SLOT);
    let mut few = [RowIn::U8(&[]); FEW];
    let mut many = Vec::new();
    let short: &mut [RowIn<'_>] = if rows.len() <= FEW {
        &mut few[..rows.len()]
    } else {
        many.resize(rows.len(), RowIn::U8(&[]));
        &mut many
    };
    for ((copy, row), memory) in short
        .iter_mut()
        .zip(rows)
        .zip(inputs.chunks_exact_mut(SLOT))
    {
        *copy = row.tail(x, memory);
    }
    let mut ends: [RowOut<'_>; 8] = std::array::from_fn(|_| RowOut::U8(&mut []));
    for ((end, out), memory) in ends
        .iter_mut()
        .zip(&*outs)
        .zip(results.chunks_exact_mut(SLOT))
    {
        *end = out.like(memory);
    }
    let ends = &mut ends[..outs.len()];
    piece(simd, code, memory, short, ends, [at[0], at[1], x as i32], 0);
    for (out, end) in outs.iter_mut().zip(&*ends) {
        out.fill(x, end);
    }
}

#[inline(always)]
fn source<'a>(
    src: Src,
    memory: &'a [f32],
    rows: &[RowIn<'a>],
    x: usize,
    count: usize,
) -> &'a [f32] {
    match src {
        Src::Slot(slot) => &memory[usize::from(slot) * SLOT..][..count],
        Src::Row(row) => &rows[usize::from(row)].words()[x..x + count],
    }
}

/// The pixels from `x` on, as many as the accumulator holds.
#[inline(always)]
fn piece<S: Simd>(
    simd: S,
    code: &[Ins],
    memory: &mut [f32],
    rows: &[RowIn<'_>],
    outs: &mut [RowOut<'_>],
    at: [i32; 3],
    x: usize,
) {
    let lanes = S::f32s::LEN;
    let count = WIDTH * lanes;
    let mut acc: Acc<S> = [S::f32s::splat(simd, 0.0); WIDTH];
    for ins in code {
        match *ins {
            Ins::Bin(op, src) => {
                let b = source(src, memory, rows, x, count);
                acc = binary(simd, op, acc, b);
            }
            Ins::Un(op) => acc = unary(simd, op, acc),
            Ins::Take(src) => {
                let b = source(src, memory, rows, x, count);
                for (i, value) in acc.iter_mut().enumerate() {
                    *value = load(simd, b, i * lanes);
                }
            }
            Ins::Keep(slot) => {
                let slot = &mut memory[usize::from(slot) * SLOT..][..count];
                for (i, value) in acc.iter().enumerate() {
                    store(*value, slot, i * lanes);
                }
            }
            Ins::MulAdd(a, b) => {
                let a = source(a, memory, rows, x, count);
                let b = source(b, memory, rows, x, count);
                for (i, value) in acc.iter_mut().enumerate() {
                    let (a, b): (S::f32s, S::f32s) =
                        (load(simd, a, i * lanes), load(simd, b, i * lanes));
                    *value = value.mul_add_precise(a, b);
                }
            }
            Ins::AddMul(a, b) => {
                let a = source(a, memory, rows, x, count);
                let b = source(b, memory, rows, x, count);
                for (i, value) in acc.iter_mut().enumerate() {
                    let a: S::f32s = load(simd, a, i * lanes);
                    let b: S::f32s = load(simd, b, i * lanes);
                    *value = a.mul_add_precise(b, *value);
                }
            }
            Ins::Choose(a, b) => {
                let a = source(a, memory, rows, x, count);
                let b = source(b, memory, rows, x, count);
                for (i, value) in acc.iter_mut().enumerate() {
                    let truth = truth::<S>(*value);
                    *value = truth.select(load(simd, a, i * lanes), load(simd, b, i * lanes));
                }
            }
            Ins::ChooseThis(cond, other) => {
                let cond = source(cond, memory, rows, x, count);
                let other = source(other, memory, rows, x, count);
                for (i, value) in acc.iter_mut().enumerate() {
                    let truth = truth::<S>(load(simd, cond, i * lanes));
                    *value = truth.select(*value, load(simd, other, i * lanes));
                }
            }
            Ins::ChooseThat(cond, other) => {
                let cond = source(cond, memory, rows, x, count);
                let other = source(other, memory, rows, x, count);
                for (i, value) in acc.iter_mut().enumerate() {
                    let truth = truth::<S>(load(simd, cond, i * lanes));
                    *value = truth.select(load(simd, other, i * lanes), *value);
                }
            }
            Ins::Widen { row, float } => acc = widen(simd, &rows[usize::from(row)], x, float),
            Ins::Coord(axis) => {
                let along = i32::from(axis == 2);
                for (i, value) in acc.iter_mut().enumerate() {
                    let first = at[usize::from(axis)] + along * (i * lanes) as i32;
                    let mut numbers = [first; WIDEST];
                    for (lane, number) in (0..).zip(&mut numbers) {
                        *number += along * lane;
                    }
                    let numbers: S::i32s = load(simd, &numbers, 0);
                    *value = numbers.bitcast();
                }
            }
            Ins::Put(out) => put::<S>(&acc, &mut outs[usize::from(out)], x),
            Ins::PutWide { out, slot } => {
                if let RowOut::Wide(row) = &mut outs[usize::from(out)] {
                    let slot: &[f64] =
                        bytemuck::cast_slice(&memory[usize::from(slot) * SLOT..][..2 * count]);
                    row[x..x + count].copy_from_slice(slot);
                }
            }
            Ins::Wide { op, to } => wide::run(simd, op, to, memory, rows, x, count),
            Ins::Slow {
                op,
                signed,
                a,
                b,
                to,
            } => wide::slow(op, signed, [a, b, to], memory, count),
        }
    }
}

/// All bits or none as a mask.
#[inline(always)]
fn truth<S: Simd>(value: S::f32s) -> S::mask32s {
    let bits: S::i32s = value.bitcast();
    S::mask32s::from_vector(bits)
}

/// A mask as all bits or none.
#[inline(always)]
fn bits<S: Simd>(mask: S::mask32s) -> S::f32s {
    mask.to_vector().bitcast()
}

#[inline(always)]
fn binary<S: Simd>(simd: S, op: Op, mut acc: Acc<S>, b: &[f32]) -> Acc<S> {
    let lanes = S::f32s::LEN;
    macro_rules! floats {
        (|$a:ident, $b:ident| $result:expr) => {
            for (i, value) in acc.iter_mut().enumerate() {
                let ($a, $b): (S::f32s, S::f32s) = (*value, load(simd, b, i * lanes));
                *value = $result;
            }
        };
    }
    macro_rules! whole {
        ($vector:ident, |$a:ident, $b:ident| $result:expr) => {
            floats!(|a, b| {
                let ($a, $b): (S::$vector, S::$vector) = (a.bitcast(), b.bitcast());
                $result
            })
        };
    }
    match op {
        Op::AddF => floats!(|a, b| a + b),
        Op::SubF => floats!(|a, b| a - b),
        Op::FromF => floats!(|a, b| b - a),
        Op::MulF => floats!(|a, b| a * b),
        Op::DivF => floats!(|a, b| a / b),
        Op::IntoF => floats!(|a, b| b / a),
        Op::MinF => floats!(|a, b| lesser(a, b)),
        Op::OfMinF => floats!(|a, b| lesser(b, a)),
        Op::MaxF => floats!(|a, b| greater(a, b)),
        Op::OfMaxF => floats!(|a, b| greater(b, a)),
        Op::LtF => floats!(|a, b| bits::<S>(a.simd_lt(b))),
        Op::LeF => floats!(|a, b| bits::<S>(a.simd_le(b))),
        Op::GtF => floats!(|a, b| bits::<S>(a.simd_gt(b))),
        Op::GeF => floats!(|a, b| bits::<S>(a.simd_ge(b))),
        Op::EqF => floats!(|a, b| bits::<S>(a.simd_eq(b))),
        Op::NeF => floats!(|a, b| bits::<S>(a.simd_ne(b))),
        Op::AddI => whole!(i32s, |a, b| (a + b).bitcast()),
        Op::SubI => whole!(i32s, |a, b| (a - b).bitcast()),
        Op::FromI => whole!(i32s, |a, b| (b - a).bitcast()),
        Op::MulI => whole!(i32s, |a, b| (a * b).bitcast()),
        Op::MinI => whole!(i32s, |a, b| a.min(b).bitcast()),
        Op::MaxI => whole!(i32s, |a, b| a.max(b).bitcast()),
        Op::LtI => whole!(i32s, |a, b| bits::<S>(a.simd_lt(b))),
        Op::LeI => whole!(i32s, |a, b| bits::<S>(a.simd_le(b))),
        Op::GtI => whole!(i32s, |a, b| bits::<S>(a.simd_gt(b))),
        Op::GeI => whole!(i32s, |a, b| bits::<S>(a.simd_ge(b))),
        Op::EqI => whole!(i32s, |a, b| bits::<S>(a.simd_eq(b))),
        Op::NeI => whole!(i32s, |a, b| bits::<S>(a.simd_ne(b))),
        Op::And => whole!(i32s, |a, b| (a & b).bitcast()),
        Op::Or => whole!(i32s, |a, b| (a | b).bitcast()),
        Op::Xor => whole!(i32s, |a, b| (a ^ b).bitcast()),
        Op::MinU => whole!(u32s, |a, b| a.min(b).bitcast()),
        Op::MaxU => whole!(u32s, |a, b| a.max(b).bitcast()),
        Op::LtU => whole!(u32s, |a, b| bits::<S>(a.simd_lt(b))),
        Op::LeU => whole!(u32s, |a, b| bits::<S>(a.simd_le(b))),
        Op::GtU => whole!(u32s, |a, b| bits::<S>(a.simd_gt(b))),
        Op::GeU => whole!(u32s, |a, b| bits::<S>(a.simd_ge(b))),
        // Counts are 0 to 31 by contract.
        Op::Shl => whole!(i32s, |a, b| (a << (b & 31)).bitcast()),
        Op::ShrI => whole!(i32s, |a, b| (a >> (b & 31)).bitcast()),
        Op::ShrU => whole!(u32s, |a, b| (a >> (b & 31)).bitcast()),
    }
    acc
}

#[inline(always)]
fn unary<S: Simd>(simd: S, op: One, mut acc: Acc<S>) -> Acc<S> {
    macro_rules! floats {
        (|$a:ident| $result:expr) => {
            for value in &mut acc {
                let $a = *value;
                *value = $result;
            }
        };
    }
    macro_rules! whole {
        ($vector:ident, |$a:ident| $result:expr) => {
            for value in &mut acc {
                let $a: S::$vector = value.bitcast();
                *value = $result;
            }
        };
    }
    let one = S::i32s::splat(simd, 1);
    match op {
        One::NegF => floats!(|a| -a),
        One::AbsF => floats!(|a| a.abs()),
        One::Sqrt => floats!(|a| a.sqrt()),
        One::Floor => floats!(|a| a.floor()),
        One::Ceil => floats!(|a| a.ceil()),
        One::Round => floats!(|a| a.round_ties_even()),
        One::IsNan => floats!(|a| bits::<S>(a.simd_ne(a))),
        One::NegI => whole!(i32s, |a| (S::i32s::splat(simd, 0) - a).bitcast()),
        One::AbsI => whole!(i32s, |a| a.abs().bitcast()),
        One::Not => whole!(i32s, |a| (!a).bitcast()),
        One::IntToFloat => whole!(i32s, |a| a.to_float()),
        One::UnsignedToFloat => whole!(u32s, |a| a.to_float()),
        One::FloatToInt => floats!(|a| a.to_int::<S::i32s>().bitcast()),
        One::FloatToUnsigned => floats!(|a| a.to_int_precise::<S::u32s>().bitcast()),
        One::TruthToInt => whole!(i32s, |a| (a & one).bitcast()),
        One::TruthToFloat => whole!(i32s, |a| (a & one).to_float()),
    }
    acc
}

/// A row of small integers, as `i32` or `f32`.
#[inline(always)]
fn widen<S: Simd>(simd: S, row: &RowIn<'_>, x: usize, float: bool) -> Acc<S> {
    let lanes = S::f32s::LEN;
    let mut acc: Acc<S> = [S::f32s::splat(simd, 0.0); WIDTH];
    macro_rules! each {
        ($row:ident) => {
            for (i, value) in acc.iter_mut().enumerate() {
                let mut numbers = [0_i32; WIDEST];
                for (to, from) in numbers.iter_mut().zip(&$row[x + i * lanes..][..lanes]) {
                    *to = i32::from(*from);
                }
                let numbers: S::i32s = load(simd, &numbers, 0);
                *value = if float {
                    numbers.to_float()
                } else {
                    numbers.bitcast()
                };
            }
        };
    }
    match row {
        RowIn::U8(row) => each!(row),
        RowIn::U16(row) => each!(row),
        RowIn::I16(row) => each!(row),
        RowIn::Word(_) | RowIn::Wide(_) => unreachable!("the tape knows which rows are small"),
    }
    acc
}

/// Writes the accumulator, whose numbers are in the output's range.
#[inline(always)]
fn put<S: Simd>(acc: &Acc<S>, out: &mut RowOut<'_>, x: usize) {
    let lanes = S::f32s::LEN;
    macro_rules! each {
        ($row:ident, $type:ty) => {
            for (i, value) in acc.iter().enumerate() {
                let part = &mut $row[x + i * lanes..][..lanes];
                let numbers: S::i32s = value.bitcast();
                for (to, from) in part.iter_mut().zip(numbers.as_slice()) {
                    *to = *from as $type;
                }
            }
        };
    }
    match out {
        RowOut::U8(row) => each!(row, u8),
        RowOut::U16(row) => each!(row, u16),
        RowOut::I16(row) => each!(row, i16),
        RowOut::Word(row) => {
            for (i, value) in acc.iter().enumerate() {
                store(*value, row, x + i * lanes);
            }
        }
        RowOut::Wide(_) => unreachable!("wide results are written from their slots"),
    }
}
