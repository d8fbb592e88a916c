//! The cases of the system this grew from: who is assigned which device, and what is refused.
//! Numbers are those of its list; "ours" where we differ on purpose.

use rstest::rstest;
use warploom_core::DType;
use warploom_plan::pipeline::{OpUse, Policy, Step};
use warploom_plan::plan::{Kinds, KindsBy, PlanStep};
use warploom_plan::{Diagnostic, ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine, machine_with, opencl};

pub(crate) fn smooth(name: &str) -> Step {
    Step::new(name, OpUse::new("gaussian").with("sigma", 1.0))
}

pub(crate) fn plane() -> Sources {
    Sources::plane(DType::F32, 64, 64)
}

pub(crate) fn faces(plan: &ExecutionPlan) -> Vec<(String, String)> {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    steps
        .flat_map(|step| step.ops().iter().map(|op| (op, step.device())))
        .map(|(op, device)| (op.name.clone(), device.to_owned()))
        .collect()
}

pub(crate) fn codes(refusal: &[Diagnostic]) -> Vec<String> {
    refusal
        .iter()
        .map(|finding| finding.code.to_string())
        .collect()
}

#[test]
fn c32_numpy_steps_need_no_registry() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("numpy"));
    let plan = compile(&pipeline, &plane(), None, &Options::default()).unwrap();
    assert_eq!(faces(&plan), [("a".into(), "cpu:0".into())]);
    assert_eq!(plan.device.name, "cpu");
}

#[test]
fn c33_no_steps_no_work() {
    let plan = compile(&Pipeline::new("p"), &plane(), None, &Options::default()).unwrap();
    assert!(plan.variants[0].steps.is_empty());
}

#[test]
fn c34_a_gpu_step_before_detection_is_refused() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("cupy"));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0323"]);
}

#[test]
fn c35_a_gpu_step_without_gpus_is_refused_with_every_backend_s_reason() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("cupy"));
    let status = machine([cpu()]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    insta::assert_snapshot!(refusal[0]);
}

#[rstest]
#[case::by_name("gpu0")]
#[case::by_face("cuda:0")]
fn c35_so_is_a_card_by_name_where_there_is_none(#[case] device: &str) {
    let pipeline = Pipeline::new("p").step(smooth("a").device(device));
    let status = machine([cpu()]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0324"]);
    for backend in ["cuda", "opencl", "wgpu"] {
        let why = format!("`{backend}`: ");
        let told = refusal[0].notes.iter().any(|note| note.starts_with(&why));
        assert!(told, "{}", refusal[0]);
    }
    if device == "gpu0" {
        insta::assert_snapshot!(refusal[0]);
    }
}

#[test]
fn c35_where_there_is_no_device_at_all_nothing_is_offered_instead() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("cupy"));
    let status = machine([]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    insta::assert_snapshot!(refusal[0]);
}

#[test]
fn c36_first_takes_the_first_and_mixed_steps_share_it() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("numpy"))
        .step(smooth("b").memory("cupy"))
        .step(smooth("c").memory("torch"))
        .step(smooth("d").memory("jax"));
    let status = machine([cpu(), cuda(2, GIB), cuda(5, GIB)]);
    let mut options = Options::default();
    options.placement = Some(Policy::First);
    let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
    let expected = [
        ("a", "cpu:0"),
        ("b", "cuda:2"),
        ("c", "cuda:2"),
        ("d", "cuda:2"),
    ];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(faces(&plan), expected);
    // Every operation says in which memory it reads and gives; what is elsewhere is copied, visibly.
    let steps = &plan.variants[0].steps;
    let kinds = steps.iter().flat_map(PlanStep::ops).map(|op| {
        let Kinds { reads, gives, .. } = &op.kinds;
        (op.name.as_str(), reads.join(","), gives.as_str())
    });
    let on_card = |name| (name, "cuda.device".to_owned(), "cuda.device");
    let expected = [
        ("a", "host".to_owned(), "host"),
        on_card("b"),
        on_card("c"),
        on_card("d"),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    let copies = steps.iter().filter_map(|step| match step {
        PlanStep::Copy {
            value, from, to, ..
        } => Some((value.as_str(), from.as_str(), to.as_str())),
        _ => None,
    });
    let expected = [("a", "host", "cuda.device"), ("d", "cuda.device", "host")];
    assert_eq!(copies.collect::<Vec<_>>(), expected);
}

