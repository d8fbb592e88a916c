//! Where the bytes go: nothing overlaps, nothing is wasted, what compiles fits.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use warploom_core::{Bytes, DType, Status};
use warploom_kernels::program::{Lifetime, lay_out};
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::plan::{Lodging, PlanStep, Pool, Variant};
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine, opencl};

/// Is one of them written over the other?
fn in_place(variant: &Variant, a: &Lodging, b: &Lodging) -> bool {
    let steps = variant.steps.iter();
    let mut pairs = steps.zip(1..).flat_map(|(step, number)| {
        let pairs = step.in_place().iter();
        pairs.map(move |pair| (number, pair))
    });
    pairs.any(|(number, pair)| {
        let over = |value: &Lodging, over: &Lodging| {
            let same = (value.offset, value.bytes) == (over.offset, over.bytes);
            let names = pair.value == value.value && pair.over == over.value;
            // The pass that reads the one writes the other.
            let first = (value.first, value.first_pass);
            same && names && value.first == number && first == (over.last, over.last_pass)
        };
        over(a, b) || over(b, a)
    })
}

pub(crate) fn check(plan: &ExecutionPlan) {
    // Records come and go through the host's memory, and what is pinned for them is the host's too.
    let is_host = |pool: &&Pool| pool.memory == "host" || pool.memory.ends_with(".pinned");
    let host: Vec<&Pool> = plan.memory.pools.iter().filter(is_host).collect();
    let budgets: Option<Vec<u64>> = host.iter().map(|pool| pool.budget).collect();
    let all: u64 = host.iter().map(|pool| pool.total).sum();
    if let Some(most) = budgets.and_then(|budgets| budgets.into_iter().max()) {
        assert!(all <= most, "I1: {all} of {most}");
    }
    for pool in &plan.memory.pools {
        assert!(pool.slot >= pool.bound, "{}", pool.memory);
        let slots = pool.slot * u64::from(plan.memory.depth);
        let total = slots + pool.shared + pool.loaded;
        assert_eq!(pool.total, total, "{}", pool.memory);
        if let Some(budget) = pool.budget {
            assert!(pool.total <= budget, "I1: {} of {budget}", pool.total);
        }
        for (list, variant) in pool.layout.iter().zip(&plan.variants) {
            for (at, a) in list.iter().enumerate() {
                assert!(a.offset + a.bytes <= pool.slot);
                for b in &list[..at] {
                    let apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
                    let apart = apart || !a.meets(b) || in_place(variant, a, b);
                    assert!(apart, "{a:?} and {b:?} overlap");
                }
            }
        }
    }
}

/// A pipeline of random steps, each reading what any earlier one gave, on either side.
fn pipelines() -> impl Strategy<Value = Pipeline> {
    let step = (any::<u16>(), any::<u16>(), 0..5_usize, any::<bool>());
    proptest::collection::vec(step, 1..24).prop_map(random)
}

/// What two picks among earlier values and an operation make of each step, on the card or not.
fn random(steps: Vec<(u16, u16, usize, bool)>) -> Pipeline {
    let mut pipeline = Pipeline::new("random");
    for (at, (first, second, op, gpu)) in steps.into_iter().enumerate() {
        let name = |pick: u16| match usize::from(pick) % (at + 1) {
            0 => "image".to_owned(),
            n => format!("s{}", n - 1),
        };
        let (op, inputs) = match op {
            0 => (OpUse::new("sqrt"), vec![name(first)]),
            1 => (OpUse::new("gaussian").with("sigma", 1.5), vec![name(first)]),
            2 => (OpUse::new("cast").with("type", "u8"), vec![name(first)]),
            3 => (OpUse::new("label_box"), vec![name(first)]),
            _ => (OpUse::new("add_images"), vec![name(first), name(second)]),
        };
        let reads = inputs.iter().map(String::as_str);
        let step = Step::new(&format!("s{at}"), op).reads(reads);
        let step = step.backend(if gpu { "cuda" } else { "cpu" });
        pipeline = pipeline.step(step);
    }
    pipeline
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn i1_nothing_that_lives_at_once_overlaps_and_all_of_it_fits(pipeline in pipelines()) {
        let status = machine([cpu(), cuda(0, GIB)]);
        let sources = Sources::plane(DType::F32, 100, 130);
        let plan = compile(&pipeline, &sources, Some(&status), &Options::default());
        let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
        check(&plan);
        for pool in &plan.memory.pools {
            // Of what is small, most is room between values.
            let near = pool.bound + pool.bound / 20;
            prop_assert!(pool.slot <= near.max(1 << 16), "{} of {}", pool.slot, pool.bound);
        }
        // To the last bit of every estimate, or another process would call it forged.
        prop_assert_eq!(ExecutionPlan::from_json(&plan.to_json()).unwrap(), plan);
    }
}

