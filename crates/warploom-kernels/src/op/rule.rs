//! What parameters and inputs must satisfy together.

use super::call::{OpCall, check_size};
use super::error::OpError;
use super::infer;
use super::info::Rule;
use super::param::ParamValue;

pub(super) fn check(call: &OpCall, rule: Rule) -> Result<(), OpError> {
    let (op, image) = (call.op, call.image());
    let refusal = match rule {
        Rule::Ordered(low, high) => return order(call, low, high, true),
        Rule::Below(low, high) => return order(call, low, high, false),
        Rule::AffineMatrix(name) => return infer::affine(call, name).map(|_| ()),
        Rule::Scale(name) => return scale(call, name),
        Rule::SomeAxis(name) => {
            let list = call.params.maybe_per_axis(name);
            let flat = list.is_some_and(|list| list.iter().all(|number| *number == 0.0));
            flat.then_some(OpError::NoNeighbourhood { op, name })
        }
        Rule::Window(name) => {
            const MOST: u64 = 1 << 24;
            let sides = match call.params.value(name) {
                Some(ParamValue::Number(radius)) => {
                    let along = |extent| if extent > 1 { *radius } else { 0.0 };
                    image.dims.map(along)
                }
                _ => call.per_axis(name, 0.0),
            };
            let sides = infer::pixels(sides).map(|radius| 2 * radius + 1);
            let given =
                || sides.map(|side| side.to_string())[usize::from(3 - image.rank)..].join("x");
            (sides.iter().product::<u64>() > MOST).then(|| OpError::BadValue {
                op,
                name,
                given: format!("a window of {}", given()),
                takes: format!("one of at most {MOST} pixels"),
            })
        }
        Rule::StackParam(name) => {
            let useless = image.rank == 2 && call.params.value(name).is_some();
            useless.then_some(OpError::StackParam { op, name, image })
        }
        Rule::ParamOrInput(param, input) => {
            let both = call.params.value(param).is_some();
            (both == call.has_input(input)).then_some(OpError::ParamOrInput {
                op,
                param,
                input,
                both,
            })
        }
        Rule::NotBoth(param, input) => {
            let both = call.params.value(param).is_some() && call.has_input(input);
            both.then_some(OpError::ParamOrInput {
                op,
                param,
                input,
                both,
            })
        }
        Rule::Margin(name) => {
            let mut wide = image;
            wide.dims = infer::margins(call, name).map_or(image.dims, |margin| {
                [0, 1, 2].map(|axis| image.dims[axis] + 2 * margin[axis])
            });
            return check_size(op, &wide);
        }
    };
    refusal.map_or(Ok(()), Err)
}

fn order(call: &OpCall, low: &'static str, high: &'static str, equal: bool) -> Result<(), OpError> {
    let numbers = (
        call.params.maybe_number(low),
        call.params.maybe_number(high),
    );
    let (Some(low_value), Some(high_value)) = numbers else {
        return Ok(());
    };
    if low_value < high_value || (equal && low_value <= high_value) {
        return Ok(());
    }
    Err(OpError::Order {
        op: call.op,
        low,
        low_value,
        high,
        high_value,
        equal,
    })
}

fn scale(call: &OpCall, name: &'static str) -> Result<(), OpError> {
    let (low, high) = match call.params.numbers(name) {
        [] => return Ok(()),
        [high] => (0.0, *high),
        [low, high, ..] => (*low, *high),
    };
    if low < high {
        return Ok(());
    }
    Err(OpError::BadValue {
        op: call.op,
        name,
        given: format!("{low},{high}"),
        takes: "low,high with low below high, or one number above 0".into(),
    })
}