#[test]
fn kinds_are_declared_by_the_operation_by_the_user_or_inferred() {
    let pipeline = Pipeline::new("p")
        .step(smooth("said").memory("cupy"))
        .step(smooth("silent"))
        .step(Step::new("own", OpUse::new("threshold_li")).reads(["silent"]));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default());
    let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
    let by = |name: &str| {
        let mut ops = plan.variants[0].steps.iter().flat_map(PlanStep::ops);
        ops.find(|op| op.name == name).unwrap().kinds.clone()
    };
    assert_eq!(by("said").by, KindsBy::User);
    assert_eq!(by("silent").by, KindsBy::Inferred);
    assert_eq!(by("silent").gives, "cuda.device");
    assert_eq!(
        (by("own").by, by("own").gives.as_str()),
        (KindsBy::Operation, "host")
    );
    let told = plan.explanation();
    for line in [
        "  said: cuda.device -> cuda.device (user)",
        "  silent: cuda.device -> cuda.device (inferred)",
        "  own: host -> host (operation)",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

/// Each name that people know means its backend.
#[rstest]
#[case("numpy", "cpu:0")]
#[case("cupy", "cuda:0")]
#[case("torch", "cuda:0")]
#[case("tensorflow", "cuda:0")]
#[case("jax", "cuda:0")]
#[case("pyclesperanto", "opencl:0")]
fn names_of_libraries_are_kinds_of_memory(#[case] name: &str, #[case] face: &str) {
    let pipeline = Pipeline::new("p").step(smooth("a").memory(name));
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    assert_eq!(plan.device.faces, [face]);
}

/// What the caller says (`plan --placement`) counts before what the file says.
#[test]
fn the_caller_s_placement_counts_before_the_file_s() {
    let mut pipeline = Pipeline::new("p").step(smooth("a"));
    pipeline.placement = Some(Policy::Fit);
    let status = machine([cpu(), cuda(0, GIB), cuda(1, 4 * GIB)]);
    let mut options = Options::default();
    let place = |options: &Options| {
        let plan = compile(&pipeline, &plane(), Some(&status), options).unwrap();
        plan.device.faces[0].clone()
    };
    assert_eq!(place(&options), "cuda:1");
    options.placement = Some(Policy::First);
    assert_eq!(place(&options), "cuda:0");
}

#[test]
fn c37_what_goes_in_is_not_touched() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("cupy"));
    let status = machine([cpu(), cuda(2, GIB), cuda(5, GIB)]);
    let (sources, options) = (plane(), Options::default());
    let before = (pipeline.clone(), sources.clone(), options.clone());
    let survey = status.survey.clone();
    compile(&pipeline, &sources, Some(&status), &options).unwrap();
    assert_eq!((pipeline, sources, options), before);
    assert_eq!(status.survey, survey);
}

#[test]
fn c38_c40_all_missing_backends_are_named_once_and_in_order() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("wgpu"))
        .step(smooth("b").memory("pyclesperanto"))
        .step(smooth("c").memory("pyclesperanto"));
    let status = machine([cpu(), cuda(0, GIB)]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(refusal.len(), 1);
    insta::assert_snapshot!(refusal[0]);
}

/// Ours: whoever wrote names of libraries finds them in the message, beside what they stand for.
#[test]
fn c38_names_of_libraries_are_those_that_were_written() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("torch"))
        .step(smooth("b").memory("jax"));
    let status = machine([cpu(), opencl(0, 0, GIB)]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(refusal.len(), 1);
    insta::assert_snapshot!(refusal[0]);
}

#[test]
fn c39_what_does_not_exist_is_told_before_what_nobody_looked_for() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("mlx"))
        .step(smooth("b").memory("cupy"));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0321"]);
}

#[rstest]
#[case::of_another_world("mlx")]
#[case::with_capitals("CuPy")]
#[case::empty("")]
fn c41_c57_an_unknown_kind_is_an_error_not_the_processor(#[case] kind: &str) {
    let pipeline = Pipeline::new("p").step(smooth("a").memory(kind));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0321"]);
}

#[test]
fn c42_c43_pipelines_spread_by_capacity_unless_first_is_asked_for() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("cupy"));
    let status = machine([
        cpu(),
        cuda(0, GIB),
        cuda(1, GIB),
        cuda(2, GIB),
        cuda(3, GIB),
    ]);
    let place = |policy: Policy| {
        let mut options = Options::default();
        options.placement = Some(policy);
        let mut counts = Vec::new();
        for _ in 0..10 {
            let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
            *options.loads.entry(plan.device.name.clone()).or_default() += 1;
            counts = options.loads.values().copied().collect();
        }
        counts
    };
    // Two fit on each at a time; who comes third waits for a lease there.
    assert_eq!(place(Policy::Spread), [3, 3, 2, 2]);
    assert_eq!(place(Policy::First), [10]);
}

