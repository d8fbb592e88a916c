//! Settings that change nothing, and steps that nobody needs: told, never silently ignored.

use std::fmt::Write as _;

use rstest::rstest;
use warploom_core::DType;
use warploom_plan::plan::PlanStep;
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, check, compile};

use crate::machine::{GIB, cpu, cuda, machine};

fn compiled(text: &str, sources: &Sources, options: &Options) -> ExecutionPlan {
    let status = machine([cpu(), cuda(0, GIB)]);
    let pipeline = Pipeline::from_toml(text).unwrap();
    let plan = compile(&pipeline, sources, Some(&status), options);
    plan.unwrap_or_else(|found| panic!("{}", found[0]))
}

fn warned(text: &str) -> String {
    let sources = Sources::plane(DType::U16, 64, 64);
    compiled(text, &sources, &Options::default())
        .warnings
        .join("\n")
}

fn ops(plan: &ExecutionPlan) -> Vec<String> {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    let ops = steps.flat_map(PlanStep::ops);
    ops.map(|op| op.name.clone()).collect()
}

const UNUSED: &str = "[[step]]\nname = \"a\"\nop = \"label_box\"\n[[step]]\nname = \"b\"\nop = \"sqrt\"\n[[step]]\nname = \"c\"\nop = \"abs\"\n[[output]]\nof = \"a\"\nwrite = \"{record}.tif\"";

#[test]
fn steps_that_nobody_needs_are_left_out() {
    let plan = compiled(
        UNUSED,
        &Sources::plane(DType::U16, 64, 64),
        &Options::default(),
    );
    assert_eq!(ops(&plan), ["a"]);
    insta::assert_snapshot!(plan.warnings.join("\n"));
    // A check tells the same.
    let found = check(&Pipeline::from_toml(UNUSED).unwrap(), None);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, plan.warnings);
}

/// A step that nobody needs was cut into tiles, which gave nothing, and the plan was refused for it.
#[test]
fn a_step_that_nobody_needs_refuses_no_plan() {
    let sources = Sources::plane(DType::U16, 512, 512);
    let on_small = |text: &str| {
        let status = machine([cpu(), cuda(0, 100_000)]);
        let pipeline = Pipeline::from_toml(text).unwrap();
        compile(&pipeline, &sources, Some(&status), &Options::default())
    };
    let local = UNUSED.replace("\"label_box\"", "\"mean_box\"\nradius = 2");
    // Nor does it need the device it names.
    let elsewhere = UNUSED.replace("\"abs\"", "\"abs\"\nbackend = \"wgpu\"");
    let nowhere = UNUSED.replace("\"abs\"", "\"abs\"\ndevice = \"cuda:7\"");
    for text in [UNUSED, &local, &elsewhere, &nowhere] {
        let plan = on_small(text).unwrap_or_else(|found| panic!("{}", found[0]));
        assert_eq!(ops(&plan), ["a"]);
    }
    // It is checked all the same.
    let wrong = UNUSED.replace("\"abs\"", "\"gaussian\"\nsigma = -1");
    assert!(on_small(&wrong).is_err());
}

/// What one channel needs and the other does not is needed.
#[test]
fn what_one_branch_uses_is_used() {
    let text = "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nname = \"a\"\ninput = \"image\"\n[step.branch]\nby = \"channel\"\n1 = [{ op = \"greater\", value = { from = \"t\", item = \"mean\" } }]\n2 = []";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    let plan = compiled(text, &sources, &Options::default());
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    let steps = plan.variants.iter().map(|variant| variant.steps.len());
    assert_eq!(steps.collect::<Vec<_>>(), [3, 0]);
}

#[test]
fn inputs_and_constants_that_nobody_needs_are_told() {
    let text = "constants = { flat = \"flat.tif\", dark = \"dark.tif\" }\n[inputs.dna]\nchannel = 1\n[inputs.actin]\nchannel = 2\n[[step]]\nop = \"flat_field\"\ninput = [\"dna\", \"flat\"]";
    let image = warploom_kernels::ImageType::plane(DType::F32, 64, 64);
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    let sources = sources.constant("flat", image).constant("dark", image);
    let plan = compiled(text, &sources, &Options::default());
    insta::assert_snapshot!(plan.warnings.join("\n"));
}

