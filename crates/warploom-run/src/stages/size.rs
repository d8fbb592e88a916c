//! How many units are in flight: as many as pay and fit.

use warploom_plan::ExecutionPlan;
use warploom_plan::plan::Pool;

use super::Wishes;

/// Slots of memory that a disk and a thread hand to each other. Two would do if files always took as long
/// as those before; a third bridges one that takes longer.
pub(super) const AT_ONCE: u32 = 3;
/// Units of a generation on the processor, however large: its threads do better with two of them at once
/// than with each by itself, where all wait for the last thread that is at it.
const SIDE_BY_SIDE: u64 = 2;
/// The most units of a generation, if nobody asks for more.
const MOST: u64 = 32;

/// How many units a pool holds at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    /// Generations in flight.
    pub(crate) depth: u32,
    /// Units of a generation.
    pub(crate) batch: u64,
    /// Bytes of a unit.
    pub(crate) stride: u64,
}

impl Size {
    /// As many generations as the plan found that pay, or as are wished for, and as the pool's budget
    /// allows. Small units go several at a time: handing over costs the same for each generation.
    pub(crate) fn of(pool: &Pool, planned: u32, wishes: &Wishes, items: u64) -> Self {
        const ENOUGH: u64 = 1 << 20;
        let stride = pool.slot.max(4).next_multiple_of(256);
        let common = pool.shared + pool.loaded;
        let budget = pool.budget.unwrap_or(u64::MAX).saturating_sub(common);
        let room = budget / stride;
        let most = u32::try_from(room).unwrap_or(u32::MAX).max(1);
        let depth = wishes.depth.unwrap_or(planned).clamp(1, most);
        let items = items.max(1);
        let wish = wishes.batch.unwrap_or_else(|| {
            // A few generations there should be, or nothing overlaps.
            let share = items.div_ceil(u64::from(AT_ONCE) * 2);
            let least = if pool.memory == "host" {
                SIDE_BY_SIDE
            } else {
                1
            };
            (ENOUGH / stride).clamp(least, MOST).min(share)
        });
        Self {
            depth,
            batch: wish.min(room / u64::from(depth)).clamp(1, items),
            stride,
        }
    }

    /// Bytes of the pool in all, with what all units share.
    pub(crate) fn bytes(self, pool: &Pool) -> u64 {
        let units = u64::from(self.depth) * self.batch;
        self.stride * units + pool.shared + pool.loaded
    }
}

/// Bytes that a run takes of a card's memory.
pub(crate) fn footprint(
    plan: &ExecutionPlan,
    faces: &[String],
    wishes: &Wishes,
    items: u64,
) -> u64 {
    let own = plan
        .memory
        .pools
        .iter()
        .filter(|pool| faces.contains(&pool.device));
    let is_straight = plan.is_straight();
    let bytes = own.map(|pool| {
        if is_straight {
            Size::of(pool, plan.memory.depth, wishes, items).bytes(pool)
        } else {
            pool.total
        }
    });
    bytes.sum()
}

