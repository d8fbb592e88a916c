//! Cases of the system this grew from: chains, branches, names.

use rstest::rstest;
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::plan::{KindsBy, PlanStep};
use warploom_plan::{Options, Pipeline, compile};

use crate::assignment::{codes, faces, plane, smooth};
use crate::machine::{GIB, cpu, cuda, machine, opencl};

/// A chain whose operations name their memory: the face of each.
fn chained(kinds: &[&str]) -> Vec<String> {
    let ops = kinds.iter().map(|kind| OpUse::new("sqrt").memory(kind));
    let pipeline = Pipeline::new("p").step(Step::chain("a", ops));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    let first = &plan.variants[0];
    let kinds = first.steps.iter().flat_map(PlanStep::ops).map(|op| {
        assert_eq!(op.kinds.by, KindsBy::User);
        format!("{}/{}", op.kinds.reads.join(","), op.kinds.gives)
    });
    kinds.collect()
}

#[test]
fn c49_operations_of_a_chain_have_kinds_of_their_own() {
    assert_eq!(chained(&["torch"]), ["cuda.device/cuda.device"]);
    // Parameters change nothing of it.
    let blur = OpUse::new("gaussian").with("sigma", 1.0).memory("torch");
    let pipeline = Pipeline::new("p").step(Step::new("a", blur));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    assert_eq!(faces(&plan), [("a".into(), "cuda:0".into())]);
    let both = ["cuda.device/cuda.device"; 2];
    assert_eq!(chained(&["cupy", "torch"]), both);
}

#[test]
fn c50_a_device_in_the_middle_of_a_chain_is_assigned() {
    let kinds = ["host/host", "cuda.device/cuda.device", "host/host"];
    assert_eq!(chained(&["numpy", "torch", "numpy"]), kinds);
    // What an operation says counts before what its step says, and that before the pipeline's.
    let ops = [OpUse::new("sqrt"), OpUse::new("abs").memory("torch")];
    let mut pipeline = Pipeline::new("p")
        .step(Step::chain("a", ops).memory("numpy"))
        .step(Step::new("b", OpUse::new("abs")));
    pipeline.whereabouts.memory = Some("pyclesperanto".into());
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    let faces: Vec<String> = faces(&plan).into_iter().map(|(_, device)| device).collect();
    assert_eq!(faces, ["cpu:0", "cuda:0", "opencl:0"]);
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

#[rstest]
#[case::one_each(r#"1 = [{ op = "sqrt", memory = "torch" }]
2 = [{ op = "sqrt", memory = "numpy" }]"#, ["cuda:0", "cpu:0"])]
#[case::two_and_one(r#"1 = [{ op = "sqrt", memory = "numpy" }, { op = "abs", memory = "cupy" }]
2 = [{ op = "sqrt", backend = "cuda" }]"#, ["cpu:0 cuda:0", "cuda:0"])]
fn c51_c52_branches_have_their_own_memory(#[case] chains: &str, #[case] expected: [&str; 2]) {
    let text = format!("[[step]]\nname = \"a\"\n[step.branch]\nby = \"channel\"\n{chains}");
    let pipeline = Pipeline::from_toml(&text).unwrap();
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = plane().channels(["1", "2"]);
    let plan = compile(&pipeline, &sources, Some(&status), &Options::default()).unwrap();
    for (variant, expected) in plan.variants.iter().zip(expected) {
        let steps = variant.steps.iter().filter(|step| !step.ops().is_empty());
        let devices: Vec<&str> = steps.map(PlanStep::device).collect();
        assert_eq!(devices.join(" "), expected, "{}", plan.summary());
    }
}

#[test]
fn c53_an_operation_nobody_declared_is_refused() {
    let (known, unknown) = (OpUse::new("sqrt"), OpUse::new("sharpen_magically"));
    for ops in [[unknown.clone(), known.clone()], [known, unknown]] {
        let pipeline = Pipeline::new("p").step(Step::chain("a", ops));
        let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
        assert_eq!(codes(&refusal), ["WL0601"]);
    }
}

#[rstest]
#[case::nothing("[[step]]\nname = \"a\"", "WL0304")]
#[case::no_operation("[[step]]\nop = {}", "WL0303")]
#[case::empty_list("[[step]]\nname = \"a\"\nchain = []", "WL0304")]
#[case::tuple("[[step]]\nchain = [[\"sqrt\", 1, 2]]", "WL0303")]
#[case::number("[[step]]\nchain = [\"sqrt\", 3]", "WL0303")]
fn c54_what_is_no_work_is_refused(#[case] text: &str, #[case] code: &str) {
    let made = Pipeline::from_toml(text)
        .and_then(|pipeline| compile(&pipeline, &plane(), None, &Options::default()));
    assert_eq!(codes(&made.unwrap_err())[0], code);
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
fn c57_a_name_or_a_place_is_given_once() {
    let twice = Pipeline::new("p").step(smooth("a")).step(smooth("a"));
    let refusal = compile(&twice, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal)[0], "WL0305");
    // Declared for the processor and for a card.
    let both = Pipeline::new("p").step(smooth("a").backend("cpu").memory("torch"));
    let refusal = compile(&both, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0325"]);
}

#[test]
fn c58_an_input_that_nobody_gives_is_refused() {
    let pipeline = Pipeline::new("p").step(smooth("a").reads(["nothing"]));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0306"]);
}
