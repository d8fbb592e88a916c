//! Plans run from their data alone, in the memory they were given, on every device that is here:
//! the bits are those of one operation after the other on the processor.
//! Whatever a plan forgot, or laid over something that is still needed, shows.

mod runner;

use std::collections::BTreeMap;

use warploom::kernels::ImageType;
use warploom::kernels::program::{Loader, Program};
use warploom::plan::pipeline::{OpUse, Policy, Step};
use warploom::plan::plan::PlanStep;
use warploom::plan::{ExecutionPlan, Options, Pipeline, Sources, compile};
use warploom::{Caps, DType, Math, registry};

use runner::{Runner, length};

/// What every value is when operations run one by one on the processor, in memory of their own.
fn one_by_one(
    plan: &ExecutionPlan,
    sources: &BTreeMap<&str, Vec<u8>>,
) -> BTreeMap<String, Vec<u8>> {
    let device = registry().open("cpu:0".parse().unwrap()).unwrap();
    let loader = Loader::new(device, Math::Strict);
    let variant = &plan.variants[0];
    let mut known: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    known.extend(
        sources
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), bytes.clone())),
    );
    for (step, done) in variant.steps.iter().enumerate() {
        if done.ops().is_empty() {
            continue;
        }
        let flow = variant.flow(step, None).unwrap();
        let program = Program::unfused(&flow, loader.device().info());
        let inputs: Vec<&[u8]> = done
            .reads()
            .iter()
            .map(|name| known[name].as_slice())
            .collect();
        let results = loader
            .load(program)
            .unwrap()
            .run(loader.device(), &inputs)
            .unwrap();
        known.extend(done.gives().iter().cloned().zip(results));
    }
    known
}

fn noise(image: ImageType, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let pixels = length(image.pixels());
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u16::try_from(state >> 48).unwrap()
    };
    match image.dtype {
        DType::F32 => {
            let pixels: Vec<f32> = (0..pixels)
                .map(|_| 1.0 + f32::from(next()) / 65_536.0)
                .collect();
            bytemuck::cast_slice(&pixels).to_vec()
        }
        DType::U16 => {
            let pixels: Vec<u16> = (0..pixels).map(|_| next()).collect();
            bytemuck::cast_slice(&pixels).to_vec()
        }
        other => unreachable!("{other}"),
    }
}

/// Random steps; each reads what any earlier one gave.
fn pipeline(seed: u64, backends: &[&str]) -> Pipeline {
    let mut state = seed;
    let mut dice = move |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    let mut pipeline = Pipeline::new("random").constant("flat", "flat.npy");
    let steps = 2 + dice(7);
    let mut images = vec!["image".to_owned()];
    for at in 0..steps {
        let pick = |images: &[String], which: usize| {
            images[images.len() - 1 - which % images.len()].clone()
        };
        let (first, second) = (pick(&images, dice(3)), pick(&images, dice(4)));
        let name = format!("s{at}");
        let (op, reads) = match dice(11) {
            0 => (OpUse::new("sqrt"), vec![first]),
            1 => (OpUse::new("gaussian").with("sigma", 1.3), vec![first]),
            2 => (OpUse::new("median_box").with("radius", 1_i64), vec![first]),
            3 => (OpUse::new("add_images"), vec![first, second]),
            4 => (OpUse::new("top_hat_box").with("radius", 3_i64), vec![first]),
            5 => (OpUse::new("minmax_normalize"), vec![first]),
            6 => (OpUse::new("flat_field"), vec![first, "flat".to_owned()]),
            7 => (OpUse::new("cast").with("type", "u16"), vec![first]),
            8 => (OpUse::new("label_box"), vec![first]),
            9 => {
                let limits = format!("l{at}");
                let op = OpUse::new("percentiles").with("q", [10_i64, 90]);
                let step = Step::new(&limits, op).reads([first.as_str()]);
                let backend = backends[dice(backends.len())];
                pipeline = pipeline.step(step.backend(backend));
                let op = OpUse::new("greater").with_computed("value", &limits, "1");
                (op, vec![second])
            }
            _ => (OpUse::new("maximum_box").with("radius", 2_i64), vec![first]),
        };
        let step = Step::new(&name, op).reads(reads.iter().map(String::as_str));
        pipeline = pipeline.step(step.backend(backends[dice(backends.len())]));
        images.push(name);
    }
    let last = images.pop().unwrap();
    let inner = images[images.len() / 2].clone();
    pipeline
        .output(&last, "last.tif")
        .output(&inner, "inner.tif")
}

fn check(plan: &ExecutionPlan, sources: &BTreeMap<&str, Vec<u8>>) {
    // What another process would have of it.
    let plan = &ExecutionPlan::from_json(&plan.to_json()).unwrap();
    let expected = one_by_one(plan, sources);
    for (name, bytes) in Runner::new(plan).run(sources) {
        let dtype = plan.variants[0].value(&name).unwrap().kind().dtype();
        if let Some(at) = first_difference(dtype, &bytes, &expected[&name]) {
            panic!("{name} differs at {at}\n{}", plan.explanation());
        }
    }
}

