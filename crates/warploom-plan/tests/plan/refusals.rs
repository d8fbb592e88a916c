//! Every refusal as people read it, and every page.

use std::fmt::Write as _;

use warploom_core::DType;
use warploom_plan::{Diagnostic, Options, Pipeline, Problem, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine};

/// What is said of a file, with lines and columns.
fn told(text: &str, findings: &[Diagnostic]) -> String {
    let mut out = String::new();
    for finding in findings {
        let at = finding.place.map(|place| place.line_column(text));
        let at = at.map_or_else(String::new, |(line, column)| format!(" [{line}:{column}]"));
        let _ = writeln!(out, "{finding}{at}");
    }
    out
}

fn refused(text: &str) -> String {
    let sources = Sources::plane(DType::U16, 256, 256);
    refused_of(text, &sources, &Options::default())
}

fn refused_of(text: &str, sources: &Sources, options: &Options) -> String {
    let status = machine([cpu(), cuda(0, GIB)]);
    let result = Pipeline::from_toml(text)
        .and_then(|pipeline| compile(&pipeline, sources, Some(&status), options));
    match result {
        Ok(plan) => format!("compiled: {}", plan.warnings.join("\n")),
        Err(findings) => told(text, &findings),
    }
}

macro_rules! refusals {
    ($($name:ident: $text:expr;)*) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(refused($text));
            }
        )*
    };
}

refusals! {
    wl0301_syntax: "name = \"a\n[[step]]";
    wl0302_unknown_field: "nmae = \"x\"\n[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"a.tif\"\nformat = \"tif\"";
    wl0303_wrong_type: "name = [1]\nspread_steps = \"yes\"\n[[step]]\nop = \"sqrt\"\ninput = { a = 1 }";
    wl0304_missing_field: "name = \"x\"";
    wl0304_step_without_work: "[[step]]\nname = \"x\"\n[[output]]\nof = \"x\"";
    wl0305_duplicate_name: "[[step]]\nname = \"a\"\nop = \"sqrt\"\n[[step]]\nname = \"a\"\nop = \"sqrt\"";
    wl0306_unknown_name: "[[step]]\nname = \"smooth\"\nop = \"sqrt\"\n[[step]]\nop = \"abs\"\ninput = \"smoth\"";
    wl0307_cycle: "[[step]]\nname = \"a\"\nop = \"sqrt\"\ninput = \"c\"\n[[step]]\nname = \"b\"\nop = \"sqrt\"\n[[step]]\nname = \"c\"\nop = \"sqrt\"";
    wl0308_unknown_word: "foreach = \"plain\"\nmath = \"quick\"\n[[step]]\nop = \"sqrt\"\ndtype = \"u64\"";
    wl0309_ambiguous: "[[step]]\nop = \"sqrt\"\nchain = [\"sqrt\"]";
    wl0310_bad_name: "[[step]]\nname = \"my step\"\nop = \"sqrt\"";
    wl0311_unused: "[[step]]\nname = \"a\"\nop = \"sqrt\"\n[[step]]\nname = \"b\"\nop = \"abs\"\ninput = \"image\"";
    wl0314_wrong_value: "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"sqrt\"";
    wl0314_image_as_number: "[[step]]\nname = \"t\"\nop = \"sqrt\"\n[[step]]\nop = \"greater\"\nvalue = { from = \"t\", item = 0 }";
    wl0315_not_late: "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"gaussian\"\ninput = \"image\"\nsigma = { from = \"t\", item = \"mean\" }";
    wl0316_no_item: "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nop = \"greater\"\ninput = \"image\"\nvalue = { from = \"t\", item = \"meen\" }";
    wl0317_record_mismatch: "[inputs.dna]\nchannel = 7\n[[step]]\nop = \"sqrt\"";
    wl0321_unknown_memory: "[[step]]\nop = \"sqrt\"\nmemory = \"cuppy\"";
    wl0322_missing_backend: "backend = \"opencl\"\n[[step]]\nop = \"sqrt\"";
    wl0325_contradiction: "[[step]]\nop = \"sqrt\"\nmemory = \"cupy\"\nbackend = \"opencl\"";
    wl0325_staging_memory: "[[step]]\nop = \"sqrt\"\nmemory = \"cuda.pinned\"";
    wl0328_unknown_device: "device = \"cuda:7\"\n[[step]]\nop = \"sqrt\"";
    the_operation_s_own: "[[step]]\nop = \"gaussian\"\nsigma = -1\n[[step]]\nop = \"gausian\"\n[[step]]\nop = \"sobel\"\nradius = 2";
}

#[test]
fn wl0312_too_large() {
    let mut text = String::from("[[step]]\nchain = [");
    text.push_str(&"\"sqrt\", ".repeat(10_001));
    text.push(']');
    let said = refused(&text);
    insta::assert_snapshot!(said);
    insta::assert_snapshot!(refused(&" ".repeat((4 << 20) + 1)));
}

#[test]
fn wl0313_branch_keys() {
    let text = "[[step]]\nname = \"a\"\n[step.branch]\nby = \"channel\"\n1 = [\"sqrt\"]\n3 = []";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    insta::assert_snapshot!(refused_of(text, &sources, &Options::default()));
    insta::assert_snapshot!(refused(text));
}

#[test]
fn wl0331_does_not_fit() {
    // An operation without scratch, so that the numbers are those of its images.
    let text = "backend = \"cuda\"\n[[step]]\nname = \"soft\"\nop = \"sqrt\"";
    let strict = format!("strict = \"no-host-copy\"\n{text}");
    let sources = Sources::stack(DType::F32, 64, 2048, 2048);
    insta::assert_snapshot!(refused_of(&strict, &sources, &Options::default()));
    let small = Sources::plane(DType::F32, 2048, 2048);
    let mut options = Options::default();
    options.budget = Some(300);
    insta::assert_snapshot!(refused_of(text, &small, &options));
    options.budget = Some(200 << 20);
    options.depth = Some(50);
    insta::assert_snapshot!(refused_of(text, &small, &options));
    options.budget = Some(0);
    insta::assert_snapshot!(refused_of(text, &small, &options));
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = "[[step]]\nop = \"gaussian\"\nsigma = -1\nmemory = \"cuppy\"\n[[step]]\nname = \"b\"\nop = \"sqrt\"\ninput = \"nobody\"\n[[step]]\nop = \"nothing_like_it\"\ninput = \"image\"";
    let said = refused(text);
    for code in ["WL0606", "WL0306", "WL0601"] {
        assert!(said.contains(code), "{code}: {said}");
    }
}

#[test]
fn every_problem_has_a_page() {
    let mut text = String::new();
    for problem in Problem::ALL {
        let _ = writeln!(text, "{}\n  {}\n", problem.title().trim(), problem.page());
    }
    insta::assert_snapshot!(text);
}
