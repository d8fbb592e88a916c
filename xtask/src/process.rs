//! Starting other programs: with their environment spelled out, their output passed on as it
//! comes, and their test results counted on the way.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::test::tally::{Closing, Tally};

/// Variables for a child process.
pub(crate) type Variables = Vec<(&'static str, OsString)>;

/// A program to start, with arguments and variables.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    program: OsString,
    args: Vec<OsString>,
    variables: Variables,
    dir: PathBuf,
}

/// How a streamed task went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    /// The tests it reported, if it reported any.
    pub(crate) tally: Option<Tally>,
}

/// What a captured task left.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Task {
    /// A program that starts in the workspace's root.
    pub(crate) fn new(project: &Project, program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            variables: Vec::new(),
            dir: project.root.clone(),
        }
    }

    pub(crate) fn cargo<A: AsRef<OsStr>>(
        project: &Project,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(project, project.cargo.clone()).args(args)
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.args.extend(args);
        self
    }

    /// Starts in this directory instead.
    pub(crate) fn inside(mut self, dir: PathBuf) -> Self {
        self.dir = dir;
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn variables(mut self, variables: &Variables) -> Self {
        self.variables.extend(variables.iter().cloned());
        self
    }

    /// The line a person would type.
    pub(crate) fn shown(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for (name, value) in &self.variables {
            words.push(format!("{name}={}", quoted(value)));
        }
        words.push(self.named());
        words.join(" ")
    }

    /// The same without its variables, which are longer than the rest.
    pub(crate) fn named(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let program = PathBuf::from(&self.program);
        let is_cargo = program.file_stem() == Some(OsStr::new("cargo"));
        words.push(if is_cargo {
            "cargo".into()
        } else {
            quoted(&self.program)
        });
        words.extend(self.args.iter().map(|arg| quoted(arg)));
        words.join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.dir);
        // What cargo tells this program about itself is not true of the next one.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn spawn(&self, mut command: Command) -> Result<Child> {
        command
            .spawn()
            .with_context(|| format!("could not start `{}`", self.shown()))
    }

    /// Runs with this program's own input and output.
    pub(crate) fn status(&self) -> Result<ExitStatus> {
        let mut child = self.spawn(self.command())?;
        Ok(child.wait()?)
    }

    /// Runs, passes on both outputs line by line, and counts the tests they report.
    pub(crate) fn stream(&self) -> Result<Ran> {
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if std::io::stderr().is_terminal() {
            // The child sees a pipe, but what it writes still ends up on a terminal.
            command.env("CARGO_TERM_COLOR", "always");
        }
        let mut child = self.spawn(command)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let closing = thread::scope(|scope| {
            let out = scope.spawn(|| pass_on(out, std::io::stdout()));
            let err = scope.spawn(|| pass_on(err, std::io::stderr()));
            let (out, err) = (out.join(), err.join());
            out.unwrap_or_default().plus(err.unwrap_or_default())
        });
        let tally = closing.tally();
        let status = child.wait()?;
        Ok(Ran { status, tally })
    }

    /// Runs and keeps standard output; standard error stays visible. Failing is an error.
    pub(crate) fn stdout(&self) -> Result<String> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let output = self.spawn(command)?.wait_with_output()?;
        if !output.status.success() {
            bail!("`{}` failed ({})", self.shown(), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs quietly and keeps what it says; a run past the deadline is killed and an error.
    pub(crate) fn capture(&self, deadline: Duration) -> Result<Captured> {
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.spawn(command)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let start = Instant::now();
        thread::scope(|scope| {
            let out = scope.spawn(|| collect(out));
            let err = scope.spawn(|| collect(err));
            let status = loop {
                if let Some(status) = child.try_wait()? {
                    break status;
                }
                if start.elapsed() > deadline {
                    child.kill()?;
                    child.wait()?;
                    bail!("no answer within {deadline:?} from `{}`", self.shown());
                }
                thread::sleep(Duration::from_millis(5));
            };
            Ok(Captured {
                status,
                stdout: out.join().unwrap_or_default(),
                stderr: err.join().unwrap_or_default(),
            })
        })
    }
}

/// Copies lines from a child to `to`, reading the closing lines of its tests on the way.
fn pass_on(from: Option<impl Read>, mut to: impl Write) -> Closing {
    let mut closing = Closing::default();
    let Some(from) = from else {
        return closing;
    };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A closed terminal is no reason to stop reading: the child would block.
        match from.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return closing,
            Ok(_) => drop(to.write_all(&line).and_then(|()| to.flush())),
        }
        closing.read(&String::from_utf8_lossy(&line));
    }
}

fn collect(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // What arrived before a broken pipe is still worth showing.
        drop(from.read_to_end(&mut bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A word as a shell would need it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whether this is a CI machine, where nothing may be skipped for convenience.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI")
        .is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> Project {
        Project {
            root: std::env::temp_dir(),
            target: std::env::temp_dir(),
            cargo: "cargo".into(),
            packages: Vec::new(),
        }
    }

    #[test]
    fn a_task_is_shown_as_it_would_be_typed() {
        let task = Task::cargo(&project(), ["test", "-E", "package(a b)"])
            .variable("POCL_DEVICES", "pthread basic");
        assert_eq!(
            task.shown(),
            "POCL_DEVICES='pthread basic' cargo test -E 'package(a b)'"
        );
        assert_eq!(quoted(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(OsStr::new("")), "''");
    }

    #[cfg(unix)]
    #[test]
    fn both_outputs_and_the_code_are_kept() {
        let task = Task::new(&project(), "sh").args(["-c", "echo out; echo err >&2; exit 3"]);
        let captured = task.capture(Duration::from_secs(20)).unwrap();
        assert_eq!(captured.stdout, "out\n");
        assert_eq!(captured.stderr, "err\n");
        assert_eq!(captured.status.code(), Some(3));
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_hangs_is_ended() {
        let task = Task::new(&project(), "sleep").args(["600"]);
        let error = task.capture(Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("no answer within 50ms"));
    }

    #[test]
    fn tests_are_counted_as_lines_pass() {
        let text = "a\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n\
                    b\ntest result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured";
        let mut copy = Vec::new();
        let tally = pass_on(Some(text.as_bytes()), &mut copy).tally().unwrap();
        assert_eq!(copy, text.as_bytes());
        assert_eq!((tally.passed, tally.failed, tally.skipped), (3, 3, 1));
    }
}
