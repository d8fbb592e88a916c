//! Files that are cut, changed or made up: an error or an image, never a panic, never more memory
//! than the file can justify.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod watched;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use warploom_io::{Fault, Format, Image, read_bytes};

use watched::{fixed, justified, largest};

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

/// Numbers that would need more memory than there is, said in places where nothing else stops them.
#[test]
fn claims_of_descriptions_cost_nothing() {
    let text = |text: &str| {
        let mut bytes = tiff(
            &[
                (256, 4, 1, 2),
                (257, 4, 1, 2),
                (258, 3, 1, 8),
                (259, 3, 1, 1),
                (262, 3, 1, 1),
                (270, 2, u32::try_from(text.len()).unwrap(), 200),
                (273, 4, 1, 190),
                (278, 4, 1, 2),
                (279, 4, 1, 4),
            ],
            &[],
        );
        bytes.resize(200, 0);
        bytes.extend(text.as_bytes());
        bytes
    };
    let imagej = "ImageJ=1.54f\nimages=4000000000\nchannels=2\nslices=2000000000\n\0";
    let ome = "<OME><Image><Pixels DimensionOrder='XYCZT' Type='uint8' SizeX='2' SizeY='2' \
               SizeZ='4000000000' SizeC='1000' SizeT='1000'/></Image></OME>";
    let planes = "<OME><Image><Pixels DimensionOrder='XYCZT' Type='uint8' SizeX='2' SizeY='2' \
                  SizeZ='1' SizeC='1' SizeT='1'><TiffData IFD='0' PlaneCount='4000000000000'/>\
                  </Pixels></Image></OME>";
    for (said, wanted) in [
        (imagej, "by the word of ImageJ"),
        (ome, "fewer planes than it describes"),
        (planes, ""),
    ] {
        let bytes = text(said);
        let (asked, outcome) = largest(|| read(Path::new("a.tif"), &bytes));
        assert!(asked < 1 << 20, "{asked} bytes");
        match outcome {
            Ok(image) => assert_eq!((image.bytes().len(), wanted), (4, "")),
            Err(fault) => assert!(fault.to_string().contains(wanted), "{fault}"),
        }
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

/// Strips may be anywhere, in any order, with gaps.
#[test]
fn strips_are_read_from_where_they_are() {
    let rows: [[u8; 3]; 4] = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]];
    for places in [
        [200, 203, 206, 209],
        [209, 206, 203, 200],
        [200, 203, 220, 223],
        [230, 200, 203, 210],
    ] {
        let mut bytes = tiff(
            &[
                (256, 4, 1, 3),
                (257, 4, 1, 4),
                (258, 3, 1, 8),
                (259, 3, 1, 1),
                (262, 3, 1, 1),
                (273, 4, 4, 150),
                (278, 4, 1, 1),
                (279, 3, 4, 170),
            ],
            &[],
        );
        bytes.resize(240, 0xee);
        for (at, (place, row)) in places.iter().zip(rows).enumerate() {
            bytes[150 + 4 * at..][..4].copy_from_slice(&u32::to_le_bytes(*place));
            bytes[170 + 2 * at..][..2].copy_from_slice(&3_u16.to_le_bytes());
            bytes[usize::try_from(*place).unwrap()..][..3].copy_from_slice(&row);
        }
        let image = read(Path::new("a.tif"), &bytes).unwrap();
        assert_eq!(image.bytes(), rows.concat(), "{places:?}");
    }
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
