//! Double precision for WGSL, which has none: a value is the sum of two `f32`, the second under
//! half a unit in the last place of the first. That keeps 48 bits. Sums and products are the
//! classic error-free transformations, which need arithmetic as written. WGSL cannot ask for that,
//! and drivers do simplify `(a + b) - a` (Mesa's do); so every result that must stay rounded is
//! combined with a zero that only the launch knows, which no compiler sees through.
//!
//! None of the functions returns early: items of a group would part ways over a pixel that is infinite.

use crate::expr::{Bin, Ty, Un};

/// The functions the rest of this file names.
pub(super) const PRELUDE: &str = "\
var<private> wd_zero: u32;
fn wd_kept(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) ^ wd_zero); }
fn wd_quick(a: f32, b: f32) -> vec2<f32> { let s = wd_kept(a + b); return vec2<f32>(s, b - wd_kept(s - a)); }
fn wd_two(a: f32, b: f32) -> vec2<f32> {
  let s = wd_kept(a + b);
  let bb = wd_kept(s - a);
  return vec2<f32>(s, (a - (s - bb)) + (b - bb));
}
fn wd_split(a: f32) -> vec2<f32> {
  let t = wd_kept(4097f * a);
  let h = wd_kept(t - wd_kept(t - a));
  return vec2<f32>(h, a - h);
}
fn wd_prod(a: f32, b: f32) -> vec2<f32> {
  let p = wd_kept(a * b);
  let x = wd_split(a);
  let y = wd_split(b);
  return vec2<f32>(p, ((x.x * y.x - p) + x.x * y.y + x.y * y.x) + x.y * y.y);
}
fn wd_fin(a: f32) -> bool { return (bitcast<u32>(a) & 0x7f800000u) != 0x7f800000u; }
fn wd_add(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  let s = wd_two(a.x, b.x);
  let t = wd_two(a.y, b.y);
  let u = wd_quick(s.x, s.y + t.x);
  return select(vec2<f32>(s.x, 0f), wd_quick(u.x, u.y + t.y), wd_fin(s.x));
}
fn wd_neg(a: vec2<f32>) -> vec2<f32> { return -a; }
fn wd_sub(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return wd_add(a, -b); }
fn wd_mul(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  let p = wd_prod(a.x, b.x);
  let q = wd_quick(p.x, p.y + (a.x * b.y + a.y * b.x));
  return select(vec2<f32>(a.x * b.x, 0f), q, wd_fin(p.x) & wd_fin(p.y));
}
fn wd_div(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  let q = a.x / b.x;
  let r = wd_sub(a, wd_mul(b, vec2<f32>(q, 0f)));
  let q2 = r.x / b.x;
  let r2 = wd_sub(r, wd_mul(b, vec2<f32>(q2, 0f)));
  let s = wd_quick(q, q2);
  let whole = wd_add(s, vec2<f32>(r2.x / b.x, 0f));
  return select(whole, vec2<f32>(q, 0f), !wd_fin(q) | (q == 0f));
}
fn wd_sqrt(a: vec2<f32>) -> vec2<f32> {
  let r = sqrt(a.x);
  let e = wd_sub(a, wd_prod(r, r));
  return select(wd_quick(r, e.x / (2f * r)), vec2<f32>(r, 0f), !wd_fin(r) | (r == 0f));
}
fn wd_lt(a: vec2<f32>, b: vec2<f32>) -> bool { return a.x < b.x || (a.x == b.x && a.y < b.y); }
fn wd_le(a: vec2<f32>, b: vec2<f32>) -> bool { return a.x < b.x || (a.x == b.x && a.y <= b.y); }
fn wd_eq(a: vec2<f32>, b: vec2<f32>) -> bool { return a.x == b.x && a.y == b.y; }
fn wd_min(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return select(a, b, wd_lt(b, a)); }
fn wd_max(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return select(a, b, wd_lt(a, b)); }
fn wd_abs(a: vec2<f32>) -> vec2<f32> { return select(a, -a, a.x < 0f); }
fn wd_floor(a: vec2<f32>) -> vec2<f32> {
  let h = floor(a.x);
  return select(wd_quick(h, floor(a.y)), vec2<f32>(h, 0f), h != a.x);
}
fn wd_ceil(a: vec2<f32>) -> vec2<f32> { return -wd_floor(-a); }
fn wd_round(a: vec2<f32>) -> vec2<f32> {
  let f = wd_floor(a);
  let d = wd_sub(a, f);
  let half = vec2<f32>(0.5f, 0f);
  let up = wd_add(f, vec2<f32>(1f, 0f));
  let e = wd_floor(wd_mul(f, half));
  let even = wd_eq(wd_add(e, e), f);
  return select(select(f, up, !even), select(f, up, wd_lt(half, d)), !wd_eq(d, half));
}
fn wd_nan(a: vec2<f32>) -> bool { return (bitcast<u32>(a.x) & 0x7fffffffu) > 0x7f800000u; }
fn wd_u32(a: u32) -> vec2<f32> { return wd_quick(f32(a & 0xffff0000u), f32(a & 0xffffu)); }
fn wd_i32(a: i32) -> vec2<f32> { let m = wd_u32(u32(abs(a))); return select(m, -m, a < 0i); }
fn wd_to_u32(a: vec2<f32>) -> u32 {
  let f = wd_floor(a);
  let h = floor(f.x / 65536f);
  let r = wd_sub(f, vec2<f32>(h * 65536f, 0f));
  return u32(h) * 65536u + bitcast<u32>(i32(r.x + r.y));
}
fn wd_to_i32(a: vec2<f32>) -> i32 {
  let m = bitcast<i32>(wd_to_u32(wd_abs(a)));
  return select(m, 0i - m, a.x < 0f);
}
";

