//! Numbers for Prometheus, as text: of a run that ended, or of a run or a machine at one moment.
//!
//! The format is version 0.0.4 of the text format. Written beside a job it is picked up by the node
//! exporter's collector of text files: a port to listen on is of no use inside a batch job.
//! What was not measured has no line, and never a zero.

mod family;
mod machine;
mod notice;
mod run;

use crate::board::Notice;
use crate::machine::Machine;
use crate::recording::Recording;

/// What metrics can be told of.
pub trait Measured: sealed::Sealed {
    /// Its metrics.
    #[doc(hidden)]
    fn render(&self) -> String;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Recording {}
    impl Sealed for super::Machine {}
    impl Sealed for super::Notice {}
}

/// The metrics of a [`Recording`], a [`Notice`] or a [`Machine`], as Prometheus reads them. Those of a notice
/// and of a recording have different names, so one file may have both.
///
/// ```
/// use warploom_watch::recording::Record;
/// use warploom_watch::{Recording, metrics};
///
/// let mut recording = Recording::new("plate 7", "nuclei");
/// recording.record(Record::new("A01").done_at(0, 5));
/// let text = metrics(&recording);
/// assert!(text.contains("warploom_records{pipeline=\"nuclei\",outcome=\"ok\"} 1\n"));
/// ```
pub fn metrics(of: &impl Measured) -> String {
    of.render()
}
