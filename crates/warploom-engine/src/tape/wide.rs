//! What goes from slot to slot: numbers of 64 bits, and whole-number division.

use fearless_simd::prelude::*;

use super::super::lanes::{Simd, greater, lesser, load, store};
use super::SLOT;
use super::ins::Wide;
use super::row::RowIn;
use warploom_flow::expr::{Bin, Ty, Un};

/// Where a wide slot starts, in numbers of 64 bits.
fn start(slot: u16) -> usize {
    usize::from(slot) * SLOT / 2
}

#[inline(always)]
pub(super) fn run<S: Simd>(
    simd: S,
    op: Wide,
    to: u16,
    memory: &mut [f32],
    rows: &[RowIn<'_>],
    x: usize,
    count: usize,
) {
    let lanes = S::f64s::LEN;
    let narrow_at = |slot: u16| usize::from(slot) * SLOT;
    macro_rules! wide {
        (|$($name:ident = $slot:ident),*| $result:expr) => {{
            let memory: &mut [f64] = bytemuck::cast_slice_mut(memory);
            let mut i = 0;
            while i < count {
                $(let $name: S::f64s = load(simd, memory, start($slot) + i);)*
                store($result, memory, start(to) + i);
                i += lanes;
            }
        }};
    }
    // A truth has 32 bits: it is written number by number.
    macro_rules! compare {
        ($a:expr, $b:expr, |$x:ident, $y:ident| $result:expr) => {
            for i in 0..count {
                let wide: &[f64] = bytemuck::cast_slice(memory);
                let ($x, $y) = (wide[start($a) + i], wide[start($b) + i]);
                memory[narrow_at(to) + i] = f32::from_bits(if $result { u32::MAX } else { 0 });
            }
        };
    }
    match op {
        Wide::Load(row) => {
            let memory: &mut [f64] = bytemuck::cast_slice_mut(memory);
            let row = &rows[usize::from(row)].wide()[x..x + count];
            memory[start(to)..start(to) + count].copy_from_slice(row);
        }
        Wide::Bin(op, a, b) => match op {
            Bin::Add => wide!(|p = a, q = b| p + q),
            Bin::Sub => wide!(|p = a, q = b| p - q),
            Bin::Mul => wide!(|p = a, q = b| p * q),
            Bin::Div => wide!(|p = a, q = b| p / q),
            Bin::Min => wide!(|p = a, q = b| lesser(p, q)),
            Bin::Max => wide!(|p = a, q = b| greater(p, q)),
            _ => unreachable!("no bits of wide numbers"),
        },
        Wide::Compare(op, a, b) => match op {
            Bin::Lt => compare!(a, b, |p, q| p < q),
            Bin::Le => compare!(a, b, |p, q| p <= q),
            Bin::Eq => compare!(a, b, |p, q| p == q),
            _ => compare!(a, b, |p, q| p != q),
        },
        Wide::IsNan(a) => compare!(a, a, |p, _q| p.is_nan()),
        Wide::Un(op, a) => match op {
            Un::Neg => wide!(|p = a| -p),
            Un::Abs => wide!(|p = a| p.abs()),
            Un::Sqrt => wide!(|p = a| p.sqrt()),
            Un::Floor => wide!(|p = a| p.floor()),
            Un::Ceil => wide!(|p = a| p.ceil()),
            Un::Round => wide!(|p = a| p.round_ties_even()),
            _ => unreachable!("no bits of wide numbers"),
        },
        Wide::Fma(a, b, c) => wide!(|p = a, q = b, r = c| p.mul_add_precise(q, r)),
        Wide::Select(cond, a, b) => {
            for i in 0..count {
                let truth = memory[narrow_at(cond) + i].to_bits() != 0;
                let memory: &mut [f64] = bytemuck::cast_slice_mut(memory);
                memory[start(to) + i] = memory[start(if truth { a } else { b }) + i];
            }
        }
        Wide::From(ty, a) => widened(ty, narrow_at(a), start(to), memory, count),
        Wide::To(ty, a) => narrowed(ty, start(a), narrow_at(to), memory, count),
    }
}

/// Numbers of 32 bits from `a` on become wide ones from `to` on.
#[inline(always)]
fn widened(ty: Ty, a: usize, to: usize, memory: &mut [f32], count: usize) {
    let mut from = [0.0; SLOT];
    from[..count].copy_from_slice(&memory[a..][..count]);
    let memory: &mut [f64] = bytemuck::cast_slice_mut(memory);
    let pairs = memory[to..][..count].iter_mut().zip(&from);
    match ty {
        Ty::F32 => {
            for (to, from) in pairs {
                *to = f64::from(*from);
            }
        }
        Ty::I32 => {
            for (to, from) in pairs {
                *to = f64::from(whole(*from));
            }
        }
        Ty::U32 => {
            for (to, from) in pairs {
                *to = f64::from(from.to_bits());
            }
        }
        _ => {
            for (to, from) in pairs {
                *to = f64::from(from.to_bits() & 1);
            }
        }
    }
}

/// Wide numbers from `a` on become numbers of 32 bits from `to` on.
#[inline(always)]
fn narrowed(ty: Ty, a: usize, to: usize, memory: &mut [f32], count: usize) {
    let mut from = [0.0; SLOT];
    let wide: &[f64] = bytemuck::cast_slice(memory);
    from[..count].copy_from_slice(&wide[a..][..count]);
    let pairs = memory[to..][..count].iter_mut().zip(&from);
    match ty {
        Ty::F32 => {
            for (to, from) in pairs {
                *to = *from as f32;
            }
        }
        Ty::U32 => {
            for (to, from) in pairs {
                *to = f32::from_bits(*from as u32);
            }
        }
        _ => {
            for (to, from) in pairs {
                *to = f32::from_bits((*from as i32).cast_unsigned());
            }
        }
    }
}

/// The whole number that these bits are.
#[inline(always)]
fn whole(bits: f32) -> i32 {
    bits.to_bits().cast_signed()
}

/// Whole-number division and remainder; what divides by zero is zero.
pub(super) fn slow(op: Bin, signed: bool, slots: [u16; 3], memory: &mut [f32], count: usize) {
    let [a, b, to] = slots.map(|slot| usize::from(slot) * SLOT);
    for i in 0..count {
        let (left, right) = (memory[a + i].to_bits(), memory[b + i].to_bits());
        let result = if right == 0 {
            0
        } else if signed {
            let (left, right) = (left.cast_signed(), right.cast_signed());
            let result = if op == Bin::Rem {
                left.wrapping_rem(right)
            } else {
                left.wrapping_div(right)
            };
            result.cast_unsigned()
        } else if op == Bin::Rem {
            left % right
        } else {
            left / right
        };
        memory[to + i] = f32::from_bits(result);
    }
}
