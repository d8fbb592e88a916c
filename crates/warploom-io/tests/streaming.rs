//! Reading ahead and writing behind: in order, in bounded memory, errors where they belong, and no thread
//! left whatever happens when.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use warploom_core::{DType, Shape};
use warploom_io::records::{Record, RecordReader};
use warploom_io::{
    Ahead, Fault, FileError, Image, Next, Prefetch, Source, Sync, WriteBehind, write, write_image,
};

/// Files of 4x5 u16, each filled with its number.
fn files(folder: &Path, count: u16) -> Vec<Record> {
    let shape = Shape::new(&[4, 5]).unwrap();
    let name = |at: u16| folder.join(format!("r{at}.tif"));
    for at in 0..count {
        write(name(at), &Image::new(shape, &[at; 20]).unwrap()).unwrap();
    }
    (0..count).map(|at| Record::file(name(at))).collect()
}

fn start(records: &[Record], ahead: Ahead) -> Prefetch {
    let records: Vec<_> = records.iter().cloned().map(Ok).collect();
    Prefetch::start(records.into_iter(), ahead).unwrap()
}

#[test]
fn records_come_in_order_through_few_buffers() {
    let folder = tempfile::tempdir().unwrap();
    let records = files(folder.path(), 200);
    for (threads, buffers) in [(1, 1), (1, 3), (3, 2), (4, 8)] {
        let ahead = Ahead {
            threads,
            buffers,
            ..Ahead::default()
        };
        let mut prefetch = start(&records, ahead);
        let mut places = HashSet::new();
        let mut count = 0;
        while let Some(loaded) = prefetch.next() {
            assert_eq!(loaded.index, count);
            assert_eq!(loaded.record.unwrap().id(), format!("r{count}"));
            let image = loaded.image.unwrap();
            let value = u16::try_from(count).unwrap();
            assert_eq!(image.elements(), Some(&[value; 20][..]));
            assert_eq!(image.header().dtype, DType::U16);
            places.insert(image.bytes().as_ptr() as usize);
            count += 1;
        }
        assert_eq!(count, 200);
        // No more memory than there are buffers, however many records.
        assert!(places.len() <= buffers, "{} places", places.len());
    }
}

#[test]
fn one_bad_record_is_one_bad_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = files(folder.path(), 100);
    let path = |at: usize| folder.path().join(format!("r{at}.tif"));
    let bytes = fs::read(path(7)).unwrap();
    fs::write(path(7), &bytes[..bytes.len() / 2]).unwrap();
    fs::remove_file(path(20)).unwrap();
    let other = Image::new(Shape::new(&[4, 5]).unwrap(), &[1_u8; 20]).unwrap();
    write(path(33), &other).unwrap();
    let wide = Image::new(Shape::new(&[4, 6]).unwrap(), &[1_u16; 24]).unwrap();
    write(path(34), &wide).unwrap();
    fs::write(path(35), "").unwrap();
    records[50] = Record::file(folder.path());
    let ahead = Ahead {
        threads: 3,
        buffers: 3,
        expected: Some((DType::U16, Shape::new(&[4, 5]).unwrap())),
        ..Ahead::default()
    };
    let mut prefetch = start(&records, ahead);
    let mut bad = Vec::new();
    let mut count = 0_u16;
    while let Some(loaded) = prefetch.next() {
        match loaded.image {
            Ok(image) => assert_eq!(image.elements(), Some(&[count; 20][..])),
            Err(error) => bad.push((count, error.fault)),
        }
        count += 1;
    }
    assert_eq!(count, 100);
    let bad: Vec<(u16, String)> = bad
        .into_iter()
        .map(|(at, fault)| (at, fault.to_string()))
        .collect();
    let wanted = [
        (7, "cut short"),
        (20, "cannot be read"),
        (33, "holds 4x5 u8 (YX), and 4x5 u16 (YX) was expected"),
        (34, "holds 4x6 u16 (YX), and 4x5 u16 (YX) was expected"),
        (35, "empty file"),
        (50, "is a folder"),
    ];
    assert_eq!(bad.len(), wanted.len(), "{bad:?}");
    for ((at, text), (place, words)) in bad.iter().zip(wanted) {
        assert_eq!(*at, place);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_record_that_cannot_be_listed_is_an_error_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let records = files(folder.path(), 3);
    let lost = FileError {
        path: "plate.zarr".into(),
        fault: Fault::Folder,
    };
    let items = vec![
        Ok(records[0].clone()),
        Err(lost.clone()),
        Ok(records[2].clone()),
    ];
    let mut prefetch = Prefetch::start(items.into_iter(), Ahead::default()).unwrap();
    assert!(prefetch.next().unwrap().image.is_ok());
    assert_eq!(prefetch.next().unwrap().image.unwrap_err(), lost);
    assert!(prefetch.next().unwrap().image.is_ok());
    assert!(prefetch.next().is_none());
    // A list that panics is the last of it, and is said.
    let mut left = vec![records[0].clone()];
    let items = std::iter::from_fn(move || Some(Ok(left.pop().unwrap())));
    let mut prefetch = Prefetch::start(items, Ahead::default()).unwrap();
    assert!(prefetch.next().unwrap().image.is_ok());
    let error = prefetch.next().unwrap().image.unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(prefetch.next().is_none());
}

