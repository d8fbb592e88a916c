//! Files that fit a pattern.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::RecordError;
use super::pattern::{Component, Pattern, Twice, Values, fit};
use crate::error::Fault;
use crate::format::Format;

/// A file that fits.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) path: PathBuf,
    /// Its path below the root, name by name.
    pub(super) names: Vec<String>,
    pub(super) values: Values,
}

impl Hit {
    pub(super) fn key(&self) -> String {
        self.names.join("/")
    }

    pub(super) fn value(&self, field: &str) -> Option<&String> {
        let mut values = self.values.iter();
        values.find_map(|(name, value)| (name == field).then_some(value))
    }
}

/// Goes down the folders that can have something that fits.
pub(super) struct Walk<'l> {
    pub(super) pattern: &'l Pattern,
    /// Only files whose ending says that they hold images.
    pub(super) only_images: bool,
    /// How many names were looked at.
    pub(super) seen: usize,
    pub(super) hits: Vec<Hit>,
    /// Images whose names are no text, and so fit no pattern.
    pub(super) nameless: Vec<PathBuf>,
}

impl Walk<'_> {
    pub(super) fn enter(
        &mut self,
        folder: &Path,
        depth: usize,
        names: &mut Vec<String>,
        values: &mut Values,
    ) -> Result<(), RecordError> {
        let components = &self.pattern.components;
        let Some(component) = components.get(depth) else {
            return Ok(());
        };
        let is_deep = *component == Component::Deep;
        if is_deep {
            self.enter(folder, depth + 1, names, values)?;
        }
        for entry in list(folder)? {
            self.seen += 1;
            let Ok(name) = entry.file_name().into_string() else {
                let path = entry.path();
                let is_image = Format::of(&path).is_ok_and(Format::holds_images);
                if is_image && (is_deep || depth + 1 == components.len()) {
                    self.nameless.push(path);
                }
                continue;
            };
            // Hidden files are drafts of ours, and of others.
            if name.starts_with('.') {
                continue;
            }
            let path = entry.path();
            names.push(name);
            let name = &names[names.len() - 1];
            let before = values.len();
            match component {
                Component::Deep => {
                    if is_folder(&path) {
                        self.enter(&path, depth, names, values)?;
                    }
                }
                Component::Name(tokens) => {
                    let fitted = fit(tokens, name).map_err(|Twice(one, other)| {
                        let pairs = |values: &Values| {
                            let pairs =
                                values.iter().map(|(name, value)| format!("{name}={value}"));
                            pairs.collect::<Vec<_>>().join(" ")
                        };
                        RecordError::Ambiguous {
                            path: path.clone(),
                            pattern: self.pattern.text().to_owned(),
                            one: pairs(&one),
                            other: pairs(&other),
                        }
                    })?;
                    if let Some(fitted) = fitted {
                        values.extend(fitted);
                        if depth + 1 < components.len() {
                            if is_folder(&path) {
                                self.enter(&path, depth + 1, names, values)?;
                            }
                        } else {
                            self.take(path, names, values);
                        }
                    }
                }
            }
            values.truncate(before);
            names.pop();
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf, names: &[String], values: &Values) {
        let is_image = Format::of(&path).is_ok_and(Format::holds_images);
        let is_folder = path.is_dir();
        let is_zarr = is_folder && (crate::zarr::is_zarr(&path) || ends_as_zarr(&path));
        let is_wanted = is_zarr || (!is_folder && (is_image || !self.only_images));
        if is_wanted {
            self.hits.push(Hit {
                path,
                names: names.to_vec(),
                values: values.clone(),
            });
        }
    }
}

/// A folder that is not one image.
fn is_folder(path: &Path) -> bool {
    path.is_dir() && !ends_as_zarr(path)
}

pub(super) fn ends_as_zarr(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("zarr"))
}

fn list(folder: &Path) -> Result<Vec<fs::DirEntry>, RecordError> {
    let folder = if folder == Path::new("") {
        Path::new(".")
    } else {
        folder
    };
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(|error| Fault::open(&error).of(folder).into())
}
