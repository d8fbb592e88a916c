//! Where measured speeds are kept: a small file for each device, in the user's cache directory.
//!
//! Files of their own, so that two programs that measure different devices do not overwrite each
//! other's, and one that is damaged costs one device. Whatever cannot be relied on is told and
//! ignored; plans then go by guesses.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use warploom::plan::Calibration;

use crate::report::{Problem, remark};
use crate::settings::Environment;

/// The folder of all of them; none where nobody says where a user's cache is.
fn folder(environment: &Environment) -> Option<PathBuf> {
    let cache = environment.cache.as_ref()?;
    Some(cache.join("warploom").join("calibration"))
}

/// Where it is kept how much fits devices, beside what was measured of them.
pub(crate) fn ceilings(environment: &Environment) -> Option<PathBuf> {
    let cache = environment.cache.as_ref()?;
    Some(cache.join("warploom").join("ceilings"))
}

/// What was measured: as the named file says, or as the user's files do.
pub(crate) fn known(
    environment: &Environment,
    named: Option<&Path>,
) -> Result<Calibration, Problem> {
    let mut all = Calibration::default();
    if let Some(path) = named {
        let read = fs::read(path).map_err(|error| {
            Problem::usage(
                format_args!("cannot read {}: {error}", path.display()),
                "name a file that `warploom calibrate --output FILE` wrote",
            )
        })?;
        all.merge(trusted(path, &read));
        return Ok(all);
    }
    let Some(entries) = folder(environment).and_then(|folder| fs::read_dir(folder).ok()) else {
        return Ok(all);
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let ends = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let mut paths: Vec<PathBuf> = paths.filter(ends).collect();
    paths.sort();
    for path in paths {
        match fs::read(&path) {
            Ok(bytes) => all.merge(trusted(&path, &bytes)),
            Err(error) => ignored(&path, &error),
        }
    }
    Ok(all)
}

/// What a file says, or nothing, and why.
fn trusted(path: &Path, bytes: &[u8]) -> Calibration {
    match Calibration::from_json(&String::from_utf8_lossy(bytes)) {
        Ok(read) => read,
        Err(error) => {
            ignored(path, &error);
            Calibration::default()
        }
    }
}

fn ignored(path: &Path, why: &dyn std::fmt::Display) {
    remark(format_args!(
        "warning: {} is ignored: {why}\n  = help: measure again with `warploom calibrate`",
        path.display()
    ));
}

/// Keeps what was measured: all in the named file, or each device in a file of the user's. Gives the
/// file or folder.
pub(crate) fn keep(
    environment: &Environment,
    named: Option<&Path>,
    measured: &Calibration,
) -> Result<PathBuf, Problem> {
    let failed = |path: &Path, error: &io::Error| {
        Problem::failure(format_args!("cannot write {}: {error}", path.display()))
    };
    if let Some(path) = named {
        write(path, &measured.to_json()).map_err(|error| failed(path, &error))?;
        return Ok(path.to_owned());
    }
    let folder = folder(environment).ok_or_else(|| {
        Problem::usage(
            "there is no place for what was measured: neither XDG_CACHE_HOME nor HOME is set",
            "name a file with `--output FILE`",
        )
    })?;
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for device in &measured.devices {
        let mut one = Calibration::default();
        one.devices.push(device.clone());
        let backend = device.device.split(':').next().unwrap_or("device");
        let path = folder.join(format!("{backend}-{:016x}.json", hash(&device.identity)));
        write(&path, &one.to_json()).map_err(|error| failed(&path, &error))?;
    }
    Ok(folder)
}

/// FNV-1a: the same in every release.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Writes a file that appears when it is whole.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let draft = path.with_file_name(name);
    let written = fs::File::create(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let written = written.and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // What is left of it is of no use; should that fail too, the first error is the one to tell.
        let _ = fs::remove_file(&draft);
    }
    written
}
