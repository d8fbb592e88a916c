//! Folders, globs and patterns to records, and records to pixels and names.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use warploom_core::{Axis, Coded as _, DType, Shape};
use warploom_io::records::{Layout, OutputNames, Record, RecordError, RecordReader};
use warploom_io::{Fault, Header, Image, Sync, write, write_image};

/// A plane of 2x3 of which every pixel is `value`.
fn plane(path: &Path, value: u8) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let shape = Shape::new(&[2, 3]).unwrap();
    write(path, &Image::new(shape, &[value; 6]).unwrap()).unwrap();
}

fn folder(names: &[(&str, u8)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in names {
        plane(&folder.path().join(name), *value);
    }
    folder
}

fn layout(folder: &TempDir, pattern: &str) -> Layout {
    Layout::new(&format!("{}/{pattern}", folder.path().display())).unwrap()
}

fn ids(records: &[Record]) -> Vec<&str> {
    records.iter().map(Record::id).collect()
}

#[test]
fn a_folder_is_its_images_in_natural_order() {
    let folder = folder(&[("z10.tif", 0), ("z2.tif", 0), ("a.png", 0), ("a.npy", 0)]);
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    fs::write(folder.path().join(".a.tif.1-0.part"), "").unwrap();
    fs::create_dir(folder.path().join("deeper")).unwrap();
    let layout = Layout::new(folder.path().to_str().unwrap()).unwrap();
    let records = layout.find().unwrap().whole().unwrap();
    assert_eq!(ids(&records), ["a.npy", "a.png", "z2", "z10"]);
    let one = Layout::new(folder.path().join("z2.tif").to_str().unwrap()).unwrap();
    assert_eq!(ids(&one.find().unwrap().records), ["z2"]);
}

#[test]
fn globs_go_as_deep_as_they_say() {
    let folder = folder(&[
        ("a/x.tif", 0),
        ("a/b/x.tif", 0),
        ("c/y.tif", 0),
        ("x.tif", 0),
    ]);
    let found = |pattern| {
        let found = layout(&folder, pattern).find().unwrap();
        ids(&found.records).join(" ")
    };
    assert_eq!(found("*/*.tif"), "a/x c/y");
    assert_eq!(found("**/x.tif"), "a/b/x a/x x");
    assert_eq!(found("?/**/*.tif"), "a/b/x a/x c/y");
    let error = layout(&folder, "*.png").find().unwrap_err();
    assert_eq!(error.code().to_string(), "WL0721");
}

#[test]
fn a_plate_is_gathered_by_its_pattern() {
    let folder = folder(&[
        ("P1/A01_1_GFP.tif", 2),
        ("P1/A01_1_DAPI.tif", 1),
        ("P1/A01_10_DAPI.tif", 5),
        ("P1/A01_10_GFP.tif", 6),
        ("P1/A01_2_GFP.tif", 4),
        ("P1/A01_2_DAPI.tif", 3),
        ("P2/B 7_1_DAPI.tif", 7),
        ("P2/B 7_1_GFP.tif", 8),
    ]);
    let layout = layout(&folder, "{plate}/{well}_{site:d}_{channel}.tif");
    let records = layout.find().unwrap().whole().unwrap();
    assert_eq!(
        ids(&records),
        ["P1/A01_1", "P1/A01_2", "P1/A01_10", "P2/B%207_1"]
    );
    assert_eq!(records[0].field("well"), Some("A01"));
    assert_eq!(records[0].field("channel"), None);
    let mut reader = RecordReader::new();
    let header = reader.header(&records[1]).unwrap();
    assert_eq!(header.shape.axes(), [Axis::C, Axis::Y, Axis::X]);
    assert_eq!(header.shape.dims(), [2, 2, 3]);
    assert_eq!(header.channels, ["DAPI", "GFP"]);
    let mut pixels = [0; 12];
    reader.read_into(&records[1], &mut pixels).unwrap();
    assert_eq!(pixels, [3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4]);
    // The order, and a part, as it is asked for.
    let turned = layout.clone().only("channel", &["GFP", "DAPI"]).unwrap();
    let records = turned.find().unwrap().whole().unwrap();
    reader.read_into(&records[0], &mut pixels).unwrap();
    assert_eq!(pixels[..7], [2, 2, 2, 2, 2, 2, 1]);
    let apart = layout.clone().keep_apart("channel").unwrap();
    assert_eq!(apart.find().unwrap().records.len(), 8);
    let deep = layout
        .gather("site", Axis::Z)
        .unwrap()
        .only("plate", &["P1"])
        .unwrap();
    let records = deep.find().unwrap().whole().unwrap();
    assert_eq!(ids(&records), ["P1/A01"]);
    let mut pixels = [0; 36];
    reader.read_into(&records[0], &mut pixels).unwrap();
    let planes: Vec<u8> = pixels.chunks(6).map(|plane| plane[0]).collect();
    // Channels first, and in each the sites by number.
    assert_eq!(planes, [1, 3, 5, 2, 4, 6]);
}

#[test]
fn what_is_missing_or_twice_is_listed() {
    let folder = folder(&[
        ("A1_z0_c0.tif", 0),
        ("A1_z0_c1.tif", 0),
        ("A1_z1_c0.tif", 0),
        ("A1_z1_c1.tif", 0),
        ("A2_z0_c0.tif", 0),
        ("A2_z1_c1.tif", 0),
        ("x1/B_0.tif", 0),
        ("x2/B_0.tif", 0),
    ]);
    let found = layout(&folder, "{well}_z{z}_c{c}.tif").find().unwrap();
    assert_eq!(ids(&found.records), ["A1"]);
    assert_eq!(found.incomplete[0].id, "A2");
    assert_eq!(found.incomplete[0].missing, ["c=0 z=1", "c=1 z=0"]);
    let error = found.whole().unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 of 2 records are not whole: `A2` lacks 2 (c=0 z=1, c=1 z=0)"
    );
    let found = layout(&folder, "*/{well}_{c}.tif").find().unwrap();
    assert_eq!(found.incomplete[0].repeated[0].1.len(), 2);
    let text = found.whole().unwrap_err().to_string();
    assert!(text.contains("`B` has c=0 2 times: "), "{text}");
    assert!(text.contains("x1/B_0.tif`, `"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder(&[("a_1_2.tif", 0), ("b_1.tif", 0)]);
    let error = layout(&folder, "{well}_{site}.tif").find().unwrap_err();
    let RecordError::Ambiguous { one, other, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (one.as_str(), other.as_str()),
        ("well=a site=1_2", "well=a_1 site=2")
    );
    let layout = layout(&folder, "{well}_{site:d}.tif");
    let error = layout.clone().gather("depth", Axis::Z).unwrap_err();
    assert_eq!(error.help().unwrap(), "there are `well`, `site`");
    let twice = layout
        .gather("site", Axis::Z)
        .unwrap()
        .gather("well", Axis::Z);
    assert!(twice.unwrap_err().to_string().contains("along Z"));
    assert!(Layout::new("/none/of/these/*.tif").unwrap().find().is_err());
}

#[test]
fn members_that_differ_fail_their_record() {
    let folder = folder(&[
        ("A_0.tif", 0),
        ("A_1.tif", 0),
        ("B_0.tif", 1),
        ("B_1.tif", 1),
    ]);
    let other = Image::new(Shape::new(&[2, 3]).unwrap(), &[0_u16; 6]).unwrap();
    write(folder.path().join("A_1.tif"), &other).unwrap();
    let records = layout(&folder, "{well}_{c}.tif").find().unwrap().records;
    let mut reader = RecordReader::new();
    let mut pixels = [0; 12];
    let error = reader.read_into(&records[0], &mut pixels).unwrap_err();
    assert!(error.path.ends_with("A_1.tif"));
    assert_eq!(
        error.fault.to_string(),
        "holds 2x3 u16 (YX), and 2x3 u8 (YX) was expected"
    );
    reader.read_into(&records[1], &mut pixels).unwrap();
    let expected = Header::new(DType::U16, Shape::new(&[2, 3]).unwrap());
    let error = reader.read_expected(&records[1], &expected, &mut pixels);
    assert!(matches!(error.unwrap_err().fault, Fault::Differs { .. }));
    let error = reader.read_into(&records[1], &mut pixels[..5]).unwrap_err();
    assert!(matches!(
        error.fault,
        Fault::Buffer {
            wanted: 12,
            given: 5
        }
    ));
}

#[test]
fn a_series_is_split_into_records() {
    let folder = tempfile::tempdir().unwrap();
    let axes = [Axis::T, Axis::C, Axis::Y, Axis::X];
    let shape = Shape::with_axes(&axes, &[12, 2, 2, 3]).unwrap();
    let header = Header::new(DType::U8, shape).with_channels(["a", "b"]);
    let pixels: Vec<u8> = (0..144).collect();
    for name in ["s.ome.tif", "s.tif", "s.zarr"] {
        let path = folder.path().join(name);
        write_image(&path, &header, &pixels, Sync::Yes).unwrap();
        let whole = Record::file(&path);
        let mut reader = RecordReader::new();
        let records: Vec<Record> = reader.split(&whole, &[Axis::T]).unwrap().collect();
        assert_eq!(records.len(), 12);
        assert_eq!(records[3].id(), "s_t03");
        let mut part = [0; 12];
        for (at, record) in records.iter().enumerate().rev() {
            let found = reader.header(record).unwrap();
            assert_eq!(found.shape.axes(), &axes[1..], "{name}");
            reader.read_into(record, &mut part).unwrap();
            assert_eq!(part, pixels[at * 12..][..12]);
        }
        let planes = reader.split(&whole, &[Axis::C, Axis::T, Axis::N]).unwrap();
        assert_eq!(planes.len(), 24);
        let last = planes.last().unwrap();
        assert_eq!(last.id(), "s_t11_c1");
        assert!(reader.header(&last).unwrap().channels.is_empty());
        let mut plane = [0; 6];
        reader.read_into(&last, &mut plane).unwrap();
        assert_eq!(plane, pixels[138..]);
        let same = reader.split(&whole, &[]).unwrap();
        assert_eq!(same.collect::<Vec<_>>(), [whole]);
    }
}

#[test]
fn a_plate_of_zarr_is_its_images() {
    let folder = tempfile::tempdir().unwrap();
    let plate = folder.path().join("p.zarr");
    let group = |path: &Path, ome: &str| {
        fs::create_dir_all(path).unwrap();
        let text =
            format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"ome":{ome}}}}}"#);
        fs::write(path.join("zarr.json"), text).unwrap();
    };
    group(
        &plate,
        r#"{"version":"0.5","plate":{"wells":[{"path":"A/1"},{"path":"B/12"}]}}"#,
    );
    for (well, value) in [("A/1", 10), ("B/12", 20)] {
        group(
            &plate.join(well),
            r#"{"well":{"images":[{"path":"0"},{"path":"1"}]}}"#,
        );
        for field in 0..2_u8 {
            let image = plate.join(well).join(field.to_string());
            let made = folder.path().join("made.zarr");
            plane(&made, value + field);
            fs::rename(made, image).unwrap();
        }
    }
    let layout = Layout::new(plate.to_str().unwrap()).unwrap();
    let records = layout.find().unwrap().whole().unwrap();
    assert_eq!(ids(&records), ["p"]);
    let mut reader = RecordReader::new();
    assert_eq!(
        reader.header(&records[0]).unwrap_err().code().to_string(),
        "WL0709"
    );
    let images = reader.images(&records[0]).unwrap();
    assert_eq!(ids(&images), ["p_A_1_0", "p_A_1_1", "p_B_12_0", "p_B_12_1"]);
    let mut pixels = [0; 6];
    for (image, value) in images.iter().zip([10, 11, 20, 21]) {
        reader.read_into(image, &mut pixels).unwrap();
        assert_eq!(pixels, [value; 6]);
        assert_eq!(reader.images(image).unwrap(), std::slice::from_ref(image));
    }
    // A plate that leaves its folder is none.
    group(&plate, r#"{"plate":{"wells":[{"path":"../A"}]}}"#);
    assert_eq!(reader.images(&records[0]).unwrap(), records);
    group(&plate, r#"{"plate":{"wells":[{"path":"C/1"}]}}"#);
    assert!(reader.images(&records[0]).is_err());
}

#[test]
fn images_of_one_file_are_records_each() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/two-images.ome.tif");
    let record = Record::file(path);
    let mut reader = RecordReader::new();
    assert!(reader.header(&record).is_err());
    let images = reader.images(&record).unwrap();
    assert_eq!(ids(&images), ["two-images_s0", "two-images_s1"]);
    let dims = |reader: &mut RecordReader, at: usize| {
        let header = reader.header(&images[at]).unwrap();
        (header.shape.axes().to_vec(), header.shape.dims().to_vec())
    };
    let first = dims(&mut reader, 0);
    assert_eq!(first, (vec![Axis::Z, Axis::Y, Axis::X], vec![3, 5, 7]));
    let second = dims(&mut reader, 1);
    assert_eq!(second, (vec![Axis::C, Axis::Y, Axis::X], vec![2, 4, 6]));
    assert_eq!(reader.images(&images[1]).unwrap(), images[1..]);
    let depths: Vec<Record> = reader.split(&images[0], &[Axis::Z]).unwrap().collect();
    assert_eq!(depths[2].id(), "two-images_s0_z2");
    let mut plane = [0; 70];
    reader.read_into(&depths[2], &mut plane).unwrap();
    let wanted = (70 * 37 + 11) % 251_u16;
    assert_eq!(plane[..2], wanted.to_ne_bytes());
}

