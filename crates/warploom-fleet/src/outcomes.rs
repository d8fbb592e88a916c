//! Outcomes one after another, for those who would rather ask than be called.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::error::FleetError;
use crate::fleet::Fleet;
use crate::record::{Outcome, Record};
use crate::report::{Delivery, Failure, Report};

/// An outcome that was taken from [`Outcomes`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// The number of the record.
    pub record: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// The whole answer, also when it is too long for the journal.
    pub answer: Option<Vec<u8>>,
}

/// What becomes of records, as it happens; the run goes on in a thread of its own, which starts the workers.
///
/// A record counts as done when the next one is asked for: whoever dies over an outcome gets it again when the
/// run is resumed. Nobody asking means nobody working, after a few batches. To drop it stops the run, and
/// every worker is gone when that returns.
pub struct Outcomes {
    /// Outcomes, and the word that the one before was taken.
    line: Option<(Receiver<Delivered>, Sender<()>)>,
    run: Option<JoinHandle<Result<Report, Failure>>>,
    stopper: crate::Stopper,
    /// Was one given that nobody has said anything about?
    is_owed: bool,
    report: Option<Report>,
    error: Option<FleetError>,
}

impl Outcomes {
    pub(crate) fn begin(fleet: Fleet, records: Vec<Record>) -> Result<Self, FleetError> {
        let (give, outcomes) = sync_channel(0);
        let (taken, word) = channel();
        let stopper = fleet.stopper.clone();
        let run = move || {
            let sink = |delivery: Delivery<'_>| hand_over(&delivery, &give, &word);
            fleet.run(&records, sink)
        };
        let run = thread::Builder::new()
            .name("fleet".into())
            .spawn(run)
            .map_err(|error| FleetError::system("clone", error))?;
        Ok(Self {
            line: Some((outcomes, taken)),
            run: Some(run),
            stopper,
            is_owed: false,
            report: None,
            error: None,
        })
    }

    /// What became of the run, once there are no more outcomes and it has not failed.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Takes what is left, and says what became of the run.
    ///
    /// # Errors
    /// As [`Fleet::run`]; without the report, if that was given before.
    pub fn finish(mut self) -> Result<Report, Failure> {
        for outcome in &mut self {
            outcome?;
        }
        let gone = || FleetError::system("join", "the thread of the run has panicked");
        let error = self.error.take();
        let report = self.report.take();
        report.ok_or_else(|| error.unwrap_or_else(gone).into())
    }

    /// The thread has ended, or is about to.
    fn end(&mut self) -> Option<Result<Report, Failure>> {
        self.line = None;
        let run = self.run.take()?;
        match run.join() {
            Ok(ended) => Some(ended),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Gives an outcome to whoever asks for it, and waits until it was taken.
fn hand_over(
    delivery: &Delivery<'_>,
    give: &SyncSender<Delivered>,
    word: &Receiver<()>,
) -> Result<(), String> {
    let gone = "nobody asks for outcomes any more".to_owned();
    let delivered = Delivered {
        record: delivery.record,
        outcome: delivery.outcome.clone(),
        answer: delivery.answer.map(<[u8]>::to_vec),
    };
    let given = give.send(delivered).map_err(|_| ());
    given
        .and_then(|()| word.recv().map_err(|_| ()))
        .map_err(|()| gone)
}

impl Iterator for Outcomes {
    type Item = Result<Delivered, Failure>;

    /// Waits for the next outcome. A run that fails says so once, as the last one.
    fn next(&mut self) -> Option<Self::Item> {
        let (outcomes, taken) = self.line.as_ref()?;
        if std::mem::take(&mut self.is_owed) {
            // If nobody listens, the run has ended, which is told below.
            let _ = taken.send(());
        }
        if let Ok(delivered) = outcomes.recv() {
            self.is_owed = true;
            return Some(Ok(delivered));
        }
        match self.end()? {
            Ok(report) => {
                self.report = Some(report);
                None
            }
            Err(failure) => {
                self.error = Some(failure.error.clone());
                Some(Err(failure))
            }
        }
    }
}

impl std::iter::FusedIterator for Outcomes {}

impl Drop for Outcomes {
    fn drop(&mut self) {
        self.line = None;
        if let Some(run) = self.run.take() {
            self.stopper.stop();
            // It has failed for want of somebody who asks, which is what was wanted.
            let _ = run.join();
        }
    }
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes")
            .field("goes_on", &self.run.is_some())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
