//! How long compiling takes: a small pipeline, a large one, and a batch; how near to what is possible
//! work is dealt and memory is laid out. `cargo xtask bench plan`.
#![expect(clippy::print_stdout, reason = "it is a report")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "random numbers between small bounds"
)]

#[path = "../tests/plan/texts.rs"]
mod texts;

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use warploom_core::memory::{CUDA_DEVICE, CUDA_PINNED, HOST};
use warploom_core::{
    BackendId, BackendReport, BackendState, Capacity, CapacityPolicy, Caps, DType, DeviceId,
    DeviceInfo, Language, Status, Survey,
};
use warploom_kernels::program::{Lifetime, lay_out};
use warploom_plan::batch::{Work, compile_batch, deal};
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::{Options, Pipeline, Sources, compile};

/// A machine with a processor and this many cards.
fn machine(cards: u32) -> Option<Status> {
    let cpu = DeviceId::new(BackendId::CPU, 0);
    let mut devices = vec![DeviceInfo::software(cpu, "processor", &[HOST])];
    for ordinal in 0..cards {
        let id = DeviceId::new(BackendId::new("cuda"), ordinal);
        let mut card = DeviceInfo::new(id, "Card", &[CUDA_DEVICE, CUDA_PINNED]);
        card.total_memory = 24 << 30;
        card.languages = vec![Language::CudaC];
        card.caps = Caps::F64 | Caps::STRICT_MATH;
        devices.push(card);
    }
    let reports = ["cpu", "cuda"].map(|name| BackendReport {
        id: BackendId::new(name),
        state: BackendState::Loaded,
        reason: None,
        took: Duration::ZERO,
    });
    let survey = Survey::unite(reports.to_vec(), devices);
    let threads = NonZeroU32::new(8)?;
    let capacity = Capacity::of(&survey, CapacityPolicy::Threads, threads);
    Some(Status::described(survey, capacity))
}

/// Steps in a row, every third reading an earlier one as well.
fn pipeline(steps: usize) -> Pipeline {
    let mut pipeline = Pipeline::new("bench");
    for at in 0..steps {
        let name = format!("s{at}");
        let step = match at % 3 {
            0 => Step::new(&name, OpUse::new("gaussian").with("sigma", 1.5)),
            1 => Step::new(&name, OpUse::new("affine_intensity").with("scale", 2.0)),
            _ => {
                let (near, far) = (format!("s{}", at - 1), format!("s{}", at / 2));
                Step::new(&name, OpUse::new("add_images")).reads([near.as_str(), far.as_str()])
            }
        };
        pipeline = pipeline.step(step);
    }
    pipeline
}

