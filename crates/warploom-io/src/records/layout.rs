//! From a folder, a glob or a pattern to records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use warploom_core::Axis;

use super::error::RecordError;
use super::found::{Found, Incomplete};
use super::name::{natural, safe};
use super::pattern::{Component, Pattern, Token, Values, is_pattern};
use super::record::{Member, Record, stem};
use super::walk::{Hit, Walk, ends_as_zarr};

/// Where images are, and how their names make records.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    root: PathBuf,
    pattern: Pattern,
    /// Only files whose ending says that they hold images.
    only_images: bool,
    gathered: Vec<(String, Axis)>,
    chosen: BTreeMap<String, Vec<String>>,
}

impl Layout {
    /// The images of a folder, a file, or what fits a pattern such as `data/{well}_{channel}.tif`.
    ///
    /// Fields called `channel` or `c`, `z`, and `time` or `t` are gathered: files that differ in nothing
    /// else are one record, along that axis. What they are called otherwise is said by
    /// [`gather`](Self::gather).
    pub fn new(input: &str) -> Result<Self, RecordError> {
        let path = Path::new(input);
        // A name with braces in it that is there is meant as it is.
        if path.exists() || !is_pattern(input) {
            let is_one = !path.is_dir() || crate::zarr::is_zarr(path) || ends_as_zarr(path);
            if is_one {
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                let name = name.ok_or_else(|| RecordError::Nothing {
                    pattern: input.to_owned(),
                    seen: 0,
                })?;
                let root = path.parent().map(Path::to_owned).unwrap_or_default();
                let escaped = name.replace('{', "{{").replace('}', "}}");
                return Self::of(root, Pattern::new(&escaped)?, false);
            }
            return Self::of(path.to_owned(), Pattern::new("*")?, true);
        }
        let (root, rest) = split(input);
        Self::of(root, Pattern::new(rest)?, !rest.contains('{'))
    }

    fn of(root: PathBuf, pattern: Pattern, only_images: bool) -> Result<Self, RecordError> {
        let gathered = pattern.fields().filter_map(|field| {
            let axis = match field {
                "channel" | "c" => Axis::C,
                "z" => Axis::Z,
                "time" | "t" => Axis::T,
                _ => return None,
            };
            Some((field.to_owned(), axis))
        });
        let gathered: Vec<(String, Axis)> = gathered.collect();
        let mut layout = Self {
            root,
            only_images,
            gathered: Vec::new(),
            chosen: BTreeMap::new(),
            pattern,
        };
        for (field, axis) in gathered {
            layout = layout.gather(&field, axis)?;
        }
        Ok(layout)
    }

    /// Files that differ only in this field are one record, along this axis.
    pub fn gather(mut self, field: &str, axis: Axis) -> Result<Self, RecordError> {
        self.check(field)?;
        self.gathered.retain(|(name, _)| name != field);
        if let Some((other, _)) = self.gathered.iter().find(|(_, taken)| *taken == axis) {
            return Err(RecordError::Pattern {
                pattern: self.pattern.text().to_owned(),
                what: format!("both `{other}` and `{field}` are to be gathered along {axis:?}"),
            });
        }
        self.gathered.push((field.to_owned(), axis));
        // The order of axes in memory.
        self.gathered.sort_by_key(|(_, axis)| *axis);
        Ok(self)
    }

    /// Files that differ in this field are different records, whatever it is called.
    pub fn keep_apart(mut self, field: &str) -> Result<Self, RecordError> {
        self.check(field)?;
        self.gathered.retain(|(name, _)| name != field);
        Ok(self)
    }

    /// Of a field only these values; of a gathered one, in this order.
    pub fn only(mut self, field: &str, values: &[&str]) -> Result<Self, RecordError> {
        self.check(field)?;
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.chosen.insert(field.to_owned(), values);
        Ok(self)
    }

    fn check(&self, field: &str) -> Result<(), RecordError> {
        if self.pattern.fields().any(|known| known == field) {
            return Ok(());
        }
        Err(RecordError::Field {
            field: field.to_owned(),
            known: self
                .pattern
                .fields()
                .map(|field| format!("`{field}`"))
                .collect(),
        })
    }