/// What a kernel does first: no launch has 2^31 groups.
pub(super) const START: &str = "  wd_zero = wl_groups.x >> 31u;\n";

/// A constant, rounded to a pair.
#[expect(clippy::cast_possible_truncation, reason = "split into two on purpose")]
pub(super) fn constant(value: f64) -> String {
    let high = value as f32;
    let low = if high.is_finite() {
        (value - f64::from(high)) as f32
    } else {
        0.0
    };
    format!(
        "vec2<f32>(wl_float({}u), wl_float({}u))",
        high.to_bits(),
        low.to_bits()
    )
}

/// An operation of one operand.
pub(super) fn un(op: Un, a: &str) -> String {
    let name = match op {
        Un::Neg => "wd_neg",
        Un::Abs => "wd_abs",
        Un::Sqrt => "wd_sqrt",
        Un::Floor => "wd_floor",
        Un::Ceil => "wd_ceil",
        Un::Round => "wd_round",
        Un::IsNan => "wd_nan",
        Un::Not | Un::ToBits | Un::FromBits => unreachable!("no operation of f64"),
    };
    format!("{name}({a})")
}

/// An operation of two operands.
pub(super) fn bin(op: Bin, a: &str, b: &str) -> String {
    let name = match op {
        Bin::Add => "wd_add",
        Bin::Sub => "wd_sub",
        Bin::Mul => "wd_mul",
        Bin::Div => "wd_div",
        Bin::Min => "wd_min",
        Bin::Max => "wd_max",
        Bin::Lt => "wd_lt",
        Bin::Le => "wd_le",
        Bin::Eq => "wd_eq",
        Bin::Ne => return format!("(!wd_eq({a}, {b}))"),
        _ => unreachable!("no operation of f64"),
    };
    format!("{name}({a}, {b})")
}

/// A change of type, from or to a pair.
pub(super) fn cast(from: Ty, to: Ty, a: &str) -> String {
    match (from, to) {
        (Ty::F32, Ty::F64) => format!("vec2<f32>({a}, 0f)"),
        (Ty::I32, Ty::F64) => format!("wd_i32({a})"),
        (Ty::U32, Ty::F64) => format!("wd_u32({a})"),
        (Ty::Bool, Ty::F64) => format!("vec2<f32>(f32({a}), 0f)"),
        (Ty::F64, Ty::F32) => format!("({a}.x)"),
        (Ty::F64, Ty::I32) => format!("wd_to_i32({a})"),
        (Ty::F64, Ty::U32) => format!("wd_to_u32({a})"),
        _ => unreachable!("neither is f64, or both"),
    }
}
