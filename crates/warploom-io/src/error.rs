//! What can be wrong with a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use warploom_core::{Bytes, Code, Coded, nearest};

use crate::format::Format;
use crate::header::Header;
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
    /// There is no room on the disk. (WL0716)
    #[error("cannot be written: {message}; it needs {}", Bytes(*bytes))]
    Full {
        /// How many bytes it was to have.
        bytes: u64,
        /// The system's words.
        message: String,
    },
    /// A part of an image that is not in it. (WL0717)
    #[error("holds an image of {whole}, which has no {part}")]
    Outside {
        /// The extent of the image.
        whole: String,
        /// The part that was asked for.
        part: String,
    },
    /// Room for more or fewer bytes than are asked for. (WL0726)
    #[error("was to be read into {given} bytes, and {wanted} are asked for")]
    Buffer {
        /// Bytes of the part that was asked for.
        wanted: u64,
        /// Bytes there was room for.
        given: u64,
    },
    /// Reading was ended from outside. (WL0718)
    #[error("was not read to its end: reading was stopped")]
    Stopped,
    /// There is no room in memory for a piece of it. (WL0727)
    #[error("has a piece of {}, for which there is no room in memory", Bytes(*bytes))]
    NoMemory {
        /// How many bytes it needs.
        bytes: u64,
    },
    /// Not the image that everything was prepared for. (WL0719)
    #[error("holds {found}, and {wanted} was expected")]
    Differs {
        /// What it holds.
        found: String,
        /// What was expected.
        wanted: String,
    },
    /// A fault of one of several files that are one image.
    #[error("{fault}, in its part `{part}`")]
    Part {
        /// Which.
        part: String,
        /// What is wrong with it.
        fault: Box<Fault>,
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

    /// What a failed attempt to write so many bytes is.
    pub(crate) fn writing(error: &io::Error, bytes: u64) -> Self {
        if is_full(error.kind()) {
            return Self::Full {
                bytes,
                message: words(error),
            };
        }
        Self::write(error)
    }

    /// The same with the size of what was to be written, where that is the trouble.
    pub(crate) fn sized(self, bytes: u64) -> Self {
        match self {
            Self::Write { kind, message } if is_full(kind) => Self::Full { bytes, message },
            other => other,
        }
    }

    /// This fault of a part of the image.
    pub(crate) fn within(self, part: &str) -> Self {
        match self {
            Self::Stopped => self,
            fault => Self::Part {
                part: part.to_owned(),
                fault: Box::new(fault),
            },
        }
    }

    /// An image that is another than was expected.
    pub(crate) fn differs(found: &Header, wanted: &Header) -> Self {
        let words = |header: &Header| {
            let axes: Vec<String> = header
                .shape
                .axes()
                .iter()
                .map(|a| format!("{a:?}"))
                .collect();
            format!("{} {} ({})", header.shape, header.dtype, axes.concat())
        };
        Self::Differs {
            found: words(found),
            wanted: words(wanted),
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
            Self::Image(ImageError::Memory { .. })
            | Self::NoMemory { .. }
            | Self::Full { .. }
            | Self::Stopped => false,
            Self::Part { fault, .. } => fault.is_about_the_request(),
            _ => true,
        }
    }
}

/// No room on the disk, in one's share of it, or in one file.
fn is_full(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
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
        self.fault.code()
    }

    fn help(&self) -> Option<String> {
        self.fault.help()
    }
}

impl Coded for Fault {
    fn code(&self) -> Code {
        Code(match self {
            Self::Open { .. } => 701,
            Self::Folder => 702,
            Self::Ending { .. } => 703,
            Self::NoImage { .. } => 704,
            Self::Disguised { .. } => 705,
            Self::Short { .. } => 706,
            Self::Damaged { .. } => 707,
            Self::Absurd { .. } => 708,
            Self::Unread { .. } => 709,
            Self::Pages { .. } => 710,
            Self::Colour { .. } => 711,
            Self::Unholdable { .. } => 712,
            Self::Write { .. } => 713,
            Self::NoMemory { .. } => 727,
            Self::Buffer { .. } => 726,
            Self::Full { .. } => 716,
            Self::Outside { .. } => 717,
            Self::Stopped => 718,
            Self::Differs { .. } => 719,
            Self::Part { fault, .. } => return fault.code(),
            Self::Image(error) => return error.code(),
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Open {
                kind: io::ErrorKind::NotFound,
                ..
            } => "check the spelling; relative names are looked for in the current folder".into(),
            Self::Open { .. } => "check who may read the file, and the disk".into(),
            Self::Folder => "name one file, or a folder of Zarr's".into(),
            Self::Ending { ending } => {
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
            Self::NoImage { .. } => "images are read from .npy, .tif, .png and .zarr".into(),
            Self::Disguised { .. } => "rename it after what it is, or convert it".into(),
            Self::Short { .. } => {
                "copy or write it again; a transfer may have stopped half-way".into()
            }
            Self::Damaged { .. } | Self::Absurd { .. } => {
                "write it again with the program that made it".into()
            }
            Self::Unread { instead, .. } => instead.clone(),
            Self::Pages { .. } => "save each size in a file of its own".into(),
            Self::Colour { .. } => {
                "save one channel, or a gray image; which channel matters is not ours to guess"
                    .into()
            }
            Self::Unholdable { instead, .. } => (*instead).into(),
            Self::Write {
                kind: io::ErrorKind::NotFound,
                ..
            } => "the folder has to be there; make it first".into(),
            Self::Write {
                kind: io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem,
                ..
            } => "you may not write there; choose another folder, or ask who owns this one".into(),
            Self::Write { .. } => "check who may write there, and the room on the disk".into(),
            Self::Full { .. } => "make room on that disk, or write to another; nothing incomplete \
                                  was left there"
                .into(),
            Self::Outside { .. } => "ask for a part of the image".into(),
            Self::Buffer { .. } => "give room for exactly the part that is asked for".into(),
            Self::Stopped => "start again; nothing is wrong with the file".into(),
            Self::NoMemory { .. } => {
                "use a machine with more memory, or save it in smaller pieces".into()
            }
            Self::Differs { .. } => "take it out of the input, or run it by itself".into(),
            Self::Part { fault, .. } => return fault.help(),
            Self::Image(error) => return error.help(),
        };
        Some(text)
    }
}