#[test]
fn a_smaller_budget_means_fewer_records_in_flight_then_tiles_then_a_refusal() {
    let pipeline = Pipeline::new("p")
        .step(Step::new("a", OpUse::new("gaussian").with("sigma", 2.0)).backend("cuda"));
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::plane(DType::F32, 1024, 1024);
    let with = |budget: u64| {
        let mut options = Options::default();
        options.budget = Some(budget);
        compile(&pipeline, &sources, Some(&status), &options)
    };
    let device = |plan: &ExecutionPlan| -> Pool {
        let mut pools = plan.memory.pools.iter();
        pools
            .find(|pool| pool.memory == "cuda.device")
            .unwrap()
            .clone()
    };
    let wide = with(GIB).unwrap();
    let most = u64::from(wide.memory.depth);
    assert!(most >= 2, "{most}");
    let Pool { slot, loaded, .. } = device(&wide);
    assert!(loaded > 0, "the weights of the blur are somewhere");
    for depth in 1..=most {
        let enough = loaded + depth * slot;
        assert_eq!(u64::from(with(enough).unwrap().memory.depth), depth);
    }
    assert_eq!(with(loaded + 2 * slot - 1).unwrap().memory.depth, 1);
    assert_eq!(with(loaded + slot).unwrap().memory.depth, 1);
    // Below that, tiles.
    let tiled = with(loaded + slot - 1).unwrap();
    let steps = &tiled.variants[0].steps;
    assert!(
        matches!(steps[0], PlanStep::Tiled { .. }),
        "{}",
        tiled.summary()
    );
    check(&tiled);
    let refusal = with(64).unwrap_err();
    assert_eq!(refusal[0].code.to_string(), "WL0331");
}

/// What a refusal advises is true: each way out is taken, and is one.
struct Advised {
    budgets: usize,
    least: usize,
    depths: usize,
    tiles: usize,
    processor: usize,
    hopeless: usize,
}

impl Advised {
    fn follow(&mut self, pipeline: &Pipeline, options: &Options, status: &Status, help: &str) {
        let sources = Sources::plane(DType::F32, 24, 32);
        let fits = |pipeline: &Pipeline, options: &Options| {
            compile(pipeline, &sources, Some(status), options).is_ok()
        };
        if let Some((_, rest)) = help.split_once("a budget of ") {
            let (number, rest) = rest.split_once(" would do").unwrap();
            let mut with = options.clone();
            let advised: Bytes = number.parse().unwrap();
            with.budget = Some(advised.0);
            assert!(fits(pipeline, &with), "{help}");
            self.budgets += 1;
            let least = if rest.contains("no less") {
                Some(advised.0)
            } else {
                let least = rest.strip_prefix(", ");
                least.map(|rest| rest.split_once(' ').unwrap().0.parse().unwrap())
            };
            if let Some(least) = least {
                with.budget = Some(least);
                assert!(fits(pipeline, &with), "{help}");
                with.budget = Some(least - 1);
                assert!(!fits(pipeline, &with), "one byte less does too: {help}");
                self.least += 1;
            }
        }
        if let Some((_, rest)) = help.split_once("`--depth ") {
            let mut with = options.clone();
            with.depth = Some(rest.split_once('`').unwrap().0.parse().unwrap());
            assert!(fits(pipeline, &with), "{help}");
            self.depths += 1;
        }
        if help.contains("it runs in tiles") {
            let (mut pipeline, mut with) = (pipeline.clone(), options.clone());
            if help.contains("`--depth`") {
                with.depth = None;
            }
            if help.contains("`strict") {
                pipeline.no_host_copy = false;
            }
            assert!(fits(&pipeline, &with), "{help}");
            self.tiles += 1;
        }
        if help.contains("the processor does it") {
            let mut moved = pipeline.clone();
            for step in &mut moved.steps {
                *step = step.clone().backend("cpu");
            }
            let mut with = options.clone();
            with.devices.clear();
            assert!(fits(&moved, &with), "{help}");
            self.processor += 1;
        }
        if help.contains("no budget will do") {
            let mut with = options.clone();
            with.budget = None;
            assert!(!fits(pipeline, &with), "{help}");
            self.hopeless += 1;
        }
    }
}

