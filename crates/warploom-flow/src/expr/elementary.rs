//! Exponentials, logarithms and powers, spelt out in operations that every device rounds alike.
//!
//! A device's own functions differ in the last bits from those of the next. These are sequences of
//! IEEE operations instead: reduction to a small range, a polynomial with fused steps, and exact
//! scaling. In `f32` they are off by less than 2 units in the last place, in `f64` by less than
//! 1e-14 (powers: 1e-13).

use std::f64::consts::{LN_2, LOG2_E};

use super::graph::Ex;
use super::node::Ty;

/// A constant as two numbers of a type: what it rounds to, and what that leaves.
struct Split {
    high: f64,
    low: f64,
}

impl Split {
    /// `rest` is what the constant has beyond `f64`.
    fn new(ty: Ty, value: f64, rest: f64) -> Self {
        match ty {
            Ty::F32 => {
                let high = round(ty, value);
                Self {
                    high,
                    low: value - high,
                }
            }
            _ => Self {
                high: value,
                low: rest,
            },
        }
    }
}

/// The nearest number of a type.
#[expect(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
fn round(ty: Ty, value: f64) -> f64 {
    if ty == Ty::F32 {
        f64::from(value as f32)
    } else {
        value
    }
}

/// The natural logarithm of 2 whose high part leaves enough zeros that a product with any exponent
/// is exact.
fn ln_2(ty: Ty) -> Split {
    let (high, rest) = match ty {
        Ty::F32 => (0.693_145_751_953_125, 0.0),
        _ => (
            f64::from_bits(0x3fe6_2e42_fee0_0000),
            1.908_214_929_270_587_7e-10,
        ),
    };
    let low = if ty == Ty::F32 { LN_2 - high } else { rest };
    Split { high, low }
}

