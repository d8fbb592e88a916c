//! The cases of the system this grew from: who is assigned which device, and what is refused.
//! Numbers are those of its list; "ours" where we differ on purpose.

use rstest::rstest;
use warploom_core::DType;
use warploom_plan::pipeline::{OpUse, Policy, Step};
use warploom_plan::plan::PlanStep;
use warploom_plan::{Diagnostic, ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine, opencl};

fn smooth(name: &str) -> Step {
    Step::new(name, OpUse::new("gaussian").with("sigma", 1.0))
}

fn plane() -> Sources {
    Sources::plane(DType::F32, 64, 64)
}

fn faces(plan: &ExecutionPlan) -> Vec<(String, String)> {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    steps
        .flat_map(|step| step.ops().iter().map(|op| (op, step.device())))
        .map(|(op, device)| (op.name.clone(), device.to_owned()))
        .collect()
}

fn codes(refusal: &[Diagnostic]) -> Vec<String> {
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
    let before = pipeline.clone();
    let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
    let expected = [
        ("a", "cpu:0"),
        ("b", "cuda:2"),
        ("c", "cuda:2"),
        ("d", "cuda:2"),
    ];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(faces(&plan), expected);
    // c37, ours: what goes in is not touched.
    assert_eq!(pipeline, before);
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
    assert_eq!(place(Policy::Spread), [3, 3, 2, 2]);
    assert_eq!(place(Policy::First), [10]);
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
fn c49_c50_a_chain_between_processor_steps_gets_its_device() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("numpy"))
        .step(smooth("b").memory("torch"))
        .step(smooth("c").memory("numpy"));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    let devices: Vec<String> = faces(&plan).into_iter().map(|(_, device)| device).collect();
    assert_eq!(devices, ["cpu:0", "cuda:0", "cpu:0"]);
    let copies = plan.variants[0].steps.iter();
    let copies = copies.filter(|step| matches!(step, PlanStep::Copy { .. }));
    assert_eq!(copies.count(), 2);
}

#[test]
fn c51_c52_branches_have_their_own_types() {
    let pipeline = Pipeline::new("p").step(Step::by_channel(
        "a",
        [
            (
                "1",
                vec![
                    OpUse::new("gaussian").with("sigma", 1.0),
                    OpUse::new("threshold_otsu"),
                ],
            ),
            ("2", vec![OpUse::new("sqrt")]),
        ],
    ));
    let sources = plane().channels(["1", "2"]);
    let plan = compile(&pipeline, &sources, None, &Options::default()).unwrap();
    let gives: Vec<&str> = plan
        .variants
        .iter()
        .map(|v| v.outputs[0].gives.as_str())
        .collect();
    assert_eq!(gives, ["64x64 u8", "64x64 f32"]);
}

#[test]
fn c53_an_operation_nobody_declared_is_refused() {
    let pipeline = Pipeline::new("p").step(Step::chain(
        "a",
        [OpUse::new("sqrt"), OpUse::new("sharpen_magically")],
    ));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0601"]);
}

#[rstest]
#[case::padded(["1", "02"], true)]
#[case::wrong(["1", "3"], false)]
#[case::twice(["1", "01"], false)]
fn c55_c56_branch_keys_are_exact(#[case] keys: [&'static str; 2], #[case] fine: bool) {
    let chains = keys.map(|key| (key, vec![OpUse::new("sqrt")]));
    let pipeline = Pipeline::new("p").step(Step::by_channel("a", chains));
    let sources = plane().channels(["1", "2"]);
    let result = compile(&pipeline, &sources, None, &Options::default());
    assert_eq!(result.is_ok(), fine);
    if let Err(refusal) = result {
        assert!(codes(&refusal).contains(&"WL0313".to_owned()));
    }
}

#[test]
fn c58_an_input_that_nobody_gives_is_refused() {
    let pipeline = Pipeline::new("p").step(smooth("a").reads(["nothing"]));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0306"]);
}

#[test]
fn c60_staying_in_one_memory_copies_nothing_between_steps() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("cupy"))
        .step(smooth("b").memory("torch"));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    let routes = plan.variants[0].steps.iter().filter(|step| {
        let why = match step {
            PlanStep::Copy { why, .. } => *why,
            _ => return false,
        };
        why == warploom_plan::plan::CopyReason::Route
    });
    assert_eq!(routes.count(), 0);
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
