//! Instructions with their meaning, written down once more.

use super::program::Sort::{self, D, F, G, H, P, R};

/// An instruction that computes a register from others.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) opcode: &'static str,
    pub(super) to: Sort,
    pub(super) from: &'static [Sort],
    /// From the bits of the operands to those of the result; upper bits are cut off.
    pub(super) eval: fn(&[u64]) -> u64,
    /// The result may be a NaN whose bits are left open.
    pub(super) is_arithmetic: bool,
}

const fn rule(
    opcode: &'static str,
    to: Sort,
    from: &'static [Sort],
    eval: fn(&[u64]) -> u64,
) -> Rule {
    Rule {
        opcode,
        to,
        from,
        eval,
        is_arithmetic: false,
    }
}

/// A result in double precision.
const fn real(opcode: &'static str, from: &'static [Sort], eval: fn(&[u64]) -> u64) -> Rule {
    Rule {
        opcode,
        to: G,
        from,
        eval,
        is_arithmetic: true,
    }
}

fn s16(x: u64) -> i64 {
    i64::from(x as u16 as i16)
}

fn s32(x: u64) -> i64 {
    i64::from(x as u32 as i32)
}

fn single(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn double(x: u64) -> f64 {
    f64::from_bits(x)
}

/// The bits of a single; those of a NaN are fixed.
fn bits(x: f32) -> u64 {
    u64::from(if x.is_nan() { 0x7fff_ffff } else { x.to_bits() })
}

fn flushed(x: f32) -> f32 {
    if x.is_subnormal() {
        0f32.copysign(x)
    } else {
        x
    }
}

fn shifted_left(value: u64, amount: u64, width: u64) -> u64 {
    if amount < width { value << amount } else { 0 }
}

fn shifted_right(value: u64, amount: u64, width: u64) -> u64 {
    if amount < width { value >> amount } else { 0 }
}

fn float_max(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a > b || (a == b && a.is_sign_positive()) => a,
        _ => b,
    }
}

