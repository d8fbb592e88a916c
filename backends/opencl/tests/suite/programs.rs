//! Compiled programs in memory and on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warploom_core::{
    CheckedDevice, GpuBackend, KernelCode, KernelSource, Math, Param, Queue, Slice,
};

use crate::rig::{Rig, backend, each, grid, read, source};

/// A device of its own that keeps programs in `dir`.
fn open(dir: &Path, ordinal: u32) -> Rig {
    let backend = backend().unwrap().with_cache_dir(dir);
    Rig {
        device: CheckedDevice::new(backend.open(ordinal).unwrap()),
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).map(|entries| entries.map(|e| e.unwrap().path()).collect());
    entries.unwrap_or_default()
}

/// Does the kernel from this directory compute?
fn works(dir: &Path, ordinal: u32) {
    let rig = open(dir, ordinal);
    let buffer = rig.buffer(4 * 64);
    let args = [Slice::whole(&buffer).into(), 5_u32.into(), 64_u32.into()];
    let mut queue = rig.queue();
    queue
        .launch(&rig.kernel("number"), grid(64), &args)
        .unwrap();
    let seen = read::<u32>(&mut queue, &Slice::whole(&buffer));
    assert_eq!(seen, (5..69).collect::<Vec<u32>>());
}

#[test]
fn a_program_is_compiled_once_per_directory() {
    each(|rig| {
        let ordinal = rig.device.info().id.ordinal;
        let dir = tempfile::tempdir().unwrap();
        works(dir.path(), ordinal);
        let first = files(dir.path());
        assert_eq!(first.len(), 1, "one program, one file");
        let written = fs::metadata(&first[0]).unwrap().modified().unwrap();
        works(dir.path(), ordinal);
        assert_eq!(files(dir.path()), first);
        let still = fs::metadata(&first[0]).unwrap().modified().unwrap();
        assert_eq!(still, written, "a hit writes nothing");
        // Other math is another program.
        let rig = open(dir.path(), ordinal);
        rig.device
            .kernel(&source("number").with_math(Math::Fast))
            .unwrap();
        assert_eq!(files(dir.path()).len(), 2);
    });
}

#[test]
fn damaged_files_are_replaced() {
    each(|rig| {
        let ordinal = rig.device.info().id.ordinal;
        let dir = tempfile::tempdir().unwrap();
        works(dir.path(), ordinal);
        let [file] = &files(dir.path())[..] else {
            panic!("one file");
        };
        let whole = fs::read(file).unwrap();
        // Cut in each field of the header, in the key, and in the binary; then damaged and foreign.
        let cuts = [
            0,
            3,
            8,
            11,
            12,
            19,
            27,
            43,
            44,
            100,
            whole.len() / 2,
            whole.len() - 1,
        ];
        let mut bad: Vec<Vec<u8>> = cuts.iter().map(|cut| whole[..*cut].to_vec()).collect();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        bad.extend([flipped, b"something else entirely".to_vec()]);
        for content in bad {
            fs::write(file, &content).unwrap();
            works(dir.path(), ordinal);
            assert_ne!(fs::read(file).unwrap(), content, "written anew");
        }
    });
}

#[test]
fn a_directory_that_cannot_be_used_does_no_harm() {
    each(|rig| {
        let file = tempfile::NamedTempFile::new().unwrap();
        works(
            &file.path().join("not a directory"),
            rig.device.info().id.ordinal,
        );
    });
}

#[test]
fn openings_that_race_for_a_program_all_get_it() {
    each(|rig| {
        let ordinal = rig.device.info().id.ordinal;
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| works(dir.path(), ordinal));
            }
        });
        assert_eq!(files(dir.path()).len(), 1);
    });
}

#[test]
fn loading_again_is_quick_while_the_program_lives() {
    each(|rig| {
        // A source of its own, so that no driver's cache has it either.
        let salt = std::process::id() ^ rig.device.info().id.ordinal << 24;
        let code =
            format!("__kernel void salted(__global uint *a) {{ a[get_global_id(0)] = {salt}u; }}");
        let load = || {
            let start = Instant::now();
            let (code, params) = (KernelCode::OpenClC(&code), &[Param::Write]);
            // SAFETY: it is never launched.
            let source = unsafe { KernelSource::vouch("salted", code, params, [1, 1, 1]) };
            (rig.device.kernel(&source).unwrap(), start.elapsed())
        };
        let (_kept, first) = load();
        let again = (0..5).map(|_| load().1).min().unwrap();
        println!("first {first:?}, again {again:?}");
        assert!(again < first / 4 || again < Duration::from_millis(1));
    });
}
