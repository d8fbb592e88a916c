//! Files that NumPy, tifffile and Pillow wrote, made by `data/make.py`.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;
use std::path::PathBuf;

use rstest::rstest;
use warploom_core::{Axis, Coded as _, DType, Shape};
use warploom_io::{FileError, Image, Region, Source, read};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn load(name: &str) -> Result<Image, FileError> {
    read(data(name))
}

/// What the script fills its arrays with, as numbers that every type holds exactly.
fn ramp(dtype: DType, count: usize) -> Vec<f64> {
    let value = |at: usize| {
        let value = f64::from(u32::try_from((at * 37 + 11) % 251).unwrap());
        match dtype {
            _ if dtype.is_float() => value / 4.0,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => value - 125.0,
            _ => value,
        }
    };
    (0..count).map(value).collect()
}

/// An image's elements as numbers.
#[expect(
    clippy::cast_precision_loss,
    reason = "the numbers in these files are small"
)]
fn numbers(image: &Image) -> Vec<f64> {
    macro_rules! all {
        ($($type:ty => $convert:expr),* $(,)?) => {
            $(if let Some(values) = image.elements::<$type>() {
                return values.iter().map($convert).collect();
            })*
        };
    }
    all!(
        u8 => |v| f64::from(*v), u16 => |v| f64::from(*v), u32 => |v| f64::from(*v),
        i8 => |v| f64::from(*v), i16 => |v| f64::from(*v), i32 => |v| f64::from(*v),
        u64 => |v| *v as f64, i64 => |v| *v as f64,
        half::f16 => |v| v.to_f64(), f32 => |v| f64::from(*v), f64 => |v| *v,
    );
    panic!("no such elements: {image:?}")
}

#[track_caller]
fn holds_the_ramp(image: &Image, dtype: DType, dims: &[u64]) {
    assert_eq!(image.dtype(), dtype);
    assert_eq!(image.shape().dims(), dims);
    let count = usize::try_from(image.shape().elements()).unwrap();
    assert_eq!(numbers(image), ramp(dtype, count));
}

#[rstest]
fn every_type_is_read(
    #[values("npy", "tif")] ending: &str,
    #[values(
        ("u1", DType::U8), ("i1", DType::I8), ("u2", DType::U16), ("i2", DType::I16),
        ("u4", DType::U32), ("i4", DType::I32), ("u8", DType::U64), ("i8", DType::I64),
        ("f2", DType::F16), ("f4", DType::F32), ("f8", DType::F64)
    )]
    (numpy, dtype): (&str, DType),
) {
    let image = load(&format!("plane-{numpy}.{ending}")).unwrap();
    holds_the_ramp(&image, dtype, &[5, 7]);
}

#[rstest]
#[case("big-endian-u2.npy", DType::U16, &[5, 7])]
#[case("big-endian-f8.npy", DType::F64, &[5, 7])]
#[case("fortran-u2.npy", DType::U16, &[3, 5, 7])]
#[case("fortran-f4.npy", DType::F32, &[5, 7])]
#[case("version2.npy", DType::F32, &[5, 7])]
#[case("version3.npy", DType::F32, &[5, 7])]
#[case("row.npy", DType::F32, &[9])]
#[case("empty.npy", DType::F32, &[0, 7])]
#[case("stack.tif", DType::U16, &[3, 5, 7])]
#[case("stack-plain.tif", DType::U16, &[3, 5, 7])]
#[case("one-plane-stack.tif", DType::U16, &[1, 5, 7])]
#[case("time-stack.tif", DType::U16, &[2, 3, 5, 7])]
#[case("imagej.tif", DType::U16, &[3, 5, 7])]
#[case("ome.tif", DType::U16, &[3, 5, 7])]
#[case("truncated-pages.tif", DType::U16, &[3, 5, 7])]
#[case("bigtiff.tif", DType::U16, &[3, 5, 7])]
#[case("big-endian.tif", DType::U16, &[3, 5, 7])]
#[case("strips.tif", DType::F32, &[5, 7])]
#[case("tiles.tif", DType::U16, &[40, 50])]
#[case("tiles-lzw.tif", DType::U16, &[40, 60])]
#[case("tiles-zstd-f4.tif", DType::F32, &[40, 50])]
#[case("lzw.tif", DType::U16, &[2, 20, 30])]
#[case("lzw-predictor.tif", DType::U16, &[2, 20, 30])]
#[case("zlib.tif", DType::U16, &[2, 20, 30])]
#[case("packbits.tif", DType::U16, &[2, 20, 30])]
#[case("zstd.tif", DType::U16, &[2, 20, 30])]
#[case("thumbnail.tif", DType::U8, &[20, 30])]
#[case("ome-order.tif", DType::U16, &[2, 3, 2, 5, 7])]
#[case("imagej-order.tif", DType::U16, &[2, 3, 2, 5, 7])]
#[case("bigtiff-tiles.tif", DType::I16, &[2, 40, 50])]
#[case("lzw-predictor-f8.tif", DType::F64, &[20, 30])]
#[case("zarr/plain.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/gzip.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/blosc-blosclz.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/blosc-lz4.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/blosc-zlib.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/blosc-zstd.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/shards.zarr", DType::U16, &[3, 20, 30])]
#[case("zarr/turned.zarr", DType::U16, &[3, 20, 30])]
#[case("plane-u1.png", DType::U8, &[5, 7])]
#[case("gray-rgb.png", DType::U8, &[5, 7])]
#[case("gray-rgba.png", DType::U8, &[5, 7])]
#[case("gray-alpha.png", DType::U8, &[5, 7])]
#[case("gray-palette.png", DType::U8, &[5, 7])]
fn layouts_are_read(#[case] name: &str, #[case] dtype: DType, #[case] dims: &[u64]) {
    holds_the_ramp(&load(name).unwrap(), dtype, dims);
}

