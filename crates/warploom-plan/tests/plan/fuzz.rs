//! No text brings the compiler down, and none keeps it long.
//!
//! Three sorts of texts: words of the language in any order, files that a grammar made, and files
//! that are right but for some damage. A few thousand with fixed seeds are part of the tests; with
//! `WARPLOOM_FUZZ_SECONDS` set, new ones are made for so long.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rstest::rstest;
use warploom_kernels::op::ops;

use crate::language::{all_fields, outcome, outcome_of};

#[rstest]
#[case::garbage("\u{1}\u{7f}]][[=\"'".repeat(130_000))]
#[case::deep(format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)))]
#[case::deep_tables(format!("[[step]]\nop = \"sqrt\"\nsigma = {}", "{ a = ".repeat(50_000)))]
#[case::dotted(format!("{} = 1", vec!["a"; 50_000].join(".")))]
#[case::many_steps("[[step]]\nop = \"sqrt\"\n".repeat(10_000))]
#[case::many_slips((0..10_000).fold(String::new(), |mut text, at| {
    let _ = writeln!(text, "[[step]]\nname = \"s{at}\"\nop = \"sqrt\"\ninput = \"t{at}\"");
    text
}))]
#[case::many_memories((0..10_000).fold(String::new(), |mut text, at| {
    let _ = writeln!(text, "[[step]]\nname = \"s{at}\"\nop = \"sqrt\"\nmemory = \"m{at}\"");
    text
}))]
#[case::cycle((0..10_000).fold(String::new(), |mut text, at| {
    let _ = writeln!(text, "[[step]]\nname = \"s{at}\"\nop = \"sqrt\"\ninput = \"s{}\"", (at + 1) % 10_000);
    text
}))]
#[case::many_inputs(format!("[[step]]\nop = \"add_images\"\ninput = [{}]", "\"image\", ".repeat(100_000)))]
#[case::long_name(format!("[[step]]\nname = \"{}\"\nop = \"{}\"", "n".repeat(400_000), "o".repeat(400_000)))]
#[case::huge_number(format!("[[step]]\nop = \"gaussian\"\nsigma = {}", "9".repeat(100_000)))]
#[case::huge_pad("[[step]]\nop = \"pad\"\nbefore = 9223372036854775807\nafter = 9223372036854775807".to_owned())]
#[case::huge_resize("[[step]]\nop = \"resize_linear\"\nfactor = 1e300".to_owned())]
#[case::unicode("[[step]]\nname = \"\u{202e}\u{e9}vil\u{0}\"\nop = \"gau\u{df}\"".to_owned())]
#[case::megabyte_of_words("name = ".repeat(150_000))]
fn bad_files_are_errors_and_quick(#[case] text: String) {
    let begun = Instant::now();
    assert!(outcome(&text).contains("WL0"));
    // Generous, for machines that are busy and code that is not optimised; a reader that takes the
    // square of the length would need minutes.
    assert!(
        begun.elapsed() < Duration::from_mins(2),
        "{:?}",
        begun.elapsed()
    );
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
