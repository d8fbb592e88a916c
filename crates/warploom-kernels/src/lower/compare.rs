//! A pixel against a number.

use warploom_core::DType;

use super::lowering::Lowering;
use crate::expr::{Ex, Ty};
use crate::flow::{Number, ValueId};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    if at.is_late() {
        return late(at, image);
    }
    let test = match at.name() {
        "between" => Test::Between(at.number("low"), at.number("high")),
        name => {
            let value = at.number("value");
            match name {
                "greater" => Test::Greater(value),
                "greater_equal" => Test::Between(value, f64::INFINITY),
                "less" => Test::Less(value),
                "less_equal" => Test::Between(f64::NEG_INFINITY, value),
                "equal" => Test::Between(value, value),
                _ => at.unknown(),
            }
        }
    };
    let (ty, numbers) = test.numbers(at.flow.image(image).dtype);
    at.terms(DType::U8, [image], [], &numbers, |[a], [], numbers| {
        test.holds(a.cast(ty), numbers)
    })
}

/// Against numbers that are computed. Pixels that are whole numbers are compared in `f64`, which
/// holds every one of them, so the answer is that of the same number known before.
fn late(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let name = at.name();
    let limits = if name == "between" {
        [at.source("low", 0.0), at.source("high", 0.0)]
    } else {
        [at.source("value", 0.0); 2]
    };
    let ty = match at.flow.image(image).dtype {
        DType::F32 => Ty::F32,
        _ => Ty::F64,
    };
    at.terms(DType::U8, [image], limits, &[], |[a], limits, _| {
        let (a, [low, high]) = (a.cast(ty), limits.map(|limit| limit.cast(ty)));
        match name {
            "greater" => a.gt(low),
            "greater_equal" => a.ge(low),
            "less" => a.lt(low),
            "less_equal" => a.le(low),
            "equal" => a.is(low),
            _ => a.ge(low) & a.le(high),
        }
    })
}

/// What is asked of a pixel.
#[derive(Clone, Copy)]
pub(super) enum Test {
    Greater(f64),
    Less(f64),
    Between(f64, f64),
}

impl Test {
    /// The type it is decided in and the numbers it needs. For images of whole numbers the limits
    /// become whole numbers too, ends included, so that no pixel is rounded.
    pub(super) fn numbers(self, dtype: DType) -> (Ty, Vec<Number>) {
        let ty = match dtype {
            DType::F64 => Ty::F64,
            DType::F32 => Ty::F32,
            DType::U32 => Ty::U32,
            _ => Ty::I32,
        };
        let limits = match self {
            _ if ty.is_int() => {
                let (least, most) = if ty == Ty::U32 {
                    (0.0, f64::from(u32::MAX))
                } else {
                    (f64::from(i32::MIN), f64::from(i32::MAX))
                };
                let [low, high] = self.whole();
                let (low, high) = (low.max(least), high.min(most));
                // No number is above 1 and below 0.
                if low <= high {
                    vec![low, high]
                } else {
                    vec![1.0, 0.0]
                }
            }
            Self::Greater(value) | Self::Less(value) => vec![value],
            Self::Between(low, high) => vec![low, high],
        };
        let numbers = limits.into_iter().map(|limit| Number::new(ty, limit));
        (ty, numbers.collect())
    }

    /// The whole numbers for which it holds, from the first to the last.
    fn whole(self) -> [f64; 2] {
        match self {
            Self::Greater(value) => [value.floor() + 1.0, f64::INFINITY],
            Self::Less(value) => [f64::NEG_INFINITY, value.ceil() - 1.0],
            Self::Between(low, high) => [low.ceil(), high.floor()],
        }
    }

    /// The test of a pixel with these numbers; NaN passes none.
    pub(super) fn holds<'g>(self, a: Ex<'g>, numbers: &[Ex<'g>]) -> Ex<'g> {
        match (self, numbers) {
            (Self::Greater(_), [value]) => a.gt(*value),
            (Self::Less(_), [value]) => a.lt(*value),
            _ => a.ge(numbers[0]) & a.le(numbers[1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(Test::Greater(2.0), DType::U8, 3, i32::MAX)]
    #[case(Test::Greater(-2.5), DType::I32, -2, i32::MAX)]
    #[case(Test::Less(2.0), DType::I16, i32::MIN, 1)]
    #[case(Test::Less(2.1), DType::I16, i32::MIN, 2)]
    #[case(Test::Between(0.5, 0.6), DType::U8, 1, 0)]
    #[case(Test::Greater(2_147_483_647.0), DType::I32, 1, 0)]
    #[case(Test::Less(-1e300), DType::I32, 1, 0)]
    #[case(Test::Greater(f64::NEG_INFINITY), DType::I32, i32::MIN, i32::MAX)]
    fn limits_of_whole_numbers(
        #[case] test: Test,
        #[case] dtype: DType,
        #[case] low: i32,
        #[case] high: i32,
    ) {
        let (ty, numbers) = test.numbers(dtype);
        assert_eq!(ty, Ty::I32);
        assert_eq!(numbers, [Number::I32(low), Number::I32(high)]);
    }

    #[test]
    fn unsigned_limits_reach_the_top() {
        let (_, numbers) = Test::Greater(4_294_967_294.0).numbers(DType::U32);
        assert_eq!(numbers, [Number::U32(u32::MAX), Number::U32(u32::MAX)]);
        let (_, numbers) = Test::Between(-5.0, -1.0).numbers(DType::U32);
        assert_eq!(numbers, [Number::U32(1), Number::U32(0)]);
    }
}
