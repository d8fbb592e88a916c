//! The compiler, which knows no files, and whoever writes them agree on which ending holds what.

use warploom_core::{DType, Shape};
use warploom_io::{check_image, check_numbers, check_table};
use warploom_plan::{Pipeline, check};

const ENDINGS: [&str; 12] = [
    "tif", "tiff", "ome.tif", "png", "zarr", "npy", "json", "csv", "parquet", "TIF", "xlsx", "",
];

/// Does the compiler let the result of an operation go to a file of this name?
fn planned(op: &str, file: &str) -> bool {
    let input = match op {
        "label_statistics" => "[\"image\", \"image\"]",
        _ => "\"image\"",
    };
    let text = format!(
        "[[step]]\nname = \"a\"\nop = \"{op}\"\ninput = {input}\n[[output]]\nof = \"a\"\nwrite = \"{file}\""
    );
    let pipeline = Pipeline::from_toml(&text).expect("it parses");
    let found = check(&pipeline, None);
    !found
        .iter()
        .any(|finding| finding.code.to_string() == "WL0319")
}

#[test]
fn what_is_planned_can_be_written_and_what_is_refused_cannot() {
    let folder = tempfile::tempdir().expect("a folder");
    let shape = Shape::new(&[8, 8]).expect("a shape");
    for ending in ENDINGS {
        let dot = if ending.is_empty() { "" } else { "." };
        let file = format!("a{dot}{ending}");
        let path = folder.path().join(&file);
        let image = check_image(&path, DType::U8, &shape).is_ok();
        assert_eq!(planned("sqrt", &file), image, "an image as {file}");
        let numbers = check_numbers(&path).is_ok();
        assert_eq!(planned("totals", &file), numbers, "numbers as {file}");
        let table = check_table(&path).is_ok();
        assert_eq!(
            planned("label_statistics", &file),
            table,
            "a table as {file}"
        );
    }
}
