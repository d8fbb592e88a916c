//! Other people's schedulers, as programs that do one round when they are asked.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A peer that runs, and rests between rounds.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the program that a variable names; `None` where it names none.
    #[expect(
        clippy::disallowed_methods,
        reason = "it is how `cargo xtask bench` says where it has built peers"
    )]
    pub(crate) fn start(
        variable: &str,
        settings: &[(&str, &str)],
    ) -> Result<Option<Self>, Box<dyn Error>> {
        let Some(program) = std::env::var_os(variable) else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command.envs(settings.iter().copied());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Some(Self {
            child,
            input,
            output,
        }))
    }

    /// One round: nanoseconds; `None` where it cannot do that here.
    pub(crate) fn round(&mut self, word: &str) -> Result<Option<f64>, Box<dyn Error>> {
        writeln!(self.input, "{word}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let nanos: f64 = line.trim().parse()?;
        Ok((nanos >= 0.0).then_some(nanos))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Whether it hears that or is gone: nobody needs it any more.
        let _ = writeln!(self.input, "quit");
        let _ = self.input.flush();
        let _ = self.child.wait();
    }
}
