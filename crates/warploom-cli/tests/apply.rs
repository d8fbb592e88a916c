//! `warploom apply` as people and scripts meet it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;
use warploom::Shape;
use warploom::io::{Image, read, write};

/// A folder with a few images in it.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let plane = Shape::new(&[4, 5]).unwrap();
        let values: Vec<f32> = (0..20_u8).map(f32::from).collect();
        write(desk.path("a.npy"), &Image::new(plane, &values).unwrap()).unwrap();
        let values: Vec<u16> = (0..20_u16).collect();
        write(desk.path("a.tif"), &Image::new(plane, &values).unwrap()).unwrap();
        let values: Vec<u8> = (0..20_u8).collect();
        write(desk.path("a.png"), &Image::new(plane, &values).unwrap()).unwrap();
        let labels = [
            0_u32, 1, 1, 0, 2, 0, 1, 1, 0, 2, 0, 0, 0, 0, 2, 7, 0, 0, 0, 0,
        ];
        write(
            desk.path("labels.tif"),
            &Image::new(plane, &labels).unwrap(),
        )
        .unwrap();
        let wide = Image::new(plane, &[0_i64; 20]).unwrap();
        write(desk.path("wide.npy"), &wide).unwrap();
        let row = Image::new(Shape::new(&[20]).unwrap(), &values).unwrap();
        write(desk.path("row.npy"), &row).unwrap();
        let deep = Shape::new(&[2, 2, 5, 1]).unwrap();
        write(desk.path("deep.tif"), &Image::new(deep, &values).unwrap()).unwrap();
        let other = Image::new(Shape::new(&[5, 4]).unwrap(), &values).unwrap();
        write(desk.path("other.npy"), &other).unwrap();
        let empty = Image::new::<f32>(Shape::new(&[0, 5]).unwrap(), &[]).unwrap();
        write(desk.path("empty.npy"), &empty).unwrap();
        fs::write(desk.path("text.npy"), "hello").unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `warploom apply` in the folder: exit code, stdout, stderr.
    fn apply(&self, words: &str) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        for name in ["WARPLOOM_CPU_ONLY", "WARPLOOM_BACKENDS", "WARPLOOM_LOG"] {
            command.env_remove(name);
        }
        let Output {
            status,
            stdout,
            stderr,
        } = command
            .arg("apply")
            .args(words.split_whitespace())
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            status.code().expect("it was not killed by a signal"),
            text(stdout),
            text(stderr),
        )
    }

    /// Runs it on the processor, where it has to work.
    #[track_caller]
    fn on_cpu(&self, words: &str) -> String {
        let (code, stdout, stderr) = self.apply(&format!("{words} --device cpu:0"));
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("on cpu:0 ("), "{stderr}");
        stdout
    }

    fn names(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[rstest]
#[case("a.npy", "npy")]
#[case("a.tif", "tif")]
#[case("a.png", "npy")]
fn files_of_every_format_go_in_and_out(#[case] input: &str, #[case] ending: &str) {
    let desk = Desk::new();
    let words = format!("affine_intensity scale=2 offset=-1 -i {input} -o out.{ending}");
    desk.on_cpu(&words);
    let image = read(desk.path("out").with_extension(ending)).unwrap();
    let wanted: Vec<f32> = (0..20_u8)
        .map(|value| f32::from(value) * 2.0 - 1.0)
        .collect();
    assert_eq!(image.elements(), Some(&wanted[..]));
    assert_eq!(image.shape().dims(), [4, 5]);
}

#[test]
fn an_operation_that_keeps_the_type_keeps_it() {
    let desk = Desk::new();
    desk.on_cpu("crop y=1 x=2 height=2 width=3 -i a.png -o part.png");
    let image = read(desk.path("part.png")).unwrap();
    assert_eq!(image.elements(), Some(&[7_u8, 8, 9, 12, 13, 14][..]));
}

#[test]
fn masks_fit_into_png() {
    let desk = Desk::new();
    desk.on_cpu("greater value=5 -i a.npy -o mask.png");
    let image = read(desk.path("mask.png")).unwrap();
    let wanted: Vec<u8> = (0..20).map(|value: u8| u8::from(value > 5)).collect();
    assert_eq!(image.elements(), Some(&wanted[..]));
}

#[test]
fn two_images_are_read_in_order() {
    let desk = Desk::new();
    desk.on_cpu("subtract_images -i a.npy -i a.tif -o zero.npy");
    let image = read(desk.path("zero.npy")).unwrap();
    assert_eq!(image.elements(), Some(&[0_f32; 20][..]));
}

#[test]
fn numbers_go_to_npy_and_json() {
    let desk = Desk::new();
    desk.on_cpu("totals -i a.tif -o totals.npy");
    let numbers = read(desk.path("totals.npy")).unwrap();
    let values = numbers.elements::<f64>().unwrap();
    assert_eq!(values[..4], [0.0, 19.0, 190.0, 9.5]);
    assert_eq!(numbers.shape().dims(), [5]);
    desk.on_cpu("totals -i a.tif -o totals.json");
    let object: Value = serde_json::from_str(&text(&desk.path("totals.json"))).unwrap();
    assert_eq!(object["mean"], 9.5);
    desk.on_cpu("percentiles q=0,50,100 -i a.tif -o q.json");
    let list: Value = serde_json::from_str(&text(&desk.path("q.json"))).unwrap();
    assert_eq!(list, json!([0.0, 9.5, 19.0]));
}

#[test]
fn tables_go_to_csv_and_json() {
    let desk = Desk::new();
    desk.on_cpu("label_statistics -i labels.tif -i a.tif -o t.csv");
    let csv = text(&desk.path("t.csv"));
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().starts_with("label,area,sum,mean,"));
    assert!(lines.next().unwrap().starts_with("1,4,16.0,4.0,"), "{csv}");
    assert_eq!(lines.count(), 2);
    desk.on_cpu("label_statistics -i labels.tif -i a.tif -o t.json");
    let table: Value = serde_json::from_str(&text(&desk.path("t.json"))).unwrap();
    assert_eq!(table["columns"][0], "label");
    assert_eq!(table["rows"][2]["label"], 7);
    assert_eq!(table["rows"][2]["mean"], 15.0);
}

