//! What runs on this machine right now: each running process keeps a notice on a board that all
//! can read.
//!
//! The board is a folder, by default `board` in the [directory of leases](default_ledger_dir), and a
//! notice is a file in it, `PID-NUMBER.json`. It is replaced as a whole, so nobody ever reads half
//! of one. Its writer keeps it locked, so a notice whose lock can be had is that of a process that
//! died, however it died, and is taken down by the next who looks. Process numbers would not do:
//! they are used again, and differ between containers.
//!
//! ```
//! use warploom_watch::board::{Board, Notice};
//!
//! # let dir = tempfile::tempdir()?;
//! # let folder = dir.path().join("board");
//! let board = Board::in_folder(folder);
//! let mut notice = Notice::new("plate 7", "nuclei", 384);
//! let mut pin = board.pin(&notice)?;
//! notice.ok = 12;
//! pin.update(&notice)?;
//! assert_eq!(board.notices()?[0].ok, 12);
//! drop(pin);
//! assert!(board.notices()?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod notice;
mod pin;
mod sight;

use std::path::{Path, PathBuf};

use warploom_core::default_ledger_dir;

pub use error::BoardError;
pub use notice::{DeviceNotice, Notice, Phase};
pub use pin::Pin;

/// Where notices are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Board {
    folder: PathBuf,
}

impl Default for Board {
    /// The one that all processes of this machine share.
    fn default() -> Self {
        Self::beside_leases(&default_ledger_dir())
    }
}

impl Board {
    /// A board in this folder, which is made when somebody pins something.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The board of those who agree on leases in this directory.
    pub fn beside_leases(ledger_dir: &Path) -> Self {
        Self::in_folder(ledger_dir.join("board"))
    }

    /// The folder it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts up a notice, until the pin is dropped.
    ///
    /// # Errors
    /// When the folder or the file cannot be written.
    pub fn pin(&self, notice: &Notice) -> Result<Pin, BoardError> {
        Pin::new(self, notice)
    }

    /// The notices of all who live, those that started first in front. What dead ones left is
    /// taken down on the way, where that is allowed.
    ///
    /// # Errors
    /// When there is a board and it cannot be read. None at all is an empty one.
    pub fn notices(&self) -> Result<Vec<Notice>, BoardError> {
        sight::notices(&self.folder)
    }
}
