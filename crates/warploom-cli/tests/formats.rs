//! `warploom run` with results in every format: images that are folders, tables, pictures.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::fs;
use std::path::{Path, PathBuf};

use warploom::io::Source;

use plate::kills::Kills;
use plate::{Bench, Files, PIPELINE};

/// The usual pipeline with other endings, and a picture.
fn bench(images: u32) -> Bench {
    let bench = Bench::new(images);
    let pipeline = PIPELINE
        .replace("spots.tif", "spots.zarr")
        .replace("measured.csv", "measured.parquet");
    let picture = r#"
[[step]]
name = "top"
op = "maximum_box"
radius = 1
input = "image"
[[output]]
of = "top"
write = "{record}/top.png"
"#;
    fs::write(bench.path("spots.toml"), pipeline + picture).unwrap();
    bench
}

fn pixels(path: &Path) -> Vec<u8> {
    let mut source = Source::open(path).unwrap();
    source.read().unwrap().bytes().to_vec()
}

fn tally(bench: &Bench, args: &[&str]) -> (u64, u64) {
    let (code, answer) = bench.told(args);
    assert_eq!(code, 0, "{answer}");
    let count = |of: &str| answer["tally"][of].as_u64().unwrap();
    (count("ok"), count("skipped"))
}

#[test]
fn every_format_has_what_the_others_have() {
    let bench = bench(3);
    assert_eq!(tally(&bench, &["-o", "out"]), (3, 0));
    let plain = PIPELINE.to_owned()
        + "[[step]]\nname = \"top\"\nop = \"maximum_box\"\nradius = 1\ninput = \"image\"\n\
           [[output]]\nof = \"top\"\nwrite = \"{record}/top.npy\"\n";
    fs::write(bench.path("spots.toml"), plain).unwrap();
    assert_eq!(tally(&bench, &["-o", "plain"]), (3, 0));
    for record in ["s000", "s001", "s002"] {
        let file = |folder: &str, name: &str| bench.path(&format!("{folder}/{record}/{name}"));
        let spots = pixels(&file("out", "spots.zarr"));
        assert!(spots == pixels(&file("plain", "spots.tif")));
        assert!(spots.iter().any(|byte| *byte > 0));
        assert!(pixels(&file("out", "top.png")) == pixels(&file("plain", "top.npy")));
        let table = fs::read(file("out", "measured.parquet")).unwrap();
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    }
}

#[test]
fn an_image_that_lacks_a_chunk_is_done_again() {
    let bench = bench(4);
    assert_eq!(tally(&bench, &["-o", "out"]), (4, 0));
    let whole = bench.results("out");
    assert_eq!(tally(&bench, &["-o", "out", "--resume"]), (0, 4));
    let of = |record: &str| -> Vec<PathBuf> {
        let image = Path::new(record).join("spots.zarr");
        let files = whole.keys().filter(|path| path.starts_with(&image));
        files.map(|path| bench.path("out").join(path)).collect()
    };
    let chunk = |record: &str| {
        let files = of(record);
        let is_chunk = |path: &&PathBuf| !path.ends_with("zarr.json");
        files.iter().find(is_chunk).unwrap().clone()
    };
    // A chunk that is gone, one that is cut short, and an image without any.
    fs::remove_file(chunk("s000")).unwrap();
    let bytes = fs::read(chunk("s001")).unwrap();
    fs::write(chunk("s001"), &bytes[..bytes.len() - 1]).unwrap();
    for file in of("s002") {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(tally(&bench, &["-o", "out", "--resume"]), (3, 1));
    assert!(bench.results("out") == whole);
}

/// Everything that has its name is all there.
fn only_whole_ones(found: &Files, whole: &Files) {
    for (path, bytes) in found {
        assert!(whole.get(path) == Some(bytes), "{}", path.display());
        let mut parts = path.ancestors();
        let Some(image) = parts.find(|part| part.ends_with("spots.zarr")) else {
            continue;
        };
        let files = |all: &Files| all.keys().filter(|path| path.starts_with(image)).count();
        assert_eq!(files(found), files(whole), "{}", image.display());
    }
}

#[test]
fn a_run_that_writes_folders_and_tables_is_killed_and_resumed_to_the_same_files() {
    let bench = bench(24);
    let mut kills = Kills::new(&bench, 54_321);
    let mut rounds = 0;
    while kills.count < 20 || kills.amid < 3 {
        assert!(rounds < 200, "{} kills, {} amid", kills.count, kills.amid);
        rounds += 1;
        let output = format!("out{}", rounds % 4);
        // Every other time results are there already, and are replaced.
        let is_again = rounds % 2 == 0 && bench.path(&output).exists();
        let first: &[&str] = if is_again { &[] } else { &["--resume"] };
        kills.until_done(&bench, &output, first, only_whole_ones);
    }
    let (count, amid) = (kills.count, kills.amid);
    eprintln!("{count} kills in {rounds} rounds, {amid} amid results");
}
