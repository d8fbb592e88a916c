//! Folders in which every user of a machine has files of their own, for others to read.
//!
//! The rules are the ledger's, and what else processes tell each other goes by them too: the folder
//! is sticky, so that nobody deletes another's file; a file is locked by its maker for as long as
//! that lives, and the kernel drops the lock with the process, however it ends.

use std::io;
use std::path::Path;

pub use super::folder::{is_at, make_own_file};

/// Makes a folder in which everybody may add files and nobody may delete another's. One that is
/// there already is left as it is.
///
/// # Errors
/// Those of the file system.
pub fn make_folder(path: &Path) -> io::Result<()> {
    super::folder::make_shared_dir(path, super::presence::random())
}

/// A number nobody else has, for the name of a file.
pub fn unique_number() -> u64 {
    super::presence::random()
}
