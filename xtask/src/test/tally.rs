//! How many tests the output of a command says have passed.

/// Tests by outcome.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
}

impl Tally {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }

    fn from_counts(counts: &str, separator: char) -> Self {
        let mut tally = Self::default();
        for count in counts.split(separator) {
            let Some((number, what)) = count.trim().split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u32>() else {
                continue;
            };
            match what {
                "passed" => tally.passed += number,
                "failed" | "timed out" | "exec failed" => tally.failed += number,
                "skipped" | "ignored" => tally.skipped += number,
                _ => {}
            }
        }
        tally
    }
}

/// The closing lines of one command, added up by who wrote them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Closing {
    libtest: Option<Tally>,
    nextest: Option<Tally>,
}

impl Closing {
    /// Understands the closing lines of libtest (and libtest-mimic) and of nextest.
    pub(crate) fn read(&mut self, line: &str) {
        let plain = without_colour(line);
        let line = plain.trim();
        if let Some(counts) = line.strip_prefix("test result: ").and_then(after(". ")) {
            let found = Tally::from_counts(counts, ';');
            self.libtest = Some(self.libtest.unwrap_or_default().plus(found));
        } else if line.starts_with("Summary [")
            && let Some(counts) = after(" run: ")(line)
        {
            let found = Tally::from_counts(&without_brackets(counts), ',');
            self.nextest = Some(self.nextest.unwrap_or_default().plus(found));
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = |a: Option<Tally>, b: Option<Tally>| match (a, b) {
            (Some(a), Some(b)) => Some(a.plus(b)),
            (one, other) => one.or(other),
        };
        Self {
            libtest: sum(self.libtest, other.libtest),
            nextest: sum(self.nextest, other.nextest),
        }
    }

    /// Nextest repeats what a failed test printed, libtest's closing line included, so its own
    /// summary is the one that counts.
    pub(crate) fn tally(self) -> Option<Tally> {
        self.nextest.or(self.libtest)
    }
}

/// What follows the first `mark`.
fn after(mark: &'static str) -> impl Fn(&str) -> Option<&str> {
    move |text| text.split_once(mark).map(|(_, rest)| rest)
}

/// Removes terminal escape sequences.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A colour is `ESC [ … m`; nothing else occurs in these lines.
            for end in chars.by_ref() {
                if end.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Removes remarks such as `(1 slow, 2 leaky)`, whose commas separate nothing of ours.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    // `3 passed (1 slow), 0 skipped` leaves a blank before the comma.
    kept.replace(" ,", ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(line: &str) -> Option<(u32, u32, u32)> {
        let mut closing = Closing::default();
        line.lines().for_each(|line| closing.read(line));
        let tally = closing.tally()?;
        Some((tally.passed, tally.failed, tally.skipped))
    }

    #[test]
    fn what_nextest_repeats_is_not_counted_again() {
        let text = "\
            \n  stdout ---\
            \n    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured\
            \n     Summary [   0.1s] 5 tests run: 4 passed, 1 failed, 0 skipped\
            \n  stdout ---\
            \n    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured";
        assert_eq!(counts(text), Some((4, 1, 0)));
    }

    #[test]
    fn libtest_lines() {
        let line = "test result: FAILED. 9 passed; 1 failed; 2 ignored; 0 measured; 7 filtered out; finished in 0.02s";
        assert_eq!(counts(line), Some((9, 1, 2)));
        assert_eq!(counts("test result of mine"), None);
        assert_eq!(counts("running 3 tests"), None);
    }

    #[test]
    fn nextest_lines() {
        let line =
            "     Summary [   0.512s] 120 tests run: 120 passed (1 slow, 2 leaky), 4 skipped";
        assert_eq!(counts(line), Some((120, 0, 4)));
        let line = "     Summary [   9.0s] 5/9 tests run: 2 passed, 1 failed, 1 timed out, 1 exec failed, 0 skipped";
        assert_eq!(counts(line), Some((2, 3, 0)));
        let line = "     Summary [   0.1s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(counts(line), Some((1, 0, 0)));
    }

    #[test]
    fn colours_do_not_hide_numbers() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.012s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m";
        assert_eq!(counts(line), Some((3, 0, 0)));
    }
}
