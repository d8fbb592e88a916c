//! The closing table.

use std::time::Duration;

use super::checks::Checks;
use super::tally::Tally;

/// One stage, done.
#[derive(Debug)]
pub(super) struct Row {
    name: &'static str,
    checks: Checks,
    took: Duration,
}

impl Row {
    pub(super) fn new(name: &'static str, checks: Checks, took: Duration) -> Self {
        Self { name, checks, took }
    }

    pub(super) fn is_failed(&self) -> bool {
        !self.checks.failures.is_empty() || self.checks.tally.failed > 0
    }

    pub(super) fn verdict(&self) -> &'static str {
        match self.checks.tally {
            _ if self.is_failed() => "FAILED",
            Tally { passed: 0, .. } => "skipped",
            _ => "ok",
        }
    }

    pub(super) fn time(&self) -> String {
        let seconds = self.took.as_secs_f64();
        match seconds {
            ..60.0 => format!("{seconds:.1} s"),
            _ => format!(
                "{} min {:02} s",
                self.took.as_secs() / 60,
                self.took.as_secs() % 60
            ),
        }
    }
}

/// The table, what was skipped and why, what failed and how to see it again, and the sum.
pub(super) fn closing(rows: &[Row]) -> String {
    let mut text = format!(
        "\n{:<15} {:<8} {:>7} {:>7} {:>8} {:>12}\n",
        "stage", "result", "passed", "failed", "skipped", "time"
    );
    let mut sum = Tally::default();
    for row in rows {
        let tally = row.checks.tally;
        sum = sum.plus(tally);
        text.push_str(&format!(
            "{:<15} {:<8} {:>7} {:>7} {:>8} {:>12}\n",
            row.name,
            row.verdict(),
            tally.passed,
            tally.failed,
            tally.skipped,
            row.time()
        ));
    }
    if rows.iter().any(|row| !row.checks.skipped.is_empty()) {
        text.push('\n');
    }
    for row in rows {
        for skipped in &row.checks.skipped {
            text.push_str(&format!("skipped in {}: {skipped}\n", row.name));
        }
    }
    for row in rows.iter().filter(|row| row.is_failed()) {
        text.push_str(&format!("\nfailed: {}\n", row.name));
        for failure in &row.checks.failures {
            text.push_str(&format!("    {failure}\n"));
        }
        text.push_str(&format!("  again: cargo xtask test --only {}\n", row.name));
    }
    text.push_str(&format!("\n{} passed, {} failed\n", sum.passed, sum.failed));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, passed: u32, failed: u32, seconds: u64) -> Row {
        let tally = Tally {
            passed,
            failed,
            skipped: 0,
        };
        let checks = Checks {
            tally,
            ..Checks::default()
        };
        Row::new(name, checks, Duration::from_secs(seconds))
    }

    #[test]
    fn the_last_line_is_the_sum() {
        let mut bad = row("tests", 40, 2, 75);
        bad.checks.failures.push("cargo nextest run".into());
        let mut skipped = row("deny", 0, 0, 0);
        skipped.checks.skip("cargo deny", "not installed");
        let text = closing(&[row("fmt", 1, 0, 1), bad, skipped]);
        let expected = "
stage           result    passed  failed  skipped         time
fmt             ok             1       0        0        1.0 s
tests           FAILED        40       2        0   1 min 15 s
deny            skipped        0       0        1        0.0 s

skipped in deny: cargo deny: not installed

failed: tests
    cargo nextest run
  again: cargo xtask test --only tests

41 passed, 2 failed
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_failure_without_a_count_still_fails() {
        let mut odd = row("tests", 3, 0, 1);
        odd.checks.failures.push("cargo test".into());
        assert_eq!(odd.verdict(), "FAILED");
    }
}
