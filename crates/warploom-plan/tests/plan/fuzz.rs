//! No text brings the compiler down, and none keeps it long.
//!
//! Three sorts of texts: words of the language in any order, files that a grammar made, and files
//! that are right but for some damage. Every one is a plan or findings that all say what to do. Some
//! 1500 with fixed seeds are part of the tests; with `WARPLOOM_FUZZ_SECONDS` set, new ones are made for
//! so long (CONTRIBUTING.md has the command).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use warploom_core::DType;
use warploom_kernels::op::{Fallback, OpInfo, ParamInfo, ParamKind, ops};
use warploom_plan::{Options, Pipeline, Sources, compile};

use crate::language::{all_fields, outcome, outcome_with};
use crate::machine::{GIB, cpu, cuda, machine};
use crate::texts::{right, wrong};

/// A second is the bar for a release build, which `cargo xtask bench plan` holds all of these to as
/// well. Code that is not optimised takes some twenty times as long, and machines that test are busy;
/// what takes the square of a length would need many minutes.
const LONGEST: Duration = if cfg!(debug_assertions) {
    Duration::from_mins(2)
} else {
    Duration::from_secs(1)
};

/// The time something takes by itself: that of the quickest try, where others had the machine.
fn held_to_its_time(what: &str, mut work: impl FnMut()) {
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        work();
        quickest = quickest.min(begun.elapsed());
        if quickest < LONGEST {
            return;
        }
    }
    panic!("{what} takes {quickest:?}");
}

