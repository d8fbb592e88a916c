//! What can be wrong with a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use warploom_core::{Bytes, Code, Coded, nearest};

use crate::format::Format;
use crate::image::ImageError;

/// A file, and what is wrong with it.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("`{}` {fault}", path.display())]
pub struct FileError {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a file, as a clause about it.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The system did not let us read it. (WL0701)
    #[error("cannot be read: {message}")]
    Open {
        /// What sort of refusal it was.
        kind: io::ErrorKind,
        /// The system's words.
        message: String,
    },
    /// A folder where a file was expected. (WL0702)
    #[error("is a folder, not a file")]
    Folder,
    /// A name whose ending says no format we know. (WL0703)
    #[error("has no ending that says its format{}", ending_text(ending.as_deref()))]
    Ending {
        /// The ending it has.
        ending: Option<String>,
    },
    /// A format that holds no images was to be read. (WL0704)
    #[error("is {format}, which holds no image")]
    NoImage {
        /// The format.
        format: Format,
    },
    /// The first bytes are those of something else. (WL0705)
    #[error("does not begin like {format}{}", looks_text(*looks))]
    Disguised {
        /// What its name says.
        format: Format,
        /// What its first bytes say.
        looks: Option<&'static str>,
    },
    /// The file ends before the image does. (WL0706)
    #[error("is cut short: {what} needs {wanted} bytes, {there} are there")]
    Short {
        /// The part that is incomplete.
        what: String,
        /// How many bytes it has when complete.
        wanted: u64,
        /// How many there are.
        there: u64,
    },
    /// The file contradicts its format. (WL0707)
    #[error("is damaged: {what}")]
    Damaged {
        /// What contradicts what.
        what: String,
    },
    /// A size that no file of this length can hold. (WL0708)
    #[error(
        "is damaged: it claims {what}, {}, which a file of {} cannot hold",
        Bytes(*claimed),
        Bytes(*length)
    )]
    Absurd {
        /// What it claims to hold.
        what: String,
        /// The bytes of that.
        claimed: u64,
        /// The length of the file.
        length: u64,
    },
    /// A valid file with something in it that we do not read. (WL0709)
    #[error("holds {what}")]
    Unread {
        /// What it holds.
        what: String,
        /// What to do about it.
        instead: String,
    },
    /// Pages that do not form a stack. (WL0710)
    #[error("holds pages that differ: page {page} is {this}, page 0 is {first}")]
    Pages {
        /// The page that differs from the first, from 0.
        page: usize,
        /// What it is.
        this: String,
        /// What the first is.
        first: String,
    },
    /// Colours where gray was expected. (WL0711)
    #[error("holds colours: the pixel in row {y}, column {x} is {values:?}")]
    Colour {
        /// Row of the first pixel that is not gray and opaque.
        y: u64,
        /// Its column.
        x: u64,
        /// Its channels.
        values: Vec<u16>,
    },
    /// Something the format has no room for. (WL0712)
    #[error("cannot hold {what}: it is {format}")]
    Unholdable {
        /// The format.
        format: Format,
        /// What was to be written.
        what: String,
        /// What to do about it.
        instead: &'static str,
    },
    /// The system did not let us write it. (WL0713)
    #[error("cannot be written: {message}")]
    Write {
        /// What sort of refusal it was.
        kind: io::ErrorKind,
        /// The system's words.
        message: String,
    },
    /// An image that cannot be made in memory.
    #[error("holds {0}")]
    Image(#[from] ImageError),
}

fn ending_text(ending: Option<&str>) -> String {
    ending
        .map(|ending| format!("; `.{ending}` is not known"))
        .unwrap_or_default()
}

fn looks_text(looks: Option<&str>) -> String {
    looks
        .map(|looks| format!(" but like {looks}"))
        .unwrap_or_default()
}

impl Fault {
    /// This fault of this file.
    pub(crate) fn of(self, path: &Path) -> FileError {
        FileError {
            path: path.to_owned(),
            fault: self,
        }
    }

    pub(crate) fn open(error: &io::Error) -> Self {
        Self::Open {
            kind: error.kind(),
            message: words(error),
        }
    }

    pub(crate) fn write(error: &io::Error) -> Self {
        Self::Write {
            kind: error.kind(),
            message: words(error),
        }
    }

    pub(crate) fn damaged(what: impl fmt::Display) -> Self {
        Self::Damaged {
            what: what.to_string(),
        }
    }

    /// Whether whoever named the file can mend this by naming another file, or this one correctly;
    /// otherwise the machine refused.
    pub fn is_about_the_request(&self) -> bool {
        match self {
            Self::Open { kind, .. } => matches!(
                kind,
                io::ErrorKind::NotFound
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::InvalidFilename
            ),
            // A folder that is not there was named by somebody, too.
            Self::Write { kind, .. } => matches!(
                kind,
                io::ErrorKind::NotFound
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::InvalidFilename
            ),
            Self::Image(ImageError::Memory { .. }) => false,
            _ => true,
        }
    }
}

/// The system's words without Rust's number behind them, which is not for people.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

impl Coded for FileError {
    fn code(&self) -> Code {
        Code(match &self.fault {
            Fault::Open { .. } => 701,
            Fault::Folder => 702,
            Fault::Ending { .. } => 703,
            Fault::NoImage { .. } => 704,
            Fault::Disguised { .. } => 705,
            Fault::Short { .. } => 706,
            Fault::Damaged { .. } => 707,
            Fault::Absurd { .. } => 708,
            Fault::Unread { .. } => 709,
            Fault::Pages { .. } => 710,
            Fault::Colour { .. } => 711,
            Fault::Unholdable { .. } => 712,
            Fault::Write { .. } => 713,
            Fault::Image(error) => return error.code(),
        })
    }

    fn help(&self) -> Option<String> {
        let text = match &self.fault {
            Fault::Open {
                kind: io::ErrorKind::NotFound,
                ..
            } => "check the spelling; relative names are looked for in the current folder".into(),
            Fault::Open { .. } => "check who may read the file, and the disk".into(),
            Fault::Folder => "name one file".into(),
            Fault::Ending { ending } => {
                let near = ending
                    .as_deref()
                    .and_then(|ending| nearest(ending, Format::ENDINGS.iter().copied()));
                let list = Format::ENDINGS
                    .iter()
                    .map(|ending| format!(".{ending}"))
                    .collect::<Vec<_>>()
                    .join(", ");
                match near {
                    Some(near) => format!("did you mean `.{near}`? Known are {list}"),
                    None => format!("known are {list}"),
                }
            }
            Fault::NoImage { .. } => "images are read from .npy, .tif and .png".into(),
            Fault::Disguised { .. } => "rename it after what it is, or convert it".into(),
            Fault::Short { .. } => {
                "copy or write it again; a transfer may have stopped half-way".into()
            }
            Fault::Damaged { .. } | Fault::Absurd { .. } => {
                "write it again with the program that made it".into()
            }
            Fault::Unread { instead, .. } => instead.clone(),
            Fault::Pages { .. } => "save each size in a file of its own".into(),
            Fault::Colour { .. } => {
                "save one channel, or a gray image; which channel matters is not ours to guess"
                    .into()
            }
            Fault::Unholdable { instead, .. } => (*instead).into(),
            Fault::Write {
                kind: io::ErrorKind::NotFound,
                ..
            } => "the folder has to be there; make it first".into(),
            Fault::Write { .. } => "check who may write there, and the room on the disk".into(),
            Fault::Image(error) => return error.help(),
        };
        Some(text)
    }
}
