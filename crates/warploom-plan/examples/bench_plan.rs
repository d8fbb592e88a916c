//! How long compiling takes: a small pipeline, a large one, and a batch. `cargo xtask bench plan`.
#![expect(clippy::print_stdout, reason = "it is a report")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use warploom_core::memory::{CUDA_DEVICE, CUDA_PINNED, HOST};
use warploom_core::{
    BackendId, BackendReport, BackendState, Capacity, CapacityPolicy, Caps, DType, DeviceId,
    DeviceInfo, Language, Status, Survey,
};
use warploom_plan::batch::{Work, compile_batch};
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

/// The best of a few, in seconds.
fn best(rounds: u32, mut run: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let begun = Instant::now();
        run();
        least = least.min(begun.elapsed().as_secs_f64());
    }
    least
}

fn main() {
    let (one, eight) = (machine(1), machine(8));
    let sources = Sources::plane(DType::U16, 2048, 2048);
    let options = Options::default();
    let (small, large) = (pipeline(10), pipeline(1000));
    let time = best(20, || {
        drop(black_box(compile(&small, &sources, one.as_ref(), &options)));
    });
    println!("plan_10_steps_us {:.1}", time * 1e6);
    let time = best(3, || {
        drop(black_box(compile(&large, &sources, one.as_ref(), &options)));
    });
    println!("plan_1000_steps_ms {:.1}", time * 1e3);
    let work: Vec<Work<'_>> = (0..4)
        .map(|_| Work {
            pipeline: &small,
            sources: &sources,
            records: 2500,
        })
        .collect();
    let time = best(3, || {
        drop(black_box(compile_batch(&work, eight.as_ref(), &options)));
    });
    println!("plan_batch_10000_ms {:.1}", time * 1e3);
}
