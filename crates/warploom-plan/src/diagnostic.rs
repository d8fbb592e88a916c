//! What is wrong with a pipeline, for people and for programs: all of it at once.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use warploom_core::Code;

/// A stretch of the pipeline file, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Where it starts.
    pub start: usize,
    /// Where it ends; the byte here is not part of it.
    pub end: usize,
}

impl Place {
    /// Line and column of the start, both from 1; columns count characters.
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let mut start = self.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let head = before.rfind('\n').map_or(0, |at| at + 1);
        (line, before[head..].chars().count() + 1)
    }
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// There is no plan.
    Error,
    /// There is a plan, and something in it is probably not meant.
    Warning,
}

/// One finding.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Its stable code, `WL0301`.
    #[serde(serialize_with = "as_text")]
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One clause: what was asked, of whom, with the numbers.
    pub message: String,
    /// The step it is about.
    pub step: Option<String>,
    /// Where in the file.
    pub place: Option<Place>,
    /// Said under that place.
    pub label: Option<String>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "this is how serde calls it"
)]
fn as_text<S: serde::Serializer>(code: &Code, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(code)
}

impl Diagnostic {
    /// An error.
    pub fn error(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            severity: Severity::Error,
            message: message.into(),
            step: None,
            place: None,
            label: None,
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning.
    pub fn warning(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }

    /// About this step.
    #[must_use]
    pub fn step(mut self, name: impl Into<String>) -> Self {
        self.step = Some(name.into());
        self
    }

    /// At this place, if it is known.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// With a word under the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// With a further fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With a way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With a way out, if there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }
}

impl fmt::Display for Diagnostic {
    /// Without the text of the file: `error[WL0301]: …` and its notes, one per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}[{}]: {}", self.code, self.message)?;
        if let Some(label) = &self.label {
            write!(f, "\n  = {label}")?;
        }
        for note in &self.notes {
            write!(f, "\n  = {note}")?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  = help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// The most findings that are told; whoever has more to mend begins with these.
pub(crate) const MOST: usize = 100;

/// Adds findings that are not there yet: most of what is wrong with one branch is wrong with all.
pub(crate) fn merge(findings: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) {
    let key = |finding: &Diagnostic| (finding.code, finding.place, finding.message.clone());
    let mut known: BTreeSet<_> = findings.iter().map(key).collect();
    for finding in found {
        if known.insert(key(&finding)) {
            findings.push(finding);
        }
    }
}

/// The first of them, and how many more there are.
pub(crate) fn shortened(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let more = findings.len().saturating_sub(MOST);
    findings.truncate(MOST);
    if let Some(last) = findings.last_mut()
        && more > 0
    {
        last.notes.push(format!("and {more} more findings"));
    }
    findings
}

macro_rules! problems {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal, $page:literal;)*) => {
        /// What the compiler can find. Each has a page for `warploom explain`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[non_exhaustive]
        pub enum Problem {
            $($(#[doc = $doc])* $name,)*
        }

        impl Problem {
            /// All of them, by code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its code.
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$name => Code($number),)*
                }
            }

            /// What it means, why it is refused and what usually helps.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$name => $page,)*
                }
            }

            /// The sentence its documentation starts with.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),*),)*
                }
            }
        }
    };
}

impl From<Problem> for Code {
    fn from(problem: Problem) -> Self {
        problem.code()
    }
}

