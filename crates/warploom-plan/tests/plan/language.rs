//! Pipeline files: no field is dead, no text brings the reader down.

use rstest::rstest;
use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_plan::language::field::{Field, INPUT, ITEM, OUTPUT, PIPELINE, STEP, Takes};
use warploom_plan::language::schema;
use warploom_plan::{Diagnostic, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine, opencl};

/// The plan of a file as JSON, or what is said against it.
pub(crate) fn outcome(text: &str) -> String {
    outcome_of(text, &["1", "2"])
}

/// The same, of records with these channels.
pub(crate) fn outcome_of(text: &str, channels: &[&str]) -> String {
    outcome_with(text, channels, &Options::default())
}

/// The same, with these options.
pub(crate) fn outcome_with(text: &str, channels: &[&str], options: &Options) -> String {
    let status = machine([cpu(), cuda(0, GIB), cuda(1, 2 * GIB), opencl(0, 0, GIB)]);
    let sources = Sources::stack(DType::U16, 4, 64, 64)
        .channels(channels.iter().copied())
        .constant("flat", ImageType::stack(DType::F32, 4, 64, 64))
        .constant("other", ImageType::stack(DType::F32, 4, 64, 64));
    let result = Pipeline::from_toml(text)
        .and_then(|pipeline| compile(&pipeline, &sources, Some(&status), options));
    match result {
        Ok(plan) => plan.to_json(),
        Err(findings) => {
            have_help(&findings);
            let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
            texts.join("\n")
        }
    }
}

/// Whatever is wrong, there is a way out.
pub(crate) fn have_help(findings: &[Diagnostic]) {
    for finding in findings {
        assert!(finding.help.is_some(), "no help in {finding}");
    }
}

/// For every field two files that differ in it alone: their plans must differ.
#[rstest]
#[case::name(
    "name",
    "name = \"a\"\n[[step]]\nop = \"sqrt\"",
    "name = \"b\"\n[[step]]\nop = \"sqrt\""
)]
#[case::foreach(
    "foreach",
    "[[step]]\nop = \"sqrt\"",
    "foreach = \"plane\"\n[[step]]\nop = \"sqrt\""
)]
#[case::backend(
    "backend",
    "[[step]]\nop = \"sqrt\"",
    "backend = \"opencl\"\n[[step]]\nop = \"sqrt\""
)]
#[case::memory(
    "memory",
    "[[step]]\nop = \"sqrt\"",
    "memory = \"numpy\"\n[[step]]\nop = \"sqrt\""
)]
#[case::device(
    "device",
    "[[step]]\nop = \"sqrt\"",
    "device = \"gpu1\"\n[[step]]\nop = \"sqrt\""
)]
#[case::strict(
    "strict",
    "[[step]]\nop = \"sqrt\"\n[[step]]\nname = \"b\"\nop = \"abs\"\nbackend = \"cpu\"",
    "strict = \"no-host-copy\"\n[[step]]\nop = \"sqrt\"\n[[step]]\nname = \"b\"\nop = \"abs\"\nbackend = \"cpu\""
)]
#[case::spread_steps(
    "spread_steps",
    "[[step]]\nop = \"sqrt\"\ndevice = \"gpu0\"\n[[step]]\nop = \"abs\"\ndevice = \"gpu1\"",
    "spread_steps = true\n[[step]]\nop = \"sqrt\"\ndevice = \"gpu0\"\n[[step]]\nop = \"abs\"\ndevice = \"gpu1\""
)]
#[case::math(
    "math",
    "[[step]]\nop = \"sqrt\"",
    "math = \"fast\"\n[[step]]\nop = \"sqrt\""
)]
#[case::dtype(
    "dtype",
    "[[step]]\nop = \"sqrt\"",
    "dtype = \"input\"\n[[step]]\nop = \"sqrt\""
)]
#[case::placement(
    "placement",
    "[[step]]\nop = \"sqrt\"",
    "placement = \"fit\"\n[[step]]\nop = \"sqrt\""
)]
#[case::inputs(
    "inputs",
    "[[step]]\nop = \"sqrt\"",
    "[inputs.dna]\nchannel = 1\n[[step]]\nop = \"sqrt\""
)]
#[case::channel(
    "channel",
    "[inputs.dna]\nchannel = 1\n[[step]]\nop = \"sqrt\"",
    "[inputs.dna]\nchannel = 2\n[[step]]\nop = \"sqrt\""
)]
#[case::constants(
    "constants",
    "constants = { flat = \"a.tif\", other = \"b.tif\" }\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"flat\"]",
    "constants = { flat = \"c.tif\", other = \"b.tif\" }\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"flat\"]"
)]
#[case::input(
    "input",
    "constants = { flat = \"a.tif\", other = \"b.tif\" }\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"flat\"]",
    "constants = { flat = \"a.tif\", other = \"b.tif\" }\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"other\"]"
)]
#[case::step(
    "step",
    "[[step]]\nop = \"sqrt\"",
    "[[step]]\nop = \"sqrt\"\n[[step]]\nop = \"abs\""
)]
#[case::output(
    "output",
    "[[step]]\nop = \"sqrt\"",
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{channel}a.tif\""
)]
#[case::of(
    "of",
    "[[step]]\nop = \"sqrt\"\n[[step]]\nop = \"abs\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{channel}a.tif\"",
    "[[step]]\nop = \"sqrt\"\n[[step]]\nop = \"abs\"\n[[output]]\nof = \"abs\"\nwrite = \"{channel}a.tif\""
)]
#[case::write(
    "write",
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{channel}a.tif\"",
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{channel}b.tif\""
)]
#[case::op(
    "op",
    "[[step]]\nname = \"a\"\nop = \"sqrt\"",
    "[[step]]\nname = \"a\"\nop = \"abs\""
)]
#[case::chain(
    "chain",
    "[[step]]\nname = \"a\"\nchain = [\"sqrt\"]",
    "[[step]]\nname = \"a\"\nchain = [\"sqrt\", \"abs\"]"
)]
#[case::branch(
    "branch",
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [\"sqrt\"], 2 = [] }",
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [\"abs\"], 2 = [] }"
)]
#[case::params(
    "params",
    "[[step]]\nop = \"gaussian\"\nparams = { sigma = 1 }",
    "[[step]]\nop = \"gaussian\"\nparams = { sigma = 2 }"
)]
#[case::channels_by(
    "by",
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [\"sqrt\"], 2 = [] }",
    "[[step]]\nname = \"a\"\nbranch = { by = \"well\", 1 = [\"sqrt\"], 2 = [] }"
)]
#[case::step_name(
    "step.name",
    "[[step]]\nname = \"a\"\nop = \"sqrt\"",
    "[[step]]\nname = \"b\"\nop = \"sqrt\""
)]
#[case::step_backend(
    "step.backend",
    "[[step]]\nop = \"sqrt\"",
    "[[step]]\nop = \"sqrt\"\nbackend = \"opencl\""
)]
#[case::step_memory(
    "step.memory",
    "[[step]]\nop = \"sqrt\"",
    "[[step]]\nop = \"sqrt\"\nmemory = \"numpy\""
)]
#[case::step_device(
    "step.device",
    "[[step]]\nop = \"sqrt\"",
    "[[step]]\nop = \"sqrt\"\ndevice = \"gpu1\""
)]
#[case::step_dtype(
    "step.dtype",
    "[[step]]\nop = \"sqrt\"",
    "[[step]]\nop = \"sqrt\"\ndtype = \"u8\""
)]
#[case::item_op(
    "chain.op",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"sqrt\" }, \"abs\"]",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"exp\" }, \"abs\"]"
)]
#[case::item_params(
    "chain.params",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"gaussian\", params = { sigma = 1 } }, \"abs\"]",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"gaussian\", params = { sigma = 2 } }, \"abs\"]"
)]
#[case::item_backend(
    "chain.backend",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"sqrt\" }, \"abs\"]",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"sqrt\", backend = \"cpu\" }, \"abs\"]"
)]
#[case::item_memory(
    "chain.memory",
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [{ op = \"sqrt\" }], 2 = [] }",
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [{ op = \"sqrt\", memory = \"numpy\" }], 2 = [] }"
)]
#[case::item_device(
    "chain.device",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"sqrt\" }, \"abs\"]",
    "[[step]]\nname = \"a\"\nchain = [{ op = \"sqrt\", device = \"gpu1\" }, \"abs\"]"
)]
fn no_field_is_dead(#[case] field: &str, #[case] one: &str, #[case] other: &str) {
    let has = |fields: &[Field], name: &str| fields.iter().any(|known| known.name == name);
    let known = match field.split_once('.') {
        Some(("step", field)) => has(STEP, field),
        Some((_, field)) => has(ITEM, field),
        None => field == "by" || all_fields().contains(&field),
    };
    assert!(known, "{field} is no field");
    let (a, b) = (outcome(one), outcome(other));
    assert_ne!(a, b, "{field} changes nothing");
    assert!(
        a.contains("\"version\"") || b.contains("\"version\""),
        "{a}\n{b}"
    );
    assert!(!a.contains("WL0302") && !b.contains("WL0302"), "{a}\n{b}");
}

