//! What was typed: commands, flags, help, and what was probably meant.

use std::ffi::OsString;
use std::fmt;

use lexopt::Arg::{Long, Short, Value};
use lexopt::{Parser, ValueExt};

use crate::emu::Machine;
use crate::nearest::nearest;
use crate::wheels::Wheel;

/// One well-formed command line.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Help(Topic),
    Setup { check: bool },
    Detect(Detect),
    Test(Test),
    Bench(Bench),
    Demo,
    CudaCheck(CudaCheck),
    Emu(Emu),
    Oracle(Oracle),
    Arm { filter: Option<String> },
    Tidy,
}

/// Whose help is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Topic {
    All,
    Setup,
    Detect,
    Test,
    Bench,
    Demo,
    CudaCheck,
    Emu,
    Oracle,
    Arm,
    Tidy,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Detect {
    pub(crate) json: bool,
    pub(crate) features: Option<String>,
    /// Handed to `warploom detect` as they are.
    pub(crate) rest: Vec<OsString>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Test {
    pub(crate) quick: bool,
    pub(crate) real_gpu: bool,
    /// Only these stages, by name; empty means all.
    pub(crate) only: Vec<String>,
    /// Only tests whose name contains this; the other stages are left out.
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Bench {
    pub(crate) json: bool,
    /// The commit whose sources are measured in turns with these.
    pub(crate) base: Option<String>,
    pub(crate) groups: Vec<String>,
    /// Handed to the programs that measure against others.
    pub(crate) rest: Vec<OsString>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct CudaCheck {
    /// Make the table of what was measured.
    pub(crate) bless: bool,
    pub(crate) json: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Emu {
    pub(crate) machine: Machine,
    /// Which NVRTC, when it matters.
    pub(crate) nvrtc: Option<Wheel>,
    /// What to run, and its arguments.
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Oracle {
    pub(crate) device: Option<String>,
    /// Nothing of ours has to run: the checker checks itself or lists what it would do.
    pub(crate) alone: bool,
    /// Operations and options for the oracle itself.
    pub(crate) rest: Vec<OsString>,
}

pub(crate) const COMMANDS: &[(&str, Topic)] = &[
    ("setup", Topic::Setup),
    ("detect", Topic::Detect),
    ("demo", Topic::Demo),
    ("test", Topic::Test),
    ("bench", Topic::Bench),
    ("cuda-check", Topic::CudaCheck),
    ("emu", Topic::Emu),
    ("oracle", Topic::Oracle),
    ("arm", Topic::Arm),
    ("tidy", Topic::Tidy),
];

/// A command line that means nothing, and what may have been meant.
#[derive(Debug, PartialEq)]
pub(crate) enum Usage {
    UnknownCommand {
        typed: String,
        near: Option<&'static str>,
    },
    UnknownStage {
        typed: String,
        near: Option<&'static str>,
    },
    Bad(String),
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, typed, near) = match self {
            Self::UnknownCommand { typed, near } => ("command", typed, near),
            Self::UnknownStage { typed, near } => ("stage", typed, near),
            Self::Bad(text) => return f.write_str(text),
        };
        write!(f, "there is no {what} `{typed}`")?;
        match near {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl From<lexopt::Error> for Usage {
    fn from(error: lexopt::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

/// Reads a command line without its program name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Request, Usage> {
    let mut parser = Parser::from_args(args);
    let topic = match parser.next()? {
        None | Some(Long("help") | Short('h')) => return Ok(Request::Help(Topic::All)),
        Some(Value(word)) if word == "help" => match parser.next()? {
            Some(Value(word)) => return Ok(Request::Help(command(&word.string()?)?)),
            _ => return Ok(Request::Help(Topic::All)),
        },
        Some(Value(word)) => command(&word.string()?)?,
        Some(other) => return Err(other.unexpected().into()),
    };
    let request = match topic {
        Topic::Setup => setup(&mut parser)?,
        Topic::Detect => detect(&mut parser)?,
        Topic::Test => test(&mut parser)?,
        Topic::Bench => bench(&mut parser)?,
        Topic::Demo => bare(&mut parser, Request::Demo)?,
        Topic::CudaCheck => cuda_check(&mut parser)?,
        Topic::Emu => emu(&mut parser)?,
        Topic::Oracle => oracle(&mut parser)?,
        Topic::Arm => arm(&mut parser)?,
        Topic::Tidy => bare(&mut parser, Request::Tidy)?,
        Topic::All => Some(Request::Help(Topic::All)),
    };
    Ok(request.unwrap_or(Request::Help(topic)))
}

fn command(typed: &str) -> Result<Topic, Usage> {
    let known = COMMANDS.iter().find(|(name, _)| *name == typed);
    known
        .map(|(_, topic)| *topic)
        .ok_or_else(|| Usage::UnknownCommand {
            typed: typed.to_owned(),
            near: nearest(typed, COMMANDS.iter().map(|(name, _)| *name)),
        })
}

/// The parsers below answer `None` when help was asked for.
type Parsed = Result<Option<Request>, Usage>;

fn bare(parser: &mut Parser, request: Request) -> Parsed {
    match parser.next()? {
        None => Ok(Some(request)),
        Some(Long("help") | Short('h')) => Ok(None),
        Some(other) => Err(other.unexpected().into()),
    }
}

fn setup(parser: &mut Parser) -> Parsed {
    let mut check = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("check") => check = true,
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(Request::Setup { check }))
}

fn arm(parser: &mut Parser) -> Parsed {
    let mut filter = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Value(word) if filter.is_none() => filter = Some(word.string()?),
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(Request::Arm { filter }))
}

fn detect(parser: &mut Parser) -> Parsed {
    let mut flags = Detect::default();
    loop {
        // Everything behind a bare `--` belongs to `warploom detect`.
        if let Some(raw) = parser.try_raw_args()
            && raw.peek().is_some_and(|next| next == "--")
        {
            flags.rest.extend(raw.skip(1));
            return Ok(Some(Request::Detect(flags)));
        }
        match parser.next()? {
            None => return Ok(Some(Request::Detect(flags))),
            Some(Long("json")) => flags.json = true,
            Some(Long("features")) => flags.features = Some(parser.value()?.string()?),
            Some(Long("help") | Short('h')) => return Ok(None),
            // Whatever is not ours is for `warploom detect`, which knows its own options.
            Some(Long(name)) => {
                let mut word = OsString::from(format!("--{name}"));
                if let Some(value) = parser.optional_value() {
                    word.push("=");
                    word.push(value);
                }
                flags.rest.push(word);
            }
            Some(Short(letter)) => flags.rest.push(format!("-{letter}").into()),
            Some(Value(word)) => flags.rest.push(word),
        }
    }
}

fn test(parser: &mut Parser) -> Parsed {
    let mut flags = Test::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("quick") => flags.quick = true,
            Long("real-gpu") => flags.real_gpu = true,
            Long("only") => {
                let names = parser.value()?.string()?;
                for name in names.split(',').filter(|name| !name.is_empty()) {
                    flags.only.push(stage(name)?.to_owned());
                }
            }
            Long("help") | Short('h') => return Ok(None),
            Value(word) if flags.filter.is_none() => flags.filter = Some(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if flags.filter.is_some() && !flags.only.is_empty() {
        return Err(Usage::Bad(
            "FILTER runs the stage `tests` only, so it cannot be given together with --only".into(),
        ));
    }
    Ok(Some(Request::Test(flags)))
}

fn stage(typed: &str) -> Result<&'static str, Usage> {
    let mut names = crate::test::stage_names();
    names
        .find(|name| *name == typed)
        .ok_or_else(|| Usage::UnknownStage {
            typed: typed.to_owned(),
            near: nearest(typed, crate::test::stage_names()),
        })
}

fn bench(parser: &mut Parser) -> Parsed {
    let mut flags = Bench::default();
    loop {
        if let Some(raw) = parser.try_raw_args()
            && raw.peek().is_some_and(|next| next == "--")
        {
            flags.rest.extend(raw.skip(1));
            return Ok(Some(Request::Bench(flags)));
        }
        match parser.next()? {
            None => return Ok(Some(Request::Bench(flags))),
            Some(Long("json")) => flags.json = true,
            Some(Long("base")) => flags.base = Some(parser.value()?.string()?),
            Some(Long("help") | Short('h')) => return Ok(None),
            Some(Value(word)) => flags.groups.push(word.string()?),
            Some(other) => return Err(other.unexpected().into()),
        }
    }
}

fn oracle(parser: &mut Parser) -> Parsed {
    let mut flags = Oracle::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("device") => flags.device = Some(parser.value()?.string()?),
            Long(word @ ("quick" | "sparse" | "json" | "list" | "selftest")) => {
                flags.alone |= matches!(word, "list" | "selftest");
                flags.rest.push(format!("--{word}").into());
            }
            Long(word @ ("types" | "shapes" | "keep")) => {
                flags.rest.push(format!("--{word}").into());
                flags.rest.push(parser.value()?);
            }
            Long("help") | Short('h') => return Ok(None),
            Value(word) => flags.rest.push(word),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(Request::Oracle(flags)))
}

fn cuda_check(parser: &mut Parser) -> Parsed {
    let mut flags = CudaCheck::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("bless") => flags.bless = true,
            Long("json") => flags.json = true,
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(Request::CudaCheck(flags)))
}

fn emu(parser: &mut Parser) -> Parsed {
    let mut flags = Emu::default();
    loop {
        // Everything behind a bare `--`, or from the first word on, is the command.
        if let Some(raw) = parser.try_raw_args()
            && raw.peek().is_some_and(|next| next == "--")
        {
            flags.command = raw.skip(1).collect();
            break;
        }
        let machine = &mut flags.machine;
        match parser.next()? {
            None => break,
            Some(Long("devices")) => machine.devices = Some(parser.value()?.string()?),
            Some(Long("seed")) => machine.seed = Some(parser.value()?.parse()?),
            Some(Long("jitter")) => machine.jitter = Some(parser.value()?.parse()?),
            Some(Long("fail")) => machine.fail.push(parser.value()?.string()?),
            Some(Long("lose")) => machine.lose.push(parser.value()?.string()?),
            Some(Long("log")) => machine.log = Some(parser.value()?.string()?),
            Some(Long("nvrtc")) => {
                let major: u32 = parser.value()?.parse()?;
                let wheel = crate::emu::wheel(major);
                flags.nvrtc = Some(wheel.ok_or_else(|| {
                    Usage::Bad(format!("there is NVRTC 12 and NVRTC 13, but not {major}"))
                })?);
            }
            Some(Long("help") | Short('h')) => return Ok(None),
            Some(Value(word)) => {
                flags.command = std::iter::once(word).chain(parser.raw_args()?).collect();
                break;
            }
            Some(other) => return Err(other.unexpected().into()),
        }
    }
    if flags.command.is_empty() {
        return Err(Usage::Bad("put the command to run behind `--`".into()));
    }
    Ok(Some(Request::Emu(flags)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Result<Request, Usage> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn nothing_typed_is_a_question() {
        assert_eq!(typed(""), Ok(Request::Help(Topic::All)));
        assert_eq!(typed("help test"), Ok(Request::Help(Topic::Test)));
        assert_eq!(typed("tidy --help"), Ok(Request::Help(Topic::Tidy)));
        assert_eq!(typed("detect --json -h"), Ok(Request::Help(Topic::Detect)));
    }

    #[test]
    fn a_slip_is_answered_with_a_suggestion() {
        let error = typed("detcet").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no command `detcet`; did you mean `detect`?"
        );
        let error = typed("frobnicate").unwrap_err();
        assert_eq!(error.to_string(), "there is no command `frobnicate`");
        let error = typed("test --only clipy").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no stage `clipy`; did you mean `clippy`?"
        );
    }

    #[test]
    fn what_follows_two_dashes_is_not_ours() {
        let expected = Detect {
            json: true,
            features: Some("cpu,cuda".into()),
            rest: vec!["--cpu-only".into(), "--json".into()],
        };
        assert_eq!(
            typed("detect --json --features cpu,cuda -- --cpu-only --json"),
            Ok(Request::Detect(expected))
        );
        let rest = |text: &str| match typed(text) {
            Ok(Request::Detect(flags)) => flags.rest,
            other => panic!("{other:?}"),
        };
        assert_eq!(rest("detect --cpu-only -vv"), ["--cpu-only", "-v", "-v"]);
        assert_eq!(
            rest("detect --backends cpu --json --deadline=9"),
            ["--backends", "cpu", "--deadline=9"]
        );
    }

    #[test]
    fn an_oracle_is_asked_about_operations() {
        let Ok(Request::Oracle(flags)) =
            typed("oracle gaussian --quick --types u8,f32 --device opencl:0 sobel")
        else {
            panic!("a good line was refused");
        };
        let expected = ["gaussian", "--quick", "--types", "u8,f32", "sobel"];
        assert_eq!(flags.rest, expected);
        assert!(flags.device.as_deref() == Some("opencl:0") && !flags.alone);
        assert!(typed("oracle --fast").is_err());
        let Ok(Request::Oracle(flags)) = typed("oracle --selftest") else {
            panic!("a good line was refused");
        };
        assert!(flags.alone && flags.rest == ["--selftest"]);
        let Ok(Request::Bench(flags)) = typed("bench ops --json -- gaussian --json") else {
            panic!("a good line was refused");
        };
        assert!(flags.json && flags.groups == ["ops"]);
        assert_eq!(flags.rest, ["gaussian", "--json"]);
    }

    #[test]
    fn stages_and_a_filter_exclude_each_other() {
        let Ok(Request::Test(flags)) = typed("test --quick --only fmt,tidy") else {
            panic!("a good line was refused");
        };
        assert!(flags.quick && flags.only == ["fmt", "tidy"]);
        let Ok(Request::Test(flags)) = typed("test lease_ --real-gpu") else {
            panic!("a good line was refused");
        };
        assert!(flags.real_gpu && flags.filter.as_deref() == Some("lease_"));
        assert!(typed("test --only fmt lease_").is_err());
        assert!(typed("test one two").is_err());
    }

    #[test]
    fn a_machine_and_a_command_are_told_apart() {
        let Ok(Request::Emu(flags)) = typed(
            "emu --devices 3 --seed 7 --jitter=50 --fail a#1=X --fail b#2=Y --lose 1@5 \
             --nvrtc 12 -- cargo test --seed 9",
        ) else {
            panic!("a good line was refused");
        };
        let expected = Machine {
            devices: Some("3".into()),
            seed: Some(7),
            jitter: Some(50),
            fail: vec!["a#1=X".into(), "b#2=Y".into()],
            lose: vec!["1@5".into()],
            log: None,
        };
        assert_eq!(flags.machine, expected);
        assert_eq!(flags.nvrtc, Some(crate::wheels::NVRTC_12));
        assert_eq!(flags.command, ["cargo", "test", "--seed", "9"]);
        let Ok(Request::Emu(flags)) = typed("emu ls -l") else {
            panic!("a good line was refused");
        };
        assert_eq!(flags.command, ["ls", "-l"]);
        for bad in [
            "emu",
            "emu --",
            "emu --nvrtc 11 -- ls",
            "emu --seed x -- ls",
        ] {
            assert!(typed(bad).is_err(), "{bad}");
        }
        assert_eq!(typed("emu --seed 1 --help"), Ok(Request::Help(Topic::Emu)));
    }
}
