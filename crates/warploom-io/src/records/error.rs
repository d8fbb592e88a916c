//! What can be wrong with the records of an input.

use std::path::PathBuf;

use warploom_core::{Code, Coded};

use crate::error::FileError;

/// Why there are no records, or no names for what becomes of them.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A pattern that is none. (WL0720)
    #[error("the pattern `{pattern}` makes no sense: {what}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing that fits. (WL0721)
    #[error("nothing fits `{pattern}` among {seen} files and folders")]
    Nothing {
        /// The pattern.
        pattern: String,
        /// How many names were looked at.
        seen: usize,
    },
    /// A name that can be read in two ways. (WL0722)
    #[error("`{}` fits `{pattern}` in two ways: {one}, or {other}", path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// The pattern.
        pattern: String,
        /// One way.
        one: String,
        /// The other.
        other: String,
    },
    /// Two records with one name. (WL0723)
    #[error("two records would both be `{name}`: {first} and {second}")]
    Clash {
        /// The name.
        name: String,
        /// One record.
        first: String,
        /// The other.
        second: String,
    },
    /// A field that records do not have. (WL0724)
    #[error("there is no field `{field}`")]
    Field {
        /// What was asked for.
        field: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Records that lack members, or have some twice. (WL0725)
    #[error("{count} of {records} records are not whole: {list}")]
    Incomplete {
        /// How many are not whole.
        count: usize,
        /// How many there are in all.
        records: usize,
        /// The first of them, and what each lacks.
        list: String,
    },
    /// A folder that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Coded for RecordError {
    fn code(&self) -> Code {
        Code(match self {
            Self::Pattern { .. } => 720,
            Self::Nothing { .. } => 721,
            Self::Ambiguous { .. } => 722,
            Self::Clash { .. } => 723,
            Self::Field { .. } => 724,
            Self::Incomplete { .. } => 725,
            Self::File(error) => return error.code(),
        })
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            Self::Pattern { .. } => {
                "write it as in `{plate}/{well}_{site:d}_{channel}.tif`; `*` and `**` are as in a \
                 shell"
                    .into()
            }
            Self::Nothing { .. } => {
                "check the folder and the spelling; a folder alone takes every image in it".into()
            }
            Self::Ambiguous { .. } => {
                "say more, as with `{site:d}` for digits, or with the text between fields".into()
            }
            Self::Clash { .. } => {
                "add a field to the name that tells them apart, or `{record}`".into()
            }
            Self::Field { known, .. } if known.is_empty() => {
                "records here have only `{record}`".into()
            }
            Self::Field { known, .. } => format!("there are {}", known.join(", ")),
            Self::Incomplete { .. } => {
                "add what is missing, or take those records out of the input".into()
            }
            Self::File(error) => return error.help(),
        })
    }
}
