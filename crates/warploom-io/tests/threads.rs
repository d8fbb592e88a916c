//! No thread is left. This is a program of its own, because others' threads would be counted.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use warploom_core::{DType, Shape};
use warploom_io::records::Record;
use warploom_io::{Ahead, Image, Prefetch, WriteBehind, write};

/// Whether this process comes to have so many threads. A thread that was joined is still listed for a
/// moment.
fn has_threads(wanted: usize) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let count = fs::read_dir("/proc/self/task").unwrap().count();
        if count == wanted || Instant::now() > end {
            return count == wanted;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_thread_is_left_whenever_it_ends() {
    if !cfg!(target_os = "linux") {
        println!("skipped: threads are counted in /proc, which only Linux has");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zarr");
    let shape = Shape::new(&[20, 64, 64]).unwrap();
    write(&path, &Image::zeroed(DType::U16, shape).unwrap()).unwrap();
    let before = fs::read_dir("/proc/self/task").unwrap().count();
    for taken in 0..5 {
        let records = (0..100).map({
            let path = path.clone();
            move |_| Ok(Record::file(&path))
        });
        let ahead = Ahead {
            threads: 4,
            buffers: 5,
            ..Ahead::default()
        };
        let mut prefetch = Prefetch::start(records, ahead).unwrap();
        let writer = WriteBehind::start(3, 1000).unwrap();
        assert!(has_threads(before + 7));
        let mut held = Vec::new();
        for at in 0..taken {
            held.push(prefetch.next().unwrap());
            writer.submit(at, "a", 1, || Ok(()));
        }
        drop(prefetch);
        assert!(has_threads(before + 3));
        drop(writer);
        assert!(has_threads(before));
    }
}