#[test]
fn memory_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let records = files(folder.path(), 4);
    let large = Image::zeroed(DType::U16, Shape::new(&[40, 50]).unwrap()).unwrap();
    write(folder.path().join("r1.tif"), &large).unwrap();
    let ahead = Ahead {
        buffers: 2,
        most_bytes: 100,
        ..Ahead::default()
    };
    let mut prefetch = start(&records, ahead);
    let held = prefetch.next().unwrap().image.unwrap();
    let error = prefetch.next().unwrap().image.unwrap_err();
    assert!(error.to_string().contains("3.9 KiB"), "{error}");
    let more = prefetch.next().unwrap().image.unwrap();
    // Both buffers are out: the next record waits for one of them.
    let late = prefetch.next_within(Duration::from_millis(50));
    assert!(matches!(late, Next::Late));
    drop(held);
    let Next::Record(loaded) = prefetch.next_within(Duration::from_secs(20)) else {
        panic!("the buffer did not come back");
    };
    assert_eq!(loaded.image.unwrap().elements::<u16>().unwrap()[0], 3);
    // One that is kept for good is replaced.
    let kept = more.into_image();
    drop(prefetch);
    assert_eq!(kept.elements::<u16>().unwrap()[0], 2);
}

#[test]
fn records_that_fail_do_not_run_ahead_without_end() {
    let pulled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&pulled);
    let records = (0..1000).map(move |at| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Record::file(format!("/none/r{at}.tif")))
    });
    let ahead = Ahead {
        threads: 3,
        buffers: 4,
        ..Ahead::default()
    };
    let mut prefetch = Prefetch::start(records, ahead).unwrap();
    assert!(prefetch.next().unwrap().image.is_err());
    thread::sleep(Duration::from_millis(200));
    let pulled = pulled.load(Ordering::Relaxed);
    assert!((2..=9).contains(&pulled), "{pulled} records were asked for");
    let mut left = 0;
    while let Some(loaded) = prefetch.next() {
        assert!(loaded.image.is_err());
        left += 1;
    }
    assert_eq!(left, 999);
}

#[test]
fn a_flag_ends_reading_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.tif", "a.npy", "a.png", "a.zarr", "a.ome.tif"] {
        let path = folder.path().join(name);
        let image = Image::new(Shape::new(&[4, 5]).unwrap(), &[7_u8; 20]).unwrap();
        write(&path, &image).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut reader = RecordReader::with_stop(Arc::clone(&stop));
        let record = Record::file(&path);
        let mut pixels = [0; 20];
        reader.read_into(&record, &mut pixels).unwrap();
        stop.store(true, Ordering::Relaxed);
        let error = reader.read_into(&record, &mut pixels).unwrap_err();
        assert_eq!(error.fault, Fault::Stopped, "{name}");
        let mut source = Source::open(&path).unwrap();
        source.stop_flag().store(true, Ordering::Relaxed);
        assert_eq!(source.read().unwrap_err().fault, Fault::Stopped, "{name}");
    }
}

#[test]
fn images_outlive_what_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let records = files(folder.path(), 10);
    let mut prefetch = start(&records, Ahead::default());
    let first = prefetch.next().unwrap().image.unwrap();
    let second = prefetch.next().unwrap().image.unwrap();
    drop(prefetch);
    assert_eq!(first.elements::<u16>().unwrap()[0], 0);
    let elsewhere = thread::spawn(move || second.elements::<u16>().unwrap()[0]);
    assert_eq!(elsewhere.join().unwrap(), 1);
}

#[test]
fn a_stop_from_elsewhere_ends_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let records = files(folder.path(), 2);
    let ahead = Ahead {
        buffers: 1,
        ..Ahead::default()
    };
    let mut prefetch = start(&records, ahead);
    let held = prefetch.next().unwrap();
    let stopper = prefetch.stopper();
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        stopper.stop();
    });
    // Nobody gives the buffer back, so only the stop ends this.
    assert!(prefetch.next().is_none());
    other.join().unwrap();
    drop(prefetch);
    drop(held);
}

