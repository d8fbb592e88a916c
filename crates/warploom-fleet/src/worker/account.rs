//! What a worker says of itself when it is asked: its batches, and where its threads are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::journal::BatchId;

/// The most kinds of threads that are told of: a failure quotes few lines.
const MOST: usize = 16;

/// A batch that the work has.
#[derive(Debug)]
pub(super) struct UnderWay {
    records: usize,
    answered: usize,
    begun: Instant,
    last: Instant,
}

impl UnderWay {
    pub(super) fn new(records: usize) -> Self {
        let now = Instant::now();
        Self {
            records,
            answered: 0,
            begun: now,
            last: now,
        }
    }

    pub(super) fn answered(&mut self) {
        self.answered += 1;
        self.last = Instant::now();
    }
}

/// A few lines for the log.
pub(super) fn account(under_way: &BTreeMap<BatchId, UnderWay>, now: Instant) -> String {
    let mut text = String::from("asked what it is doing:\n");
    for (batch, one) in under_way {
        let begun = now.saturating_duration_since(one.begun).as_secs_f64();
        let quiet = now.saturating_duration_since(one.last).as_secs_f64();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  batch {batch}: begun {begun:.1} s ago, {} of {} records answered, nothing for {quiet:.1} s",
            one.answered, one.records
        );
    }
    let threads = threads(Path::new("/proc/self/task"));
    for ((name, place), count) in threads.iter().take(MOST) {
        let _ = writeln!(text, "  {count} x thread `{name}` {place}");
    }
    if threads.len() > MOST {
        let _ = writeln!(
            text,
            "  and {} other kinds of threads",
            threads.len() - MOST
        );
    }
    text
}

/// Threads by name, state and where in the kernel they wait; and how many of each.
fn threads(tasks: &Path) -> BTreeMap<(String, String), usize> {
    let mut found = BTreeMap::new();
    for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let status = read("stat");
        let state = status.rsplit_once(')').map_or("", |(_, rest)| rest.trim());
        let state = match state.chars().next() {
            Some('R') => "runs".to_owned(),
            Some('S') => "waits".to_owned(),
            Some('D') => "waits for a driver or a disk, and cannot be ended".to_owned(),
            Some(other) => format!("is in state {other}"),
            None => continue,
        };
        let wait = read("wchan");
        let place = match wait.trim() {
            "" | "0" => state,
            wait => format!("{state} in {wait}"),
        };
        let name = read("comm").trim().to_owned();
        *found.entry((name, place)).or_default() += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_account_tells_batches_and_threads() {
        let mut one = UnderWay::new(40);
        one.answered();
        let now = one.begun + Duration::from_secs(3);
        one.last = one.begun + Duration::from_millis(500);
        let text = account(&BTreeMap::from([(7, one)]), now);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "asked what it is doing:");
        assert_eq!(
            lines[1],
            "  batch 7: begun 3.0 s ago, 1 of 40 records answered, nothing for 2.5 s"
        );
        // This thread, at least, runs.
        assert!(text.contains("runs"), "{text}");
    }

    #[test]
    fn threads_of_one_kind_are_counted() {
        let tasks = tempfile::tempdir().expect("a folder");
        for (task, state, wait) in [(1, 'D', "nvidia_ioctl"), (2, 'S', "0"), (3, 'S', "0")] {
            let own = tasks.path().join(task.to_string());
            fs::create_dir(&own).expect("a folder");
            let name = if task == 1 { "main" } else { "pool (a)" };
            fs::write(own.join("comm"), format!("{name}\n")).expect("a file");
            fs::write(own.join("stat"), format!("{task} ({name}) {state} 1 2")).expect("a file");
            fs::write(own.join("wchan"), wait).expect("a file");
        }
        let found: Vec<_> = threads(tasks.path()).into_iter().collect();
        let stuck = "waits for a driver or a disk, and cannot be ended in nvidia_ioctl".to_owned();
        assert_eq!(
            found,
            [
                (("main".to_owned(), stuck), 1),
                (("pool (a)".to_owned(), "waits".to_owned()), 2)
            ]
        );
    }
}