pub(super) const RULES: &[Rule] = &[
    // Integers of 16 bits.
    rule("add.s16", H, &[H, H], |v| v[0].wrapping_add(v[1])),
    rule("sub.u16", H, &[H, H], |v| v[0].wrapping_sub(v[1])),
    rule("mul.lo.s16", H, &[H, H], |v| v[0].wrapping_mul(v[1])),
    rule("mul.hi.u16", H, &[H, H], |v| (v[0] * v[1]) >> 16),
    rule("mul.wide.s16", R, &[H, H], |v| {
        (s16(v[0]) * s16(v[1])) as u64
    }),
    rule("mul.wide.u16", R, &[H, H], |v| v[0] * v[1]),
    rule("min.s16", H, &[H, H], |v| s16(v[0]).min(s16(v[1])) as u64),
    rule("max.u16", H, &[H, H], |v| v[0].max(v[1])),
    rule("and.b16", H, &[H, H], |v| v[0] & v[1]),
    rule("xor.b16", H, &[H, H], |v| v[0] ^ v[1]),
    rule("shl.b16", H, &[H, R], |v| shifted_left(v[0], v[1], 16)),
    rule("shr.u16", H, &[H, R], |v| shifted_right(v[0], v[1], 16)),
    rule("shr.s16", H, &[H, R], |v| {
        (s16(v[0]) >> v[1].min(15)) as u64
    }),
    rule("selp.b16", H, &[H, H, P], |v| {
        if v[2] == 1 { v[0] } else { v[1] }
    }),
    rule("setp.lt.s16", P, &[H, H], |v| {
        u64::from(s16(v[0]) < s16(v[1]))
    }),
    rule("setp.eq.b16", P, &[H, H], |v| u64::from(v[0] == v[1])),
    rule("cvt.u16.u32", H, &[R], |v| v[0]),
    rule("cvt.s16.s8", H, &[H], |v| v[0] as u8 as i8 as u64),
    // Integers of 32 bits.
    rule("add.s32", R, &[R, R], |v| v[0].wrapping_add(v[1])),
    rule("sub.s32", R, &[R, R], |v| v[0].wrapping_sub(v[1])),
    rule("add.sat.s32", R, &[R, R], |v| {
        (s32(v[0]) + s32(v[1])).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64
    }),
    rule("mul.lo.u32", R, &[R, R], |v| v[0].wrapping_mul(v[1])),
    rule("mul.hi.s32", R, &[R, R], |v| {
        ((s32(v[0]) * s32(v[1])) >> 32) as u64
    }),
    rule("mul.hi.u32", R, &[R, R], |v| (v[0] * v[1]) >> 32),
    rule("mul.wide.s32", D, &[R, R], |v| {
        (s32(v[0]) * s32(v[1])) as u64
    }),
    rule("mul.wide.u32", D, &[R, R], |v| v[0] * v[1]),
    rule("mad.lo.s32", R, &[R, R, R], |v| {
        v[0].wrapping_mul(v[1]).wrapping_add(v[2])
    }),
    rule("mad.wide.u32", D, &[R, R, D], |v| {
        (v[0] * v[1]).wrapping_add(v[2])
    }),
    rule("mad24.lo.u32", R, &[R, R, R], |v| {
        ((v[0] & 0xff_ffff) * (v[1] & 0xff_ffff)).wrapping_add(v[2])
    }),
    rule("div.u32", R, &[R, R], |v| {
        v[0].checked_div(v[1]).unwrap_or(u64::MAX)
    }),
    rule("rem.u32", R, &[R, R], |v| {
        v[0].checked_rem(v[1]).unwrap_or(v[0])
    }),
    rule("div.s32", R, &[R, R], |v| match s32(v[1]) {
        0 => u64::MAX,
        b => (s32(v[0]) / b) as u64,
    }),
    rule("rem.s32", R, &[R, R], |v| match s32(v[1]) {
        0 => v[0],
        b => (s32(v[0]) % b) as u64,
    }),
    rule("abs.s32", R, &[R], |v| s32(v[0]).unsigned_abs()),
    rule("neg.s32", R, &[R], |v| v[0].wrapping_neg()),
    rule("min.s32", R, &[R, R], |v| s32(v[0]).min(s32(v[1])) as u64),
    rule("max.u32", R, &[R, R], |v| v[0].max(v[1])),
    rule("sad.s32", R, &[R, R, R], |v| {
        s32(v[0]).abs_diff(s32(v[1])).wrapping_add(v[2])
    }),
    rule("and.b32", R, &[R, R], |v| v[0] & v[1]),
    rule("or.b32", R, &[R, R], |v| v[0] | v[1]),
    rule("xor.b32", R, &[R, R], |v| v[0] ^ v[1]),
    rule("not.b32", R, &[R], |v| !v[0]),
    rule("cnot.b32", R, &[R], |v| u64::from(v[0] == 0)),
    rule("shl.b32", R, &[R, R], |v| shifted_left(v[0], v[1], 32)),
    rule("shr.u32", R, &[R, R], |v| shifted_right(v[0], v[1], 32)),
    rule("shr.s32", R, &[R, R], |v| {
        (s32(v[0]) >> v[1].min(31)) as u64
    }),
    rule("shf.l.wrap.b32", R, &[R, R, R], |v| {
        (v[1] << 32 | v[0]) << (v[2] & 31) >> 32
    }),
    rule("shf.r.clamp.b32", R, &[R, R, R], |v| {
        (v[1] << 32 | v[0]) >> v[2].min(32)
    }),
    rule("bfe.u32", R, &[R, R, R], |v| {
        let (place, length) = (v[1] & 0xff, v[2] & 0xff);
        shifted_right(v[0], place, 32) & (shifted_left(1, length, 33).wrapping_sub(1))
    }),
    rule("bfind.u32", R, &[R], |v| match v[0] {
        0 => u64::MAX,
        value => u64::from(value.ilog2()),
    }),
    rule("popc.b32", R, &[R], |v| u64::from(v[0].count_ones())),
    rule("clz.b32", R, &[R], |v| {
        u64::from((v[0] as u32).leading_zeros())
    }),
    rule("brev.b32", R, &[R], |v| {
        u64::from((v[0] as u32).reverse_bits())
    }),
    rule("selp.b32", R, &[R, R, P], |v| {
        if v[2] == 1 { v[0] } else { v[1] }
    }),
    rule("slct.u32.s32", R, &[R, R, R], |v| {
        if s32(v[2]) >= 0 { v[0] } else { v[1] }
    }),
    rule("setp.lt.s32", P, &[R, R], |v| {
        u64::from(s32(v[0]) < s32(v[1]))
    }),
    rule("setp.hs.u32", P, &[R, R], |v| u64::from(v[0] >= v[1])),
    rule("setp.ne.and.b32", P, &[R, R, P], |v| {
        u64::from(v[0] != v[1]) & v[2]
    }),
    rule("set.le.s32.u32", R, &[R, R], |v| {
        if v[0] <= v[1] { u64::MAX } else { 0 }
    }),
    rule("mov.u32", R, &[R], |v| v[0]),
    rule("cvt.u32.u64", R, &[D], |v| v[0]),
    rule("cvt.s32.s16", R, &[H], |v| s16(v[0]) as u64),
    rule("cvt.u32.u8", R, &[R], |v| v[0] & 0xff),
    rule("cvt.sat.u8.s32", R, &[R], |v| {
        s32(v[0]).clamp(0, 255) as u64
    }),
    rule("cvt.sat.s16.s32", R, &[R], |v| {
        s32(v[0]).clamp(-32768, 32767) as u64
    }),
    // Integers of 64 bits.
    rule("add.s64", D, &[D, D], |v| v[0].wrapping_add(v[1])),
    rule("sub.u64", D, &[D, D], |v| v[0].wrapping_sub(v[1])),
    rule("mul.lo.s64", D, &[D, D], |v| v[0].wrapping_mul(v[1])),
    rule("mul.hi.u64", D, &[D, D], |v| {
        ((u128::from(v[0]) * u128::from(v[1])) >> 64) as u64
    }),
    rule("mul.hi.s64", D, &[D, D], |v| {
        ((i128::from(v[0] as i64) * i128::from(v[1] as i64)) >> 64) as u64
    }),
    rule("div.s64", D, &[D, D], |v| match v[1] {
        0 => u64::MAX,
        b => (v[0] as i64).wrapping_div(b as i64) as u64,
    }),
    rule("rem.u64", D, &[D, D], |v| {
        v[0].checked_rem(v[1]).unwrap_or(v[0])
    }),
    rule("min.u64", D, &[D, D], |v| v[0].min(v[1])),
    rule("max.s64", D, &[D, D], |v| {
        (v[0] as i64).max(v[1] as i64) as u64
    }),
    rule("and.b64", D, &[D, D], |v| v[0] & v[1]),
    rule("or.b64", D, &[D, D], |v| v[0] | v[1]),
    rule("not.b64", D, &[D], |v| !v[0]),
    rule("shl.b64", D, &[D, R], |v| shifted_left(v[0], v[1], 64)),
    rule("shr.s64", D, &[D, R], |v| {
        ((v[0] as i64) >> v[1].min(63)) as u64
    }),
    rule("popc.b64", R, &[D], |v| u64::from(v[0].count_ones())),
    rule("selp.b64", D, &[D, D, P], |v| {
        if v[2] == 1 { v[0] } else { v[1] }
    }),
    rule("setp.gt.s64", P, &[D, D], |v| {
        u64::from(v[0] as i64 > v[1] as i64)
    }),
    rule("cvt.s64.s32", D, &[R], |v| s32(v[0]) as u64),
    rule("cvt.u64.u16", D, &[H], |v| v[0]),
    // Predicates.
    rule("and.pred", P, &[P, P], |v| v[0] & v[1]),
    rule("or.pred", P, &[P, P], |v| v[0] | v[1]),
    rule("xor.pred", P, &[P, P], |v| v[0] ^ v[1]),
    rule("not.pred", P, &[P], |v| 1 - v[0]),
    rule("mov.pred", P, &[P], |v| v[0]),
    // Singles.
    rule("add.f32", F, &[F, F], |v| bits(single(v[0]) + single(v[1]))),
    rule("sub.rn.f32", F, &[F, F], |v| {
        bits(single(v[0]) - single(v[1]))
    }),
    rule("mul.f32", F, &[F, F], |v| bits(single(v[0]) * single(v[1]))),
    rule("mul.ftz.f32", F, &[F, F], |v| {
        bits(flushed(flushed(single(v[0])) * flushed(single(v[1]))))
    }),
    rule("fma.rn.f32", F, &[F, F, F], |v| {
        bits(single(v[0]).mul_add(single(v[1]), single(v[2])))
    }),
    rule("div.rn.f32", F, &[F, F], |v| {
        bits(single(v[0]) / single(v[1]))
    }),
    rule("add.sat.f32", F, &[F, F], |v| {
        let sum = single(v[0]) + single(v[1]);
        bits(if sum.is_nan() {
            0.0
        } else {
            sum.clamp(0.0, 1.0) + 0.0
        })
    }),
    rule("sqrt.rn.f32", F, &[F], |v| bits(single(v[0]).sqrt())),
    rule("rcp.rn.f32", F, &[F], |v| bits(1.0 / single(v[0]))),
    rule("max.f32", F, &[F, F], |v| {
        bits(float_max(single(v[0]), single(v[1])))
    }),
    rule("neg.f32", F, &[F], |v| v[0] ^ 1 << 31),
    rule("abs.f32", F, &[F], |v| v[0] & 0x7fff_ffff),
    rule("copysign.f32", F, &[F, F], |v| {
        (v[0] & 1 << 31) | (v[1] & 0x7fff_ffff)
    }),
    rule("selp.f32", F, &[F, F, P], |v| {
        if v[2] == 1 { v[0] } else { v[1] }
    }),
    rule("setp.lt.f32", P, &[F, F], |v| {
        u64::from(single(v[0]) < single(v[1]))
    }),
    rule("setp.geu.f32", P, &[F, F], |v| {
        u64::from(single(v[0]) >= single(v[1]) || single(v[0]).is_nan() || single(v[1]).is_nan())
    }),
    rule("mov.b32", F, &[R], |v| v[0]),
    rule("mov.b32", R, &[F], |v| v[0]),
    rule("cvt.rn.f32.s32", F, &[R], |v| bits(s32(v[0]) as f32)),
    rule("cvt.rn.f32.u64", F, &[D], |v| bits(v[0] as f32)),
    rule("cvt.rzi.s32.f32", R, &[F], |v| {
        u64::from(single(v[0]) as i32 as u32)
    }),
    rule("cvt.rni.u32.f32", R, &[F], |v| {
        u64::from(single(v[0]).round_ties_even() as u32)
    }),
    rule("cvt.rmi.f32.f32", F, &[F], |v| bits(single(v[0]).floor())),
    rule("cvt.rn.f32.f64", F, &[G], |v| bits(double(v[0]) as f32)),
    // Doubles.
    real("add.f64", &[G, G], |v| {
        (double(v[0]) + double(v[1])).to_bits()
    }),
    real("mul.rn.f64", &[G, G], |v| {
        (double(v[0]) * double(v[1])).to_bits()
    }),
    real("fma.rn.f64", &[G, G, G], |v| {
        double(v[0]).mul_add(double(v[1]), double(v[2])).to_bits()
    }),
    real("div.rn.f64", &[G, G], |v| {
        (double(v[0]) / double(v[1])).to_bits()
    }),
    real("sqrt.rn.f64", &[G], |v| double(v[0]).sqrt().to_bits()),
    real("cvt.f64.f32", &[F], |v| f64::from(single(v[0])).to_bits()),
    real("cvt.rpi.f64.f64", &[G], |v| double(v[0]).ceil().to_bits()),
    real("cvt.rn.f64.s64", &[D], |v| (v[0] as i64 as f64).to_bits()),
    rule("neg.f64", G, &[G], |v| v[0] ^ 1 << 63),
    rule("mov.b64", D, &[G], |v| v[0]),
    rule("mov.b64", G, &[D], |v| v[0]),
    rule("setp.neu.f64", P, &[G, G], |v| {
        u64::from(double(v[0]) != double(v[1]))
    }),
    rule("cvt.rzi.s32.f64", R, &[G], |v| match double(v[0]) {
        x if x.is_nan() => 1 << 31,
        x => u64::from(x as i32 as u32),
    }),
];
