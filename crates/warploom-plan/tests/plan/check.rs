//! What can be said of a file where nobody has looked for devices, with and without records.

use std::fmt::Write as _;

use rstest::rstest;
use warploom_core::DType;
use warploom_plan::{Options, Pipeline, Severity, Sources, check, compile};

fn told(text: &str, sources: Option<&Sources>) -> String {
    let findings = match Pipeline::from_toml(text) {
        Ok(pipeline) => check(&pipeline, sources),
        Err(findings) => findings,
    };
    let mut out = String::new();
    for finding in &findings {
        let at = finding.place.map(|place| place.line_column(text));
        let at = at.map_or_else(String::new, |(line, column)| format!(" [{line}:{column}]"));
        let _ = writeln!(out, "{finding}{at}");
    }
    out
}

#[rstest]
#[case::unknown_op("[[step]]\nop = \"gausian\"", "WL0601")]
#[case::unknown_param("[[step]]\nop = \"sqrt\"\nsigma = 2", "WL0603")]
#[case::value_out_of_range("[[step]]\nop = \"gaussian\"\nsigma = -2", "WL0606")]
#[case::missing_param("[[step]]\nop = \"greater\"", "WL060")]
#[case::too_many_images("[[step]]\nop = \"sqrt\"\ninput = [\"image\", \"image\"]", "WL06")]
#[case::unknown_name("[[step]]\nop = \"sqrt\"\ninput = \"nobody\"", "WL0306")]
#[case::unknown_output(
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"nobody\"\nwrite = \"a.tif\"",
    "WL0306"
)]
#[case::cycle(
    "[[step]]\nname = \"a\"\nop = \"sqrt\"\ninput = \"b\"\n[[step]]\nname = \"b\"\nop = \"abs\"",
    "WL0307"
)]
#[case::duplicate(
    "[[step]]\nname = \"a\"\nop = \"sqrt\"\n[[step]]\nname = \"a\"\nop = \"abs\"",
    "WL0305"
)]
#[case::one_file_for_two(
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"a.tif\"\n[[output]]\nof = \"image\"\nwrite = \"a.tif\"",
    "WL0305"
)]
#[case::bad_ending(
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{channel}.csv\"",
    "WL0319"
)]
#[case::outside(
    "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"../a.tif\"",
    "WL0310"
)]
#[case::no_such_memory("[[step]]\nop = \"sqrt\"\nmemory = \"cuppy\"", "WL0321")]
#[case::no_such_backend("[[step]]\nop = \"sqrt\"\nbackend = \"cudda\"", "WL0322")]
#[case::contradiction(
    "[[step]]\nop = \"sqrt\"\nmemory = \"cupy\"\nbackend = \"opencl\"",
    "WL0325"
)]
#[case::no_image(
    "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"sqrt\"",
    "WL0314"
)]
#[case::no_number(
    "[[step]]\nname = \"t\"\nop = \"sqrt\"\n[[step]]\nop = \"greater\"\nvalue = { from = \"t\", item = 0 }",
    "WL0314"
)]
#[case::not_late(
    "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"gaussian\"\ninput = \"image\"\nsigma = { from = \"t\", item = \"mean\" }",
    "WL0315"
)]
#[case::no_item(
    "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"greater\"\ninput = \"image\"\nvalue = { from = \"t\", item = \"meen\" }",
    "WL0316"
)]
#[case::two_chains_for_one_channel(
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [], 01 = [] }",
    "WL0313"
)]
#[case::one_file_for_two_channels(
    "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [\"sqrt\"], 2 = [] }\n[[output]]\nof = \"a\"\nwrite = \"{record}.tif\"",
    "WL0305"
)]
fn what_is_wrong_on_every_machine_is_told_with_and_without_records(
    #[case] text: &str,
    #[case] code: &str,
) {
    let said = told(text, None);
    assert!(said.contains(&format!("error[{code}")), "{said}");
    assert!(said.contains('['), "it has a place: {said}");
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    let said = told(text, Some(&sources));
    assert!(said.contains(&format!("error[{code}")), "{said}");
}

#[test]
fn what_a_machine_decides_is_not_refused() {
    for text in [
        "[[step]]\nop = \"sqrt\"\nmemory = \"cupy\"",
        "[[step]]\nop = \"sqrt\"\ndevice = \"gpu3\"",
        "[[step]]\nop = \"sqrt\"\ndevice = \"cuda:1\"",
        "strict = \"no-host-copy\"\n[[step]]\nname = \"a\"\nop = \"sqrt\"\nbackend = \"cuda\"\n[[step]]\nop = \"abs\"\nbackend = \"wgpu\"",
        "[inputs.dna]\nchannel = 7\n[[step]]\nop = \"sqrt\"",
        "[constants]\nflat = \"flat.tif\"\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"flat\"]",
        "[[step]]\nname = \"t\"\nop = \"percentiles\"\nq = [5, 95]\n[[step]]\nop = \"clip\"\ninput = \"image\"\nlow = { from = \"t\", item = 0 }\nhigh = { from = \"t\", item = 1 }",
    ] {
        assert_eq!(told(text, None), "", "{text}");
    }
    let plane = Sources::plane(DType::U16, 64, 64);
    let text = "[[step]]\nop = \"sqrt\"\nmemory = \"cupy\"";
    assert_eq!(told(text, Some(&plane)), "");
}

#[test]
fn types_are_told_where_records_are_known() {
    let text = "[[step]]\nop = \"max_z\"";
    assert_eq!(told(text, None), "");
    let said = told(text, Some(&Sources::plane(DType::U16, 64, 64)));
    assert!(said.contains("error[WL06"), "{said}");
}

#[test]
fn steps_that_branch_differently_fit_no_record() {
    let text = "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", 1 = [\"sqrt\"], 2 = [] }\n[[step]]\nname = \"b\"\nbranch = { by = \"channel\", 1 = [\"sqrt\"], 3 = [] }";
    insta::assert_snapshot!(told(text, None));
}

#[test]
fn errors_come_before_warnings_and_warnings_alone_are_no_refusal() {
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\n[[step]]\nname = \"b\"\nop = \"abs\"\ninput = \"image\"";
    insta::assert_snapshot!(told(text, None));
    let bad = format!("{text}\nmemory = \"cuppy\"");
    let findings = check(&Pipeline::from_toml(&bad).unwrap(), None);
    let severities: Vec<Severity> = findings.iter().map(|finding| finding.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Warning]);
}

#[test]
fn what_gives_no_image_is_told_without_records() {
    let text = "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"sqrt\"\n[[step]]\nop = \"greater\"\nvalue = { from = \"image\", item = 0 }\ninput = \"image\"";
    insta::assert_snapshot!(told(text, None));
}

/// What compiles is not refused by a check, and what a check refuses does not compile.
#[test]
fn check_and_compile_agree() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/pipelines");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!told(&text, None).contains("error["), "{}", path.display());
        count += 1;
    }
    assert!(count >= 5);
    let plane = Sources::plane(DType::U16, 64, 64);
    for text in [
        "[[step]]\nop = \"gaussian\"\nsigma = -2",
        "[[step]]\nop = \"sqrt\"",
    ] {
        let pipeline = Pipeline::from_toml(text).unwrap();
        let compiled = compile(&pipeline, &plane, None, &Options::default());
        assert_eq!(compiled.is_ok(), check(&pipeline, Some(&plane)).is_empty());
        assert_eq!(compiled.is_ok(), check(&pipeline, None).is_empty());
    }
}
