//! `warploom run` over records that cannot be read, worked on or written: each fails alone.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::fs;
use std::process::Command;

use rstest::{Context, rstest};
use serde_json::Value;
use warploom::io::{Header, Sync, write_image};
use warploom::{DType, Shape};

use plate::{Bench, PLANES, npy};

fn outcome<'a>(answer: &'a Value, record: &str) -> &'a Value {
    let records = answer["records"].as_array().unwrap();
    records.iter().find(|one| one["record"] == record).unwrap()
}

/// A TIFF of which the last bytes are missing.
fn truncated(bench: &Bench) {
    fs::remove_file(bench.input(7)).unwrap();
    let path = bench.path("images/s007.tif");
    let header = Header::new(DType::U16, Shape::new(&[64, 48]).unwrap());
    write_image(&path, &header, &[7; 64 * 48 * 2], Sync::No).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
}

/// A link to itself, which not even root can read.
fn unreadable(bench: &Bench) {
    fs::remove_file(bench.input(7)).unwrap();
    std::os::unix::fs::symlink("s007.npy", bench.input(7)).unwrap();
}

fn other_numbers(bench: &Bench) {
    npy(&bench.input(7), "<f8", "64, 48", &vec![1.0; 64 * 48]);
}

/// Where a result should go there is something that cannot be replaced.
fn obstructed(bench: &Bench) {
    fs::create_dir_all(bench.path("out/s007/measured.csv/full")).unwrap();
}

/// Of a hundred records the eighth is bad, the others are fine.
#[rstest]
#[case::truncated_tiff(truncated)]
#[case::unreadable_file(unreadable)]
#[case::wrong_dtype(other_numbers)]
#[case::no_place_for_its_results(obstructed)]
fn one_bad_record_of_a_hundred_fails_alone(#[case] spoil: fn(&Bench), #[context] context: Context) {
    let bench = Bench::new(100);
    spoil(&bench);
    let (code, answer) = bench.told(&["-o", "out"]);
    only_the_eighth_failed(&bench, code, &answer);
    let one = outcome(&answer, "s007");
    let folder = bench.folder.path().to_string_lossy().into_owned();
    let told = format!(
        "[{}] {}",
        one["code"].as_str().unwrap(),
        one["reason"].as_str().unwrap()
    );
    let case = context.description.unwrap();
    insta::assert_snapshot!(
        format!("fails_alone_{case}"),
        told.replace(&folder, "FOLDER")
    );
}

fn only_the_eighth_failed(bench: &Bench, code: i32, answer: &Value) {
    assert_eq!(code, 3, "{answer}");
    let count = |of: &str| answer["tally"][of].as_u64().unwrap();
    assert_eq!((count("ok"), count("failed")), (99, 1), "{answer}");
    assert_eq!(outcome(answer, "s007")["outcome"], "failed");
    let files = bench.results("out");
    let of_it = files.keys().filter(|path| path.starts_with("s007"));
    assert_eq!(of_it.count(), 0);
    let records = files.keys().filter_map(|path| path.parent());
    let records: std::collections::BTreeSet<_> = records.collect();
    assert_eq!(records.len(), 99);
}

