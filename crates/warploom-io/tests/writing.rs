//! What is written is read back, and what a format cannot hold is not written at all.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;

use proptest::prelude::*;
use rstest::rstest;
use warploom_core::{Coded as _, DType, Shape};
use warploom_io::{
    Column, Image, Numbers, Region, Source, Table, Values, check_image, read, write, write_numbers,
    write_table,
};

/// An image of any bytes: floats that are no numbers have to come back, too.
fn image(dtype: DType, dims: &[u64], seed: u8) -> Image {
    let shape = Shape::new(dims).unwrap();
    let mut image = Image::zeroed(dtype, shape).unwrap();
    let mut state = u32::from(seed) + 1;
    for byte in image.bytes_mut() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = state.to_be_bytes()[0];
    }
    image
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn images_come_back(
        ending in prop::sample::select(vec!["npy", "tif", "tiff", "ome.tif", "png", "zarr"]),
        dtype in prop::sample::select(DType::ALL),
        dims in prop::collection::vec(0_u64..20, 1..5),
        seed: u8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image").with_extension(ending);
        let image = image(dtype, &dims, seed);
        let possible = check_image(&path, dtype, image.shape());
        prop_assert_eq!(&write(&path, &image), &possible);
        prop_assert_eq!(path.exists(), possible.is_ok());
        if possible.is_ok() {
            let back = read(&path).unwrap();
            prop_assert_eq!(back.bytes(), image.bytes());
            prop_assert_eq!(back.dtype(), dtype);
            // A PNG is a plane, whatever the rank of the image that had but one.
            let (stack, plane) = dims.split_at(dims.len().saturating_sub(2));
            let whole = match ending {
                "png" => plane.to_vec(),
                // Nor does OME know axes of one plane.
                "ome.tif" => {
                    let stack = stack.iter().filter(|extent| **extent > 1);
                    stack.chain(plane).copied().collect()
                }
                _ => dims.clone(),
            };
            prop_assert_eq!(back.shape().dims(), whole);
        }
        let left = fs::read_dir(folder.path()).unwrap().count();
        prop_assert_eq!(left, usize::from(possible.is_ok()));
    }
}

/// A chunk at the edge is as large as any other, and what is beyond the edge is nobody's pixels.
#[test]
fn chunks_beyond_the_edge_are_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zarr");
    let (height, width) = (1030, 1040);
    let pixels = vec![255_u8; height * width];
    let shape = Shape::new(&[height as u64, width as u64]).unwrap();
    write(&path, &Image::new(shape, &pixels).unwrap()).unwrap();
    let chunk = |y: usize, x: usize| path.join(format!("0/c/{y}/{x}"));
    for (y, x) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let stored = fs::read(chunk(y, x)).unwrap();
        let bytes = zstd::decode_all(&stored[..]).unwrap();
        assert_eq!(bytes.len(), 1024 * 1024);
        for (at, byte) in bytes.iter().enumerate() {
            let inside = y * 1024 + at / 1024 < height && x * 1024 + at % 1024 < width;
            assert_eq!(*byte, if inside { 255 } else { 0 }, "{y} {x} {at}");
        }
    }
    // Read to where something else was before, chunks that are not there included.
    fs::remove_file(chunk(1, 0)).unwrap();
    let mut source = Source::open(&path).unwrap();
    let mut place = vec![77; height * width];
    source
        .read_into(&Region::whole(&shape), &mut place)
        .unwrap();
    for (at, byte) in place.iter().enumerate() {
        let is_gone = at / width >= 1024 && at % width < 1024;
        assert_eq!(*byte, if is_gone { 0 } else { 255 }, "{at}");
    }
}

#[test]
fn numpy_finds_the_bytes_it_would_have_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let shape = Shape::new(&[2, 3]).unwrap();
    write(
        &path,
        &Image::new(shape, &[0_u16, 1, 2, 3, 4, 515]).unwrap(),
    )
    .unwrap();
    let mut wanted = b"\x93NUMPY\x01\x00\x76\x00\
        {'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }"
        .to_vec();
    wanted.resize(127, b' ');
    wanted.extend(b"\n\0\0\x01\0\x02\0\x03\0\x04\0\x03\x02");
    assert_eq!(fs::read(&path).unwrap(), wanted);
}

#[test]
fn numbers_and_tables_go_where_they_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let totals = Numbers::named([("min", 1.0), ("max", 2.5)]);
    write_numbers(path("t.npy"), &totals).unwrap();
    let back = read(path("t.npy")).unwrap();
    assert_eq!(back.elements(), Some(&[1.0_f64, 2.5][..]));
    assert_eq!(back.shape().dims(), [2]);
    write_numbers(path("t.json"), &totals).unwrap();
    assert_eq!(
        fs::read_to_string(path("t.json")).unwrap(),
        "{\"min\":1.0,\"max\":2.5}\n"
    );
    write_numbers(path("t.csv"), &totals).unwrap();
    assert_eq!(
        fs::read_to_string(path("t.csv")).unwrap(),
        "min,max\n1.0,2.5\n"
    );
    let table = Table::new(vec![Column {
        name: "label".into(),
        values: Values::Whole(vec![1, 2]),
    }])
    .unwrap();
    write_table(path("l.csv"), &table).unwrap();
    assert_eq!(fs::read_to_string(path("l.csv")).unwrap(), "label\n1\n2\n");
    write_table(path("l.json"), &table).unwrap();
    assert!(write_table(path("l.npy"), &table).is_err());
    assert!(write_numbers(path("t.png"), &totals).is_err());
    assert!(read(path("l.json")).is_err());
}

#[rstest]
#[case("a.png", DType::F32, &[5, 7])]
#[case("a.png", DType::U8, &[2, 5, 7])]
#[case("a.tif", DType::Bf16, &[5, 7])]
#[case("a.tif", DType::U8, &[7])]
#[case("a.tif", DType::U8, &[0, 7])]
#[case("a.npy", DType::Bf16, &[5, 7])]
#[case("a.json", DType::U8, &[5, 7])]
#[case("a.jpg", DType::U8, &[5, 7])]
#[case("a.tyff", DType::U8, &[5, 7])]
#[case("none/a.npy", DType::U8, &[5, 7])]
fn what_a_format_cannot_hold_is_refused(
    #[case] name: &str,
    #[case] dtype: DType,
    #[case] dims: &[u64],
) {
    let folder = tempfile::tempdir().unwrap();
    let error = write(folder.path().join(name), &image(dtype, dims, 0)).unwrap_err();
    let text = format!("{}: {error}\nhelp: {}", error.code(), error.help().unwrap());
    let text = text.replace(&folder.path().display().to_string(), "");
    let case = format!("{}-{dtype}-{}", name.replace(['.', '/'], "-"), dims.len());
    insta::assert_snapshot!(case, text);
    assert!(error.fault.is_about_the_request());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
