//! What can go wrong with a board.

use std::io;
use std::path::{Path, PathBuf};

use warploom_core::{Code, Coded};

/// What can go wrong with a board. A run goes on without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// A file of the board could not be written or read. (WL0131)
    #[error("the notice for other processes in {} cannot be {deed}: {source}", .path.display())]
    File {
        /// `written`, `read`.
        deed: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl BoardError {
    pub(super) fn written(path: &Path, source: io::Error) -> Self {
        let (deed, path) = ("written", path.to_owned());
        Self::File { deed, path, source }
    }

    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        let (deed, path) = ("read", path.to_owned());
        Self::File { deed, path, source }
    }
}

impl Coded for BoardError {
    fn code(&self) -> Code {
        match self {
            Self::File { .. } => Code(131),
        }
    }

    fn help(&self) -> Option<String> {
        let Self::File { .. } = self;
        Some("the run goes on, but `warploom top` does not show it; check the folder's rights and room".into())
    }
}
