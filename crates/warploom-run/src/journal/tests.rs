use super::*;

fn line(record: &str) -> Line {
    Line {
        record: record.to_owned(),
        recipe: "r".to_owned(),
        content: "c".to_owned(),
        stamp: "s".to_owned(),
        files: vec![(PathBuf::from("a.tif"), 3)],
    }
}

#[test]
fn a_list_cut_at_any_byte_keeps_its_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path()).unwrap();
    let names = ["one", "two", "d\u{fc}nn\n"];
    for name in names {
        journal.add(&line(name)).unwrap();
    }
    drop(journal);
    let path = folder.path().join(FOLDER).join(FILE);
    let bytes = fs::read(&path).unwrap();
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        // The first line says under which start of the system the others were written.
        let own = usize::from(boot().is_some());
        let ends = bytes[..cut].split(|byte| *byte == b'\n').count() - 1;
        let ends = ends.saturating_sub(own);
        for (at, name) in names.iter().enumerate() {
            assert_eq!(journal.line(name).is_some(), at < ends, "{name} at {cut}");
        }
        journal.add(&line("new")).unwrap();
        drop(journal);
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.line("new"), Some(&line("new")));
        assert_eq!(journal.known.len(), ends + 1, "at {cut}");
    }
}

/// The list after another start of the system.
fn after_a_power_cut(folder: &Path) -> Option<Journal> {
    let boot = boot()?;
    let path = folder.join(FOLDER).join(FILE);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(&boot), "{text}");
    fs::write(&path, text.replace(&boot, "another")).unwrap();
    Some(Journal::open(folder).unwrap())
}

#[test]
fn after_a_power_cut_what_was_not_settled_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.tif"), b"abc").unwrap();
    let mut journal = Journal::open(folder.path()).unwrap();
    journal.add(&line("one")).unwrap();
    journal.add(&line("two")).unwrap();
    drop(journal);
    // A killed process has lost nothing.
    let journal = Journal::open(folder.path()).unwrap();
    assert!(journal.line("one").is_some() && journal.line("two").is_some());
    drop(journal);
    let mut file = OpenOptions::new()
        .append(true)
        .open(folder.path().join(FOLDER).join(FILE))
        .unwrap();
    file.write_all(b"{\"settled\":[\"one\"]}\n").unwrap();
    let Some(mut journal) = after_a_power_cut(folder.path()) else {
        eprintln!("not tried: this system does not tell its starts apart");
        return;
    };
    assert!(journal.line("one").is_some() && journal.line("two").is_none());
    // What nobody believed does not come back, whatever is settled later.
    journal.forget(&["two"]).unwrap();
    drop(journal);
    file.write_all(b"{\"settled\":[\"two\"]}\n").unwrap();
    let journal = after_a_power_cut(folder.path()).unwrap();
    assert!(journal.line("one").is_some() && journal.line("two").is_none());
}

#[test]
fn two_runs_do_not_write_to_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Journal::open(folder.path()).unwrap();
    let second = Journal::open(folder.path());
    assert!(matches!(second, Err(RunFailure::Busy { .. })));
    drop(first);
    assert!(Journal::open(folder.path()).is_ok());
}

type Spoil = fn(&Path);

/// Any folder was once taken for a result.
#[test]
fn folders_that_lack_a_chunk_or_have_a_short_one_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("a.zarr");
    let make = || {
        fs::create_dir_all(image.join("c/0")).unwrap();
        fs::write(image.join("zarr.json"), b"{}").unwrap();
        fs::write(image.join("c/0/0"), b"abc").unwrap();
        fs::write(image.join("c/0/1"), b"abc").unwrap();
    };
    make();
    let line = Line {
        files: vec![("a.zarr".into(), measure(&image).unwrap())],
        ..line("a")
    };
    assert!(line.is_there(folder.path()));
    let spoils: [Spoil; 5] = [
        |image| fs::remove_file(image.join("c/0/1")).unwrap(),
        |image| fs::write(image.join("c/0/1"), b"ab").unwrap(),
        |image| fs::rename(image.join("c/0/1"), image.join("c/0/2")).unwrap(),
        |image| fs::remove_file(image.join("zarr.json")).unwrap(),
        |image| fs::remove_dir_all(image.join("c")).unwrap(),
    ];
    for (at, spoil) in spoils.iter().enumerate() {
        spoil(&image);
        assert!(!line.is_there(folder.path()), "spoil {at}");
        fs::remove_dir_all(&image).unwrap();
        make();
        assert!(line.is_there(folder.path()), "spoil {at}");
    }
    // A list of an older program has the length of the folder itself: what it names is done again.
    let length = fs::metadata(&image).unwrap().len();
    let old = Line {
        files: vec![("a.zarr".into(), length)],
        ..line
    };
    assert!(!old.is_there(folder.path()));
}

#[test]
fn what_is_forgotten_is_removed_and_nothing_else() {
    let around = tempfile::tempdir().unwrap();
    let output = around.path().join("out");
    for (name, inner) in [("a.zarr", "zarr.json"), ("b.zarr", "notes")] {
        fs::create_dir_all(output.join(name)).unwrap();
        fs::write(output.join(name).join(inner), b"{}").unwrap();
    }
    for name in ["a.tif", "b.tif", "../outside.tif"] {
        fs::write(output.join(name), b"abc").unwrap();
    }
    let files = |names: [&str; 2]| names.map(|name| (PathBuf::from(name), 3)).to_vec();
    let mut journal = Journal::open(&output).unwrap();
    let own = [
        ("one", files(["a.tif", "a.zarr"])),
        // Somebody has put something else there.
        ("two", files(["gone.tif", "b.zarr"])),
        // Another record has the first now, and the second is no result.
        ("three", files(["b.tif", "../outside.tif"])),
        ("four", files(["b.tif", "gone.zarr"])),
    ];
    for (record, files) in own {
        let line = Line {
            files,
            ..line(record)
        };
        journal.add(&line).unwrap();
    }
    drop(journal);
    let mut journal = Journal::open(&output).unwrap();
    journal.forget(&["one", "two", "three"]).unwrap();
    assert!(journal.line("one").is_none() && journal.line("four").is_some());
    let left = fs::read_dir(&output).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: std::collections::BTreeSet<String> = left.collect();
    assert_eq!(Vec::from_iter(left), [FOLDER, "b.tif", "b.zarr"]);
    assert!(around.path().join("outside.tif").exists());
}

#[test]
fn files_that_are_gone_or_shorter_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!line("a").is_there(folder.path()));
    fs::write(folder.path().join("a.tif"), b"ab").unwrap();
    assert!(!line("a").is_there(folder.path()));
    fs::write(folder.path().join("a.tif"), b"abc").unwrap();
    assert!(line("a").is_there(folder.path()));
}