#[test]
fn what_a_refusal_advises_is_true() {
    advice(false, 5);
}

/// On the processor the budget is of what tiles take beside whole images.
#[test]
fn what_a_refusal_advises_on_the_processor_is_true() {
    advice(true, 4);
}

fn advice(on_processor: bool, sorts: usize) {
    let mut runner = TestRunner::deterministic();
    let step = (any::<u16>(), any::<u16>(), 0..5_usize, 0..5_u8);
    let steps = proptest::collection::vec(step, 1..4);
    let budget = prop_oneof![1..4096_u64, 4096..25_000_u64];
    let depth = prop_oneof![2 => Just(None), 1 => (1..5_u32).prop_map(Some)];
    let memory = prop_oneof![2 => Just(GIB), 1 => 1_500..20_000_u64];
    let cases = (steps, budget, depth, memory, 0..4_u8);
    let mut advised = Advised {
        budgets: 0,
        least: 0,
        depths: 0,
        tiles: 0,
        processor: 0,
        hopeless: 0,
    };
    for _ in 0..if on_processor { 80 } else { 60 } {
        let (steps, budget, depth, memory, strict) = cases.new_tree(&mut runner).unwrap().current();
        let is_gpu = |gpu: u8| gpu > 0 && !on_processor;
        let steps = steps
            .into_iter()
            .map(|(a, b, op, gpu)| (a, b, op, is_gpu(gpu)));
        let mut pipeline = random(steps.collect());
        pipeline.no_host_copy = strict == 0;
        let mut processor = cpu();
        if on_processor {
            processor.total_memory = memory;
        }
        let status = if on_processor {
            machine([processor])
        } else {
            machine([processor, cuda(0, memory)])
        };
        let mut options = Options::default();
        (options.budget, options.depth) = (Some(budget), depth);
        let sources = Sources::plane(DType::F32, 24, 32);
        let Err(refusal) = compile(&pipeline, &sources, Some(&status), &options) else {
            continue;
        };
        for finding in refusal {
            if finding.code.to_string() == "WL0331" {
                let help = finding.help.unwrap();
                advised.follow(&pipeline, &options, &status, &help);
            }
        }
    }
    let Advised {
        budgets,
        least,
        depths,
        tiles,
        processor,
        hopeless,
    } = advised;
    // Each was advised often enough to say something, and the smallest budget whenever one was.
    let seen = [least, depths, tiles, hopeless];
    assert!(
        seen.iter().filter(|count| **count >= 2).count() >= sorts.min(4),
        "{seen:?}"
    );
    assert_eq!(budgets, least);
    assert!(on_processor || processor >= 2, "{processor}");
}

#[test]
fn a_device_that_gives_little_in_one_piece_runs_tiles() {
    let mut card = opencl(0, 0, GIB);
    card.limits.max_alloc = GIB / 4;
    let status = machine([cpu(), card]);
    let pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")));
    let sources = Sources::stack(DType::F32, 64, 2048, 2048);
    let plan = compile(&pipeline, &sources, Some(&status), &Options::default()).unwrap();
    check(&plan);
    let mut pools = plan.memory.pools.iter();
    let pool = pools.find(|pool| pool.memory == "opencl.device").unwrap();
    assert!(pool.slot <= GIB / 4, "{}", pool.slot);
}

