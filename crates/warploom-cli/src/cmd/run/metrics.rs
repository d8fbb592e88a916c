//! Metrics of a run in a file, for Prometheus' collector of text files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warploom::watch::board::Notice;
use warploom::watch::{Recording, metrics};

use crate::report::Problem;

/// How often the file is replaced while the run goes on.
const EVERY: Duration = Duration::from_secs(5);

/// A file of metrics, replaced as a whole: who reads it never sees half of one.
pub(super) struct MetricsFile {
    path: PathBuf,
    written: Instant,
}

impl MetricsFile {
    /// Writes it for the first time, so that what is in the way is known before anything runs.
    pub(super) fn new(path: &Path, notice: &Notice) -> Result<Self, Problem> {
        let file = Self {
            path: path.to_owned(),
            written: Instant::now(),
        };
        file.put(notice, None).map_err(|error| {
            Problem::usage(
                format!("cannot write metrics to {}: {error}", path.display()),
                "name a file in a folder that is there and can be written",
            )
        })?;
        Ok(file)
    }

    /// Replaces it, if it is time. A disk that is full now may have room at the end.
    pub(super) fn update(&mut self, notice: &Notice) {
        if self.written.elapsed() >= EVERY {
            self.written = Instant::now();
            let _ = self.put(notice, None);
        }
    }

    /// Replaces it for the last time; why it could not be.
    pub(super) fn finish(
        &self,
        notice: &Notice,
        recording: Option<&Recording>,
    ) -> Result<(), String> {
        self.put(notice, recording).map_err(|error| {
            let path = self.path.display();
            format!("cannot write metrics to {path}: {error}")
        })
    }

    fn put(&self, notice: &Notice, recording: Option<&Recording>) -> std::io::Result<()> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let since = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        let mut notice = notice.clone();
        notice.updated = since;
        let mut text = metrics(&notice);
        if let Some(recording) = recording {
            text.push_str(&metrics(recording));
        }
        // Collectors read what ends in `.prom`, so a draft must not.
        let mut draft = self.path.clone().into_os_string();
        draft.push(format!(".{}.part", std::process::id()));
        let written = std::fs::write(&draft, text);
        let written = written.and_then(|()| std::fs::rename(&draft, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        written
    }
}