/// Every file that is read, in this folder and the one of Zarr's.
fn readable() -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let mut paths: Vec<PathBuf> = entries(data(""))
        .chain(entries(data("zarr")))
        .filter(|path| read(path).is_ok())
        .collect();
    paths.sort();
    paths
}

/// What was read in parts is what was read whole, for every format and every part.
#[test]
fn parts_are_parts_of_the_whole() {
    let mut state = 1_u64;
    let mut any = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let paths = readable();
    assert!(paths.len() > 60);
    for path in paths {
        let whole = read(&path).unwrap();
        let mut source = Source::open(&path).unwrap();
        assert_eq!(source.header().shape, *whole.shape());
        assert_eq!(source.header().bytes(), whole.bytes().len() as u64);
        let dims = whole.shape().dims();
        if whole.shape().elements() == 0 {
            continue;
        }
        let element = usize::try_from(whole.dtype().bytes()).unwrap();
        for _ in 0..20 {
            let start: Vec<u64> = dims.iter().map(|extent| any(*extent)).collect();
            let room = dims.iter().zip(&start);
            let extent: Vec<u64> = room
                .map(|(extent, start)| 1 + any(extent - start))
                .collect();
            let region = Region::new(&start, &extent).unwrap();
            let count = usize::try_from(region.elements()).unwrap();
            let mut part = vec![0xaa; count * element];
            source.read_into(&region, &mut part).unwrap();
            let mut at = vec![0; dims.len()];
            for got in part.chunks_exact(element) {
                let place =
                    (0..dims.len()).fold(0, |sum, axis| sum * dims[axis] + start[axis] + at[axis]);
                let place = usize::try_from(place).unwrap() * element;
                let wanted = &whole.bytes()[place..place + element];
                assert_eq!(got, wanted, "{} {start:?} {extent:?}", path.display());
                for axis in (0..dims.len()).rev() {
                    at[axis] += 1;
                    if at[axis] < extent[axis] {
                        break;
                    }
                    at[axis] = 0;
                }
            }
        }
        let beyond: Vec<u64> = dims.iter().map(|extent| extent + 1).collect();
        let region = Region::new(&vec![0; dims.len()], &beyond).unwrap();
        let error = source.read_into(&region, &mut []).unwrap_err();
        assert_eq!(error.code().to_string(), "WL0717");
        let error = source
            .read_into(&Region::whole(whole.shape()), &mut [])
            .unwrap_err();
        assert_eq!(error.code().to_string(), "WL0726");
    }
}

#[test]
fn axes_that_a_file_names_are_kept() {
    let image = load("time-stack.tif").unwrap();
    assert_eq!(image.shape().axes(), [Axis::T, Axis::Z, Axis::Y, Axis::X]);
}

#[test]
fn sixteen_bits_of_png_are_all_read() {
    let image = load("plane-u2.png").unwrap();
    let wanted: Vec<u16> = (0..35).map(|at| (at * 37 + 11) % 251 * 250).collect();
    assert_eq!(image.shape(), &Shape::new(&[5, 7]).unwrap());
    assert_eq!(image.elements(), Some(&wanted[..]));
}

#[rstest]
#[case("plane-bool.npy", 35, 1)]
#[case("bits.tif", 5 * 19, 1)]
#[case("tiles-bits.tif", 20 * 70, 1)]
#[case("bits.png", 5 * 19, 255)]
fn masks_become_bytes(#[case] name: &str, #[case] count: usize, #[case] set: u8) {
    let image = load(name).unwrap();
    let wanted: Vec<u8> = (0..count)
        .map(|at| u8::from((at * 37 + 11) % 251 % 2 == 1) * set)
        .collect();
    assert_eq!(image.elements(), Some(&wanted[..]));
}

/// Every refusal, as people see it.
#[test]
fn what_is_not_read_is_refused_with_a_way_out() {
    let names = [
        "scalar.npy",
        "complex.npy",
        "records.npy",
        "axes7.npy",
        "sizes.tif",
        "white-is-zero.tif",
        "rgb.tif",
        "channels.tif",
        "palette.tif",
        "volume.tif",
        "transparent.png",
        "rgb.png",
        "palette.png",
        "animation.png",
        "make.py",
        "nothing.tif",
        "plane-u1",
    ];
    let mut text = String::new();
    for name in names {
        let error = load(name).unwrap_err();
        let path = error.path.display().to_string();
        let line = format!(
            "{}: {error}\n  help: {}\n",
            error.code(),
            error.help().unwrap()
        );
        text += &line.replace(&path, name);
        assert!(error.fault.is_about_the_request(), "{name}");
    }
    insta::assert_snapshot!(text);
}