#[test]
fn faces_of_one_card_share_its_memory() {
    let pipeline = Pipeline::new("p")
        .step(Step::new("a", OpUse::new("sqrt")).backend("cuda"))
        .step(Step::new("b", OpUse::new("abs")).backend("opencl"));
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB)]);
    let sources = Sources::plane(DType::F32, 1024, 1024);
    let mut options = Options::default();
    options.depth = Some(1);
    let plan = compile(&pipeline, &sources, Some(&status), &options).unwrap();
    let device = |pool: &&Pool| pool.memory.ends_with(".device");
    let both: u64 = plan
        .memory
        .pools
        .iter()
        .filter(device)
        .map(|pool| pool.total)
        .sum();
    options.budget = Some(both);
    assert!(compile(&pipeline, &sources, Some(&status), &options).is_ok());
    options.budget = Some(both - 1);
    assert!(compile(&pipeline, &sources, Some(&status), &options).is_err());
}

/// The values of a random graph: each step gives one, of any size to the byte, large or small, and
/// reads earlier ones, mostly the last few.
fn lives() -> impl Strategy<Value = Vec<Lifetime>> {
    let read = prop_oneof![3 => 1..3_usize, 1 => 3..20_usize];
    let size = (13..22_u32).prop_flat_map(|size| 1_u64 << size..2 << size);
    let step = (size, proptest::collection::vec(read, 1..3));
    proptest::collection::vec(step, 2..40).prop_map(|steps| {
        let mut lives: Vec<Lifetime> = Vec::new();
        for (at, (size, reads)) in steps.into_iter().enumerate() {
            for back in reads {
                if let Some(from) = at.checked_sub(back) {
                    lives[from].last = at;
                }
            }
            lives.push(Lifetime {
                bytes: size,
                first: at,
                last: at,
            });
        }
        lives
    })
}

#[test]
fn layouts_are_near_the_least_that_is_possible() {
    let mut runner = TestRunner::deterministic();
    let (mut worst, mut sum, mut far) = (1.0_f64, 0.0, 0);
    let cases = 1000;
    for _ in 0..cases {
        let lives = lives().new_tree(&mut runner).unwrap().current();
        let layout = lay_out(&lives, 256);
        let end = lives.iter().map(|life| life.last).max().unwrap();
        let live = |step: usize| -> u64 {
            let here = lives
                .iter()
                .filter(|life| life.first <= step && step <= life.last);
            here.map(|life| life.bytes).sum()
        };
        let bound = (0..=end).map(live).max().unwrap();
        let ratio = layout.bytes as f64 / bound as f64;
        worst = worst.max(ratio);
        sum += ratio;
        far += usize::from(ratio > 1.05);
    }
    let mean = sum / f64::from(cases);
    assert!(
        far == 0,
        "{far} of {cases} beyond 5 %: worst {worst:.3}, mean {mean:.4}"
    );
}

/// A list of millions of neighbours is made for no device: it takes a second to make and for ever to use.
#[test]
fn neighbourhoods_without_end_are_no_lists() {
    for step in [
        "op = \"median_box\"\nradius = 2034",
        "op = \"percentile_box\"\nradius = 900\nq = 0.5",
        "op = \"median_sphere\"\nradius = 700",
        "op = \"mean_sphere\"\nradius = 700",
        "op = \"subtract_rolling_ball\"\nradius = 700",
    ] {
        let text = format!("[[step]]\nname = \"s\"\n{step}");
        let pipeline = Pipeline::from_toml(&text).unwrap();
        let sources = Sources::plane(DType::F32, 64, 64);
        for status in [
            machine([cpu(), cuda(0, 64 * GIB)]),
            machine([cpu(), opencl(0, 0, 64 * GIB)]),
        ] {
            let plan = compile(&pipeline, &sources, Some(&status), &Options::default());
            let plan = plan.unwrap_or_else(|findings| panic!("{step}: {}", findings[0]));
            check(&plan);
            let loaded = plan.memory.pools.iter().map(|pool| pool.loaded).max();
            assert!(loaded < Some(4 << 20), "{step}: {loaded:?} bytes");
        }
    }
}