/// The first number that is not the same bits; all that are not a number are alike, because no two
/// machines agree on their bits.
fn first_difference(dtype: DType, one: &[u8], other: &[u8]) -> Option<usize> {
    let size = usize::try_from(dtype.bytes()).unwrap();
    let is_nan = |bytes: &[u8]| match dtype {
        DType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        DType::F64 => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let mut pairs = one.chunks_exact(size).zip(other.chunks_exact(size));
    let differ = |(a, b): (&[u8], &[u8])| a != b && !(is_nan(a) && is_nan(b));
    if one.len() == other.len() {
        pairs.position(differ)
    } else {
        Some(0)
    }
}

/// Every strict backend with a device here, alone and together with the processor.
fn mixtures() -> Vec<Vec<String>> {
    let status = registry().setup(&warploom::Options::default()).unwrap();
    let faces = status.survey.devices.iter().flat_map(|card| &card.faces);
    let strict = faces.filter(|face| face.caps.contains(Caps::STRICT_MATH));
    let mut names: Vec<String> = strict.map(|face| face.id.backend.to_string()).collect();
    names.sort();
    names.dedup();
    let mut mixtures: Vec<Vec<String>> = names.iter().map(|name| vec![name.clone()]).collect();
    let others = names.iter().filter(|name| *name != "cpu");
    mixtures.extend(others.map(|name| vec!["cpu".to_owned(), name.clone()]));
    mixtures
}

#[test]
fn i1_plans_run_from_their_data_alone_in_the_memory_they_were_given() {
    let image = ImageType::stack(DType::U16, 3, 33, 47);
    let flat = ImageType::stack(DType::F32, 3, 33, 47);
    let sources = Sources::new(image).constant("flat", flat);
    let given = BTreeMap::from([("image", noise(image, 7)), ("flat", noise(flat, 8))]);
    let status = registry().setup(&warploom::Options::default()).unwrap();
    for backends in mixtures() {
        let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
        let mut shared = 0;
        // Compiling kernels takes most of the time, and many plans have kernels of their own.
        let plans = if backends == ["cpu"] { 60 } else { 10 };
        for seed in 0..plans {
            let pipeline = pipeline(seed, &backends);
            let mut options = Options::default();
            options.placement = Some(Policy::First);
            let plan = compile(&pipeline, &sources, Some(&status), &options);
            let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
            check(&plan, &given);
            shared += usize::from(reuses_in_a_step(&plan));
        }
        // Where nothing is ever laid over something else, this test proves nothing.
        assert!(
            shared > 3,
            "{backends:?}: {shared} plans reuse memory inside a step"
        );
        eprintln!("{backends:?}: {plans} plans, {shared} of which reuse memory inside a step");
    }
}

/// Steps that write results over what they read: pixel by pixel, alone and before and after others.
fn pointwise(seed: u64, backend: &str) -> Pipeline {
    let mut dice = {
        let mut state = seed;
        move |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % limit
        }
    };
    let mut pipeline = Pipeline::new("pointwise").constant("flat", "flat.npy");
    let mut last = "image".to_owned();
    for at in 0..=dice(5) {
        let name = format!("s{at}");
        let (op, second) = match dice(7) {
            0 | 1 => (OpUse::new("sqrt"), None),
            2 => (OpUse::new("abs"), None),
            3 => (OpUse::new("multiply_images"), Some("flat")),
            4 => (OpUse::new("minmax_normalize"), None),
            5 => (OpUse::new("gaussian").with("sigma", 0.8), None),
            _ => (OpUse::new("affine_intensity").with("offset", 0.25), None),
        };
        let reads = [Some(last.as_str()), second].into_iter().flatten();
        pipeline = pipeline.step(Step::new(&name, op).reads(reads).backend(backend));
        last = name;
    }
    pipeline.output(&last, "last.tif")
}

#[test]
fn i1_what_is_written_over_what_it_is_made_of_is_the_same() {
    let image = ImageType::stack(DType::F32, 2, 35, 61);
    let sources = Sources::new(image).constant("flat", image);
    let given = BTreeMap::from([("image", noise(image, 11)), ("flat", noise(image, 12))]);
    let status = registry().setup(&warploom::Options::default()).unwrap();
    for backends in mixtures().into_iter().filter(|list| list.len() == 1) {
        let plans = if backends[0] == "cpu" { 40 } else { 12 };
        let (mut over, mut inside) = (0, 0);
        for seed in 0..plans {
            let mut options = Options::default();
            options.placement = Some(Policy::First);
            let plan = compile(
                &pointwise(seed, &backends[0]),
                &sources,
                Some(&status),
                &options,
            );
            let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
            check(&plan, &given);
            let steps = || plan.variants[0].steps.iter();
            over += usize::from(steps().any(|step| !step.in_place().is_empty()));
            let notes = steps().filter_map(|step| match step {
                PlanStep::Run { fused, .. } => Some(fused),
                _ => None,
            });
            let within = |note: &String| note.contains("writes over what it reads");
            inside += notes.flatten().filter(|note| within(note)).count();
        }
        assert!(over > 3, "{backends:?}: {over} of {plans} work in place");
        eprintln!("{backends:?}: {over} of {plans} plans work in place, {inside} passes within");
    }
}