    /// Looks at names, opens nothing, and puts records together.
    pub fn find(&self) -> Result<Found, RecordError> {
        let mut walk = Walk {
            pattern: &self.pattern,
            only_images: self.only_images,
            seen: 0,
            hits: Vec::new(),
            nameless: Vec::new(),
        };
        walk.enter(&self.root.clone(), 0, &mut Vec::new(), &mut Vec::new())?;
        let (seen, mut hits, mut nameless) = (walk.seen, walk.hits, walk.nameless);
        hits.sort_by(|a, b| natural(&a.key(), &b.key()));
        // A folder that is reached in two ways, as by two `**`, is one.
        hits.dedup_by(|a, b| a.path == b.path);
        hits.retain(|hit| {
            hit.values.iter().all(|(field, value)| {
                let chosen = self.chosen.get(field);
                chosen.is_none_or(|chosen| chosen.contains(value))
            })
        });
        if hits.is_empty() {
            return Err(RecordError::Nothing {
                pattern: self.pattern.text().to_owned(),
                seen,
            });
        }
        let mut found = self.put_together(hits)?;
        nameless.sort();
        nameless.dedup();
        found
            .incomplete
            .extend(nameless.into_iter().map(Incomplete::nameless));
        Ok(found)
    }

    fn put_together(&self, hits: Vec<Hit>) -> Result<Found, RecordError> {
        let is_gathered = |field: &str| self.gathered.iter().any(|(name, _)| name == field);
        // What each gathered field is anywhere: every record has to have all of it.
        let mut wanted: Vec<Vec<String>> = Vec::new();
        for (field, _) in &self.gathered {
            let values: BTreeSet<&String> =
                hits.iter().filter_map(|hit| hit.value(field)).collect();
            let mut values: Vec<String> = values.into_iter().cloned().collect();
            values.sort_by(|a, b| natural(a, b));
            if let Some(chosen) = self.chosen.get(field) {
                values.clone_from(chosen);
            }
            wanted.push(values);
        }
        let mut groups: Vec<(Values, Vec<Hit>)> = Vec::new();
        let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let has_fields = self.pattern.fields().next().is_some();
        for hit in hits {
            let own: Values = hit
                .values
                .iter()
                .filter(|(field, _)| !is_gathered(field))
                .cloned()
                .collect();
            let key: Vec<String> = if has_fields {
                own.iter().map(|(_, value)| value.clone()).collect()
            } else {
                vec![hit.key()]
            };
            let place = *places.entry(key).or_insert_with(|| {
                groups.push((own, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(hit);
        }
        let ids = self.ids(&groups)?;
        let mut found = Found {
            records: Vec::new(),
            incomplete: Vec::new(),
        };
        for ((fields, hits), id) in groups.into_iter().zip(ids) {
            match self.members(hits, &wanted) {
                Ok(members) => found.records.push(Record {
                    id,
                    fields,
                    members,
                    gathered: self.extents(&wanted),
                    channels: self.channel_names(&wanted),
                }),
                Err((missing, repeated)) => found.incomplete.push(Incomplete {
                    id,
                    missing,
                    repeated,
                    nameless: None,
                }),
            }
        }
        Ok(found)
    }

    fn extents(&self, wanted: &[Vec<String>]) -> Vec<(Axis, u64)> {
        let axes = self.gathered.iter().map(|(_, axis)| *axis);
        axes.zip(wanted.iter().map(|values| values.len() as u64))
            .collect()
    }

    fn channel_names(&self, wanted: &[Vec<String>]) -> Vec<String> {
        let at = self.gathered.iter().position(|(_, axis)| *axis == Axis::C);
        at.map(|at| wanted[at].clone()).unwrap_or_default()
    }

    /// The members of a record in order; or what is missing, and what is there too often.
    #[expect(clippy::type_complexity, reason = "two lists that are used once")]
    fn members(
        &self,
        hits: Vec<Hit>,
        wanted: &[Vec<String>],
    ) -> Result<Vec<Member>, (Vec<String>, Vec<(String, Vec<PathBuf>)>)> {
        let mut there: BTreeMap<Vec<String>, Vec<PathBuf>> = BTreeMap::new();
        for hit in hits {
            let fields = self.gathered.iter();
            let key = fields.map(|(field, _)| hit.value(field).cloned().unwrap_or_default());
            there.entry(key.collect()).or_default().push(hit.path);
        }
        let (mut members, mut missing) = (Vec::new(), Vec::new());
        let named = |key: &[String]| {
            let pairs = self.gathered.iter().zip(key);
            let text: Vec<String> = pairs
                .map(|((field, _), value)| format!("{field}={value}"))
                .collect();
            text.join(" ")
        };
        let mut repeated = Vec::new();
        for key in product(wanted) {
            match there.get(&key).map(Vec::as_slice) {
                None => missing.push(named(&key)),
                Some([path]) => members.push(Member::file(path.clone())),
                Some(paths) => repeated.push((named(&key), paths.to_vec())),
            }
        }
        if missing.is_empty() && repeated.is_empty() {
            Ok(members)
        } else {
            Err((missing, repeated))
        }
    }

    /// What each record is called.
    fn ids(&self, groups: &[(Values, Vec<Hit>)]) -> Result<Vec<String>, RecordError> {
        let has_fields = self.pattern.fields().next().is_some();
        let name = |(own, hits): &(Values, Vec<Hit>), with_ending: bool| {
            let first = &hits[0];
            if has_fields {
                return self.id_of_fields(own).unwrap_or_else(|| "all".into());
            }
            let count = first.names.len();
            let parts = first.names.iter().enumerate().map(|(at, name)| {
                let is_file = at + 1 == count;
                safe(if is_file && !with_ending {
                    stem(name)
                } else {
                    name
                })
            });
            parts.collect::<Vec<_>>().join("/")
        };
        let mut ids: Vec<String> = groups.iter().map(|group| name(group, false)).collect();
        // `a.tif` and `a.png` keep their endings.
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for id in &ids {
            *counts.entry(id.to_lowercase()).or_default() += 1;
        }
        for (id, group) in ids.iter_mut().zip(groups) {
            if counts[&id.to_lowercase()] > 1 {
                *id = name(group, true);
            }
        }
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for (at, id) in ids.iter().enumerate() {
            if let Some(first) = taken.insert(id.to_lowercase(), at) {
                return Err(RecordError::Clash {
                    name: id.clone(),
                    first: format!("`{}`", groups[first].1[0].path.display()),
                    second: format!("`{}`", groups[at].1[0].path.display()),
                });
            }
        }
        Ok(ids)
    }

    /// The fields that tell records apart, in the folders of the pattern.
    fn id_of_fields(&self, own: &Values) -> Option<String> {
        let mut parts = Vec::new();
        for component in &self.pattern.components {
            let Component::Name(tokens) = component else {
                continue;
            };
            let values: Vec<String> = tokens
                .iter()
                .filter_map(|token| match token {
                    Token::Field { name, .. } => {
                        let mut own = own.iter();
                        own.find_map(|(field, value)| (field == name).then(|| safe(value)))
                    }
                    _ => None,
                })
                .collect();
            if !values.is_empty() {
                parts.push(values.join("_"));
            }
        }
        (!parts.is_empty()).then(|| parts.join("/"))
    }
}

/// The folders of a pattern that are plain names, and the rest.
fn split(input: &str) -> (PathBuf, &str) {
    let mut start = 0;
    for (at, _) in input.match_indices('/') {
        if is_pattern(&input[start..at]) {
            break;
        }
        start = at + 1;
    }
    let root = if start == 1 {
        "/"
    } else {
        input[..start].trim_end_matches('/')
    };
    (PathBuf::from(root), &input[start..])
}

/// Every combination, the last varying fastest.
fn product(lists: &[Vec<String>]) -> Vec<Vec<String>> {
    lists.iter().fold(vec![Vec::new()], |rows, list| {
        let rows = rows.iter().flat_map(|row| {
            list.iter().map(move |value| {
                let mut row = row.clone();
                row.push(value.clone());
                row
            })
        });
        rows.collect()
    })
}