/// More objects than a table has room for at first.
#[test]
fn a_table_has_a_row_for_every_object() {
    let desk = Desk::new();
    let count = 1_u32 << 17;
    let labels: Vec<u32> = (1..=count).collect();
    let shape = Shape::new(&[512, 256]).unwrap();
    write(desk.path("many.tif"), &Image::new(shape, &labels).unwrap()).unwrap();
    desk.on_cpu("label_statistics -i many.tif -i many.tif -o many.csv");
    let csv = text(&desk.path("many.csv"));
    assert_eq!(csv.lines().count(), 1 + labels.len());
    assert!(
        csv.lines()
            .last()
            .unwrap()
            .starts_with("131072,1,131072.0,")
    );
}

#[test]
fn json_tells_what_was_done() {
    let desk = Desk::new();
    let stdout = desk.on_cpu("affine_intensity scale=2 -i a.tif -o b.npy --json");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["op"], "affine_intensity");
    assert_eq!(report["device"]["id"], "cpu:0");
    assert_eq!(report["math"], "strict");
    assert_eq!(report["inputs"][0]["dtype"], "u16");
    assert_eq!(report["inputs"][0]["shape"], json!([4, 5]));
    assert!(report["ms"]["compute"].as_f64().unwrap() > 0.0);
}

#[test]
fn without_a_device_one_is_chosen_and_named() {
    let desk = Desk::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let words = "apply affine_intensity scale=2 -i a.tif -o b.npy";
    let output = command
        .args(words.split(' '))
        .env("WARPLOOM_CPU_ONLY", "1")
        .current_dir(desk.folder.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("on cpu:0 ("), "{stderr}");
    assert!(stderr.contains("chosen here"), "{stderr}");
}

