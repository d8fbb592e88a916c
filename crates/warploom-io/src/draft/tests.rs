use super::*;
use std::io::Write as _;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn fill(path: &Path, text: &[u8]) -> Result<(), Fault> {
    Draft::fill(path, 3, Sync::Yes, |file| {
        file.write_all(text).map_err(|e| Fault::write(&e))
    })
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    fs::write(&path, "old").unwrap();
    Draft::fill(&path, 3, Sync::No, |file| {
        file.write_all(b"new").map_err(|e| Fault::write(&e))?;
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()).len(), 2);
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a.npy"]);
}

#[test]
fn a_folder_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zarr");
    for text in ["first", "second"] {
        Draft::fill_folder(&path, 3, Sync::No, |draft| {
            fs::write(draft.join(text), text).map_err(|e| Fault::write(&e))?;
            assert_eq!(path.exists(), text == "second");
            Ok(())
        })
        .unwrap();
        assert_eq!(names(&path), [text]);
        assert_eq!(names(folder.path()), ["a.zarr"]);
    }
    let fault = Draft::fill_folder(&path, 3, Sync::No, |draft| {
        fs::write(draft.join("third"), "").unwrap();
        Err(Fault::Stopped)
    });
    assert_eq!(fault, Err(Fault::Stopped));
    assert_eq!(names(&path), ["second"]);
    assert_eq!(names(folder.path()), ["a.zarr"]);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (link, file) = (folder.path().join("a.npy"), elsewhere.path().join("b"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fill(&link, b"new").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(names(elsewhere.path()), ["b"]);
    // Also when what it points at is removed in between.
    remove_result(&link).unwrap();
    assert!(link.is_symlink() && !file.exists());
    fill(&link, b"newer").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"newer");
}

#[test]
fn results_are_removed_and_folders_that_are_none_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.npy"), "old").unwrap();
    for (image, inner) in [("a.zarr", "zarr.json"), ("b.zarr", "notes.txt")] {
        fs::create_dir_all(path(image).join("c")).unwrap();
        fs::write(path(image).join(inner), "{}").unwrap();
    }
    for name in ["a.npy", "a.zarr", "b.zarr", "missing.npy"] {
        remove_result(path(name)).unwrap();
    }
    assert_eq!(names(folder.path()), ["b.zarr"]);
    // Killed after the first of two steps, it has lost its name and is cleaned up later.
    fs::rename(path("b.zarr"), path(".b.zarr.99-1.part-old")).unwrap();
    remove_leftovers(folder.path()).unwrap();
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn after_an_error_nothing_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    fs::write(&path, "old").unwrap();
    let fault = Draft::fill(&path, 3, Sync::No, |_| Err(Fault::Folder)).unwrap_err();
    assert_eq!(fault, Fault::Folder);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.npy"]);
}

#[test]
fn a_folder_in_the_way_or_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(fill(folder.path(), b""), Err(Fault::Folder));
    let nowhere = folder.path().join("none/a.npy");
    assert!(matches!(
        fill(&nowhere, b""),
        Err(Fault::Write {
            kind: io::ErrorKind::NotFound,
            ..
        })
    ));
}

#[test]
fn leftovers_of_the_dead_go_and_drafts_of_the_living_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A file and a folder of a killed process, one whose lock is left, and others' files.
    fs::write(at(".a.tif.1-0.part"), "half").unwrap();
    fs::create_dir_all(at(".b.zarr.1-1.part/0")).unwrap();
    fs::write(at(".b.zarr.1-1.part-lock"), "").unwrap();
    fs::create_dir(at(".c.zarr.1-2.part-old")).unwrap();
    fs::write(at(".d.zarr.1-3.part-lock"), "").unwrap();
    for other in ["a.tif.part", ".hidden.part", ".a.1.part", ".a.x-1.part"] {
        fs::write(at(other), "").unwrap();
    }
    Draft::fill(&at("e.tif"), 3, Sync::No, |_| {
        Draft::fill_folder(&at("f.zarr"), 3, Sync::No, |own| {
            let removed = remove_leftovers(folder.path()).unwrap();
            let removed: Vec<_> = removed
                .iter()
                .map(|path| path.file_name().unwrap().to_str().unwrap())
                .collect();
            assert_eq!(
                removed,
                [
                    ".a.tif.1-0.part",
                    ".b.zarr.1-1.part",
                    ".b.zarr.1-1.part-lock",
                    ".c.zarr.1-2.part-old",
                    ".d.zarr.1-3.part-lock",
                ]
            );
            assert!(own.is_dir());
            Ok(())
        })
    })
    .unwrap();
    assert_eq!(
        names(folder.path()),
        [
            ".a.1.part",
            ".a.x-1.part",
            ".hidden.part",
            "a.tif.part",
            "e.tif",
            "f.zarr"
        ]
    );
    assert_eq!(
        remove_leftovers(folder.path()).unwrap(),
        Vec::<PathBuf>::new()
    );
    assert!(remove_leftovers(at("none")).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_without_room_is_told_of_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    // No disk has four exbibytes, and some systems have no file of that length.
    let bytes = 4 << 60;
    let fault = Draft::fill_reserved(&path, bytes, bytes, Sync::No, |_| {
        panic!("there is no room to write to")
    });
    assert!(matches!(fault, Err(Fault::Full { .. })), "{fault:?}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_is_as_long_as_what_was_written_and_not_as_what_was_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    Draft::fill_reserved(&path, 1 << 20, 1 << 20, Sync::No, |file| {
        file.write_all(b"short")
            .map_err(|error| Fault::write(&error))
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"short");
}

#[test]
fn a_full_disk_is_said_with_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let fault = Draft::fill(&path, 3 << 20, Sync::No, |_| {
        Err(Fault::write(&io::ErrorKind::StorageFull.into()))
    });
    let error = fault.unwrap_err().of(Path::new("a.npy"));
    assert_eq!(
        error.to_string(),
        "`a.npy` cannot be written: no storage space; it needs 3.0 MiB"
    );
    assert!(names(folder.path()).is_empty());
}

#[test]
fn cleaning_up_never_takes_what_is_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                remove_leftovers(folder.path()).unwrap();
            }
        });
        let write = |round: u32| -> Result<(), Fault> {
            let file = folder.path().join("a.npy");
            Draft::fill(&file, 4, Sync::No, |to| {
                to.write_all(&round.to_ne_bytes())
                    .map_err(|error| Fault::write(&error))
            })?;
            let stack = folder.path().join("b.zarr");
            Draft::fill_folder(&stack, 4, Sync::No, |inside| {
                fs::write(inside.join("c"), round.to_ne_bytes())
                    .map_err(|error| Fault::write(&error))
            })
        };
        let ended = (0..2000).try_for_each(write);
        is_over.store(true, Ordering::Relaxed);
        ended.unwrap();
    });
}
