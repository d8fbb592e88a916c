//! What a plan for a card takes of the host: whole records, and what is pinned for their copies.

use warploom_core::{DType, Status};
use warploom_plan::pipeline::{OpUse, Policy, Step};
use warploom_plan::plan::Pool;
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine};
use crate::memory::check;
use crate::steady::steady;

fn with_host(host: u64, cards: &[u64]) -> Status {
    let mut small = cpu();
    small.total_memory = host;
    let cards = (0_u32..).zip(cards).map(|(at, memory)| cuda(at, *memory));
    machine(std::iter::once(small).chain(cards))
}

fn root() -> Pipeline {
    Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")))
}

fn host_bytes(plan: &ExecutionPlan) -> u64 {
    let is_host = |pool: &&Pool| pool.memory == "host" || pool.memory == "cuda.pinned";
    let pools = plan.memory.pools.iter().filter(is_host);
    pools.map(|pool| pool.slot).sum()
}

#[test]
fn i1_a_record_that_the_host_cannot_hold_is_refused_whatever_the_card_holds() {
    let sources = Sources::stack(DType::F32, 64, 2048, 2048);
    // Whole on a large card, and in tiles on a small one.
    for card in [16 * GIB, GIB / 4] {
        let status = with_host(GIB, &[card]);
        let pinned = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")).backend("cuda"));
        let refusal = compile(&pinned, &sources, Some(&status), &Options::default());
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.len(), 1);
        insta::assert_snapshot!(refusal[0]);
    }
}

#[test]
fn i1_the_host_limits_how_many_records_are_in_flight() {
    let sources = Sources::plane(DType::F32, 4096, 4096);
    let on = |host: u64| {
        let status = with_host(host, &[16 * GIB]);
        let plan = compile(&root(), &sources, Some(&status), &Options::default()).unwrap();
        check(&plan);
        plan
    };
    let wide = on(64 * GIB);
    assert!(wide.memory.depth >= 2, "{}", wide.summary());
    let one = host_bytes(&wide);
    // Nine tenths of what there is may be used.
    let enough = |records: u64| (records * one).div_ceil(9) * 10;
    assert_eq!(on(enough(2)).memory.depth, 2);
    let narrow = on(enough(2) - 10);
    assert_eq!(narrow.memory.depth, 1);
    insta::assert_snapshot!(steady(&narrow.summary()));
    // What was asked for is refused, with what would do.
    let mut options = Options::default();
    options.depth = Some(3);
    let status = with_host(enough(2), &[16 * GIB]);
    let refusal = compile(&root(), &sources, Some(&status), &options).unwrap_err();
    insta::assert_snapshot!(refusal[0]);
}

/// A record takes twice as much of the host on its way to a card as the processor needs for all of it.
#[test]
fn where_the_host_has_no_room_for_copies_the_processor_does_without() {
    let sources = Sources::plane(DType::F32, 4096, 4096);
    let wide = with_host(64 * GIB, &[16 * GIB]);
    let plan = compile(&root(), &sources, Some(&wide), &Options::default()).unwrap();
    let one = host_bytes(&plan);
    let tight = with_host((one - 256).div_ceil(9) * 10, &[16 * GIB]);
    let plan = compile(&root(), &sources, Some(&tight), &Options::default()).unwrap();
    check(&plan);
    insta::assert_snapshot!(steady(&plan.explanation()));
}

/// The host is the same for all cards, so it says nothing about which has the most room.
#[test]
fn fit_counts_what_is_left_on_the_card_and_not_on_the_host() {
    let status = with_host(GIB, &[2 * GIB, 8 * GIB]);
    let pipeline = root().step(Step::new("b", OpUse::new("abs")).backend("cpu"));
    let sources = Sources::plane(DType::F32, 1024, 1024);
    let mut options = Options::default();
    options.placement = Some(Policy::Fit);
    let plan = compile(&pipeline, &sources, Some(&status), &options).unwrap();
    assert_eq!(plan.device.name, "gpu1", "{}", plan.explanation());
}
