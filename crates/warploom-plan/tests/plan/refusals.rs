//! Every refusal as people read it, and every page.

use std::fmt::Write as _;

use warploom_core::DType;
use warploom_plan::plan::Variant;
use warploom_plan::{Diagnostic, Options, Pipeline, Problem, Sources, compile};

use crate::language::have_help;
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
        Err(findings) => {
            have_help(&findings);
            told(text, &findings)
        }
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
    wl0317_constant_of_unknown_type: "constants = { flat = \"flat.tif\" }\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"flat\"]";
    wl0304_empty_chain: "[[step]]\nname = \"a\"\nchain = []";
    wl0305_one_file_for_two: "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"a.tif\"\n[[output]]\nof = \"image\"\nwrite = \"a.tif\"";
    wl0305_two_names_of_one_file: "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"./a/B.tif\"\n[[output]]\nof = \"image\"\nwrite = \"a//b.tif\"";
    wl0319_bad_ending: "[[step]]\nname = \"t\"\nop = \"totals\"\n[[step]]\nname = \"c\"\nop = \"label_statistics\"\ninput = [\"image\", \"image\"]\n[[output]]\nof = \"image\"\nwrite = \"a.csv\"\n[[output]]\nof = \"t\"\nwrite = \"t.PNG\"\n[[output]]\nof = \"c\"\nwrite = \"c.tif\"\n[[output]]\nof = \"t\"\nwrite = \"t\"\n[[output]]\nof = \"t\"\nwrite = \"t.xlsx\"";
    wl0308_unknown_blank: "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{record-a.tif\"";
    wl0310_outside: "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"../{record}.tif\"";
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
fn wl0313_two_chains_for_one_channel() {
    let text =
        "[[step]]\nname = \"a\"\n[step.branch]\nby = \"channel\"\n1 = [\"sqrt\"]\n01 = []\n2 = []";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    insta::assert_snapshot!(refused_of(text, &sources, &Options::default()));
}

#[test]
fn wl0317_input_without_a_channel() {
    let text = "[inputs.dna]\n[[step]]\nop = \"sqrt\"";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    insta::assert_snapshot!(refused_of(text, &sources, &Options::default()));
    let other = text.replace("[inputs.dna]", "[inputs.dna]\nchannel = 3");
    insta::assert_snapshot!(refused_of(&other, &sources, &Options::default()));
}