/// Do a value that a step reads and one that it gives share bytes?
fn reuses_in_a_step(plan: &ExecutionPlan) -> bool {
    let pools = plan.memory.pools.iter();
    let mut lists = pools.flat_map(|pool| &pool.layout);
    lists.any(|list| {
        list.iter().any(|a| {
            list.iter().any(|b| {
                let bytes = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
                bytes && a.last == b.first && a.last_pass < b.first_pass
            })
        })
    })
}

#[test]
fn tiles_run_from_the_plan_s_data_with_the_same_bits() {
    let image = ImageType::stack(DType::U16, 2, 61, 75);
    let flat = ImageType::stack(DType::F32, 2, 61, 75);
    let sources = Sources::new(image).constant("flat", flat);
    let given = BTreeMap::from([("image", noise(image, 3)), ("flat", noise(flat, 4))]);
    let status = registry().setup(&warploom::Options::default()).unwrap();
    let pipeline = Pipeline::new("tiles")
        .constant("flat", "flat.npy")
        .step(Step::new("even", OpUse::new("flat_field")).reads(["image", "flat"]))
        .step(Step::new("soft", OpUse::new("gaussian").with("sigma", 1.5)))
        .step(Step::new("norm", OpUse::new("minmax_normalize")))
        .step(Step::new(
            "top",
            OpUse::new("maximum_box").with("radius", 2_i64),
        ))
        // Numbers of whole images that go with every tile, and labels of what comes out.
        .step(Step::new(
            "limits",
            OpUse::new("percentiles").with("q", [10_i64, 60]),
        ))
        .step(
            Step::new(
                "bright",
                OpUse::new("greater").with_computed("value", "limits", "1"),
            )
            .reads(["top"]),
        )
        .step(Step::new("cells", OpUse::new("label_box")))
        .output("top", "top.tif")
        .output("limits", "limits.json")
        .output("cells", "cells.tif");
    let mut tried = 0;
    for backends in mixtures().into_iter().filter(|list| list.len() == 1) {
        let mut pipeline = pipeline.clone();
        pipeline.whereabouts.backend = Some(backends[0].as_str().into());
        let mut options = Options::default();
        options.placement = Some(Policy::First);
        options.budget = Some(40_000);
        let plan = compile(&pipeline, &sources, Some(&status), &options);
        let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
        let steps = plan.variants[0].steps.iter();
        let tiled = steps.filter(|step| matches!(step, PlanStep::Tiled { .. }));
        let mut ops = tiled.flat_map(PlanStep::ops);
        assert!(ops.any(|op| op.name == "bright"), "{}", plan.summary());
        check(&plan, &given);
        tried += 1;
    }
    assert!(tried > 0, "the processor is always here");
}

/// Some cards have numbers of 64 bits as pairs of smaller ones. What goes there in tiles, and the
/// numbers that go with every tile, become pairs on the way and numbers again on the way back.
#[test]
fn tiles_on_cards_with_pairs_bring_numbers_of_64_bits_there_and_back() {
    let image = ImageType::stack(DType::U16, 2, 61, 75);
    let sources = Sources::new(image);
    let given = BTreeMap::from([("image", noise(image, 5))]);
    let status = registry().setup(&warploom::Options::default()).unwrap();
    let mut faces = status.survey.devices.iter().flat_map(|card| &card.faces);
    if !faces.any(|face| face.id.backend.as_str() == "wgpu") {
        eprintln!("not tried: no device of wgpu is here");
        return;
    }
    // Limits between the pixels' own values, and results that every pair holds exactly.
    let mut pipeline = Pipeline::new("pairs")
        .step(Step::new(
            "limits",
            OpUse::new("percentiles").with("q", [10_i64, 60]),
        ))
        .step(
            Step::new(
                "bright",
                OpUse::new("greater").with_computed("value", "limits", "1"),
            )
            .reads(["image"]),
        )
        .step(Step::new("wide", OpUse::new("cast").with("type", "f64")).reads(["image"]))
        .output("bright", "bright.tif")
        .output("wide", "wide.npy");
    pipeline.whereabouts.backend = Some("wgpu".into());
    let mut options = Options::default();
    options.placement = Some(Policy::First);
    options.budget = Some(40_000);
    let plan = compile(&pipeline, &sources, Some(&status), &options);
    let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
    let mut steps = plan.variants[0].steps.iter();
    let pairs = |step: &PlanStep| matches!(step, PlanStep::Tiled { pairs: true, .. });
    assert!(steps.any(pairs), "{}", plan.summary());
    check(&plan, &given);
}
