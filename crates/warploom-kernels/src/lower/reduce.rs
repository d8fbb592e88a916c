//! Fewer numbers than pixels.

use warploom_core::DType;

use super::lowering::Lowering;
use crate::flow::{Prim, Project, ValueId, ValueKind};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    let project = match at.name() {
        "sum_z" => Project::Sum,
        "max_z" => Project::Max,
        "min_z" => Project::Min,
        "mean_z" => Project::Mean,
        "std_z" => Project::Std,
        "median_z" => Project::Median,
        "argmax_z" => Project::ArgMax,
        "totals" => return at.totals(image),
        "histogram" => return histogram(at, image),
        "percentiles" => {
            let q = at.call.params.numbers("q").to_vec();
            let gives = ValueKind::scalars(q.len() as u64);
            return at.flow.add(Prim::Percentiles { q }, &[image], gives);
        }
        _ => at.unknown(),
    };
    at.give(Prim::Project(project), &[image])
}

fn histogram(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let [low, high] = ["low", "high"].map(|name| at.call.params.maybe_number(name));
    let bins = u32::try_from(at.call.params.integer("bins")).unwrap_or(u32::MAX);
    let mut inputs = vec![image];
    if low.is_none() || high.is_none() {
        inputs.push(at.totals(image));
    }
    let gives = ValueKind::List {
        dtype: DType::U32,
        length: bins.into(),
    };
    at.flow
        .add(Prim::Histogram { bins, low, high }, &inputs, gives)
}
