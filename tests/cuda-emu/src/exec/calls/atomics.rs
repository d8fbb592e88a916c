//! Atomic operations that the host does not have as one instruction.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::math::{Arithmetic, Format, Operation, Rounding};

/// What is done to the value in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Update {
    /// Floating point addition in a format, two halves at a time for the pairs.
    AddF16 = 0,
    AddF16x2 = 1,
    AddBf16 = 2,
    AddBf16x2 = 3,
    AddF32 = 4,
    /// The same with subnormal numbers counted as zero.
    AddF32Flushed = 5,
    AddF64 = 6,
    /// Wraps to zero above the operand.
    Inc = 7,
    /// Wraps to the operand below zero.
    Dec = 8,
    Exch16 = 9,
}

fn add(format: Format, flush: bool, a: u64, b: u64) -> u64 {
    let sum = Arithmetic {
        format,
        operation: Operation::Add,
        rounding: Rounding::Near,
        flush,
        saturate: false,
        relu: false,
        nan: false,
    };
    sum.run(a, b, 0)
}

fn add_pairs(format: Format, a: u64, b: u64) -> u64 {
    let low = add(format, false, a & 0xffff, b & 0xffff);
    let high = add(format, false, a >> 16 & 0xffff, b >> 16 & 0xffff);
    high << 16 | low
}

fn updated(update: u32, old: u64, operand: u64) -> u64 {
    match update {
        0 => add(Format::F16, false, old, operand),
        1 => add_pairs(Format::F16, old, operand),
        2 => add(Format::Bf16, false, old, operand),
        3 => add_pairs(Format::Bf16, old, operand),
        4 => add(Format::F32, false, old, operand),
        5 => add(Format::F32, true, old, operand),
        6 => add(Format::F64, false, old, operand),
        7 if old >= operand => 0,
        7 => old + 1,
        8 if old == 0 || old > operand => operand,
        8 => old - 1,
        _ => operand,
    }
}

fn narrow<T: TryFrom<u64>>(value: u64) -> T {
    let Ok(value) = T::try_from(value) else {
        unreachable!("operands are as wide as the memory they change")
    };
    value
}

/// Changes the value at a checked address, and returns what was there.
pub(crate) unsafe extern "C" fn update(address: u64, update: u32, operand: u64) -> u64 {
    let order = Ordering::SeqCst;
    match update {
        0 | 2 | 9 => {
            // SAFETY: compiled code has checked that the thread may change these two bytes, which
            // are aligned; others change them through atomic operations as well, or race.
            let place = unsafe { AtomicU16::from_ptr(address as *mut u16) };
            let next = |old| Some(narrow(updated(update, u64::from(old), operand)));
            u64::from(place.fetch_update(order, order, next).unwrap_or(0))
        }
        6 => {
            // SAFETY: as above, for eight bytes.
            let place = unsafe { AtomicU64::from_ptr(address as *mut u64) };
            let next = |old| Some(updated(update, old, operand));
            place.fetch_update(order, order, next).unwrap_or(0)
        }
        _ => {
            // SAFETY: as above, for four bytes.
            let place = unsafe { AtomicU32::from_ptr(address as *mut u32) };
            let next = |old| Some(narrow(updated(update, u64::from(old), operand)));
            u64::from(place.fetch_update(order, order, next).unwrap_or(0))
        }
    }
}