#[test]
fn a_large_file_is_left_between_two_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.zarr");
    let shape = Shape::new(&[60, 300, 300]).unwrap();
    write(&path, &Image::zeroed(DType::F32, shape).unwrap()).unwrap();
    let mut prefetch = start(&[Record::file(&path)], Ahead::default());
    assert!(matches!(
        prefetch.next_within(Duration::ZERO),
        Next::Late | Next::Record(_)
    ));
    let begin = Instant::now();
    drop(prefetch);
    // All of it takes longer than a piece; the bound is for machines that are busy.
    assert!(begin.elapsed() < Duration::from_secs(20));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Dropped after any number of records, with any number of buffers out.
    #[test]
    fn it_can_be_dropped_at_any_time(
        threads in 1_usize..5,
        buffers in 1_usize..5,
        taken in 0_usize..12,
        held in 0_usize..5,
        bad in 0_usize..12,
        stop_first: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let records = files(folder.path(), 12);
        fs::write(folder.path().join(format!("r{bad}.tif")), "II*\0").unwrap();
        let ahead = Ahead { threads, buffers, ..Ahead::default() };
        let mut prefetch = start(&records, ahead);
        let mut out = Vec::new();
        for at in 0..taken {
            let loaded = prefetch.next().unwrap();
            prop_assert_eq!(loaded.index, at);
            prop_assert_eq!(loaded.image.is_err(), at == bad);
            out.push(loaded);
            // At least one buffer has to be free for more to come.
            while out.len() > held.min(buffers - 1) {
                out.remove(0);
            }
        }
        if stop_first {
            prefetch.stopper().stop();
            prop_assert!(prefetch.next().is_none());
        }
        drop(prefetch);
        for loaded in out {
            if let Ok(image) = loaded.image {
                prop_assert_eq!(usize::from(image.elements::<u16>().unwrap()[0]), loaded.index);
            }
        }
    }

    #[test]
    fn every_job_is_answered_once(
        threads in 1_usize..5,
        most in 0_u64..300,
        sizes in prop::collection::vec(0_u64..200, 0..20),
        finishes: bool,
    ) {
        let writer = WriteBehind::start(threads, most).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let mut answers = Vec::new();
        for (tag, bytes) in sizes.iter().enumerate() {
            let done = Arc::clone(&done);
            writer.submit(tag, "x", *bytes, move || {
                done.fetch_add(1, Ordering::Relaxed);
                match tag % 3 {
                    0 => Ok(()),
                    1 => Err(FileError { path: "x".into(), fault: Fault::Folder }),
                    _ => panic!("a job that panics"),
                }
            });
            prop_assert!(writer.pending_bytes() <= most.max(*bytes));
            answers.extend(writer.try_answer());
        }
        if finishes {
            answers.extend(writer.finish());
            answers.sort_by_key(|(tag, _)| *tag);
            prop_assert_eq!(answers.len(), sizes.len());
            prop_assert_eq!(done.load(Ordering::Relaxed), sizes.len());
            for (at, (tag, answer)) in answers.iter().enumerate() {
                prop_assert_eq!(at, *tag);
                prop_assert_eq!(answer.is_ok(), at % 3 == 0);
                let is_panic = answer.as_ref().is_err_and(|e| e.to_string().contains("panicked"));
                prop_assert_eq!(is_panic, at % 3 == 2);
            }
        } else {
            drop(writer);
            // What was not begun is not done later.
            let count = done.load(Ordering::Relaxed);
            prop_assert!(count <= sizes.len());
        }
    }
}

#[test]
fn reading_and_writing_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    let records = files(folder.path(), 60);
    for round in 0..3 {
        let ahead = Ahead {
            threads: 2,
            buffers: 3,
            ..Ahead::default()
        };
        let mut prefetch = start(&records, ahead);
        let writer = WriteBehind::start(2, 100).unwrap();
        let mut written = 0;
        while let Some(loaded) = prefetch.next() {
            let image = loaded.image.unwrap();
            let name = loaded.record.unwrap().id().to_owned() + ".npy";
            let path = out.path().join(name);
            let target = path.clone();
            // The image goes along, and its buffer comes back when it is written.
            let bytes = image.header().bytes();
            writer.submit(loaded.index, &path, bytes, move || {
                write_image(&target, image.header(), image.bytes(), Sync::No)
            });
            written += usize::from(writer.try_answer().is_some());
            if round == 2 && loaded.index == 30 {
                break;
            }
        }
        if round < 2 {
            written += writer.finish().len();
            assert_eq!(written, 60);
        }
    }
    let image = warploom_io::read(out.path().join("r59.npy")).unwrap();
    assert_eq!(image.elements(), Some(&[59_u16; 20][..]));
    let drafts = fs::read_dir(out.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(drafts.count(), 0);
}