#[test]
fn an_element_type_that_a_channel_does_not_get_is_told() {
    let text = "[[step]]\nname = \"a\"\ndtype = \"u8\"\n[step.branch]\nby = \"channel\"\n1 = [\"sqrt\"]\n2 = []";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    let plan = compiled(text, &sources, &Options::default());
    insta::assert_snapshot!(plan.warnings.join("\n"));
    // The pipeline's, too; and nothing is said where it is what was asked for.
    let whole = format!("dtype = \"u8\"\n{}", text.replace("dtype = \"u8\"\n", ""));
    let plan = compiled(&whole, &sources, &Options::default());
    assert_eq!(plan.warnings.len(), 1);
    let same = Sources::plane(DType::U8, 64, 64).channels(["1", "2"]);
    let plan = compiled(&whole, &same, &Options::default());
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn an_element_type_of_what_is_no_image_is_told() {
    let step = "[[step]]\nname = \"t\"\nop = \"totals\"\ndtype = \"u8\"\n[[output]]\nof = \"t\"\nwrite = \"{record}.json\"";
    insta::assert_snapshot!(warned(step));
    // The pipeline's is of all steps that give images.
    let whole = format!("dtype = \"u8\"\n{}", step.replace("dtype = \"u8\"\n", ""));
    assert_eq!(warned(&whole), "");
}

#[rstest]
#[case::of_the_step(
    "step",
    "[[step]]\nname = \"m\"\nop = \"threshold_li\"\nbackend = \"cuda\""
)]
#[case::of_the_pipeline(
    "pipeline",
    "memory = \"cupy\"\n[[step]]\nname = \"m\"\nchain = [\"sqrt\", \"threshold_li\"]"
)]
#[case::of_a_card("card", "device = \"gpu0\"\n[[step]]\nop = \"threshold_li\"")]
fn a_card_that_an_operation_cannot_use_is_told(#[case] name: &str, #[case] text: &str) {
    insta::assert_snapshot!(format!("cpu_only_{name}"), warned(text));
    // A check tells it on any machine.
    let found = check(&Pipeline::from_toml(text).unwrap(), None);
    assert_eq!(found[0].code.to_string(), "WL0333");
}

#[test]
fn nothing_is_said_where_the_processor_is_asked_for() {
    for text in [
        "[[step]]\nop = \"threshold_li\"",
        "[[step]]\nop = \"threshold_li\"\nbackend = \"cpu\"",
        "backend = \"cuda\"\n[[step]]\nop = \"threshold_li\"\nmemory = \"numpy\"",
    ] {
        assert_eq!(warned(text), "", "{text}");
    }
}

#[rstest]
#[case::computed_twice(
    "computed_twice",
    "[[step]]\nname = \"a\"\nop = \"totals\"\n[[step]]\nop = \"greater\"\ninput = \"image\"\nvalue = { from = \"a\", item = \"mean\" }\nparams = { value = { from = \"a\", item = \"max\" } }"
)]
#[case::reads_nothing("reads_nothing", "[[step]]\nop = \"sqrt\"\ninput = []")]
#[case::parameters_of_a_chain(
    "parameters_of_a_chain",
    "[[step]]\nname = \"a\"\nchain = [\"sqrt\", \"abs\"]\nparams = { sigma = 2 }"
)]
fn settings_that_would_be_ignored_are_refused(#[case] name: &str, #[case] text: &str) {
    let sources = Sources::plane(DType::U16, 64, 64);
    let found = Pipeline::from_toml(text)
        .and_then(|pipeline| compile(&pipeline, &sources, None, &Options::default()));
    let mut said = String::new();
    for finding in found.unwrap_err() {
        let at = finding.place.map(|place| place.line_column(text));
        let _ = writeln!(said, "{finding} {at:?}");
    }
    insta::assert_snapshot!(name.to_owned(), said);
}