#[test]
fn c44_a_driver_without_devices_is_named_as_such() {
    let pipeline = Pipeline::new("p").step(smooth("a").memory("torch"));
    let status = machine_with(&["cpu", "cuda"], [cpu()]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0324"]);
    assert!(
        refusal[0]
            .notes
            .contains(&"`cuda`: its driver is there and lists no device".to_owned()),
        "{}",
        refusal[0]
    );
}

#[rstest]
#[case::card_for_the_processor("numpy", "cuda:0", "WL0325")]
#[case::negative("cupy", "cuda:-1", "WL0328")]
#[case::no_number("cupy", "cuda:true", "WL0328")]
fn c45_bindings_that_make_no_sense(#[case] kind: &str, #[case] device: &str, #[case] code: &str) {
    let step = smooth("a").memory(kind).device(device);
    let pipeline = Pipeline::new("p").step(step);
    let status = machine([cpu(), cuda(0, GIB)]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert!(codes(&refusal).contains(&code.to_owned()), "{}", refusal[0]);
}

#[test]
fn c46_two_bindings_or_none() {
    let status = machine([cpu(), cuda(0, GIB), cuda(1, GIB)]);
    let refuse = |steps: [Step; 2]| {
        let [a, b] = steps;
        let pipeline = Pipeline::new("p").step(a).step(b);
        let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default());
        codes(&refusal.unwrap_err())
    };
    // One framework on two devices; a device nobody has.
    let both = [smooth("a").device("cuda:0"), smooth("b").device("cuda:1")];
    assert_eq!(refuse(both), ["WL0327"]);
    let none = [smooth("a").device("cuda:0"), smooth("b").device("cuda:7")];
    assert_eq!(refuse(none), ["WL0328"]);
    // Twice in one file is no TOML.
    let twice =
        Pipeline::from_toml("[[step]]\nop = \"sqrt\"\ndevice = \"cuda:0\"\ndevice = \"cuda:1\"");
    assert_eq!(codes(&twice.unwrap_err()), ["WL0301"]);
}

#[test]
fn c47_the_processor_needs_no_device_and_a_card_needs_one() {
    let status = machine([cpu(), cuda(0, GIB)]);
    let with = |kind: &str| {
        let pipeline = Pipeline::new("p").step(smooth("a").memory(kind));
        compile(&pipeline, &plane(), Some(&status), &Options::default())
    };
    assert_eq!(with("numpy").unwrap().device.faces, ["cpu:0"]);
    assert_eq!(with("torch").unwrap().device.faces, ["cuda:0"]);
    assert_eq!(codes(&with("pyclesperanto").unwrap_err()), ["WL0322"]);
}

#[test]
fn c48_cpu_steps_compile_where_only_the_processor_is() {
    let status = machine([cpu()]);
    let pipeline = Pipeline::new("p").step(smooth("a").backend("cpu"));
    assert!(compile(&pipeline, &plane(), Some(&status), &Options::default()).is_ok());
    let pipeline = Pipeline::new("p").step(smooth("a").backend("cuda"));
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0324"]);
}

#[test]
fn two_cards_are_not_one_unless_asked() {
    let steps = |pipeline: Pipeline| {
        pipeline
            .step(smooth("a").memory("cupy"))
            .step(smooth("b").memory("pyclesperanto"))
    };
    // The OpenCL device is another card.
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 9, GIB)]);
    let refusal = compile(
        &steps(Pipeline::new("p")),
        &plane(),
        Some(&status),
        &Options::default(),
    );
    insta::assert_snapshot!(refusal.unwrap_err()[0]);
    let mut spread = steps(Pipeline::new("p"));
    spread.spread_steps = true;
    let plan = compile(&spread, &plane(), Some(&status), &Options::default()).unwrap();
    assert_eq!(plan.others.len(), 1);
    // One card with two faces needs no permission.
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB)]);
    let plan = compile(
        &steps(Pipeline::new("p")),
        &plane(),
        Some(&status),
        &Options::default(),
    );
    assert_eq!(plan.unwrap().device.faces, ["cuda:0", "opencl:0"]);
}

