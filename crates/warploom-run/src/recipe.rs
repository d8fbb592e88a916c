//! What is computed, told from where: results of an earlier run can be kept when this has not changed,
//! on whatever strict device they were made.

use std::collections::BTreeMap;

use serde::Serialize;
use warploom_core::{Caps, Status};
use warploom_plan::ExecutionPlan;
use warploom_plan::pipeline::{Foreach, Math};
use warploom_plan::plan::{PlanComputed, PlanOp, PlanStep, Source, Units, Written};
use xxhash_rust::xxh3::Xxh3;

/// What of a plan decides about bytes. Strict devices are not among it: they give the same bits. Others
/// are, by their driver and their make: their results are not mixed with anybody else's.
#[derive(Serialize)]
struct Recipe<'p> {
    version: u32,
    foreach: Foreach,
    math: Math,
    record: &'p Units,
    sources: &'p [Source],
    variants: Vec<Part<'p>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loose: Vec<String>,
}

/// The faces of a plan that do not promise the same bits as others, each with its card's make.
pub(crate) fn loose(plan: &ExecutionPlan, status: &Status) -> Vec<String> {
    let known = status.survey.devices.iter().flat_map(|card| &card.faces);
    let strict: Vec<String> = known
        .filter(|face| face.caps.contains(Caps::STRICT_MATH))
        .map(|face| face.id.to_string())
        .collect();
    let cards = std::iter::once(&plan.device).chain(&plan.others);
    let faces = cards.flat_map(|card| card.faces.iter().map(move |face| (face, &card.label)));
    let loose = faces.filter(|(face, _)| !strict.contains(face));
    let backend = |face: &str| face.split(':').next().unwrap_or(face).to_owned();
    loose
        .map(|(face, label)| format!("{} on {label}", backend(face)))
        .collect()
}

#[derive(Serialize)]
struct Part<'p> {
    channel: Option<&'p str>,
    ops: Vec<Deed<'p>>,
    outputs: &'p [Written],
}

/// What of an operation decides about bytes.
#[derive(Serialize)]
struct Deed<'p> {
    name: &'p str,
    op: &'p str,
    params: &'p BTreeMap<String, String>,
    computed: &'p [PlanComputed],
    reads: &'p [String],
    gives: &'p str,
}

impl<'p> From<&'p PlanOp> for Deed<'p> {
    fn from(op: &'p PlanOp) -> Self {
        // Every field is named, so that whoever adds one decides whether it changes bytes.
        let PlanOp {
            name,
            op,
            params,
            computed,
            reads,
            gives,
            // In which memory it works depends on the device, and strict devices give the same bits.
            kinds: _,
        } = op;
        Self {
            name,
            op,
            params,
            computed,
            reads,
            gives,
        }
    }
}

/// A fingerprint of what a plan computes with these constants on the devices of a survey.
pub(crate) fn fingerprint(plan: &ExecutionPlan, constants: &[u128], status: &Status) -> String {
    let variants = plan.variants.iter().map(|variant| Part {
        channel: variant.channel.as_deref(),
        ops: variant
            .steps
            .iter()
            .flat_map(PlanStep::ops)
            .map(Deed::from)
            .collect(),
        outputs: &variant.outputs,
    });
    let recipe = Recipe {
        version: plan.version,
        foreach: plan.foreach,
        math: plan.math,
        record: &plan.record,
        sources: &plan.sources,
        variants: variants.collect(),
        loose: loose(plan, status),
    };
    let mut sum = Xxh3::new();
    // Plain data: it can always be written.
    sum.update(&serde_json::to_vec(&recipe).unwrap_or_default());
    for constant in constants {
        sum.update(&constant.to_le_bytes());
    }
    format!("{:032x}", sum.digest128())
}
