//! Files that are cut, changed or made up: an error or an image, never a panic, never more memory
//! than the file can justify.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use warploom_io::{Fault, Format, Image, Source, read_bytes};

/// Remembers the largest piece of memory that this thread asked for.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    // Threads that end ask for memory, too, and have no place to remember it.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: every call goes to the system's allocator as it is; noting a number does not allocate.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's duties are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's duties are those of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's duties are those of the system's allocator.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's duties are those of the system's allocator.
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// The largest piece of memory that something asked for.
fn largest<T>(work: impl FnOnce() -> T) -> (usize, T) {
    LARGEST.with(|largest| largest.set(0));
    let result = work();
    (LARGEST.with(Cell::get), result)
}

/// What a file of so many bytes may make us ask for: what the greediest codec makes of it, or a buffer
/// for reading.
fn justified(length: usize) -> usize {
    (length << 15) + (1 << 20)
}

/// So many cases, always the same ones: what fails here fails everywhere.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(20_261_116),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The valid files that are changed here.
fn seeds() -> &'static [(PathBuf, Vec<u8>)] {
    static SEEDS: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(load_seeds);
    &SEEDS
}

fn load_seeds() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending != "py"))
        .collect();
    files.sort();
    let with_bytes = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(with_bytes).collect()
}

fn read(like: &Path, bytes: &[u8]) -> Result<Image, Fault> {
    let format = match like.extension().unwrap().to_str().unwrap() {
        "npy" => Format::Npy,
        "tif" => Format::Tiff,
        _ => Format::Png,
    };
    read_bytes(format, bytes)
}

/// Any image that comes out of a small file is small.
fn is_sensible(outcome: &Result<Image, Fault>) -> bool {
    match outcome {
        Ok(image) => image.bytes().len() < 1 << 28,
        Err(fault) => !fault.to_string().is_empty(),
    }
}

#[test]
fn files_cut_anywhere_are_errors() {
    for (path, bytes) in seeds() {
        let whole = read(path, bytes);
        for end in 0..bytes.len() {
            // Every place in the headers, some in the pixels.
            if end > 600 && end % 41 != 0 {
                continue;
            }
            let cut = read(path, &bytes[..end]);
            // What is cut may be nothing that is read: a copyright, padding, a smaller copy.
            assert!(
                cut.is_err() || cut == whole,
                "{} of {} bytes of {} are {cut:?}",
                end,
                bytes.len(),
                path.display()
            );
        }
    }
}

proptest! {
    #![proptest_config(fixed(10_000))]

    #[test]
    fn changed_files_are_errors_or_images(
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_header: bool,
    ) {
        let seeds = seeds();
        let (path, mut bytes) = seeds[at.index(seeds.len())].clone();
        let reach = if in_header { bytes.len().min(200) } else { bytes.len() };
        for (place, value) in changes {
            // Counts and offsets matter most at their ends.
            let value = match value % 4 { 0 => 0, 1 => 0xff, _ => value };
            bytes[place.index(reach)] = value;
        }
        let (asked, outcome) = largest(|| read(&path, &bytes));
        prop_assert!(is_sensible(&outcome), "{outcome:?}");
        prop_assert!(asked <= justified(bytes.len()), "{asked} bytes for {}", path.display());
    }

    /// Texts and lists that files are made of, in places where they do not belong.
    #[test]
    fn mixed_files_are_errors_or_images(
        at in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        length in 1_usize..200,
        inserts: bool,
    ) {
        let seeds = seeds();
        let (path, mut bytes) = seeds[at.index(seeds.len())].clone();
        let (_, other) = &seeds[other.index(seeds.len())];
        let from = from.index(other.len());
        let piece = &other[from..other.len().min(from + length)];
        let to = to.index(bytes.len());
        let end = if inserts { to } else { bytes.len().min(to + piece.len()) };
        bytes.splice(to..end, piece.iter().copied());
        let (asked, outcome) = largest(|| read(&path, &bytes));
        prop_assert!(is_sensible(&outcome), "{outcome:?}");
        prop_assert!(asked <= justified(bytes.len()), "{asked} bytes for {}", path.display());
    }
}

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
        let folder = tempfile::tempdir().unwrap();
        let array = folder.path().join("a.zarr");
        let seeds = zarr_seeds();
        let files = &seeds[at.index(seeds.len())];
        let chosen = file.index(files.len());
        let mut length = 0;
        for (number, (name, bytes)) in files.iter().enumerate() {
            let mut bytes = bytes.clone();
            if number == chosen {
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
            }
            length += bytes.len();
            let path = array.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let (asked, outcome) = largest(|| read_folder(&array));
        prop_assert!(asked <= justified(length).max(1 << 25), "{asked} bytes: {outcome:?}");
    }
}

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn a_header_cannot_ask_for_memory_that_the_file_does_not_fill() {
    let claims = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000, 1000), }";
    let fault = read(Path::new("a.npy"), &npy(claims, &[0; 64])).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "is cut short: 1000000x1000000x1000 f64 needs 8000000000000000 bytes, 64 are there"
    );
    let claims = "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 10000000000), }";
    let fault = read(Path::new("a.npy"), &npy(claims, &[])).unwrap_err();
    assert!(
        fault.to_string().contains("more than 64 bits can count"),
        "{fault}"
    );
}

