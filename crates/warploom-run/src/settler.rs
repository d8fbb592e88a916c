//! Has results settle on the disk while the run goes on, and writes down which have.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::journal::{Line, Settled};

/// A thread that waits for the disk, so that nobody else has to.
#[derive(Debug)]
pub(crate) struct Settler {
    lines: Option<Sender<(String, Vec<PathBuf>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Settler {
    /// Settles what it is told of at most so often, and adds to the list, which is open for adding.
    pub(crate) fn start(list: File, output: &Path, every: Duration) -> Self {
        let (lines, told) = channel();
        let output = output.to_owned();
        let work = move || settle(list, &output, &told, every);
        // Without a thread nothing is settled, and after a loss of power everything is done again.
        let thread = thread::Builder::new().name("settler".into()).spawn(work);
        Self {
            lines: Some(lines),
            thread: thread.ok(),
        }
    }

    /// Results that have their names.
    pub(crate) fn add(&self, line: &Line) {
        let files = line.files.iter().map(|(path, _)| path.clone());
        if let Some(lines) = &self.lines {
            // Nobody listens where there is no thread.
            let _ = lines.send((line.record.clone(), files.collect()));
        }
    }
}

fn settle(mut list: File, output: &Path, told: &Receiver<(String, Vec<PathBuf>)>, every: Duration) {
    let mut next = Instant::now() + every;
    let (mut settled, mut paths) = (Vec::new(), Vec::new());
    loop {
        match told.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok((record, files)) => {
                settled.push(record);
                paths.extend(files.into_iter().map(|file| output.join(file)));
                if Instant::now() < next {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The run is over. What came last the system writes when it likes, and if it does not come to
            // that it is done again: waiting here would be for all runs, power cuts are few.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let begun = Instant::now();
        if !settled.is_empty() {
            let records = std::mem::take(&mut settled);
            let is_there = warploom_io::settle(&paths).is_ok();
            paths.clear();
            if is_there && let Ok(mut text) = serde_json::to_vec(&Settled { settled: records }) {
                text.push(b'\n');
                // A list that cannot be written to is told of by those who add results.
                let _ = list.write_all(&text);
            }
        }
        // A disk that takes long is asked more seldom.
        next = Instant::now() + every.max(begun.elapsed() * 4);
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};

    #[test]
    fn what_is_on_the_disk_is_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let list = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        let settler = Settler::start(list, folder.path(), Duration::from_millis(1));
        fs::write(folder.path().join("a.tif"), b"abc").unwrap();
        settler.add(&Line {
            record: "one".to_owned(),
            recipe: String::new(),
            content: String::new(),
            stamp: String::new(),
            files: vec![(PathBuf::from("a.tif"), 3)],
        });
        let end = Instant::now() + Duration::from_mins(1);
        while fs::read_to_string(&path).unwrap() != "{\"settled\":[\"one\"]}\n" {
            assert!(Instant::now() < end, "nothing is settled in a minute");
            thread::sleep(Duration::from_millis(2));
        }
    }
}