impl Ex<'_> {
    fn constant(self, value: f64) -> Self {
        self.graph().number(self.ty(), value)
    }

    fn is_double(self) -> bool {
        assert!(self.ty().is_float(), "of real numbers only");
        self.ty() == Ty::F64
    }

    /// `coefficients[0] + coefficients[1]*self + …`, by Horner's rule with fused steps.
    fn polynomial(self, coefficients: impl DoubleEndedIterator<Item = f64>) -> Self {
        let mut rest = coefficients.rev();
        let last = rest.next().expect("a polynomial has a coefficient");
        rest.fold(self.constant(last), |sum, next| sum.fma(self, next))
    }

    /// 2 to a whole power from -126 to 127, exact.
    fn power_of_two(self, ty: Ty) -> Self {
        ((self + 127).shifted_left(23)).from_bits().cast(ty)
    }

    /// `self * 2^n` for a number near 1 and a whole `n`, rounded once even where it becomes subnormal.
    fn scaled(self, n: Self) -> Self {
        if self.is_double() {
            // 2^n = 2^r * 2^(8q) * 2^(8q), for n from -2000 to 2000.
            let q = n.shifted_right(4);
            let r = n - q * 16;
            let p = q.power_of_two(Ty::F64);
            let p = p * p;
            let p = p * p;
            let p = p * p;
            self * r.power_of_two(Ty::F64) * p * p
        } else {
            // For n from -200 to 200 and numbers near 1, whose exponents have room for half of it.
            let half = n.shifted_right(1);
            let near = (self.to_bits() + half.shifted_left(23)).from_bits();
            near * (n - half).power_of_two(Ty::F32)
        }
    }

    /// Exponent (`i32`) and significand from about 0.7 to 1.4 of a positive finite number.
    fn split(self) -> (Self, Self) {
        const ROOT_HALF: i32 = 0x3f35_04f3;
        let graph = self.graph();
        if !self.is_double() {
            let small = self.lt(f64::from(f32::MIN_POSITIVE));
            let number = small.select(self * 16_777_216.0, self);
            let bits = number.to_bits();
            let exponent = (bits - ROOT_HALF).shifted_right(23);
            let significand = (bits - exponent.shifted_left(23)).from_bits();
            return (exponent - small.select(graph.int(24), 0), significand);
        }
        // Into the range of f32 first, whose bits can be looked at.
        let (mut number, mut moved) = (self, graph.int(0));
        for step in [512, 256, 128, 64_i32] {
            let large = number.ge(2_f64.powi(step));
            number = large.select(number * 2_f64.powi(-step), number);
            moved = moved + large.select(graph.int(step), 0);
        }
        for step in [512, 256, 256, 128_i32] {
            let small = number.lt(2_f64.powi(64 - step));
            number = small.select(number * 2_f64.powi(step), number);
            moved = moved - small.select(graph.int(step), 0);
        }
        let bits = number.cast(Ty::F32).to_bits();
        let exponent = (bits - ROOT_HALF).shifted_right(23);
        let significand = number * (-exponent).power_of_two(Ty::F64);
        (exponent + moved, significand)
    }

    /// e to this power.
    #[must_use]
    pub fn exp(self) -> Self {
        self.exp_of_sum(self.constant(0.0))
    }

    /// e to the power of this and a number much smaller: what rounding took from it.
    #[must_use]
    pub fn exp_of_sum(self, rest: Self) -> Self {
        let double = self.is_double();
        // Beyond these every result is infinity or zero.
        let (low, high, terms) = if double {
            (-760.0, 720.0, 14)
        } else {
            (-110.0, 95.0, 8)
        };
        let x = self.clamp(low, high);
        let rest = x.is(self).select(rest, 0.0);
        let n = (x * LOG2_E).round();
        let ln_2 = ln_2(self.ty());
        let r = n.fma(-ln_2.high, x);
        let r = n.fma(-ln_2.low, r) + rest;
        // e^r - 1 = r + r^2*(1/2! + r/3! + …)
        let tail = r.polynomial(inverse_factorials(2, terms));
        let above_one = (r * r).fma(tail, r);
        let result = (above_one + 1.0).scaled(n.cast(Ty::I32));
        self.is_nan().select(self, result)
    }

    /// The natural logarithm; of 0 minus infinity, of what is below not a number.
    #[must_use]
    pub fn log(self) -> Self {
        // Of a number below 0 nothing is wanted but that its bits stay in range.
        let (exponent, m) = self.abs().split();
        let exponent = exponent.cast(self.ty());
        let ln_2 = ln_2(self.ty());
        // log(1 + f) = f - f^2/2 + s*(f^2/2 + s^2*(2/3 + s^2*2/5 + …)), s = f/(2 + f)
        let f = m - 1.0;
        let s = f / (f + 2.0);
        let z = s * s;
        let terms = if self.is_double() { 11 } else { 5 };
        let series = z.polynomial((1..=terms).map(|k| 2.0 / f64::from(2 * k + 1)));
        let half = f * f * 0.5;
        let inner = s * z.fma(series, half);
        let inner = exponent.fma(ln_2.low, inner);
        let result = exponent.fma(ln_2.high, f - (half - inner));
        let infinity = self.constant(f64::INFINITY);
        let result = self.lt(infinity).select(result, self);
        let result = self.is(0.0).select(-infinity, result);
        self.lt(0.0).select(self.constant(f64::NAN), result)
    }

    /// The natural logarithm of one more than this, accurate near 0.
    #[must_use]
    pub fn log1p(self) -> Self {
        let u = self + 1.0;
        // What was lost in the sum, to first order.
        let rest = (self - (u - 1.0)) / u;
        let log = u.log();
        let plain = (u.le(0.0)) | (u.is(f64::INFINITY)) | (u.is_nan());
        plain.select(log, log + rest)
    }

    /// This to a power, with the special cases of IEEE 754; the power is finite.
    #[must_use]
    pub fn pow(self, power: Self) -> Self {
        self.pow_of_sum(power, self.constant(0.0))
    }

    /// This to the power of the sum of a finite number and one much smaller: what rounding took
    /// from it.
    #[must_use]
    pub fn pow_of_sum(self, power: Self, power_low: Self) -> Self {
        let double = self.is_double();
        let size = self.abs();
        let (high, low) = size.log2_split();
        let t = high * power;
        let rest = high.fma(power, -t);
        let rest = low.fma(power, rest);
        let rest = high.fma(power_low, rest);
        let limit = if double { 1200.0 } else { 200.0 };
        // Beyond the limits the result is 0 or infinity, and the rest may be no number.
        let rest = rest.clamp(-1.0, 1.0);
        let result = t.clamp(-limit, limit).exp2_split(rest);

        // What depends on the power alone is the same for all pixels, and nothing else is done with it here:
        // numbers to be chosen from, and one to be compared with.
        let zeroth = power.is(0.0);
        let rises = power.gt(0.0);
        let whole = power.floor().is(power) & power_low.is(0.0);
        let half = power * 0.5;
        let odd = whole & half.floor().is_not(half);
        let number = |value: f64| self.constant(value);
        let (one, infinity) = (number(1.0), number(f64::INFINITY));
        let of_zero = zeroth.select(one, rises.select(number(0.0), infinity));
        let of_infinity = zeroth.select(one, rises.select(infinity, 0.0));
        let of_none = zeroth.select(one, f64::NAN);
        let least = whole.select(-infinity, 0.0);

        // No number, and what is negative unless the power is whole.
        let result = self.ge(least).select(result, of_none);
        let result = size.is(0.0).select(of_zero, result);
        let result = size.is(infinity).select(of_infinity, result);
        if double {
            // The sign of zero counts: its inverse has it.
            let below = self.lt(0.0) | (one / self).is(-infinity);
            return (below & odd).select(-result, result);
        }
        let sign = odd.select(self.graph().int(i32::MIN), 0);
        ((self.to_bits() & sign) | result.to_bits()).from_bits()
    }

    /// The binary logarithm of a positive finite number as a sum of two.
    #[expect(
        clippy::many_single_char_names,
        reason = "as in the formulas beside them"
    )]
    fn log2_split(self) -> (Self, Self) {
        let ty = self.ty();
        let (exponent, m) = self.split();
        let exponent = exponent.cast(ty);
        // s = (m - 1)/(m + 1), its error in `s_low`.
        let f = m - 1.0;
        let d = m + 1.0;
        let d_low = m - (d - 1.0);
        let inverse = self.constant(1.0) / d;
        let s = f * inverse;
        let rest = (-s).fma(d, f);
        let rest = (-s).fma(d_low, rest);
        let s_low = rest * inverse;
        // log(m)/2 = s + s*q, q = z/3 + z^2*(1/5 + z/7 + …), z = s^2
        let z = s * s;
        let z_low = (s * 2.0).fma(s_low, s.fma(s, -z));
        let third = Split::new(ty, 1.0 / 3.0, 1.850_371_707_708_594e-17);
        let terms = if self.is_double() { 12 } else { 5 };
        let series = (2..=terms).map(|k| 1.0 / f64::from(2 * k + 1));
        let series: Vec<f64> = [third.low].into_iter().chain(series).collect();
        let q = z * third.high;
        let q_low = z.fma(third.high, -q);
        let q_low = z_low.fma(third.high, q_low);
        let q_low = z.fma(z.polynomial(series.into_iter()), q_low);
        // Differences of numbers as near to each other as these are exact.
        let l = s.fma(q, s);
        let l_low = s.fma(q, s - l);
        let l_low = s.fma(q_low, l_low);
        let l_low = s_low.fma(q, s_low) + l_low;
        // To base 2.
        let factor = Split::new(ty, 2.0 * LOG2_E, 4.071_054_748_186_207e-17);
        let high = l.fma(factor.high, exponent);
        let low = l.fma(factor.high, exponent - high);
        let low = l.fma(factor.low, low);
        (high, l_low.fma(factor.high, low))
    }

    /// 2 to the sum of this and a small number.
    fn exp2_split(self, low: Self) -> Self {
        // The best of their number for |r| up to a half: off by 2^-28 of the result.
        const SINGLE: [f64; 6] = [
            0.693_147_202_984_952_2,
            0.240_226_478_968_862_18,
            0.055_503_321_629_946_77,
            0.009_618_438_600_997_932,
            0.001_339_900_343_822_724_8,
            0.000_153_532_579_433_143_16,
        ];
        let n = self.round();
        let r = (self - n) + low;
        // 2^r = 1 + r*(ln 2 + …) = e^(r*ln 2)
        let coefficients: Vec<f64> = if self.is_double() {
            let terms = inverse_factorials(1, 14).zip(1..);
            terms.map(|(c, k)| c * LN_2.powi(k)).collect()
        } else {
            SINGLE.to_vec()
        };
        let rise = r.polynomial(coefficients.into_iter());
        let result = r.fma(rise, 1.0);
        result.scaled(n.cast(Ty::I32))
    }
}