/// A little-endian classic TIFF of one page with these tags: number, type, count, value.
fn tiff(tags: &[(u16, u16, u32, u32)], data: &[u8]) -> Vec<u8> {
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend(u16::try_from(tags.len()).unwrap().to_le_bytes());
    for (tag, kind, count, value) in tags {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.extend(data);
    file
}

#[test]
fn a_page_cannot_ask_for_memory_that_its_strips_do_not_fill() {
    for (compression, bits) in [(1, 8), (5, 16), (8, 32), (50_000, 64), (32_773, 1)] {
        let bytes = tiff(
            &[
                (256, 4, 1, 1 << 25),
                (257, 4, 1, 1 << 25),
                (258, 3, 1, bits),
                (259, 3, 1, compression),
                (262, 3, 1, 1),
                (273, 4, 1, 8),
                (278, 4, 1, u32::MAX),
                (279, 4, 1, 32),
            ],
            &[0; 64],
        );
        let fault = read(Path::new("a.tif"), &bytes).unwrap_err();
        assert!(
            matches!(fault, Fault::Absurd { claimed, .. } if claimed >= 1 << 47),
            "{fault}"
        );
    }
}

#[test]
fn a_png_cannot_ask_for_more_than_deflate_makes() {
    let (_, seed) = seeds()
        .iter()
        .find(|(path, _)| path.ends_with("plane-u1.png"))
        .unwrap();
    let mut bytes = seed.clone();
    // Width and height, then the check sum of their chunk.
    bytes[16..24].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
    let sum = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    let fault = read(Path::new("a.png"), &bytes).unwrap_err();
    assert!(
        matches!(fault, Fault::Absurd { claimed, .. } if claimed > 1 << 48),
        "{fault}"
    );
}

/// PNG's check sum, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let odd = sum & 1 == 1;
            sum = (sum >> 1) ^ if odd { 0xedb8_8320 } else { 0 };
        }
    }
    !sum
}

#[test]
fn pages_that_follow_themselves_end() {
    let mut bytes = tiff(
        &[
            (256, 4, 1, 2),
            (257, 4, 1, 2),
            (258, 3, 1, 8),
            (259, 3, 1, 1),
            (262, 3, 1, 1),
            (273, 4, 1, 8),
            (278, 4, 1, 2),
            (279, 4, 1, 4),
        ],
        &[0; 8],
    );
    assert_eq!(read(Path::new("a.tif"), &bytes).unwrap().bytes().len(), 4);
    let next = 8 + 2 + 8 * 12;
    bytes[next] = 8;
    assert!(matches!(
        read(Path::new("a.tif"), &bytes),
        Err(Fault::Damaged { .. })
    ));
}

#[test]
fn a_name_does_not_make_a_format() {
    for (name, bytes, looks) in [
        ("a.npy", &b"\x89PNG\r\n\x1a\n"[..], "but like a PNG file"),
        ("a.tif", b"PK\x03\x04", "but like a ZIP archive"),
        ("a.png", b"", "but like an empty file"),
        ("a.png", b"hello, world", "does not begin like a PNG file"),
    ] {
        let fault = read(Path::new(name), bytes).unwrap_err();
        assert!(fault.to_string().contains(looks), "{fault}");
    }
}

#[test]
fn tiles_cannot_be_larger_than_what_is_stored_of_them() {
    for compression in [1, 5, 50_000] {
        let bytes = tiff(
            &[
                (256, 4, 1, 4),
                (257, 4, 1, 4),
                (258, 3, 1, 8),
                (259, 3, 1, compression),
                (262, 3, 1, 1),
                (322, 4, 1, 1 << 28),
                (323, 4, 1, 1 << 28),
                (324, 4, 1, 8),
                (325, 4, 1, 32),
            ],
            &[0; 64],
        );
        let fault = read(Path::new("a.tif"), &bytes).unwrap_err();
        assert!(
            matches!(fault, Fault::Absurd { claimed, .. } if claimed >= 1 << 56),
            "{fault}"
        );
    }
}