/// The first run, cold, and the best of a few more, in seconds.
fn time(rounds: u32, mut run: impl FnMut()) -> (f64, f64) {
    let mut once = || {
        let begun = Instant::now();
        run();
        begun.elapsed().as_secs_f64()
    };
    let cold = once();
    let warm = (0..rounds).map(|_| once()).fold(f64::INFINITY, f64::min);
    (cold, warm)
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    /// From `low` up to `high`.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * ((self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// A plate: kinds of work on cards that are fast or slow, and suited or not, and some of which
/// cannot do a kind at all.
fn plate(seed: u64) -> (Vec<Vec<f64>>, Vec<usize>) {
    let mut dice = Dice(seed);
    let (cards, kinds) = (2 + seed % 7, 1 + seed % 6);
    let speeds: Vec<f64> = (0..cards).map(|_| dice.between(1.0, 8.0)).collect();
    let mut costs: Vec<Vec<f64>> = Vec::new();
    let mut counts = Vec::new();
    for _ in 0..kinds {
        let size = dice.between(1.0, 20.0);
        let cost = |speed: &f64| {
            let able = dice.between(0.0, 1.0) < 0.9;
            let cost = size * dice.between(0.5, 2.0) / speed;
            if able { cost } else { f64::INFINITY }
        };
        let mut row: Vec<f64> = speeds.iter().map(cost).collect();
        if row.iter().all(|cost| cost.is_infinite()) {
            row[0] = size;
        }
        costs.push(row);
        counts.push((40.0 + dice.between(0.0, 400.0)) as usize);
    }
    (costs, counts)
}

/// Heterogeneous earliest finish time: long work first, each piece where it ends first.
fn heft(costs: &[Vec<f64>], counts: &[usize]) -> f64 {
    let mean = |kind: &usize| {
        let able = costs[*kind].iter().filter(|cost| cost.is_finite());
        let (sum, count) = able.fold((0.0, 0.0), |(sum, count), cost| (sum + cost, count + 1.0));
        sum / f64::max(count, 1.0)
    };
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    let mut loads = vec![0.0; costs[0].len()];
    for kind in order {
        for _ in 0..counts[kind] {
            earliest(&mut loads, &costs[kind]);
        }
    }
    loads.into_iter().fold(0.0, f64::max)
}

/// First fit: each piece on the first card that is not full yet; full is what would do if all
/// cards were equally well suited. What fits nowhere goes where it ends first.
fn first_fit(costs: &[Vec<f64>], counts: &[usize]) -> f64 {
    let full = deal(costs, counts).bound * 1.1;
    let mut loads = vec![0.0; costs[0].len()];
    for (costs, count) in costs.iter().zip(counts) {
        for _ in 0..*count {
            let fits = (0..loads.len()).find(|card| loads[*card] + costs[*card] <= full);
            match fits {
                Some(card) => loads[card] += costs[card],
                None => earliest(&mut loads, costs),
            }
        }
    }
    loads.into_iter().fold(0.0, f64::max)
}

fn earliest(loads: &mut [f64], costs: &[f64]) {
    let end = |card: &usize| loads[*card] + costs[*card];
    let card = (0..loads.len()).min_by(|a, b| end(a).total_cmp(&end(b)));
    if let Some(card) = card {
        loads[card] += costs[card];
    }
}

/// How much later than the bound work is done: the worst of many plates, and the mean.
fn compare(name: &str, dealt: impl Fn(&[Vec<f64>], &[usize]) -> f64) {
    let (mut worst, mut sum) = (1.0_f64, 0.0);
    for seed in 0..200 {
        let (costs, counts) = plate(seed);
        let ratio = dealt(&costs, &counts) / deal(&costs, &counts).bound;
        worst = worst.max(ratio);
        sum += ratio;
    }
    println!("deal_{name}_worst_ratio {worst:.3}");
    println!("deal_{name}_mean_ratio {:.3}", sum / 200.0);
}

fn main() {
    let (one, eight) = (machine(1), machine(8));
    let sources = Sources::plane(DType::U16, 2048, 2048);
    let options = Options::default();
    let (small, large) = (pipeline(10), pipeline(1000));
    let (cold, warm) = time(20, || {
        drop(black_box(compile(&small, &sources, one.as_ref(), &options)));
    });
    println!("plan_10_steps_us {:.1}", cold * 1e6);
    println!("plan_10_steps_again_us {:.1}", warm * 1e6);
    let (cold, warm) = time(3, || {
        drop(black_box(compile(&large, &sources, one.as_ref(), &options)));
    });
    println!("plan_1000_steps_ms {:.1}", cold * 1e3);
    println!("plan_1000_steps_again_ms {:.1}", warm * 1e3);
    // A plate of four kinds of work, each of its own pipeline.
    let kinds: Vec<Pipeline> = (7..11).map(pipeline).collect();
    let work: Vec<Work<'_>> = kinds
        .iter()
        .map(|pipeline| Work {
            pipeline,
            sources: &sources,
            records: 2500,
        })
        .collect();
    let (cold, warm) = time(3, || {
        drop(black_box(compile_batch(&work, eight.as_ref(), &options)));
    });
    println!("plan_batch_10000_ms {:.1}", cold * 1e3);
    println!("plan_batch_10000_again_ms {:.1}", warm * 1e3);
    hostile(&sources, one.as_ref(), &options);
    compare("ours", |costs, counts| deal(costs, counts).makespan);
    compare("heft", heft);
    compare("first_fit", first_fit);
    let layouts = layouts();
    println!("layout_mean_ratio {:.4}", layouts.0);
    println!("layout_worst_ratio {:.4}", layouts.1);
}

/// The longest that any file takes that nobody would write, from its text to a plan or a refusal; on the
/// processor and on a card.
fn hostile(sources: &Sources, status: Option<&Status>, options: &Options) {
    let mut worst = 0.0_f64;
    for (name, text) in texts::wrong().into_iter().chain(texts::right(2_000)) {
        for (device, status) in [("cpu", None), ("gpu", status)] {
            let (took, _) = time(0, || {
                let plan = Pipeline::from_toml(&text);
                let plan = plan.and_then(|it| compile(&it, sources, status, options));
                drop(black_box(plan));
            });
            worst = worst.max(took);
            if took > 0.2 {
                println!("# {name} on {device}: {:.0} ms", took * 1e3);
            }
        }
    }
    println!("plan_hostile_worst_ms {:.1}", worst * 1e3);
}

/// Bytes of layouts of random graphs, in terms of the least that lives at once: mean and worst.
fn layouts() -> (f64, f64) {
    let (mut sum, mut worst) = (0.0, 1.0_f64);
    for seed in 0..1000 {
        let mut dice = Dice(seed);
        let steps = 2 + seed as usize % 40;
        let mut lives: Vec<Lifetime> = Vec::new();
        for at in 0..steps {
            for _ in 0..2 {
                let far = dice.between(0.0, 1.0) < 0.25;
                let back = dice.between(1.0, if far { 20.0 } else { 3.0 }) as usize;
                if let Some(from) = at.checked_sub(back) {
                    lives[from].last = at;
                }
            }
            lives.push(Lifetime {
                // Of any size to the byte, large or small.
                bytes: dice.between(13.0, 22.0).exp2() as u64,
                first: at,
                last: at,
            });
        }
        let live = |step: usize| -> u64 {
            let here = lives
                .iter()
                .filter(|life| life.first <= step && step <= life.last);
            here.map(|life| life.bytes).sum()
        };
        let least = (0..steps).map(live).max().unwrap_or(1);
        let ratio = lay_out(&lives, 256).bytes as f64 / least as f64;
        sum += ratio;
        worst = worst.max(ratio);
    }
    (sum / 1000.0, worst)
}
