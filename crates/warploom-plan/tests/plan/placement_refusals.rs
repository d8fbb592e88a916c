//! What is said where no card will do: which step asked, where in the file, and what would.

use std::fmt::Write as _;

use warploom_core::{DType, Status};
use warploom_plan::{Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine, opencl};

const SQRT: &str = "[[step]]\nname = \"a\"\nop = \"sqrt\"\n";

fn two_cards() -> Status {
    machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB), cuda(1, GIB)])
}

fn only(devices: &[&str]) -> Options {
    let mut options = Options::default();
    options.devices = devices.iter().map(|name| (*name).to_owned()).collect();
    options
}

fn refused(text: &str, status: Option<&Status>, options: &Options) -> String {
    refused_of(text, &Sources::plane(DType::U16, 256, 256), status, options)
}

fn refused_of(text: &str, sources: &Sources, status: Option<&Status>, options: &Options) -> String {
    let pipeline = Pipeline::from_toml(text).unwrap();
    let findings = compile(&pipeline, sources, status, options).unwrap_err();
    let mut out = String::new();
    for finding in &findings {
        let at = finding.place.map(|place| place.line_column(text));
        let at = at.map_or_else(String::new, |(line, column)| format!(" [{line}:{column}]"));
        let _ = writeln!(out, "{finding}{at}");
    }
    out
}

#[test]
fn no_such_backend() {
    let said = |backend: &str| {
        let text = format!("{SQRT}backend = \"{backend}\"");
        refused(&text, Some(&two_cards()), &Options::default())
    };
    insta::assert_snapshot!(said("opncl"));
    insta::assert_snapshot!(said("fortran"));
}

#[test]
fn pinned_to_two_cards() {
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\ndevice = \"gpu0\"\n[[step]]\nname = \"b\"\nop = \"abs\"\ndevice = \"cuda:1\"";
    insta::assert_snapshot!(refused(text, Some(&two_cards()), &Options::default()));
}

#[test]
fn pinned_to_a_card_without_the_face_that_is_asked_for() {
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\ndevice = \"gpu1\"\n[[step]]\nname = \"b\"\nop = \"abs\"\nbackend = \"opencl\"";
    insta::assert_snapshot!(refused(text, Some(&two_cards()), &Options::default()));
}

#[test]
fn faces_of_two_cards() {
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 9, GIB)]);
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\nbackend = \"cuda\"\n[[step]]\nname = \"b\"\nop = \"abs\"\nbackend = \"opencl\"";
    insta::assert_snapshot!(refused(text, Some(&status), &Options::default()));
}

#[test]
fn a_face_that_may_not_be_used() {
    let text = format!("{SQRT}backend = \"cuda\"");
    insta::assert_snapshot!(refused(&text, Some(&two_cards()), &only(&["opencl:0"])));
    let text = format!("spread_steps = true\n{text}");
    insta::assert_snapshot!(refused(&text, Some(&two_cards()), &only(&["opencl:0"])));
}

#[test]
fn of_several_cards_one_may_not_be_used() {
    let spread = |a: &str, b: &str| {
        format!("spread_steps = true\n{SQRT}{a}\n[[step]]\nname = \"b\"\nop = \"abs\"\n{b}")
    };
    let text = spread("backend = \"opencl\"", "backend = \"cuda\"");
    insta::assert_snapshot!(refused(&text, Some(&two_cards()), &only(&["opencl:0"])));
    let text = spread("device = \"gpu0\"", "device = \"gpu1\"");
    insta::assert_snapshot!(refused(&text, Some(&two_cards()), &only(&["gpu0"])));
}

#[test]
fn a_card_that_may_not_be_used() {
    let text = format!("{SQRT}device = \"gpu0\"");
    insta::assert_snapshot!(refused(&text, Some(&two_cards()), &only(&["gpu1"])));
}

#[test]
fn the_processor_that_may_not_be_used() {
    let text = format!("{SQRT}backend = \"cpu\"");
    insta::assert_snapshot!(refused(&text, Some(&two_cards()), &only(&["gpu0", "gpu1"])));
}

#[test]
fn a_device_that_is_not_there_may_not_be_used() {
    let said = |status: &Status, name: &str| refused(SQRT, Some(status), &only(&[name]));
    insta::assert_snapshot!(said(&two_cards(), "gpu7"));
    // Where there is no card at all, why there is none.
    insta::assert_snapshot!(said(&machine([cpu()]), "gpu0"));
    insta::assert_snapshot!(said(&machine([]), "cpu"));
    insta::assert_snapshot!(refused(SQRT, None, &only(&["gpu0"])));
}