#[test]
fn bad_files_are_errors_and_quick() {
    for (name, text) in wrong() {
        held_to_its_time(name, || assert!(outcome(&text).contains("WL0"), "{name}"));
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
            held_to_its_time(name, || {
                let plan = compile(&pipeline, &sources, status, &Options::default());
                let plan = plan.unwrap_or_else(|findings| panic!("{name}: {}", findings[0]));
                assert_eq!(plan.device.name, device, "{name}");
            });
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

const EXAMPLES: [&str; 6] = [
    include_str!("../../../../examples/pipelines/bright_cells.toml"),
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

/// A word for a field of the whole pipeline: mostly one that it takes.
fn head(dice: &mut Dice, text: &mut String) {
    let fields: [(&str, &[&str]); 9] = [
        ("foreach", &["\"plane\"", "\"stack\""]),
        ("strict", &["\"no-host-copy\""]),
        ("math", &["\"fast\"", "\"strict\""]),
        ("dtype", &["\"u16\"", "\"input\"", "\"f64\""]),
        ("placement", &["\"cost\"", "\"first\"", "\"fit\""]),
        ("backend", &["\"opencl\"", "\"cuda\"", "\"cpu\""]),
        ("memory", &["\"numpy\"", "\"torch\""]),
        ("device", &["\"gpu1\"", "\"cpu\""]),
        ("spread_steps", &["true", "false"]),
    ];
    for (field, words) in fields {
        if dice.below(12) == 0 {
            let word = match dice.below(8) {
                0 => value(dice, 0),
                _ => dice.pick(words).to_owned(),
            };
            let _ = writeln!(text, "{field} = {word}");
        }
    }
    match dice.below(8) {
        0 | 1 => text.push_str("[constants]\nflat = \"flat.tif\"\n"),
        2 => {
            let _ = writeln!(text, "[constants]\nflat = {}", value(dice, 0));
        }
        _ => {}
    }
}

/// A value that a parameter may take, or any.
fn fitting(dice: &mut Dice, param: &ParamInfo) -> String {
    match &param.kind {
        _ if dice.below(5) == 0 => value(dice, 0),
        ParamKind::Number(_) => format!("{}.5", dice.below(4)),
        ParamKind::Integer(_) | ParamKind::PerAxis(_) => (1 + dice.below(4)).to_string(),
        ParamKind::Choice(words) => format!("\"{}\"", dice.pick(words)),
        ParamKind::DType => format!("\"{}\"", dice.pick(&["u8", "f32", "u16"])),
        ParamKind::Numbers(..) => "[10, 90]".to_owned(),
        ParamKind::Matrix => "\"1,0,0;0,1,0;0,0,1\"".to_owned(),
        ParamKind::Flag => "true".to_owned(),
    }
}

/// Parameters of an operation: all it must have, some of the others.
fn arguments(dice: &mut Dice, op: &OpInfo) -> Vec<String> {
    let mut texts = Vec::new();
    for param in op.params() {
        let needed = param.fallback == Fallback::Required && dice.below(30) > 0;
        if needed || dice.below(8) == 0 {
            texts.push(format!("{} = {}", param.name, fitting(dice, param)));
        }
    }
    texts
}

/// Fields that say where something runs, now and then.
fn whereabouts(dice: &mut Dice) -> Option<String> {
    let word = match dice.below(24) {
        0 => "memory = \"torch\"",
        1 => "memory = \"numpy\"",
        2 => "backend = \"opencl\"",
        3 => "device = \"gpu0\"",
        4 => return Some(format!("memory = {}", value(dice, 0))),
        _ => return None,
    };
    Some(word.to_owned())
}

/// A chain: names, and tables with parameters and places.
fn chain(dice: &mut Dice, all: &[&'static OpInfo]) -> String {
    let items = (0..dice.below(4)).map(|_| {
        let op = all[dice.below(all.len())];
        let params = arguments(dice, op);
        if params.is_empty() && dice.below(2) == 0 {
            return format!("\"{}\"", op.name);
        }
        let mut fields = vec![format!("op = \"{}\"", op.name)];
        if dice.below(5) == 0 {
            fields.push(format!("params = {{ {} }}", params.join(", ")));
        } else {
            fields.extend(params);
        }
        fields.extend(whereabouts(dice));
        format!("{{ {} }}", fields.join(", "))
    });
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(", "))
}

/// A file that is one: inputs, constants, steps with operations of the catalogue in chains, branches
/// and alone, with parameters they know, or nearly; outputs.
fn grammar(dice: &mut Dice) -> String {
    let all: Vec<_> = ops().collect();
    let mut text = String::new();
    head(dice, &mut text);
    let inputs = dice.below(5) == 0;
    if inputs {
        text.push_str("[inputs.dna]\nchannel = 1\n[inputs.other]\nchannel = \"02\"\n");
    }
    let given = if inputs { "dna" } else { "image" };
    let steps = 1 + dice.below(8);
    for at in 0..steps {
        let op = all[dice.below(all.len())];
        let _ = writeln!(text, "[[step]]\nname = \"s{at}\"");
        let sort = dice.below(12);
        match sort {
            0 | 1 => {
                let _ = writeln!(text, "chain = {}", chain(dice, &all));
            }
            2 => {
                let keys = ["1 = ", "02 = ", "7 = "];
                let keys = &keys[..if dice.below(8) == 0 { 3 } else { 2 }];
                let chains: Vec<String> = keys
                    .iter()
                    .map(|key| format!("{key}{}", chain(dice, &all)))
                    .collect();
                let axis = if dice.below(20) == 0 {
                    "well"
                } else {
                    "channel"
                };
                let _ = writeln!(
                    text,
                    "branch = {{ by = \"{axis}\", {} }}",
                    chains.join(", ")
                );
            }
            _ => {
                let _ = writeln!(text, "op = \"{}\"", op.name);
                let params = arguments(dice, op);
                if dice.below(6) == 0 {
                    let _ = writeln!(text, "params = {{ {} }}", params.join(", "));
                } else {
                    for param in params {
                        let _ = writeln!(text, "{param}");
                    }
                }
            }
        }
        // What reads the step before it reads what it gives, which few operations cannot.
        let count = if sort <= 2 { 1 } else { op.inputs.len() };
        if count > 1 || dice.below(3) == 0 {
            // Now and then a step reads itself.
            let before = at + usize::from(at == 0 || dice.below(20) == 0);
            let names = (0..count).map(|_| match dice.below(6) {
                0 | 1 => format!("\"{given}\""),
                2 => "\"flat\"".to_owned(),
                _ => format!("\"s{}\"", dice.below(before)),
            });
            let _ = writeln!(text, "input = [{}]", names.collect::<Vec<_>>().join(", "));
        }
        if let Some(field) = whereabouts(dice) {
            let _ = writeln!(text, "{field}");
        }
        if dice.below(16) == 0 {
            text.push_str("dtype = \"u8\"\n");
        }
    }
    for _ in 0..dice.below(3) {
        let _ = writeln!(
            text,
            "[[output]]\nof = \"s{}\"\nwrite = \"{{channel}}-{}.tif\"",
            dice.below(steps),
            dice.below(9)
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

/// How a text was made.
const SORTS: [fn(&mut Dice) -> String; 3] = [soup, grammar, damaged];

/// What a caller may say beside the text: mostly nothing, else memory that is small or very small, and
/// records in flight.
fn options(dice: &mut Dice) -> Options {
    let mut options = Options::default();
    if dice.below(3) == 0 {
        let budgets = [1, 700, 9_000, 40_000, 200_000, 1 << 20];
        options.budget = Some(budgets[dice.below(budgets.len())]);
    }
    if dice.below(12) == 0 {
        options.depth = Some(1 + u32::try_from(dice.below(4)).unwrap());
    }
    if dice.below(6) == 0 {
        options.devices = vec![dice.pick(&["cpu", "gpu0", "cuda:1", "gpu9"]).to_owned()];
    }
    options
}

/// Compiles one text; a panic tells its seed. Gives what came of it.
fn one(seed: u64) -> String {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let text = SORTS[usize::try_from(seed % 3).unwrap()](&mut dice);
    let options = options(&mut dice);
    let channels: &[&str] = if seed.is_multiple_of(2) {
        &[]
    } else {
        &["1", "2"]
    };
    let mut said = String::new();
    held_to_its_time(&format!("seed {seed}, which is\n{text}\n,"), || {
        let caught = std::panic::catch_unwind(|| outcome_with(&text, channels, &options));
        said = caught.unwrap_or_else(|_| panic!("seed {seed} brings it down:\n{text}"));
    });
    said
}

/// What became of many texts.
#[derive(Default)]
struct Tally {
    texts: [u64; 3],
    compiled: [u64; 3],
    tiled: u64,
    codes: BTreeSet<String>,
}

impl Tally {
    fn add(&mut self, seed: u64, said: &str) {
        let sort = usize::try_from(seed % 3).unwrap();
        self.texts[sort] += 1;
        if said.contains("\"version\"") {
            self.compiled[sort] += 1;
            self.tiled += u64::from(said.contains("\"does\": \"tiled\""));
        } else {
            let codes = said
                .split("error[")
                .skip(1)
                .filter_map(|rest| rest.get(..6));
            self.codes.extend(codes.map(str::to_owned));
        }
    }

    fn count(&self) -> u64 {
        self.texts.iter().sum()
    }
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
    let mut tally = Tally::default();
    // Other seeds than the fixed ones, and others each time.
    let first = match seconds {
        Some(_) => u64::from(std::process::id()) << 32,
        None => 0,
    };
    loop {
        let seed = first + tally.count();
        tally.add(seed, &one(seed));
        let enough = match seconds {
            Some(seconds) => begun.elapsed() >= Duration::from_secs(seconds),
            None => tally.count() >= 1500,
        };
        if enough {
            break;
        }
    }
    let Tally {
        texts,
        compiled,
        tiled,
        codes,
    } = tally;
    println!(
        "{texts:?} texts (words, grammar, damage), {compiled:?} of which compile, {tiled} in tiles; codes: {codes:?}"
    );
    // Texts that are all refused at once, or all for one reason, would try little. Of those that are
    // made to be files some get through to plans, and the others end in every part of the compiler. The
    // fixed texts are always the same, so that what they show is counted; of others it may vary.
    let [_, grammar, damage] = compiled;
    assert!(
        grammar > 0 && damage > 0 && tiled > 0,
        "{compiled:?} compile, {tiled} in tiles"
    );
    if seconds.is_none() {
        let early = ["WL0301", "WL0302", "WL0303", "WL0306", "WL0307"];
        let late = ["WL0313", "WL0314", "WL0327", "WL0331"];
        for code in early.into_iter().chain(late) {
            assert!(codes.contains(code), "nothing ends in {code}: {codes:?}");
        }
    }
}
