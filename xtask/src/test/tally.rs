//! How many tests a line of output says have passed.

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

    /// Understands the closing lines of libtest (and libtest-mimic) and of nextest.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let plain = without_colour(line);
        let line = plain.trim();
        if let Some(rest) = line.strip_prefix("test result: ") {
            let (_, counts) = rest.split_once(". ")?;
            return Some(Self::from_counts(counts, ';'));
        }
        if line.starts_with("Summary [") {
            let (_, counts) = line.split_once(" run: ")?;
            return Some(Self::from_counts(&without_brackets(counts), ','));
        }
        None
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
        Tally::from_line(line).map(|tally| (tally.passed, tally.failed, tally.skipped))
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