#[test]
fn a_host_copy_is_refused_where_it_is_forbidden() {
    let mut pipeline = Pipeline::new("p")
        .step(smooth("a").memory("cupy"))
        .step(smooth("b").memory("pyclesperanto"));
    pipeline.no_host_copy = true;
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB)]);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0326"]);
    insta::assert_snapshot!(refusal[0]);
}

#[test]
fn cost_may_choose_the_processor_and_says_why() {
    let pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")));
    let status = machine([cpu(), cuda(0, 8 * GIB)]);
    let mut options = Options::default();
    options.placement = Some(Policy::Cost);
    let small = Sources::plane(DType::F32, 8, 8);
    let plan = compile(&pipeline, &small, Some(&status), &options).unwrap();
    assert_eq!(plan.device.name, "cpu");
    assert!(
        plan.reasons[0].why.contains("gpu0"),
        "{:?}",
        plan.reasons[0]
    );
    let long = Step::chain(
        "a",
        (0..40).map(|_| OpUse::new("gaussian").with("sigma", 9.0)),
    );
    let large = Sources::stack(DType::F32, 64, 1024, 1024);
    let plan = compile(
        &Pipeline::new("p").step(long),
        &large,
        Some(&status),
        &options,
    )
    .unwrap();
    assert_eq!(plan.device.name, "gpu0");
}

#[test]
fn fit_takes_the_card_with_the_most_room() {
    let pipeline = Pipeline::new("p").step(smooth("a"));
    let status = machine([cpu(), cuda(0, GIB), cuda(1, 4 * GIB), cuda(2, 2 * GIB)]);
    let mut options = Options::default();
    options.placement = Some(Policy::Fit);
    let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
    assert_eq!(plan.device.faces, ["cuda:1"]);
}

#[test]
fn a_face_that_is_named_is_the_one_that_is_used() {
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB)]);
    let pipeline = Pipeline::new("p").step(smooth("a"));
    let on = |devices: &[&str]| {
        let mut options = Options::default();
        options.devices = devices.iter().map(|name| (*name).to_owned()).collect();
        compile(&pipeline, &plane(), Some(&status), &options)
            .unwrap()
            .device
            .faces
    };
    assert_eq!(on(&[]), ["cuda:0"]);
    assert_eq!(on(&["gpu0"]), ["cuda:0"]);
    assert_eq!(on(&["opencl:0"]), ["opencl:0"]);
    assert_eq!(on(&["opencl:0", "cuda:0"]), ["cuda:0"]);
    // In tiles as well.
    let large = Sources::stack(DType::F32, 64, 2048, 2048);
    let mut options = Options::default();
    options.devices = vec!["opencl:0".to_owned()];
    let plan = compile(&pipeline, &large, Some(&status), &options).unwrap();
    assert_eq!(faces(&plan), [("a".into(), "opencl:0".into())]);
    assert!(plan.summary().contains("tiles"), "{}", plan.summary());
}

#[test]
fn a_step_may_not_use_a_face_that_was_not_named() {
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB), cuda(1, GIB)]);
    let mut pipeline = Pipeline::new("p")
        .step(smooth("a").backend("cuda"))
        .step(smooth("b").backend("opencl"));
    let mut options = Options::default();
    options.devices = vec!["opencl:0".to_owned()];
    let refusal = compile(&pipeline, &plane(), Some(&status), &options).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0327"]);
    // Nor where steps may be on several cards.
    pipeline.spread_steps = true;
    let refusal = compile(&pipeline, &plane(), Some(&status), &options).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0322"]);
    options.devices.push("gpu1".to_owned());
    let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
    let expected = [("a", "cuda:1"), ("b", "opencl:0")];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(faces(&plan), expected);
}

#[rstest]
#[case(Policy::First)]
#[case(Policy::Spread)]
#[case(Policy::Fit)]
#[case(Policy::Cost)]
fn cards_that_are_alike_are_taken_as_people_count_them(#[case] policy: Policy) {
    // Twelve cards, of which the ones before the third are too small for anything.
    let cards = (0..12).map(|at| cuda(at, if at < 2 { 1 } else { GIB }));
    let status = machine(std::iter::once(cpu()).chain(cards));
    let pipeline = Pipeline::new("p").step(smooth("a").backend("cuda"));
    let mut options = Options::default();
    options.placement = Some(policy);
    let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
    assert_eq!(plan.device.name, "gpu2");
}