/// A plan whose steps are not those of the catalogue here.
#[test]
fn wl0341_a_foreign_step() {
    let pipeline = Pipeline::from_toml("[[step]]\nop = \"sqrt\"").unwrap();
    let sources = Sources::plane(DType::U16, 64, 64);
    let plan = compile(&pipeline, &sources, None, &Options::default()).unwrap();
    let flow = |from: &str, to: &str| {
        let text = serde_json::to_string(&plan.variants[0]).unwrap();
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let variant: Variant = serde_json::from_str(&changed).unwrap();
        variant.flow(0, None).unwrap_err().to_string()
    };
    let said = [
        flow("\"op\":\"sqrt\"", "\"op\":\"root\""),
        flow("\"reads\":[\"image\"]", "\"reads\":[\"picture\"]"),
        flow("\"gives\":[\"sqrt\"]", "\"gives\":[\"root\"]"),
        plan.variants[0].flow(7, None).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn wl0305_one_file_for_two_channels() {
    let text = "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"\nwrite = \"{record}.tif\"";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    insta::assert_snapshot!(refused_of(text, &sources, &Options::default()));
}

#[test]
fn wl0318_branch_of_inputs() {
    let text = "[inputs.dna]\nchannel = 1\n[[step]]\nname = \"a\"\n[step.branch]\nby = \"channel\"\n1 = [\"sqrt\"]\n2 = []";
    let sources = Sources::plane(DType::U16, 64, 64).channels(["1", "2"]);
    insta::assert_snapshot!(refused_of(text, &sources, &Options::default()));
}

#[test]
fn wl0329_more_than_a_device_gives_in_one_piece() {
    use crate::machine::opencl;
    let refuse = |limit: fn(&mut warploom_core::DeviceInfo)| {
        let mut card = opencl(0, 0, GIB);
        limit(&mut card);
        let status = machine([cpu(), card]);
        let text = "strict = \"no-host-copy\"\n[[step]]\nop = \"sqrt\"";
        let pipeline = Pipeline::from_toml(text).unwrap();
        let sources = Sources::plane(DType::F32, 1024, 1024);
        let refusal = compile(&pipeline, &sources, Some(&status), &Options::default());
        let refusal = refusal.unwrap_err();
        have_help(&refusal);
        told(text, &refusal)
    };
    insta::assert_snapshot!(refuse(|card| card.limits.max_alloc = 1 << 21));
    insta::assert_snapshot!(refuse(|card| card.limits.max_binding = 1 << 21));
}

#[test]
fn records_that_cannot_be_counted_are_refused() {
    let text = "[[step]]\nop = \"sqrt\"";
    for sources in [
        Sources::plane(DType::F64, u64::MAX, u64::MAX),
        Sources::stack(DType::U8, 1 << 20, 1 << 20, 1 << 20),
        Sources::plane(DType::U8, 0, 5),
    ] {
        let said = refused_of(text, &sources, &Options::default());
        insta::assert_snapshot!(said);
    }
    // Countable, but more than an operation takes.
    let sources = Sources::plane(DType::U8, 1 << 20, 1 << 20);
    let said = refused_of(text, &sources, &Options::default());
    assert!(said.contains("WL06"), "{said}");
}

#[test]
fn more_findings_than_anybody_reads_are_counted() {
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\ninput = \"nobody\"\n".repeat(500);
    let said = refused(&text);
    assert_eq!(said.matches("error[").count(), 100);
    assert!(said.contains("and 899 more findings"), "{said}");
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
    // The processor, and nothing that could go in tiles.
    options.depth = None;
    options.budget = Some(1 << 20);
    let host = text.replace("cuda", "cpu");
    insta::assert_snapshot!(refused_of(&host, &small, &options));
    let global = text.replace("sqrt", "label_box");
    insta::assert_snapshot!(refused_of(&global, &small, &options));
}

/// The numbers of a page are those of the code.
#[test]
fn wl0312_says_what_is_checked() {
    let page = Problem::TooLarge.page();
    let most = format!("[[step]]\nchain = [{}]", "\"sqrt\", ".repeat(2_001));
    let most = refused(&most);
    assert!(most.contains("2001 operations, 2000 at most"), "{most}");
    assert!(page.contains("at most 2000 operations"), "{page}");
    let bytes = warploom_plan::language::MAX_BYTES;
    assert!(page.contains(&format!("{} MiB", bytes >> 20)), "{page}");
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = "[[step]]\nop = \"gaussian\"\nsigma = -1\nmemory = \"cuppy\"\n[[step]]\nname = \"b\"\nop = \"sqrt\"\ninput = \"nobody\"\n[[step]]\nop = \"nothing_like_it\"\ninput = \"image\"";
    let said = refused(text);
    for code in ["WL0606", "WL0306", "WL0601", "WL0321"] {
        assert!(said.contains(code), "{code}: {said}");
    }
    // Whether what is asked for is there is told beside what is wrong with types.
    let text = "[[step]]\nop = \"gaussian\"\nsigma = -1\nmemory = \"pyclesperanto\"\n[[step]]\nop = \"abs\"\nbackend = \"wgpu\"\n[[step]]\nop = \"sqrt\"\ndevice = \"cuda:7\"";
    let said = refused(text);
    for code in ["WL0606", "WL0322", "WL0328"] {
        assert_eq!(said.matches(code).count(), 1, "{code}: {said}");
    }
}

#[test]
fn wl0323_no_registry() {
    let pipeline = Pipeline::from_toml("[[step]]\nop = \"sqrt\"\nmemory = \"cupy\"").unwrap();
    let sources = Sources::plane(DType::U16, 64, 64);
    let findings = compile(&pipeline, &sources, None, &Options::default()).unwrap_err();
    insta::assert_snapshot!(told("", &findings));
}

/// Every code is seen by people in some snapshot, as a finding and not only as a page.
#[test]
fn every_problem_has_a_snapshot() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plan/snapshots");
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        all.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    for problem in Problem::ALL {
        let code = problem.code();
        assert!(all.contains(&format!("[{code}]")), "{code} has no snapshot");
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