problems! {
    /// The file is no TOML. (WL0301)
    Syntax = 301, "A pipeline is a TOML file. The message is the TOML reader's own and points at the place where it gave up; a missing quote or bracket is often a line or two above it.";
    /// A field that nothing reads. (WL0302)
    UnknownField = 302, "Every field of a pipeline changes the plan, and a field that nothing reads is refused rather than ignored: a misspelt `sigma` would otherwise run with the default. Fields of a step that are not the language's own are parameters of its operation, so a misspelt parameter is reported as the operation's (WL0603).";
    /// A field of the wrong type. (WL0303)
    WrongType = 303, "The field exists and takes another kind of value, for instance a text where a table was written.";
    /// A field that must be there and is not. (WL0304)
    MissingField = 304, "A pipeline has at least one `[[step]]`; a step says what it does with `op`, `chain` or `branch`; an output says which step it is `of` and where to `write` it.";
    /// Two things of one name. (WL0305)
    DuplicateName = 305, "Steps, inputs and constants share one set of names, because `input` refers to any of them. Files have names too: two outputs, or the channels of one, that would be written to the same file are refused.";
    /// A name that nothing has. (WL0306)
    UnknownName = 306, "`input`, `of` and `from` name a step, an input or a constant of the same file. `image` is the record itself unless `[inputs]` declares other names.";
    /// Steps that wait for each other. (WL0307)
    Cycle = 307, "Steps may be written in any order, but none may depend on its own result. The message lists the steps around the circle.";
    /// A word that is not one of the choices. (WL0308)
    UnknownWord = 308, "The field takes one of a few words, which the message lists. Words are written small, as in the list. In the name of a file to write, what is in braces is such a word: `{record}`, `{channel}`, or a field of the pattern that records were found by.";
    /// A step that does several things at once. (WL0309)
    Ambiguous = 309, "A step is one operation (`op`), several in a row (`chain`), or one chain per value of an axis (`branch`): exactly one of them.";
    /// A name that cannot be one. (WL0310)
    BadName = 310, "Names are letters, digits, `_` and `-`, begin with a letter and have at most 64 characters, because they become names of files and columns. A file to write is a path below the folder of results: without a root and without `..`.";
    /// Something that nothing uses. (WL0311)
    Unused = 311, "Nothing that is written depends on the step: it is checked with the others, but left out of the plan, and needs neither time nor memory nor the device it names. Write its result with an `[[output]]`, let a step read it that is written, or remove it. Inputs and constants that no such step reads are told as well; they are part of every record, or read once, all the same. A setting that changes nothing where it stands is told under this code, too.";
    /// More steps than a plan may have. (WL0312)
    TooLarge = 312, "A pipeline has at most 2000 operations and its file at most 4 MiB. Larger ones are almost always a mistake of the program that wrote them.";
    /// A branch whose keys are not the record's. (WL0313)
    BranchKeys = 313, "`branch.by = \"channel\"` needs exactly one chain per channel of the records, no more and no fewer, so that no channel is skipped by a slip of the pen. Keys that are numbers are compared as numbers: `02` is channel 2.";
    /// An image that should be something else, or something else that should be an image. (WL0314)
    WrongValue = 314, "Operations read images. Numbers (`totals`, `percentiles`) are used as parameters: `value = { from = \"limits\", item = 1 }`; tables can only be written.";
    /// A parameter that cannot be computed by an earlier step. (WL0315)
    NotLate = 315, "Parameters that decide how much work there is, such as radii and sizes, must be known before anything runs. Numbers that only enter a formula, such as thresholds, may come from an earlier step.";
    /// A number that the earlier step does not give. (WL0316)
    NoItem = 316, "`item` is the name of a number or its position from 0, as the page of the operation lists them.";
    /// A record that the pipeline cannot take. (WL0317)
    RecordMismatch = 317, "The pipeline names channels or axes that the records do not have.";
    /// Branches beside named inputs. (WL0318)
    BranchOfInputs = 318, "A step that branches by channel runs once for each channel of a record, with one image called `image`. `[inputs]` gives several channels to one run. A pipeline does the one or the other; steps that read a named input are the branch of that channel.";
    /// A file that cannot hold its result. (WL0319)
    BadEnding = 319, "The ending of a file's name says its format. Images are written as .tif, .tiff (`.ome.tif` too), .png, .npy or .zarr, numbers as .json, .csv or .npy, tables as .csv, .json or .parquet. Whether a format has a result's element type is told when it is known which records there are.";
    /// A kind of memory that does not exist. (WL0321)
    UnknownMemory = 321, "`memory` names a kind of memory, such as `host`, `cuda.device` or `opencl.device`, or a name people know from elsewhere: numpy, cupy, torch, tensorflow, jax, pyclesperanto.";
    /// Backends that are needed and not there. (WL0322)
    MissingBackend = 322, "Steps ask for backends that are not in this build, whose drivers are not installed, or that found no device. All of them are named in one message, each with its reason. `warploom detect` shows the same.";
    /// A GPU is needed and nobody has looked for one. (WL0323)
    NoRegistry = 323, "Steps that need a GPU can only be compiled after the devices of the machine are known. Pipelines of CPU steps need no detection.";
    /// A GPU is needed and there is none. (WL0324)
    NoDevice = 324, "No device was found for what the steps ask. The message lists every backend that was tried and why it gave nothing.";
    /// Memory of two backends where one was asked for. (WL0325)
    Contradiction = 325, "`backend`, `memory` and `device` of a step must agree: `memory = \"cupy\"` is memory of the backend `cuda`.";
    /// A copy through the host that is forbidden. (WL0326)
    HostCopy = 326, "The pipeline says `strict = \"no-host-copy\"`, and a value would have to travel through host memory between two steps. Put both steps on one backend, or allow the copy.";
    /// No one card can run all steps. (WL0327)
    NoCommonDevice = 327, "All steps of a pipeline run on one card, so that images stay in its memory. The steps ask for faces that no single card has, or that `--devices` does not allow. `spread_steps = true` allows several cards.";
    /// A device of a name that is not there. (WL0328)
    UnknownDevice = 328, "`device` is a card (`gpu0`, `cpu`) or one of its faces (`cuda:0`), as `warploom detect` lists them.";
    /// An operation that the device cannot do. (WL0329)
    Unable = 329, "The operation needs something that this device lacks, for instance numbers of 64 bits.";
    /// The plan does not fit. (WL0331)
    DoesNotFit = 331, "The bytes of all values that live at the same time exceed the budget. The message has the numbers, the step at which memory is fullest, and what will do: the smallest budget, a depth, or the setting to leave out; where no budget will, because the card or the host has less than is needed, it says how much that is. Records that are larger than a device allows go through it in tiles, with whole images in host memory; on the processor a budget is then of what tiles take beside them. There are no tiles where: `strict = \"no-host-copy\"` forbids the way through the host to a card; a depth was asked for; every operation looks at whole images, or one that does is in a step that names its place; or one pixel with all that its operations read around it, and their weights, is too much. A note says which.";
    /// A budget that makes no sense. (WL0332)
    BadBudget = 332, "A budget is a number of bytes above 0, such as `4GiB`; a depth is a number of records above 0.";
    /// An operation that runs on the processor, although a card is asked for. (WL0333)
    Moved = 333, "Either only the processor can do it (`warploom ops` has the reason): it then runs there, wherever its step or the pipeline asks for, and what it reads is copied. `backend = \"cpu\"` in its step says the same without a warning. Or the record is larger than the card and goes through it in tiles. Operations that look at whole images (sums, percentiles, labels, distances) then run on the processor, between two passes over tiles, although the pipeline's `backend`, `memory` or `device` names the card for all steps. An operation whose own step names a place is never moved: the plan is refused instead.";
    /// A plan of another version. (WL0341)
    PlanVersion = 341, "Plans are read by the version that wrote them. Compile the pipeline again.";
}

/// The page of a code of the compiler, for `warploom explain`.
pub fn page(code: Code) -> Option<(&'static str, &'static str)> {
    let problem = Problem::ALL.iter().find(|known| known.code() == code)?;
    Some((problem.title().trim(), problem.page()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_say_their_number() {
        for pair in Problem::ALL.windows(2) {
            assert!(pair[0].code() < pair[1].code(), "{:?}", pair[1]);
        }
        for problem in Problem::ALL {
            let code = format!("({})", problem.code());
            assert!(problem.title().ends_with(&code), "{problem:?}");
            assert!(problem.page().len() > 60, "{problem:?} deserves a page");
        }
    }

    #[test]
    fn places_are_told_in_lines_and_characters() {
        let text = "a = 1\nb = \"ä\" # ü\nc";
        let at = |start| Place { start, end: start }.line_column(text);
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(6), (2, 1));
        assert_eq!(at(text.find('ü').unwrap()), (2, 11));
        // In the middle of a character, and beyond the end.
        assert_eq!(at(text.find('ü').unwrap() + 1), (2, 11));
        assert_eq!(at(999), (3, 2));
    }
}
