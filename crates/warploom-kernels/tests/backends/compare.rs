//! Are two results the same?

use warploom_core::DType;
use warploom_kernels::flow::{Flow, Node, Prim};

/// How results are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// The same bits, the sign of zero among them; any NaN is NaN.
    Bits,
    /// The same numbers: zeros of either sign are equal, as what sorts pixels leaves it open.
    Numbers,
    /// Reals may differ by so many units in the last place of the largest expected number.
    Ulps(f64),
}

impl Rule {
    /// The rule for results of a flow: sorting leaves open which zero comes first.
    pub(crate) fn of(self, flow: &Flow) -> Self {
        let sorts = |node: &Node| matches!(node.prim, Prim::Rank { .. });
        match self {
            Self::Bits if flow.nodes().iter().any(sorts) => Self::Numbers,
            rule => rule,
        }
    }
}

/// `Ok`, or where and how they differ first.
pub(crate) fn same(rule: Rule, dtype: DType, want: &[f64], got: &[u8]) -> Result<(), String> {
    let got = numbers(dtype, got);
    if want.len() != got.len() {
        return Err(format!("{} elements instead of {}", got.len(), want.len()));
    }
    let largest = want
        .iter()
        .filter(|v| v.is_finite())
        .fold(0.0_f64, |a, b| a.max(b.abs()));
    let slack = match (rule, dtype) {
        (Rule::Ulps(ulps), DType::F32) => ulps * largest * f64::from(f32::EPSILON),
        // Pairs of f32 keep 48 bits at best.
        (Rule::Ulps(ulps), DType::F64) => ulps * largest * 2_f64.powi(-44),
        _ => 0.0,
    };
    let differ = |(a, b): (&f64, &f64)| {
        if a.is_nan() && b.is_nan() {
            return false;
        }
        if a == b {
            return matches!(rule, Rule::Bits) && a.is_sign_negative() != b.is_sign_negative();
        }
        (a - b).abs() > slack || (a - b).is_nan()
    };
    let wrong = want.iter().zip(&got).filter(|pair| differ(*pair)).count();
    match want.iter().zip(&got).position(differ) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{wrong} of {} differ, the first at {at}: {:?} instead of {:?}",
            want.len(),
            got[at],
            want[at]
        )),
    }
}

/// Elements as numbers; all of our types fit.
pub(crate) fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn each<T: bytemuck::AnyBitPattern + Into<f64>>(bytes: &[u8]) -> Vec<f64> {
        let elements = bytes.chunks_exact(size_of::<T>());
        elements
            .map(|chunk| bytemuck::pod_read_unaligned::<T>(chunk).into())
            .collect()
    }
    match dtype {
        DType::U8 => each::<u8>(bytes),
        DType::U16 => each::<u16>(bytes),
        DType::I16 => each::<i16>(bytes),
        DType::I32 => each::<i32>(bytes),
        DType::U32 => each::<u32>(bytes),
        DType::F32 => each::<f32>(bytes),
        DType::F64 => each::<f64>(bytes),
        other => panic!("no operation takes {other}"),
    }
}

#[test]
fn differences_are_seen() {
    let check = |rule: Rule, want: [f32; 3], got: [f32; 3]| {
        let want = want.map(f64::from);
        same(rule, DType::F32, &want, bytemuck::cast_slice(&got))
    };
    let want = [1.0, f32::NAN, 0.0];
    let near = [1.0 + f32::EPSILON, f32::NAN, -0.0];
    assert!(check(Rule::Bits, want, want).is_ok());
    assert!(check(Rule::Bits, want, near).is_err());
    assert!(check(Rule::Ulps(1.0), want, near).is_ok());
    assert!(check(Rule::Bits, want, [1.0, f32::NAN, -0.0]).is_err());
    let number = [1.0, 1.0, 0.0];
    assert!(check(Rule::Ulps(1e9), want, number).is_err());
    assert!(check(Rule::Ulps(1e9), number, want).is_err());
}