pub(crate) fn all_fields() -> Vec<&'static str> {
    let lists: [&[Field]; 5] = [PIPELINE, INPUT, STEP, ITEM, OUTPUT];
    lists
        .into_iter()
        .flatten()
        .map(|field| field.name)
        .collect()
}

/// The table of the language and the cases above know the same fields.
#[test]
fn every_field_has_such_a_case() {
    let cases = include_str!("language.rs");
    let has = |field: &str| cases.contains(&format!("(\n    \"{field}\",\n"));
    for field in all_fields() {
        assert!(has(field), "{field}");
    }
    for field in STEP {
        let also_above = PIPELINE.iter().any(|above| above.name == field.name);
        assert!(
            !also_above || has(&format!("step.{}", field.name)),
            "{}",
            field.name
        );
    }
    for field in ITEM {
        assert!(has(&format!("chain.{}", field.name)), "{}", field.name);
    }
}

#[test]
fn what_only_steps_have_is_refused_in_a_chain() {
    let text = "[[step]]\nname = \"a\"\nchain = [{ op = \"sqrt\", input = \"image\" }]";
    insta::assert_snapshot!(outcome(text));
}

#[test]
fn the_schema_knows_every_field_and_operation() {
    let text = schema().to_string();
    for field in all_fields() {
        assert!(text.contains(&format!("\"{field}\"")), "{field}");
    }
    assert!(text.contains("\"gaussian\""));
    for field in PIPELINE {
        assert!(!matches!(field.takes, Takes::Table(&[])), "{field:?}");
    }
}

#[test]
fn the_documentation_knows_every_field() {
    let text = include_str!("../../../../docs/pipeline.md");
    for field in all_fields() {
        let said = text.contains(&format!("`{field}`")) || text.contains(&format!("{field} = "));
        assert!(said, "{field} is not in docs/pipeline.md");
    }
}