/// Every wrong use is exit code 2 with a way out, and leaves no file behind.
#[rstest]
#[case("missing_file", "gaussian sigma=1 -i none.tif -o b.npy")]
#[case("unknown_ending", "gaussian sigma=1 -i a.jpg -o b.npy")]
#[case("no_array", "gaussian sigma=1 -i text.npy -o b.npy")]
#[case("unknown_op", "gausian sigma=1 -i a.npy -o b.npy")]
#[case("unknown_param", "gaussian sigm=1 -i a.npy -o b.npy")]
#[case("missing_param", "gaussian -i a.npy -o b.npy")]
#[case("bad_value", "gaussian sigma=nan -i a.npy -o b.npy")]
#[case("no_assignment", "gaussian 2 -i a.npy -o b.npy")]
#[case("no_image", "gaussian sigma=1 -o b.npy")]
#[case("two_images", "gaussian sigma=1 -i a.npy -i a.npy -o b.npy")]
#[case("one_image_of_two", "add_images -i a.npy -o b.npy")]
#[case("extents", "add_images -i a.npy -i other.npy -o b.npy")]
#[case("wide", "gaussian sigma=1 -i wide.npy -o b.npy")]
#[case("row", "gaussian sigma=1 -i row.npy -o b.npy")]
#[case("deep", "gaussian sigma=1 -i deep.tif -o b.npy")]
#[case("empty", "gaussian sigma=1 -i empty.npy -o b.npy")]
#[case("png_of_floats", "gaussian sigma=1 -i a.npy -o b.png")]
#[case("numbers_as_image", "totals -i a.npy -o b.tif")]
#[case("table_as_array", "label_statistics -i labels.tif -i a.npy -o b.npy")]
#[case("unknown_output", "gaussian sigma=1 -i a.npy -o b.jpeg")]
#[case(
    "no_folder",
    "affine_intensity scale=1 -i a.npy -o none/b.npy --device cpu:0"
)]
#[case("unknown_device", "gaussian sigma=1 -i a.npy -o b.npy --device cpu:7")]
#[case(
    "unknown_backend",
    "gaussian sigma=1 -i a.npy -o b.npy --device cpuu:0"
)]
#[case("no_output", "gaussian sigma=1 -i a.npy")]
#[case(
    "strict_and_fast",
    "gaussian sigma=1 -i a.npy -o b.npy --strict --fast"
)]
fn wrong_uses_are_refused(#[case] name: &str, #[case] words: &str) {
    let desk = Desk::new();
    let before = desk.names();
    let (code, stdout, stderr) = desk.apply(words);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert_eq!(desk.names(), before);
    if name == "unknown_backend" {
        // Which backends are in this build differs.
        assert!(stderr.contains("error[WL0102]: backend `cpuu`"), "{stderr}");
        return;
    }
    // The device's name differs from machine to machine.
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.contains(", on cpu:0 ("))
        .collect();
    insta::assert_snapshot!(name, lines.join("\n"));
}

#[test]
fn a_batch_answers_every_line() {
    let desk = Desk::new();
    let job = |op: &str, args: &[&str], input: &str, output: &str| {
        json!({"op": op, "args": args, "inputs": [input], "output": output}).to_string()
    };
    let lines = [
        job("affine_intensity", &["scale=3"], "a.npy", "1.npy"),
        job("gausian", &[], "a.npy", "2.npy"),
        String::new(),
        "nonsense".into(),
        job("abs", &[], "a.tif", "3.npy"),
    ];
    fs::write(desk.path("jobs"), lines.join("\n")).unwrap();
    let (code, stdout, _) = desk.apply("--batch jobs --device cpu:0");
    assert_eq!(code, 1);
    let answers: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0], json!({"ok": true}));
    let error = answers[1]["error"].as_str().unwrap();
    assert!(error.contains("did you mean `gaussian`?"), "{error}");
    assert!(answers[2]["error"].is_string());
    assert_eq!(answers[3], json!({"ok": true}));
    assert!(desk.path("1.npy").exists() && desk.path("3.npy").exists());
    assert!(!desk.path("2.npy").exists());
}
