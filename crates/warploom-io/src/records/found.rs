//! What a layout came to.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::error::RecordError;
use super::record::Record;

/// The records of an input, and those that are not whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// Those that can be read, in natural order of their names.
    pub records: Vec<Record>,
    /// Those that lack members, have some twice, or have names that are no text.
    pub incomplete: Vec<Incomplete>,
}

/// A record that is not whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incomplete {
    /// What it is called.
    pub id: String,
    /// The members that are not there, as `channel=GFP z=3`.
    pub missing: Vec<String>,
    /// The members that are there more than once, with all their files.
    pub repeated: Vec<(String, Vec<PathBuf>)>,
    /// An image whose name is no text, so that nothing can be called after it.
    pub nameless: Option<PathBuf>,
}

impl Found {
    /// All records, if all are whole.
    pub fn whole(self) -> Result<Vec<Record>, RecordError> {
        if self.incomplete.is_empty() {
            return Ok(self.records);
        }
        let mut list = String::new();
        for record in self.incomplete.iter().take(5) {
            // Writing to a text cannot fail.
            let _ = write!(
                list,
                "{}`{}` {}",
                if list.is_empty() { "" } else { "; " },
                record.id,
                record.words()
            );
        }
        if self.incomplete.len() > 5 {
            list.push_str("; …");
        }
        Err(RecordError::Incomplete {
            count: self.incomplete.len(),
            records: self.incomplete.len() + self.records.len(),
            list,
        })
    }
}

impl Incomplete {
    pub(super) fn nameless(path: PathBuf) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            id: super::name::safe(&name),
            missing: Vec::new(),
            repeated: Vec::new(),
            nameless: Some(path),
        }
    }

    /// What it lacks, and what it has twice, as a clause about it.
    pub fn words(&self) -> String {
        let some = |list: &[String]| {
            let more = if list.len() > 4 { ", …" } else { "" };
            format!("{}{more}", list[..list.len().min(4)].join(", "))
        };
        let mut words = Vec::new();
        if !self.missing.is_empty() {
            words.push(format!(
                "lacks {} ({})",
                self.missing.len(),
                some(&self.missing)
            ));
        }
        for (name, paths) in self.repeated.iter().take(4) {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| format!("`{}`", path.display()))
                .collect();
            let name = if name.is_empty() {
                ""
            } else {
                &format!("{name} ")
            };
            words.push(format!("has {name}{} times: {}", paths.len(), some(&paths)));
        }
        if let Some(path) = &self.nameless {
            let shown = path.as_os_str().as_encoded_bytes().escape_ascii();
            words.push(format!(
                "has a name that is no text and has to be changed: `{shown}`"
            ));
        }
        words.join(", ")
    }
}
