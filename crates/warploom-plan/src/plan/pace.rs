//! How records follow each other: whether they can overlap, and how many in flight pay.

use std::time::Duration;

use super::{CopyReason, ExecutionPlan, PlanStep, Pool, Variant};

impl ExecutionPlan {
    /// Do records go straight through: up to one device, through whole-image work there, and down?
    /// Then one is copied up while another is worked on and a third comes down. Other plans go back and
    /// forth, and take one unit after the other through all steps.
    pub fn is_straight(&self) -> bool {
        let others: usize = self.others.iter().map(|card| card.faces.len()).sum();
        let faces = self.device.faces.len() + others;
        is_straight(faces, &self.memory.pools, &self.variants)
    }

    /// Seconds that copies up, work and copies down of a unit should take, of the variant that takes
    /// longest for each.
    pub fn stage_seconds(&self) -> [f64; 3] {
        stage_seconds(&self.variants)
    }
}

/// One face, whole images, nothing that takes a detour over the host, and everything that is written
/// was made on the device.
pub(crate) fn is_straight(faces: usize, pools: &[Pool], variants: &[Variant]) -> bool {
    let has_copies = pools.iter().any(|pool| pool.memory != "host");
    faces == 1
        && variants.iter().all(|variant| {
            let plain = variant.steps.iter().all(|step| match step {
                PlanStep::Run { detours, .. } => detours.is_empty(),
                PlanStep::Copy { why, .. } => *why != CopyReason::Route,
                PlanStep::Tiled { .. } => false,
            });
            let given = |name: &String| {
                let mut ops = variant.steps.iter().filter(|step| !step.ops().is_empty());
                ops.any(|step| step.gives().contains(name))
            };
            let copied = |name: &String| {
                variant.steps.iter().any(|step| {
                    matches!(step, PlanStep::Copy { value, why: CopyReason::Output, .. } if value == name)
                })
            };
            let mut outputs = variant.outputs.iter();
            plain && outputs.all(|out| given(&out.value) && (!has_copies || copied(&out.value)))
        })
}

pub(crate) fn stage_seconds(variants: &[Variant]) -> [f64; 3] {
    let mut most = [0.0; 3];
    for variant in variants {
        let mut own = [0.0; 3];
        for step in &variant.steps {
            let at = match step {
                PlanStep::Copy { why, .. } => match why {
                    CopyReason::Constant => continue,
                    CopyReason::Output => 2,
                    _ => 0,
                },
                _ => 1,
            };
            own[at] += step.seconds();
        }
        for (most, own) in most.iter_mut().zip(own) {
            *most = own.max(*most);
        }
    }
    most
}

/// The fewest slots of memory that do not limit the rate of records that go straight through, for
/// copies up, work and copies down that take so long. `on_host` where the device works in the host's
/// memory: then reading and writing files are what holds a slot beside the work.
///
/// Stages overlap, so the longest sets the rate, and a slot is taken until the last stage that holds it
/// is done: as many are of use as the longest fits into all of them together. Nobody knows how long
/// files take: they count as long as the longest stage, so that none of them can turn out to need a
/// slot more. Where nobody knows anything, everything takes as long.
pub fn slots_that_pay(on_host: bool, seconds: [f64; 3]) -> u32 {
    let seconds = seconds.map(|s| Duration::try_from_secs_f64(s).unwrap_or_default());
    let longest = seconds.into_iter().max().unwrap_or_default();
    if on_host || longest.is_zero() {
        return 3;
    }
    let all: u128 = seconds.iter().map(Duration::as_nanos).sum();
    u32::try_from(all.div_ceil(longest.as_nanos())).unwrap_or(3)
}