/// 1/k! for k from `first` to just below `end`.
fn inverse_factorials(first: i32, end: i32) -> impl DoubleEndedIterator<Item = f64> {
    (first..end).map(|k| 1.0 / (1..=k).map(f64::from).product::<f64>())
}

#[cfg(test)]
mod tests {
    use warploom_core::Element;

    use crate::expr::{Dag, Datum, Evaluator, Ex, Graph, Pixels, Source};

    type Function = for<'g> fn(Ex<'g>, Ex<'g>) -> Ex<'g>;

    fn pow<'g>(x: Ex<'g>, y: Ex<'g>) -> Ex<'g> {
        x.pow(y)
    }

    fn of<T: Element>(function: Function, power: Datum, at: &[T]) -> Vec<T> {
        let graph = Graph::new();
        let image = graph.input(T::DTYPE);
        let x = graph.pixel(image);
        let power_ex = graph.param(x.ty());
        let dag = Dag::new(&graph, &[(function(x, power_ex), T::DTYPE)]);
        let dims = [1, 1, at.len() as u64];
        let sources = [Source::Image(Pixels::packed(
            bytemuck::cast_slice(at),
            T::DTYPE,
            dims,
        ))];
        let bytes = Evaluator::new(&dag, &[power], &sources, dims)
            .all()
            .remove(0);
        bytes
            .chunks_exact(size_of::<T>())
            .map(bytemuck::pod_read_unaligned)
            .collect()
    }

