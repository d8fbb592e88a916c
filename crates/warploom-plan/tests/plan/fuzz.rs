//! No text brings the compiler down, and none keeps it long.
//!
//! Three sorts of texts: words of the language in any order, files that a grammar made, and files
//! that are right but for some damage. A few thousand with fixed seeds are part of the tests; with
//! `WARPLOOM_FUZZ_SECONDS` set, new ones are made for so long.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use warploom_core::DType;
use warploom_kernels::op::ops;
use warploom_plan::{Options, Pipeline, Sources, compile};

use crate::language::{all_fields, outcome, outcome_of};
use crate::machine::{GIB, cpu, cuda, machine};
use crate::texts::{right, wrong};

/// A second is the bar for a release build, which `cargo xtask bench plan` holds all of these to. Code
/// that is not optimised takes some twenty times as long, and machines that test are busy; what takes
/// the square of a length would need many minutes.
const LONGEST: Duration = Duration::from_mins(2);

#[test]
fn bad_files_are_errors_and_quick() {
    for (name, text) in wrong() {
        let begun = Instant::now();
        assert!(outcome(&text).contains("WL0"), "{name}");
        assert!(begun.elapsed() < LONGEST, "{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn large_files_are_plans_and_quick() {
    // The largest there may be take a code that is not optimised ten seconds each; the benchmark has
    // those. One of them is here, and the others are shorter.
    let largest = right(2_000).into_iter().filter(|(name, _)| *name == "bush");
    for (name, text) in right(1_500).into_iter().chain(largest) {
        let pipeline = Pipeline::from_toml(&text).unwrap();
        let sources = Sources::plane(DType::U16, 64, 64);
        let gpu = machine([cpu(), cuda(0, 64 * GIB)]);
        for (device, status) in [("cpu", None), ("gpu0", Some(&gpu))] {
            let begun = Instant::now();
            let plan = compile(&pipeline, &sources, status, &Options::default());
            let plan = plan.unwrap_or_else(|findings| panic!("{name}: {}", findings[0]));
            assert_eq!(plan.device.name, device, "{name}");
            assert!(begun.elapsed() < LONGEST, "{name}: {:?}", begun.elapsed());
        }
    }
}

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const EXAMPLES: [&str; 5] = [
    include_str!("../../../../examples/pipelines/nuclei.toml"),
    include_str!("../../../../examples/pipelines/two_channels.toml"),
    include_str!("../../../../examples/pipelines/flat_projection.toml"),
    include_str!("../../../../examples/pipelines/two_backends.toml"),
    include_str!("../../../../examples/pipelines/deconvolution.toml"),
];

const PIECES: &[&str] = &[
    "[[step]]",
    "[step.branch]",
    "[inputs.a]",
    "[constants]",
    "[[output]]",
    "=",
    "\"image\"",
    "\"sqrt\"",
    "\"gaussian\"",
    "\"channel\"",
    "1",
    "-3",
    "1e999",
    "nan",
    "inf",
    "true",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\n",
    "\"",
    "'",
    "#",
    "\"\"\"",
    ".",
    "2026-01-01",
    "\"cupy\"",
    "\"u8\"",
    "0x7f",
    "9223372036854775807",
    "\u{202e}",
    "\u{0}",
    "\u{1f52c}",
];

/// Words of the language in any order.
fn soup(dice: &mut Dice) -> String {
    let fields = all_fields();
    let words = (0..dice.below(80)).map(|_| {
        if dice.below(3) == 0 {
            dice.pick(&fields).to_owned()
        } else {
            dice.pick(PIECES).to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn value(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth > 3 { 8 } else { 11 }) {
        0 => dice.below(100).to_string(),
        1 => format!("-{}", dice.below(9)),
        2 => format!("{}e{}", dice.below(9), dice.below(400)),
        3 => "true".to_owned(),
        4 => format!("\"s{}\"", dice.below(8)),
        5 => format!(
            "\"{}\"",
            dice.pick(&[
                "image", "u8", "f64", "input", "cupy", "host", "gpu0", "cuda:1", "reflect", "1,2"
            ])
        ),
        6 => dice
            .pick(&["inf", "nan", "9223372036854775807", "0.5", "2.0"])
            .to_owned(),
        7 => format!(
            "{{ from = \"s{}\", item = {} }}",
            dice.below(8),
            dice.below(4)
        ),
        8 => {
            let items = (0..dice.below(4))
                .map(|_| value(dice, depth + 1))
                .collect::<Vec<_>>();
            format!("[{}]", items.join(", "))
        }
        9 => format!(
            "{{ {} = {} }}",
            dice.pick(&["by", "op", "a", "1"]),
            value(dice, depth + 1)
        ),
        _ => "\"\"".to_owned(),
    }
}

/// A file that is one: steps with operations of the catalogue and parameters they know, or nearly.
fn grammar(dice: &mut Dice) -> String {
    let all: Vec<_> = ops().collect();
    let mut text = String::new();
    for field in [
        "foreach",
        "strict",
        "math",
        "dtype",
        "placement",
        "backend",
        "memory",
        "device",
        "spread_steps",
    ] {
        if dice.below(12) == 0 {
            let word = dice.pick(&[
                "\"plane\"",
                "\"no-host-copy\"",
                "\"fast\"",
                "\"u16\"",
                "\"cost\"",
                "\"opencl\"",
                "\"numpy\"",
                "\"gpu1\"",
                "true",
            ]);
            let _ = writeln!(text, "{field} = {word}");
        }
    }
    if dice.below(4) == 0 {
        let _ = writeln!(text, "[constants]\nflat = \"flat.tif\"");
    }
    let steps = 1 + dice.below(8);
    for at in 0..steps {
        let op = all[dice.below(all.len())];
        let _ = writeln!(text, "[[step]]\nname = \"s{at}\"");
        if dice.below(6) == 0 {
            let other = all[dice.below(all.len())];
            let _ = writeln!(
                text,
                "chain = [\"{}\", {{ op = \"{}\" }}]",
                op.name, other.name
            );
        } else {
            let _ = writeln!(text, "op = \"{}\"", op.name);
            for param in op.params() {
                if dice.below(8) == 0 {
                    let _ = writeln!(text, "{} = {}", param.name, value(dice, 0));
                }
            }
        }
        if dice.below(2) == 0 {
            let names = (0..op.inputs.len()).map(|_| match dice.below(6) {
                0 => "\"image\"".to_owned(),
                1 => "\"flat\"".to_owned(),
                _ => format!("\"s{}\"", dice.below(at + 2)),
            });
            let _ = writeln!(text, "input = [{}]", names.collect::<Vec<_>>().join(", "));
        }
        if dice.below(8) == 0 {
            let _ = writeln!(text, "memory = {}", value(dice, 0));
        }
    }
    if dice.below(2) == 0 {
        let _ = writeln!(
            text,
            "[[output]]\nof = \"s{}\"\nwrite = \"{{channel}}.tif\"",
            dice.below(steps)
        );
    }
    text
}

/// A right file with some damage: bytes changed, cut out, doubled, or exchanged with another file's.
fn damaged(dice: &mut Dice) -> String {
    let mut bytes = dice.pick(&EXAMPLES).as_bytes().to_vec();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len());
        let length = dice.below(40).min(bytes.len() - at);
        match dice.below(5) {
            0 => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let copy = bytes[at..at + length].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => {
                let other = dice.pick(&EXAMPLES).as_bytes();
                let from = dice.below(other.len());
                let until = (from + length).min(other.len());
                bytes.splice(at..at, other[from..until].iter().copied());
            }
            _ => {
                let piece = dice.pick(PIECES).as_bytes().to_vec();
                bytes.splice(at..at, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'a');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Compiles one text; a panic tells its seed.
fn one(seed: u64) -> bool {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let text = match seed % 3 {
        0 => soup(&mut dice),
        1 => grammar(&mut dice),
        _ => damaged(&mut dice),
    };
    let channels: &[&str] = if seed.is_multiple_of(2) {
        &[]
    } else {
        &["1", "2"]
    };
    let begun = Instant::now();
    let said = std::panic::catch_unwind(|| outcome_of(&text, channels));
    let said = said.unwrap_or_else(|_| panic!("seed {seed} brings it down:\n{text}"));
    let took = begun.elapsed();
    assert!(
        took < Duration::from_mins(2),
        "seed {seed} takes {took:?}:\n{text}"
    );
    said.contains("\"version\"")
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "how long to go on is said by whoever starts the test"
)]
fn no_text_brings_the_compiler_down() {
    let seconds = std::env::var("WARPLOOM_FUZZ_SECONDS").ok();
    let seconds: Option<u64> = seconds.map(|text| text.parse().unwrap());
    let begun = Instant::now();
    let (mut compiled, mut count) = (0_u64, 0_u64);
    // Other seeds than the fixed ones, and others each time.
    let first = match seconds {
        Some(_) => u64::from(std::process::id()) << 32,
        None => 0,
    };
    loop {
        compiled += u64::from(one(first + count));
        count += 1;
        let enough = match seconds {
            Some(seconds) => begun.elapsed() >= Duration::from_secs(seconds),
            None => count >= 1500,
        };
        if enough {
            break;
        }
    }
    // Texts that are all refused at once would try little.
    assert!(compiled * 200 > count, "{compiled} of {count} compile");
    println!("{count} texts, {compiled} of which compile");
}