/// Units of a generation on a card.
pub(crate) fn generation(
    plan: &ExecutionPlan,
    faces: &[String],
    wishes: &Wishes,
    items: u64,
) -> u64 {
    if !plan.is_straight() {
        return 1;
    }
    let pools = plan.memory.pools.iter();
    let own = pools.filter(|pool| faces.contains(&pool.device));
    let sizes = own.map(|pool| Size::of(pool, plan.memory.depth, wishes, items).batch);
    sizes.max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use warploom_core::{QueueClass, Space};
    use warploom_plan::plan::slots_that_pay;
    use warploom_sched::{Options, Resource, Slots, Stage, StageGraph, plan};

    use super::super::times;
    use super::*;

    fn pool(memory: &str, slot: u64, budget: Option<u64>) -> Pool {
        Pool {
            memory: memory.to_owned(),
            device: "cpu:0".to_owned(),
            tiles: false,
            budget,
            slot,
            bound: slot,
            shared: 1000,
            constants: Vec::new(),
            loaded: 24,
            total: slot + 1024,
            fullest: None,
            live: Vec::new(),
            layout: Vec::new(),
        }
    }

    const NO_WISHES: Wishes = Wishes {
        depth: None,
        batch: None,
        readers: None,
    };

    #[test]
    fn large_units_go_one_by_one_and_small_ones_together() {
        let of = |memory, slot, items| {
            let size = Size::of(&pool(memory, slot, None), 3, &NO_WISHES, items);
            (size.depth, size.batch)
        };
        assert_eq!(of("opencl.device", 1 << 24, 100), (3, 1));
        // Threads of the processor have each its own, as far as there are enough to share out.
        assert_eq!(of("host", 1 << 24, 100), (3, 2));
        assert_eq!(of("host", 1 << 24, 6), (3, 1));
        assert_eq!(of("host", 1 << 14, 10_000), (3, 32));
        assert_eq!(of("opencl.device", 1 << 14, 12).1, 2);
    }

    /// The fewest slots that do not limit the rate as the scheduler finds them, of the very stages that a run
    /// has. The plan says the same without a scheduler.
    fn paying(on_host: bool, seconds: [f64; 3]) -> u32 {
        let mut seconds = seconds.map(|seconds| times(seconds, 1));
        if seconds == [Duration::ZERO; 3] {
            seconds = [Duration::from_secs(1); 3];
        }
        let [up, work, down] = seconds;
        let files = up.max(work).max(down);
        let mut graph = StageGraph::new();
        let slots = Slots::UpTo(8);
        let resource = |name: &str, space: Space| Resource::new(name, space, 1);
        let slot;
        if on_host {
            slot = graph.resource(resource("slot", Space::Host).with_slots(slots));
            graph.stage(Stage::host("read").writes(slot).taking(files));
            let work = Stage::device("work", QueueClass::Compute).taking(work.max(files));
            graph.stage(work.updates(slot));
            graph.stage(Stage::host("write").reads(slot).taking(files));
        } else {
            let images = graph.resource(resource("images", Space::Pinned));
            slot = graph.resource(resource("slot", Space::Device).with_slots(slots));
            let results = graph.resource(resource("results", Space::Pinned));
            graph.stage(Stage::host("read").writes(images).taking(files));
            let stage = |name, class, time| Stage::device(name, class).taking(time);
            let up = stage("upload", QueueClass::Upload, up);
            graph.stage(up.reads(images).writes(slot));
            graph.stage(stage("work", QueueClass::Compute, work).updates(slot));
            let down = stage("download", QueueClass::Download, down);
            graph.stage(down.reads(slot).writes(results));
            graph.stage(Stage::host("write").reads(results).taking(files));
        }
        plan(&graph, &Options::default()).unwrap().slots(slot)
    }

    /// Two slots that three stages of equal length share let one of them stand idle.
    #[test]
    fn copies_as_long_as_work_get_a_slot_each() {
        assert_eq!(slots_that_pay(false, [1e-3; 3]), 3);
        assert_eq!(slots_that_pay(false, [1e-3, 2e-3, 1e-3]), 2);
        // Nobody knows how long anything takes.
        assert_eq!(slots_that_pay(false, [0.0; 3]), 3);
        // What does not fit is not taken, however much it would pay.
        let pool = pool("cuda.device", 1 << 24, Some((1 << 25) + 1024));
        assert_eq!(Size::of(&pool, 3, &NO_WISHES, 1000).depth, 2);
    }

    proptest! {
        /// What the plan says of slots is what the scheduler finds.
        #[test]
        fn plan_and_scheduler_agree_on_how_many_slots_pay(
            seconds in proptest::array::uniform3(prop_oneof![
                Just(0.0), Just(1e-3), Just(2e-3), 0.0..1e-2, 0.0..1e-6
            ]),
            on_host: bool,
        ) {
            prop_assert_eq!(slots_that_pay(on_host, seconds), paying(on_host, seconds), "{:?}", seconds);
        }

        #[test]
        fn i1_what_is_taken_fits_the_budget(
            slot in 1_u64..1 << 22,
            room in 1_u64..200,
            depth in proptest::option::of(1_u32..9),
            batch in proptest::option::of(1_u64..100),
            items in 1_u64..1000,
            planned in 1_u32..4,
            is_host: bool,
        ) {
            let memory = if is_host { "host" } else { "cuda.device" };
            // At least one unit fits: the plan saw to it.
            let budget = 1024 + slot.max(4).next_multiple_of(256) * room;
            let pool = pool(memory, slot, Some(budget));
            let wishes = Wishes {
                depth,
                batch,
                ..NO_WISHES
            };
            let size = Size::of(&pool, planned, &wishes, items);
            prop_assert!(size.depth >= 1 && (1..=items).contains(&size.batch));
            prop_assert!(size.bytes(&pool) <= budget, "{size:?} of {budget}");
        }
    }
}
