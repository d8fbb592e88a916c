//! Cases of the system this grew from: chains, branches, names.

use rstest::rstest;
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::plan::PlanStep;
use warploom_plan::{Options, Pipeline, compile};

use crate::assignment::{codes, faces, plane, smooth};
use crate::machine::{GIB, cpu, cuda, machine};

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