    /// Numbers of every size, dense around 1.
    fn samples() -> Vec<f64> {
        let mut numbers = Vec::new();
        let mut seed = 1_u32;
        for _ in 0..4_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let unit = f64::from(seed) / 4_294_967_296.0;
            numbers.extend([
                unit * 90.0 - 1.0,
                1.0 + (unit - 0.5) * 0.1,
                (unit - 0.5) * 1e-3,
                ((unit - 0.5) * 170.0).exp(),
                (unit - 0.5) * 180.0,
            ]);
        }
        numbers
    }

    /// The largest error in units of the last place of an f32.
    fn error_f32(function: Function, power: f32, exact: impl Fn(f64) -> f64) -> f64 {
        #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
        let at: Vec<f32> = samples().iter().map(|x| *x as f32).collect();
        let got = of(function, Datum::F32(power), &at);
        let errors = at.iter().zip(got).map(|(x, got)| {
            let want = exact(f64::from(*x));
            #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
            let near = want as f32;
            if near.to_bits() == got.to_bits() || (near.is_nan() && got.is_nan()) {
                return 0.0;
            }
            let ulp = f64::from(near.abs().next_up() - near.abs());
            let ulp = if ulp.is_finite() {
                ulp
            } else {
                2_f64.powi(104)
            };
            let error = (f64::from(got) - want).abs() / ulp;
            if error.is_nan() { f64::INFINITY } else { error }
        });
        errors.fold(0.0, f64::max)
    }

    /// The largest relative error in f64.
    fn error_f64(function: Function, power: f64, exact: impl Fn(f64) -> f64) -> f64 {
        let at = samples();
        let got = of(function, Datum::F64(power), &at);
        let errors = at.iter().zip(got).map(|(x, got)| {
            let want = exact(*x);
            if want.to_bits() == got.to_bits() || (want.is_nan() && got.is_nan()) {
                return 0.0;
            }
            let error = (got - want).abs() / want.abs();
            if error.is_nan() { f64::INFINITY } else { error }
        });
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn single_precision_is_off_by_less_than_two_units() {
        let errors = [
            error_f32(|x, _| x.exp(), 0.0, f64::exp),
            error_f32(|x, _| x.log(), 0.0, f64::ln),
            error_f32(|x, _| x.log1p(), 0.0, f64::ln_1p),
        ];
        assert!(errors.iter().all(|error| *error < 2.0), "{errors:?}");
        for power in [
            2.0, 0.5, -1.0, 1.7, 3.0, -2.5, 20.0, 100.25, 1e-3, 1e6, -7.0,
        ] {
            let error = error_f32(pow, power, |x| x.powf(f64::from(power)));
            assert!(error < 2.0, "power {power}: {error}");
        }
    }

    #[test]
    fn double_precision_is_close() {
        let errors = [
            error_f64(|x, _| x.exp(), 0.0, f64::exp),
            error_f64(|x, _| x.log(), 0.0, f64::ln),
            error_f64(|x, _| x.log1p(), 0.0, f64::ln_1p),
        ];
        assert!(errors.iter().all(|error| *error < 1e-14), "{errors:?}");
        for power in [2.0, 0.5, -1.0, 1.7, 3.0, -2.5, 20.0, -7.0] {
            let error = error_f64(pow, power, |x| x.powf(power));
            assert!(error < 1e-13, "power {power}: {error}");
        }
    }

    #[test]
    fn special_cases_are_those_of_ieee() {
        let infinity = f32::INFINITY;
        let at = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            -2.0,
            infinity,
            -infinity,
            f32::NAN,
            1e-45,
            -3.0e-40,
            3e38,
        ];
        for power in [0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -0.5, 1e30] {
            let got = of(pow, Datum::F32(power), &at);
            for (x, got) in at.iter().zip(got) {
                let want = x.powf(power);
                assert!(
                    got.to_bits().abs_diff(want.to_bits()) <= 1 || (got.is_nan() && want.is_nan()),
                    "{x}^{power} = {want}, got {got}"
                );
            }
        }
        let ends = [infinity, -infinity, 1000.0, -1000.0, 0.0, f32::NAN];
        let got = of(|x, _| x.exp(), Datum::F32(0.0), &ends);
        assert_eq!(got[..5], [infinity, 0.0, infinity, 0.0, 1.0]);
        assert!(got[5].is_nan());
        let ends = [0.0, -0.0, infinity, 1.0, f32::NAN, -1.0];
        let got = of(|x, _| x.log(), Datum::F32(0.0), &ends);
        assert_eq!(got[..4], [-infinity, -infinity, infinity, 0.0]);
        assert!(got[4].is_nan() && got[5].is_nan());
        let ends = [-1.0, infinity, 0.0, f32::NAN, -1.5];
        let got = of(|x, _| x.log1p(), Datum::F32(0.0), &ends);
        assert_eq!(got[..3], [-infinity, infinity, 0.0]);
        assert!(got[3].is_nan() && got[4].is_nan());
        let far = [5e-324, 1e-310, 1.7e308, 2_f64.powi(128), 2_f64.powi(-600)];
        let got = of(|x, _| x.log(), Datum::F64(0.0), &far);
        for (x, got) in far.iter().zip(got) {
            assert!(
                (got - x.ln()).abs() < 1e-13 * x.ln().abs(),
                "log {x} = {got}"
            );
        }
    }
}