#[test]
fn a_build_without_the_processor() {
    let status = machine([cuda(0, GIB)]);
    let all = format!("{SQRT}backend = \"cpu\"");
    insta::assert_snapshot!(refused(&all, Some(&status), &Options::default()));
    let one = format!("[[step]]\nop = \"abs\"\n{SQRT}backend = \"cpu\"");
    insta::assert_snapshot!(refused(&one, Some(&status), &Options::default()));
    // Nothing asks for it, and there is nothing else either.
    let nothing = machine([]);
    insta::assert_snapshot!(refused(SQRT, Some(&nothing), &Options::default()));
}

#[test]
fn nobody_has_looked() {
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\nmemory = \"cupy\"\n[[step]]\nop = \"abs\"\n[[step]]\nname = \"c\"\nop = \"sqrt\"\ndevice = \"gpu0\"";
    insta::assert_snapshot!(refused(text, None, &Options::default()));
}

#[test]
fn a_detour_where_nothing_may_go_to_the_host() {
    // The pixels of whole numbers that are this wide are counted on the host.
    let text = "strict = \"no-host-copy\"\nbackend = \"cuda\"\n[[step]]\nname = \"flipped\"\nop = \"flip_x\"\n[[step]]\nname = \"parts\"\nop = \"threshold_otsu\"";
    let wide = Sources::plane(DType::U32, 64, 64);
    let (status, options) = (two_cards(), Options::default());
    insta::assert_snapshot!(refused_of(text, &wide, Some(&status), &options));
}

#[test]
fn a_copy_where_nothing_may_go_to_the_host() {
    let text = "strict = \"no-host-copy\"\n[[step]]\nname = \"a\"\nop = \"sqrt\"\nbackend = \"cuda\"\n[[step]]\nop = \"abs\"\nbackend = \"opencl\"";
    insta::assert_snapshot!(refused(text, Some(&two_cards()), &Options::default()));
}

#[test]
fn what_keeps_records_out_of_tiles_is_told() {
    let large = Sources::stack(DType::F32, 64, 2048, 2048);
    let said = |text: &str, options: &Options| {
        refused_of(text, &large, Some(&machine([cpu(), cuda(0, GIB)])), options)
    };
    let strict = format!("strict = \"no-host-copy\"\n{SQRT}");
    insta::assert_snapshot!(said(&strict, &Options::default()));
    let mut deep = Options::default();
    deep.depth = Some(2);
    insta::assert_snapshot!(said(SQRT, &deep));
    deep.budget = Some(500 << 20);
    insta::assert_snapshot!(said(&strict, &deep));
}

#[test]
fn what_no_budget_mends() {
    // More than the host has, whatever a card may hold.
    let mut small = cpu();
    small.total_memory = GIB;
    let status = machine([small, cuda(0, 8 * GIB)]);
    let large = Sources::stack(DType::F32, 64, 2048, 2048);
    let text = format!("{SQRT}[[step]]\nname = \"b\"\nop = \"abs\"\nbackend = \"cpu\"");
    insta::assert_snapshot!(refused_of(
        &text,
        &large,
        Some(&status),
        &Options::default()
    ));
}

#[test]
fn the_smallest_budget_of_several_segments() {
    let text = "backend = \"cuda\"\n[[step]]\nname = \"soft\"\nop = \"gaussian\"\nsigma = 3\n[[step]]\nname = \"mask\"\nop = \"threshold_otsu\"\nbackend = \"cpu\"\n[[step]]\nname = \"wide\"\nop = \"mean_box\"\nradius = 4";
    let sources = Sources::plane(DType::F32, 2048, 2048);
    let status = machine([cpu(), cuda(0, GIB)]);
    let mut options = Options::default();
    options.budget = Some(700);
    insta::assert_snapshot!(refused_of(text, &sources, Some(&status), &options));
}

/// A record that no card holds and nobody could cut: without the processor, or beyond what a kernel takes.
#[test]
fn why_there_are_no_tiles() {
    let large = Sources::stack(DType::F32, 64, 2048, 2048);
    let text = format!("backend = \"cuda\"\n{SQRT}");
    let alone = machine([cuda(0, GIB)]);
    let options = Options::default();
    insta::assert_snapshot!(refused_of(&text, &large, Some(&alone), &options));
    let mut card = cuda(0, GIB);
    card.limits.max_binding = 2;
    let status = machine([cpu(), card]);
    insta::assert_snapshot!(refused_of(&text, &large, Some(&status), &options));
}
