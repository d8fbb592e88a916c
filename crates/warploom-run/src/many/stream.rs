//! Outcomes of a job on many devices, for those who would rather ask than be called.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use warploom_core::{CancelToken, Registry};

use super::{Crew, foreign};
use crate::error::RunFailure;
use crate::job::Job;
use crate::outcome::{Done, News, Summary};
use crate::settings::Settings;

/// What becomes of records, as it happens; the run goes on in a thread of its own, which starts the workers.
///
/// A record that is told of as done is on the disk under its name. Nobody asking means nobody working, after a few
/// batches. To drop it stops the run, and every worker is gone when that returns; what was done stays done, and is
/// left out by a run with [`Settings::resume`].
pub struct Outcomes {
    line: Option<Receiver<Done>>,
    run: Option<JoinHandle<Result<Summary, RunFailure>>>,
    stop: CancelToken,
    summary: Option<Summary>,
}

impl Job {
    /// Runs it as [`run_on`](Self::run_on) does, and gives the outcomes one after another, in the order in which
    /// records end. Those that were done by an earlier run are in the summary only.
    ///
    /// # Errors
    /// When there is no thread for it. Whatever else is wrong is the iterator's last item.
    pub fn stream_on(
        self,
        crew: Crew,
        registry: impl Deref<Target = Registry> + Send + 'static,
        mut settings: Settings,
    ) -> Result<Outcomes, RunFailure> {
        // No more than one is on its way: whoever does not ask holds the run up.
        let (give, line) = sync_channel(0);
        let stop = settings.stop.clone();
        let listener = Arc::clone(&settings.listener);
        settings.listener = Arc::new(move |news| {
            if let News::Ended { done, .. } = &news {
                hand_over(&give, done.clone());
            }
            listener(news);
        });
        let run = thread::Builder::new()
            .name("warploom-run".into())
            .spawn(move || self.run_on(&crew, &registry, &settings))
            .map_err(|error| foreign(&error))?;
        Ok(Outcomes {
            line: Some(line),
            run: Some(run),
            stop,
            summary: None,
        })
    }
}

/// Gives an outcome to whoever asks. If nobody will, the run is being stopped.
fn hand_over(give: &SyncSender<Done>, done: Done) {
    let _ = give.send(done);
}

impl Outcomes {
    /// What became of the run, once there are no more outcomes and it has not failed.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Takes what is left, and says what became of the run.
    ///
    /// # Errors
    /// As [`Job::run_on`], unless that was an item before.
    pub fn finish(mut self) -> Result<Summary, RunFailure> {
        for outcome in &mut self {
            outcome?;
        }
        let told = || foreign(&"a run that has failed, which was told before");
        self.summary.take().ok_or_else(told)
    }
}

impl Iterator for Outcomes {
    type Item = Result<Done, RunFailure>;

    /// Waits for the next outcome. A run that fails says so once, as the last one.
    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(done) = self.line.as_ref()?.recv() {
            return Some(Ok(done));
        }
        self.line = None;
        match self.run.take()?.join() {
            Ok(Ok(summary)) => {
                self.summary = Some(summary);
                None
            }
            Ok(Err(failure)) => Some(Err(failure)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl std::iter::FusedIterator for Outcomes {}

impl Drop for Outcomes {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            self.stop.cancel();
            self.line = None;
            // It was stopped, which is what was wanted.
            let _ = run.join();
        }
    }
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes")
            .field("goes_on", &self.run.is_some())
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}
