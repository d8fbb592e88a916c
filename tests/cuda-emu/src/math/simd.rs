//! Several small integers in one register: the video instructions, and dot products.

/// An instruction on the bytes or half-words of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Lanes {
    Add = 0,
    Sub = 1,
    AbsDiff = 2,
    Min = 3,
    Max = 4,
    Average = 5,
}

/// What the number of a call stands for.
#[derive(Debug, Clone, Copy)]
struct Code {
    operation: u32,
    /// Bits of a lane.
    bits: u32,
    signed: [bool; 3],
    saturate: bool,
    accumulate: bool,
}

impl Lanes {
    /// As a number that fits an argument of a native function: signs are of result, `a` and `b`.
    pub(crate) fn code(self, bits: u32, signed: [bool; 3], saturate: bool, add: bool) -> u32 {
        let [d, a, b] = signed.map(u32::from);
        u32::from(self as u8)
            | u32::from(bits == 16) << 4
            | d << 5
            | a << 6
            | b << 7
            | u32::from(saturate) << 8
            | u32::from(add) << 9
    }
}

fn decode(code: u32) -> Code {
    let flag = |place: u32| code >> place & 1 == 1;
    Code {
        operation: code & 15,
        bits: if flag(4) { 16 } else { 8 },
        signed: [flag(5), flag(6), flag(7)],
        saturate: flag(8),
        accumulate: flag(9),
    }
}

/// Bits `place..place + bits` of `word`, as a number.
fn lane(word: u32, place: u32, bits: u32, signed: bool) -> i64 {
    let raw = i64::from(word >> place & (u32::MAX >> (32 - bits)));
    if signed && raw >> (bits - 1) == 1 {
        raw - (1 << bits)
    } else {
        raw
    }
}

/// Applies the operation to each pair of lanes; accumulating ones add all results to `sum`.
pub(crate) fn lanes(code: u32, left: u32, right: u32, sum: u32) -> u32 {
    let code = decode(code);
    let [result_signed, left_signed, right_signed] = code.signed;
    let mask = i64::from(u32::MAX >> (32 - code.bits));
    let mut word = 0u32;
    let mut total = i64::from(sum);
    for place in (0..32).step_by(code.bits as usize) {
        let x = lane(left, place, code.bits, left_signed);
        let y = lane(right, place, code.bits, right_signed);
        let exact = match code.operation {
            0 => x + y,
            1 => x - y,
            2 => (x - y).abs(),
            3 => x.min(y),
            4 => x.max(y),
            // Halves are rounded away from zero.
            _ => (x + y + i64::from(x + y >= 0)) >> 1,
        };
        total += exact;
        let (low, high) = if result_signed {
            (-(mask >> 1) - 1, mask >> 1)
        } else {
            (0, mask)
        };
        let kept = if code.saturate {
            exact.clamp(low, high)
        } else {
            exact
        };
        let bits = u32::try_from(kept & mask).unwrap_or(0);
        word |= bits << place;
    }
    if code.accumulate {
        low_word(total)
    } else {
        word
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums wrap around, as the register does"
)]
fn low_word(sum: i64) -> u32 {
    sum as u32
}

/// Sums of products of bytes, or of half-words with bytes.
pub(crate) fn dot(code: u32, a: u32, b: u32, c: u32) -> u32 {
    let flag = |place: u32| code >> place & 1 == 1;
    let (a_signed, b_signed, is_two, is_high) = (flag(0), flag(1), flag(2), flag(3));
    let products = if is_two {
        let start = if is_high { 16 } else { 0 };
        [(0, start), (16, start + 8)]
            .map(|(x, y)| lane(a, x, 16, a_signed) * lane(b, y, 8, b_signed))
            .iter()
            .sum::<i64>()
    } else {
        [0, 8, 16, 24]
            .map(|place| lane(a, place, 8, a_signed) * lane(b, place, 8, b_signed))
            .iter()
            .sum()
    };
    c.wrapping_add(low_word(products))
}

/// Picks four of the eight bytes of `b` and `a`; see the manual for the modes.
pub(crate) fn permute(mode: u32, a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let byte = |place: u32| bytes >> (8 * (place & 7)) & 0xff;
    let step = selector & 3;
    let pick = |index: u32| -> u64 {
        match mode {
            0 => {
                let nibble = selector >> (4 * index) & 15;
                let value = byte(nibble);
                if nibble & 8 == 0 {
                    value
                } else if value & 0x80 == 0 {
                    0
                } else {
                    0xff
                }
            }
            // Forward and backward, from `step` on.
            1 => byte(step + index),
            2 => byte(step.wrapping_sub(index)),
            3 => byte(step),
            // Clamped at the left or at the right.
            4 => byte(index.max(step)),
            5 => byte(index.min(step)),
            _ => byte((step & 1) * 2 + (index & 1)),
        }
    };
    let word = (0..4).map(|index| pick(index) << (8 * index)).sum::<u64>();
    u32::try_from(word).unwrap_or(0)
}

/// The place of the bit that is `offset` set bits away from `base`, or all ones.
pub(crate) fn find_set(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    let is_set = |place: &u32| mask >> place & 1 == 1;
    let skip = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let found = match offset {
        0 => Some(base).filter(is_set),
        1.. => (base..32).filter(is_set).nth(skip - 1),
        _ => (0..=base).rev().filter(is_set).nth(skip - 1),
    };
    found.unwrap_or(u32::MAX)
}
