//! One unit of input: a file, a part of one, or several that are gathered.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use warploom_core::Axis;

use crate::source::Choice;

/// One unit of input. Plain data: it can be sent to another process that sees the same files.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    pub(super) id: String,
    pub(super) fields: Vec<(String, String)>,
    /// What it is put together of, in the order of the gathered axes, the last fastest.
    pub(super) members: Vec<Member>,
    /// The axes along which members are gathered, with their extents.
    pub(super) gathered: Vec<(Axis, u64)>,
    /// Names along the gathered channel axis.
    pub(super) channels: Vec<String>,
}

/// A file, or a part of one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Where it is.
    pub path: PathBuf,
    /// Which image of those it holds.
    pub choice: Choice,
    /// Along these axes only this index; they are gone then.
    pub picks: Vec<(Axis, u64)>,
}

impl Record {
    /// A record that is one file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self {
            id: super::name::safe(stem(&name)),
            fields: Vec::new(),
            members: vec![Member::file(path)],
            gathered: Vec::new(),
            channels: Vec::new(),
        }
    }

    /// What it is called: the same in every run over the same files, and safe as the name of a file,
    /// with `/` between folders.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The parts of its name that a pattern gave names to.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// One of them.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find_map(|(field, value)| (field == name).then_some(value.as_str()))
    }

    /// The files that it is put together of.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The first file, by which it is known where something is wrong with it as a whole.
    pub fn path(&self) -> &Path {
        self.members
            .first()
            .map_or(Path::new(""), |member| &member.path)
    }

    /// What is left of it at these places along these axes, whether files are gathered along them or
    /// each file has them. Its name stays.
    #[must_use]
    pub fn at(&self, picks: &[(Axis, u64)]) -> Self {
        let mut part = self.clone();
        for (axis, place) in picks {
            let Some(at) = part.gathered.iter().position(|(known, _)| known == axis) else {
                for member in &mut part.members {
                    member.picks.push((*axis, *place));
                }
                continue;
            };
            let (_, extent) = part.gathered.remove(at);
            let inner: u64 = part.gathered[at..].iter().map(|(_, n)| n).product();
            let mut number = 0;
            part.members.retain(|_| {
                let own = number / inner.max(1) % extent.max(1);
                number += 1;
                own == *place
            });
            if *axis == Axis::C {
                part.channels.clear();
            }
        }
        part
    }

    /// The same under its own name with this behind it.
    #[must_use]
    pub fn called(mut self, suffix: &str) -> Self {
        self.id = format!("{}_{suffix}", self.id);
        self
    }

    /// A part of it, with a name of its own.
    pub(super) fn part(&self, name: &str, change: impl Fn(&mut Member)) -> Self {
        let mut part = self.clone();
        part.id = format!("{}_{name}", self.id);
        for member in &mut part.members {
            change(member);
        }
        part
    }
}

impl Member {
    pub(super) fn file(path: PathBuf) -> Self {
        Self {
            path,
            choice: Choice::default(),
            picks: Vec::new(),
        }
    }
}

/// A name without what says its format.
pub(super) fn stem(name: &str) -> &str {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let stem = if stem.is_empty() { name } else { stem };
    stem.strip_suffix(".ome").unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_along_a_gathered_axis_is_the_files_there() {
        let names = ["c1z1", "c1z2", "c1z3", "c2z1", "c2z2", "c2z3"];
        let record = Record {
            id: "a".into(),
            fields: Vec::new(),
            members: names.map(|name| Member::file(name.into())).to_vec(),
            gathered: vec![(Axis::C, 2), (Axis::Z, 3)],
            channels: vec!["DAPI".into(), "GFP".into()],
        };
        let paths = |record: &Record| -> Vec<String> {
            let members = record.members().iter();
            members.map(|m| m.path.display().to_string()).collect()
        };
        assert_eq!(paths(&record.at(&[(Axis::C, 1)])), ["c2z1", "c2z2", "c2z3"]);
        assert_eq!(paths(&record.at(&[(Axis::Z, 2)])), ["c1z3", "c2z3"]);
        let one = record.at(&[(Axis::Z, 1), (Axis::C, 1), (Axis::T, 4)]);
        assert_eq!(paths(&one), ["c2z2"]);
        assert_eq!(one.members()[0].picks, [(Axis::T, 4)]);
        assert!(one.gathered.is_empty() && one.channels.is_empty());
        assert_eq!(one.called("t4").id(), "a_t4");
    }
}