#[test]
fn outputs_have_names_of_their_own() {
    let folder = folder(&[
        ("P1/A01_1.tif", 0),
        ("P1/A01_2.tif", 0),
        ("P2/a01_1.tif", 0),
    ]);
    let records = layout(&folder, "{plate}/{well}_{site}.tif")
        .find()
        .unwrap()
        .records;
    let names = OutputNames::new("{plate}/{well}-{site}/{output}.zarr").unwrap();
    let path = names.path(&records[0], "nuclei mask").unwrap();
    assert_eq!(path, Path::new("P1/A01-1/nuclei%20mask.zarr"));
    names.check(&records, &["mask", "table"]).unwrap();
    let names = OutputNames::new("{id}.tif").unwrap();
    assert_eq!(
        names.path(&records[2], "").unwrap(),
        Path::new("P2/a01_1.tif")
    );
    names.check(&records, &["mask"]).unwrap();
    assert!(names.check(&records, &["mask", "table"]).is_err());
    let names = OutputNames::new("{well}_{site}.tif").unwrap();
    let error = names.check(&records, &["mask"]).unwrap_err();
    assert_eq!(error.code().to_string(), "WL0723");
    let names = OutputNames::new("{depth}.tif").unwrap();
    let error = names.path(&records[0], "mask").unwrap_err();
    assert_eq!(
        error.help().unwrap(),
        "there are `plate`, `well`, `site`, `record`, `output`"
    );
    for bad in ["../{id}.tif", "/{id}.tif", "*.tif", "**/{id}.tif"] {
        assert!(OutputNames::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn fingerprints_follow_contents() {
    let folder = folder(&[("a.tif", 1), ("b.tif", 1), ("c.tif", 2)]);
    let print = |name: &str| {
        let record = Record::file(folder.path().join(name));
        RecordReader::new().fingerprint(&record).unwrap()
    };
    assert_eq!(print("a.tif"), print("b.tif"));
    assert_ne!(print("a.tif"), print("c.tif"));
    let before = print("a.tif");
    plane(&folder.path().join("a.tif"), 3);
    assert_ne!(print("a.tif"), before);
    plane(&folder.path().join("d.zarr"), 3);
    let before = print("d.zarr");
    assert_eq!(print("d.zarr"), before);
    fs::write(folder.path().join("d.zarr/0/c/0/0"), "").unwrap();
    assert_ne!(print("d.zarr"), before);
    let mut reader = RecordReader::new();
    let whole = Record::file(folder.path().join("a.tif"));
    let rows: Vec<Record> = reader.split(&whole, &[Axis::Y]).unwrap().collect();
    assert_ne!(
        reader.fingerprint(&rows[0]).unwrap(),
        reader.fingerprint(&rows[1]).unwrap()
    );
    assert!(reader.fingerprint(&Record::file("/none.tif")).is_err());
}
