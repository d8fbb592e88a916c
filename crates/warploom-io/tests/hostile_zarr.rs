//! Folders of Zarr's that are cut, changed or made up: an error or an image, never a panic, never more
//! memory than the files can justify.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod watched;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;
use warploom_io::Source;

use watched::{fixed, justified, largest};

/// Files with their contents.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// The folders of Zarr's that are changed here, as their files.
fn zarr_seeds() -> &'static [Files] {
    static SEEDS: LazyLock<Vec<Files>> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/zarr");
        let mut arrays: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        arrays.sort();
        let load = |array: &PathBuf| {
            let mut files = Vec::new();
            list(array, array, &mut files);
            files.sort();
            files
        };
        arrays.iter().map(load).collect()
    });
    &SEEDS
}

fn list(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_owned();
            files.push((name, fs::read(&path).unwrap()));
        }
    }
}

/// Opens and reads a folder, unless what it claims is more than a test wants to have.
fn read_folder(folder: &Path) -> Result<(), String> {
    let mut source = Source::open(folder).map_err(|error| error.to_string())?;
    if source.header().bytes() > 1 << 24 {
        return Ok(());
    }
    source.read().map(drop).map_err(|error| error.to_string())
}

/// A changed byte in a chunk with a check sum is noticed, wherever it is.
#[test]
fn check_sums_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let array = folder.path().join("a.zarr");
    let seeds = zarr_seeds();
    let sealed = seeds.iter().find(|files| {
        let text = String::from_utf8_lossy(&files[files.len() - 1].1);
        text.contains("transpose") && text.contains("crc32c")
    });
    copy(sealed.unwrap(), &array);
    read_folder(&array).unwrap();
    let chunk = array.join("c/0/0/0");
    let whole = fs::read(&chunk).unwrap();
    for at in (0..whole.len()).step_by(37) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&chunk, changed).unwrap();
        let error = read_folder(&array).unwrap_err();
        assert!(error.contains("check sum of a chunk is wrong"), "{error}");
    }
}

/// Where the folders are that are changed; this program has but one thread that does.
static COPIES: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn copy(files: &Files, array: &Path) {
    for (name, bytes) in files {
        let path = array.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(fixed(600))]

    #[test]
    fn changed_folders_are_errors_or_images(
        at in any::<prop::sample::Index>(),
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
        digits: bool,
    ) {
        let seeds = zarr_seeds();
        let seed = at.index(seeds.len());
        let files = &seeds[seed];
        let (name, whole) = &files[file.index(files.len())];
        let mut bytes = whole.clone();
        for (place, value) in &changes {
            let place = place.index(bytes.len());
            // Numbers of a description that are other numbers get farther than nonsense.
            bytes[place] = match bytes[place] {
                b'0'..=b'9' if digits => b'0' + value % 10,
                _ => *value,
            };
        }
        if let Some(cut) = &cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let length: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        // Folders are made once, and one file of them is changed for a while.
        let array = COPIES.path().join(format!("{seed}.zarr"));
        if !array.exists() {
            copy(files, &array);
        }
        fs::write(array.join(name), bytes).unwrap();
        let (asked, outcome) = largest(|| read_folder(&array));
        fs::write(array.join(name), whole).unwrap();
        prop_assert!(asked <= justified(length).max(1 << 25), "{asked} bytes: {outcome:?}");
    }
}
