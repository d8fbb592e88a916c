//! What plans look like.

use warploom_core::DType;
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine, opencl};
use crate::steady::steady;

const NUCLEI: &str = include_str!("../../../../examples/pipelines/nuclei.toml");

fn plane() -> Sources {
    Sources::plane(DType::U16, 2048, 2048)
}

#[test]
fn the_processor_needs_no_detection() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let plan = compile(&pipeline, &plane(), None, &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.explanation()));
}

#[test]
fn a_card_is_explained() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let status = machine([cpu(), cuda(0, 8 * GIB), opencl(0, 0, 8 * GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.explanation()));
}

#[test]
fn two_backends_on_one_card_meet_in_the_host() {
    let text = include_str!("../../../../examples/pipelines/two_backends.toml");
    let pipeline = Pipeline::from_toml(text).unwrap();
    let status = machine([cpu(), cuda(0, 8 * GIB), opencl(0, 0, 8 * GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.summary()));
}

#[test]
fn branches_have_types_of_their_own() {
    let text = include_str!("../../../../examples/pipelines/two_channels.toml");
    let pipeline = Pipeline::from_toml(text).unwrap();
    let sources = Sources::stack(DType::U16, 16, 512, 512).channels(["1", "2"]);
    let plan = compile(&pipeline, &sources, None, &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.summary()));
}

#[test]
fn i5_a_plan_is_a_pure_function_of_what_goes_in() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let devices = [
        cpu(),
        cuda(0, 8 * GIB),
        cuda(1, 8 * GIB),
        opencl(0, 1, 8 * GIB),
    ];
    let plan = |order: [usize; 4]| {
        let status = machine(order.map(|at| devices[at].clone()));
        compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap()
    };
    let first = plan([0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        assert_eq!(plan(order), first);
    }
    let before = pipeline.clone();
    assert_eq!(plan([0, 1, 2, 3]).hash, first.hash);
    assert_eq!(pipeline, before);
}

#[test]
fn plans_survive_the_journey_and_changes_show() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let plan = compile(&pipeline, &plane(), None, &Options::default()).unwrap();
    let text = plan.to_json();
    assert_eq!(ExecutionPlan::from_json(&text).unwrap(), plan);
    let forged = text.replacen("\"depth\": 1", "\"depth\": 9", 1);
    assert_ne!(forged, text);
    insta::assert_snapshot!(ExecutionPlan::from_json(&forged).unwrap_err());
    let older = text.replacen("\"version\": 1", "\"version\": 0", 1);
    insta::assert_snapshot!(ExecutionPlan::from_json(&older).unwrap_err());
    assert!(ExecutionPlan::from_json("{").is_err());
    assert!(plan.dot().starts_with("digraph"));
    assert!(ExecutionPlan::schema()["properties"]["variants"].is_object());
}

#[test]
fn file_and_builder_say_the_same() {
    use warploom_plan::pipeline::{OpUse, Step};
    let text = r#"
        name = "p"
        [[step]]
        name = "limits"
        op = "percentiles"
        q = [1, 99]
        [[step]]
        name = "bright"
        op = "greater"
        input = "image"
        value = { from = "limits", item = 1 }
    "#;
    let built = Pipeline::new("p")
        .step(Step::new(
            "limits",
            OpUse::new("percentiles").with("q", [1_i64, 99]),
        ))
        .step(
            Step::new(
                "bright",
                OpUse::new("greater").with_computed("value", "limits", "1"),
            )
            .reads(["image"]),
        );
    assert_eq!(Pipeline::from_toml(text).unwrap(), built);
    let plan = compile(&built, &plane(), None, &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.summary()));
}
