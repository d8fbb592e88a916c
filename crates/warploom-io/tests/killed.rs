//! Processes that are killed while they write, and disks that are full: nothing half-written is ever under
//! its final name, and what is left is found.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use warploom_core::{Coded as _, DType, Shape};
use warploom_io::{Image, Table, remove_leftovers, write, write_table};

/// An image whose pixels are all the same.
fn uniform(value: u8, shape: &[u64]) -> Image {
    let mut image = Image::zeroed(DType::U8, Shape::new(shape).unwrap()).unwrap();
    image.bytes_mut().fill(value);
    image
}

/// This program again, as the test of that name, in a folder.
fn again(test: &str, folder: &Path, before: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{before} exec \"$0\" --exact {test} --ignored --nocapture"
        ))
        .arg(program)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "it writes until it is killed; the test below starts it"]
fn writes_without_end() {
    for value in 0..=u8::MAX {
        // Several pieces each, so that there is something to be half-way in.
        write("a.tif", &uniform(value, &[4, 500, 500])).unwrap();
        write("b.zarr", &uniform(value, &[40, 60, 60])).unwrap();
        write("c.npy", &uniform(value, &[300, 1000])).unwrap();
    }
}

/// Until something is being written; a machine may be busy.
fn wait_for_a_draft(folder: &Path) {
    let end = Instant::now() + Duration::from_secs(30);
    let is_draft = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with('.'))
    };
    while !fs::read_dir(folder).unwrap().any(is_draft) {
        assert!(Instant::now() < end, "the writer writes nothing");
        thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn what_is_under_its_name_is_whole_whenever_the_writer_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    let mut leftovers = 0;
    for round in 0..25_u64 {
        let mut child = again("writes_without_end", folder.path(), "");
        wait_for_a_draft(folder.path());
        thread::sleep(Duration::from_millis(round * 37 % 150));
        // Drafts of a process that lives are left alone: it goes on.
        remove_leftovers(folder.path()).unwrap();
        wait_for_a_draft(folder.path());
        thread::sleep(Duration::from_micros(round * 613 % 4000));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in ["a.tif", "b.zarr", "c.npy"] {
            let path = folder.path().join(name);
            // Between two folders there may be none, and at first there is nothing.
            if path.exists() {
                let image = warploom_io::read(&path).unwrap();
                let value = image.bytes()[0];
                assert!(image.bytes().iter().all(|byte| *byte == value), "{name}");
                seen += 1;
            }
        }
        leftovers += remove_leftovers(folder.path()).unwrap().len();
        let names = fs::read_dir(folder.path()).unwrap();
        for name in names.map(|entry| entry.unwrap().file_name()) {
            assert!(!name.to_string_lossy().starts_with('.'), "{name:?} is left");
        }
    }
    assert!(seen > 25, "only {seen} files were there to be looked at");
    assert!(
        leftovers > 0,
        "no draft was ever left, so nothing was shown"
    );
}

#[test]
#[ignore = "it writes where there is no room; the test below starts it"]
fn writes_too_much() {
    let image = uniform(7, &[1000, 1000]);
    let answers = ["a.tif", "a.npy", "a.png", "a.zarr", "a.ome.tif"].map(|name| {
        // Noise, which PNG and zstd cannot make smaller.
        let mut image = image.clone();
        let mut state = 1_u32;
        for byte in image.bytes_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = state.to_be_bytes()[0];
        }
        match write(name, &image) {
            Ok(()) => format!("{name}: written\n"),
            Err(error) => format!("{}: {error}\n", error.code()),
        }
    });
    fs::write("answers.txt", answers.concat()).unwrap();
    let table = Table::new(vec![warploom_io::Column {
        name: "n".into(),
        values: warploom_io::Values::Whole((0..100_000).collect()),
    }])
    .unwrap();
    assert!(write_table("a.parquet", &table).is_err());
    assert!(write_table("a.csv", &table).is_err());
}

/// A limit for the size of files is what a test can have of a full disk without being root.
#[test]
fn a_disk_without_room_is_said_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let before = "trap '' XFSZ; ulimit -f 100;";
    let status = again("writes_too_much", folder.path(), before)
        .wait()
        .unwrap();
    assert!(status.success());
    let answers = fs::read_to_string(folder.path().join("answers.txt")).unwrap();
    for (line, name) in answers
        .lines()
        .zip(["a.tif", "a.npy", "a.png", "a.zarr", "a.ome.tif"])
    {
        assert_eq!(
            line,
            format!("WL0716: `{name}` cannot be written: file too large; it needs 976.6 KiB")
        );
    }
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "something is left");
}
