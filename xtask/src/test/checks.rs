//! What one stage found out.

use anyhow::Result;

use super::tally::Tally;
use crate::process::Task;

/// Counts, and what to say about everything that did not pass.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) tally: Tally,
    /// What failed: a command that can be typed again, or what was looked at and why it is wrong.
    pub(super) failures: Vec<String>,
    /// What was left out, and why.
    pub(super) skipped: Vec<String>,
}

impl Checks {
    /// Runs a command, and answers whether it succeeded.
    pub(super) fn run(&mut self, task: &Task) -> Result<bool> {
        println!("$ {}", task.named());
        let ran = task.stream()?;
        let ok = ran.status.success();
        self.record(task.shown(), ok, ran.tally.unwrap_or_default());
        Ok(ok)
    }

    /// The tests of a command count one by one; without any it counts as one check.
    fn record(&mut self, command: String, ok: bool, counted: Tally) {
        self.tally = self.tally.plus(counted);
        if ok && counted == Tally::default() {
            self.tally.passed += 1;
        }
        if !ok && counted.failed == 0 {
            self.tally.failed += 1;
        }
        if !ok {
            self.failures.push(command);
        }
    }

    pub(super) fn pass(&mut self, what: &str) {
        println!("ok      {what}");
        self.tally.passed += 1;
    }

    pub(super) fn fail(&mut self, what: &str, why: &str) {
        println!("FAILED  {what}: {why}");
        self.tally.failed += 1;
        self.failures.push(format!("{what}: {why}"));
    }

    pub(super) fn skip(&mut self, what: &str, why: &str) {
        println!("skipped {what}: {why}");
        self.tally.skipped += 1;
        self.skipped.push(format!("{what}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u32, failed: u32, skipped: u32) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn a_command_without_tests_is_one_check() {
        let mut checks = Checks::default();
        checks.record("cargo fmt".into(), true, Tally::default());
        checks.record("cargo clippy".into(), false, Tally::default());
        assert_eq!(checks.tally, tally(1, 1, 0));
        assert_eq!(checks.failures, ["cargo clippy"]);
    }

    #[test]
    fn a_command_with_tests_counts_them() {
        let mut checks = Checks::default();
        checks.record("a".into(), true, tally(4, 0, 1));
        checks.record("b".into(), false, tally(1, 2, 0));
        assert_eq!(checks.tally, tally(5, 2, 1));
        assert_eq!(checks.failures, ["b"]);
    }

    #[test]
    fn tests_that_passed_do_not_hide_a_failed_command() {
        let mut checks = Checks::default();
        checks.record("a".into(), false, tally(4, 0, 0));
        assert_eq!(checks.tally, tally(4, 1, 0));
    }
}