/// Files that may not grow are what a test can have of a full disk everywhere. One record has so much to tell
/// that its table is too long.
#[test]
fn a_record_without_room_for_its_results_fails_alone() {
    let bench = Bench::new(0);
    let pipeline = r#"
        name = "spots"
        [[step]]
        name = "mask"
        op = "threshold_otsu"
        [[step]]
        name = "spots"
        op = "label_box"
        [[step]]
        name = "measured"
        op = "label_statistics"
        input = ["spots", "image"]
        [[output]]
        of = "measured"
        write = "{record}/measured.csv"
    "#;
    fs::write(bench.path("spots.toml"), pipeline).unwrap();
    for number in 0..100 {
        let bright = |at: u32| match number {
            7 => at.is_multiple_of(2) && (at / 256).is_multiple_of(2),
            _ => at % 256 < 9,
        };
        let pixels: Vec<u16> = (0..256 * 256)
            .map(|at| if bright(at) { 900 } else { 100 })
            .collect();
        npy(&bench.input(number), "<u2", "256, 256", &pixels);
    }
    // 100 or 200 KiB, as shells count; 16384 rows are more.
    let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let run = bench.command(&["-o", "out", "--json", "-q"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", script]).arg(run.get_program());
    limited
        .args(run.get_args())
        .env("WARPLOOM_CPU_ONLY", "1")
        .current_dir(bench.folder.path());
    let output = limited.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    only_the_eighth_failed(&bench, output.status.code().unwrap(), &answer);
    let one = outcome(&answer, "s007");
    assert_eq!(one["code"], "WL0716", "{one}");
    assert!(
        one["reason"].as_str().unwrap().contains("file too large"),
        "{one}"
    );
}

#[test]
fn bad_records_are_done_when_they_are_mended() {
    let bench = Bench::new(100);
    let cut = fs::read(bench.input(7)).unwrap();
    fs::write(bench.input(7), &cut[..cut.len() - 9]).unwrap();
    npy(&bench.input(23), "<f8", "64, 48", &vec![1.0; 64 * 48]);
    npy(&bench.input(24), "<u2", "48, 64", &vec![1_u16; 64 * 48]);
    fs::write(bench.input(50), "no image at all").unwrap();
    // Where a result should go there is something that cannot be replaced.
    fs::create_dir_all(bench.path("out/s099/measured.csv/full")).unwrap();
    let (code, answer) = bench.told(&["-o", "out"]);
    assert_eq!(code, 3);
    let tally = &answer["tally"];
    let failed = tally["failed"].as_u64().unwrap();
    assert_eq!((tally["ok"].as_u64().unwrap(), failed), (95, 5), "{tally}");
    for number in [7, 23, 24, 50, 99] {
        let one = outcome(&answer, &format!("s{number:03}"));
        assert_eq!(one["outcome"], "failed", "{one}");
        assert!(one["code"].as_str().unwrap().starts_with("WL"), "{one}");
        assert!(one["reason"].as_str().unwrap().len() > 10, "{one}");
        assert!(!bench.path(&format!("out/s{number:03}/spots.tif")).exists());
    }
    let reason = outcome(&answer, "s023")["reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        reason,
        "it is 64x48 f64, and this run was planned for 64x48 u16"
    );
    assert_eq!(
        bench.results("out").len() as u64,
        2 * tally["ok"].as_u64().unwrap()
    );
    // Mended, only those are done.
    for number in [7, 23, 24, 50] {
        bench.image(number, number);
    }
    fs::remove_dir_all(bench.path("out/s099")).unwrap();
    let (code, answer) = bench.told(&["-o", "out", "--resume"]);
    assert_eq!((code, answer["tally"]["ok"].as_u64()), (0, Some(failed)));
}

/// What an earlier run made of an image that is broken now stays nowhere under its name, whether that run is
/// remembered or not.
#[test]
fn a_record_that_fails_now_does_not_look_as_if_it_were_done() {
    let bench = Bench::new(5);
    let spots = || bench.path("out/s002/spots.tif").exists();
    let measured = || bench.path("out/s002/measured.csv").exists();
    for (how, is_remembered) in [(&[][..], true), (&["--resume"], true), (&[], false)] {
        bench.image(2, 2);
        assert_eq!(bench.run(&["-o", "out", "-q"]).0, 0);
        assert!(spots() && measured());
        if !is_remembered {
            fs::remove_dir_all(bench.path("out/.warploom")).unwrap();
        }
        fs::write(bench.input(2), "no image any more").unwrap();
        let (code, answer) = bench.told(&[&["-o", "out"], how].concat());
        assert_eq!(code, 3, "{answer}");
        assert_eq!(outcome(&answer, "s002")["outcome"], "failed");
        assert!(!spots() && !measured(), "{how:?} {is_remembered}");
        assert_eq!(bench.results("out").len(), 8);
    }
}

/// The same for a record of which a part is gone, so that it is not even begun.
#[test]
fn a_record_that_lacks_a_part_now_does_not_look_as_if_it_were_done() {
    let bench = Bench::new(0);
    fs::write(bench.path("spots.toml"), PLANES).unwrap();
    for name in ["a_1", "a_2", "b_1", "b_2"] {
        let path = bench.path(&format!("images/{name}.npy"));
        npy(&path, "<u2", "64, 48", &[7_u16; 64 * 48]);
    }
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command
            .env("WARPLOOM_CPU_ONLY", "1")
            .current_dir(bench.folder.path());
        command.args(["run", "spots.toml", "-o", "out", "-q"]);
        let status = command.args(["-i", "images/{site}_{channel}.npy", "--resume"]);
        status.status().unwrap().code().unwrap()
    };
    assert_eq!(run(), 0);
    assert_eq!(bench.results("out").len(), 4);
    fs::remove_file(bench.path("images/b_2.npy")).unwrap();
    assert_eq!(run(), 3);
    assert_eq!(bench.results("out").len(), 2);
}

/// A disk of so many kilobytes, which only this command sees; why not, where the system does not allow it.
#[cfg(target_os = "linux")]
fn on_small_disk(bench: &Bench, kilobytes: u32, args: &str) -> Result<(i32, String), String> {
    let program = env!("CARGO_BIN_EXE_warploom");
    let script = format!(
        "mount -t tmpfs -o size={kilobytes}k none small || exit; \
         {program} run spots.toml -i images -o small/out {args}; echo $? > code; cp -r small/out kept"
    );
    fs::create_dir_all(bench.path("small")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    command
        .env("WARPLOOM_CPU_ONLY", "1")
        .current_dir(bench.folder.path());
    let output = command.output().map_err(|error| error.to_string())?;
    // A run that failed in whatever way is no reason not to have tried it.
    match fs::read_to_string(bench.path("code")) {
        Ok(code) => Ok((
            code.trim().parse().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )),
        Err(_) => Err(format!(
            "`unshare` and `mount` end with {:?}: {}",
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_fails_the_records_that_do_not_fit() {
    let bench = Bench::new(40);
    let (code, stdout) = match on_small_disk(&bench, 300, "--json -q") {
        Ok(ran) => ran,
        Err(why) => {
            // A file that may not grow is tried above wherever it runs.
            eprintln!("not tried: no file system can be mounted here: {why}");
            return;
        }
    };
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 3, "{answer}");
    let count = |of: &str| answer["tally"][of].as_u64().unwrap();
    assert!(
        count("ok") > 3 && count("failed") > 3,
        "{}",
        answer["tally"]
    );
    assert_eq!(count("ok") + count("failed"), 40);
    assert_eq!(bench.run(&["-o", "whole", "-q"]).0, 0);
    let whole = bench.results("whole");
    let kept = bench.results("kept");
    assert_eq!(kept.len() as u64, 2 * count("ok"));
    for (path, bytes) in kept {
        assert!(whole[&path] == bytes, "{}", path.display());
    }
}

/// Nobody ever writes to a pipe that is among the images: whoever opens it hangs, as on a disk that is gone.
/// Another device would hang there, too.
#[test]
fn a_file_that_hangs_ends_the_run_and_no_device_is_blamed() {
    let bench = Bench::of_channels();
    Bench::hangs(&bench.channel(7, "b"));
    let how = [
        "-o",
        "out",
        "--patience",
        "2",
        "--batch",
        "1",
        "--json",
        "-q",
    ];
    let output = bench.command_of_channels(&how).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(output.status.code(), Some(3), "{answer}");
    assert_eq!(answer["changes"], serde_json::json!([]), "{answer}");
    let why = answer["error"]["reason"].as_str().unwrap();
    assert!(why.contains("nothing happened for 2"), "{why}");
    assert!(why.contains("read("), "{why}");
    let count = |of: &str| answer["tally"][of].as_u64().unwrap();
    assert!(count("ok") > 0 && count("not_started") > 0, "{answer}");
    assert_eq!(count("ok") + count("not_started"), 14, "{answer}");
}
