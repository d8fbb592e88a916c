//! What is computed, told from where: results of an earlier run can be kept when this has not changed,
//! on whatever device they were made.

use serde::Serialize;
use warploom_plan::ExecutionPlan;
use warploom_plan::pipeline::{Foreach, Math};
use warploom_plan::plan::{PlanOp, PlanStep, Source, Units, Written};
use xxhash_rust::xxh3::Xxh3;

/// What of a plan decides about bytes. Devices are not among it: strict ones give the same bits, and
/// with fast mathematics nobody promises any.
#[derive(Serialize)]
struct Recipe<'p> {
    version: u32,
    foreach: Foreach,
    math: Math,
    record: &'p Units,
    sources: &'p [Source],
    variants: Vec<Part<'p>>,
}

#[derive(Serialize)]
struct Part<'p> {
    channel: Option<&'p str>,
    ops: Vec<&'p PlanOp>,
    outputs: &'p [Written],
}

/// A fingerprint of what a plan computes with these constants.
pub(crate) fn fingerprint(plan: &ExecutionPlan, constants: &[u128]) -> String {
    let variants = plan.variants.iter().map(|variant| Part {
        channel: variant.channel.as_deref(),
        ops: variant.steps.iter().flat_map(PlanStep::ops).collect(),
        outputs: &variant.outputs,
    });
    let recipe = Recipe {
        version: plan.version,
        foreach: plan.foreach,
        math: plan.math,
        record: &plan.record,
        sources: &plan.sources,
        variants: variants.collect(),
    };
    let mut sum = Xxh3::new();
    // Plain data: it can always be written.
    sum.update(&serde_json::to_vec(&recipe).unwrap_or_default());
    for constant in constants {
        sum.update(&constant.to_le_bytes());
    }
    format!("{:032x}", sum.digest128())
}
