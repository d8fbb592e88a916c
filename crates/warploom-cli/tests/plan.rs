//! `warploom plan`, `check` and `explain` as people and scripts meet them.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs in the folder of the example pipelines, on the processor alone.
fn run(args: &[&str]) -> (i32, String, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command
        .env_remove("WARPLOOM_BACKENDS")
        .env_remove("WARPLOOM_LOG");
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .env("WARPLOOM_CPU_ONLY", "1")
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_plan_is_told_drawn_and_sent() {
    let plan = ["plan", "nuclei.toml", "--record", "512x512:u16"];
    let (code, stdout, stderr) = run(&plan);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("nuclei: on cpu"), "{stdout}");
    let with = |flag: &'static str| run(&[plan.as_slice(), &[flag]].concat());
    let (code, stdout, _) = with("--json");
    let data: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &data["pipeline"]), (0, &Value::from("nuclei")));
    assert!(with("--explain").1.contains("\nwhy\n"));
    assert!(with("--dot").1.starts_with("digraph"));
    let (code, stdout, _) = run(&["plan", "--schema"]);
    let schema: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, schema["type"].as_str()), (0, Some("object")));
}

#[test]
fn refusals_point_at_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[[step]]\nop = \"gaussian\"\nsigma = -2\n").unwrap();
    let path = file.to_str().unwrap();
    let (code, stdout, stderr) = run(&["plan", path, "--record", "64x64:u8"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    insta::assert_snapshot!(stderr.replace(path, "bad.toml"));
    let (code, stdout, _) = run(&["check", path, "--record", "64x64:u8", "--json"]);
    let data: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 2);
    assert_eq!(
        (data[0]["line"].as_u64(), data[0]["code"].as_str()),
        (Some(3), Some("WL0606"))
    );
    // It is wrong for every record, so that none need be described.
    let (code, _, stderr) = run(&["check", path]);
    assert_eq!(code, 2);
    assert!(stderr.contains("WL0606"), "{stderr}");
}

/// Files of these texts, and a check of all of them.
fn checked(texts: &[&str], flags: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let files = texts.iter().enumerate().map(|(at, text)| {
        let file = folder.path().join(format!("{at}.toml"));
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let files: Vec<String> = files.collect();
    let files = files.iter().map(String::as_str);
    let args: Vec<&str> = std::iter::once("check").chain(files).collect();
    run(&[args.as_slice(), flags].concat())
}

#[test]
fn a_check_tells_what_is_wrong_without_records_and_without_devices() {
    for (text, code) in [
        ("[[step]]\nop = \"gausian\"\n", "WL0601"),
        ("[[step]]\nop = \"sqrt\"\ninput = \"nobody\"\n", "WL0306"),
        (
            "[[step]]\nname = \"a\"\nop = \"sqrt\"\ninput = \"b\"\n[[step]]\nname = \"b\"\nop = \"abs\"\n",
            "WL0307",
        ),
        ("[[step]]\nop = \"gaussian\"\nsigma = -2\n", "WL0606"),
        ("[[step]]\nop = \"sqrt\"\nmemory = \"cuppy\"\n", "WL0321"),
    ] {
        let (exit, stdout, stderr) = checked(&[text], &[]);
        assert_eq!((exit, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(&format!("error[{code}]")), "{stderr}");
        assert!(!stderr.contains(": ok"), "{stderr}");
    }
    // What is on this machine does not matter, with records or without.
    let two = ["check", "two_backends.toml"];
    let (code, _, stderr) = run(&[two.as_slice(), &["--record", "64x64:u16"]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(run(&two).0, 0);
    assert_eq!(
        run(&["check", "two_backends.toml", "--record", "64by64"]).0,
        2
    );
}

#[test]
fn a_check_warns_and_is_ok() {
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\n[[step]]\nop = \"abs\"\ninput = \"image\"\n";
    let (code, _, stderr) = checked(&[text], &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("warning[WL0311]"), "{stderr}");
    assert!(stderr.contains("0.toml: ok"), "{stderr}");
    let (code, stdout, _) = checked(&[text], &["--json"]);
    let all: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, all[0]["severity"].as_str()), (0, Some("warning")));
}

#[test]
fn a_check_of_several_files_is_one_array_and_as_bad_as_the_worst() {
    let bad = "[[step]]\nop = \"gaussian\"\nsigma = -2\n";
    let good = "[[step]]\nop = \"sqrt\"\n";
    for order in [[bad, good, bad], [bad, bad, good], [good, bad, good]] {
        let (code, stdout, _) = checked(&order, &["--json"]);
        let all: Vec<Value> = serde_json::from_str(&stdout).unwrap();
        let files: Vec<&str> = all
            .iter()
            .map(|one| one["file"].as_str().unwrap())
            .collect();
        let expected = order.iter().enumerate().filter(|(_, text)| **text == bad);
        let expected: Vec<String> = expected.map(|(at, _)| format!("{at}.toml")).collect();
        assert_eq!((code, files.len()), (2, expected.len()));
        for (file, expected) in files.iter().zip(expected) {
            assert!(file.ends_with(&expected), "{file}");
        }
        let (code, _, stderr) = checked(&order, &[]);
        assert_eq!(code, 2);
        assert_eq!(stderr.matches(": ok").count(), 3 - files.len(), "{stderr}");
    }
    let (code, stdout, _) = checked(&[good, good], &["--json"]);
    assert_eq!((code, stdout.as_str()), (0, "[]\n"));
    // One that cannot be read does not keep the others from being told of.
    let (code, stdout, stderr) = run(&["check", "nothing.toml", "nuclei.toml", "--json"]);
    assert_eq!((code, stdout.as_str()), (2, "[]\n"), "{stderr}");
    assert!(stderr.contains("nothing.toml"), "{stderr}");
}

#[test]
fn what_makes_no_sense_is_exit_code_2() {
    for args in [
        &["plan", "nuclei.toml"] as &[&str],
        &["plan", "nothing.toml", "--record", "64x64:u8"],
        &["plan", "nuclei.toml", "--record", "64by64"],
        &[
            "plan",
            "nuclei.toml",
            "--record",
            "64x64:u8",
            "--budget",
            "lots",
        ],
        &[
            "plan",
            "nuclei.toml",
            "--record",
            "64x64:u8",
            "--devices",
            "gpu9",
        ],
        &[
            "plan",
            "nuclei.toml",
            "--record",
            "2048x2048:u16",
            "--budget",
            "500B",
        ],
        &["explain", "WL9999"],
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains("help"), "{args:?}: {stderr}");
    }
}

/// What `--json` says of a plan with these flags.
fn planned(flags: &[&str]) -> Value {
    let plan = ["plan", "nuclei.toml", "--record", "512x512:u16", "--json"];
    let (code, stdout, stderr) = run(&[plan.as_slice(), flags].concat());
    assert_eq!(code, 0, "{flags:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn what_the_caller_decides_is_in_the_plan() {
    let free = planned(&[]);
    assert_eq!(planned(&["--depth", "2"])["memory"]["depth"], 2);
    assert_eq!(planned(&["--depth", "1"])["memory"]["depth"], 1);
    let why = |plan: &Value| plan["reasons"][0]["why"].as_str().unwrap().to_owned();
    for policy in ["first", "spread", "fit", "cost"] {
        let plan = planned(&["--placement", policy]);
        assert_eq!(plan["device"]["name"], "cpu");
        // There is one card here, so that all of them take it; `cost` compares it with nothing.
        assert_eq!(plan["variants"], free["variants"], "{policy}");
        assert!(!why(&plan).is_empty());
    }
    let limited = planned(&["--budget", "64MiB"]);
    let pools = limited["memory"]["pools"].as_array().unwrap();
    assert!(
        pools.iter().all(|pool| pool["budget"] == 64 << 20),
        "{pools:?}"
    );
    for name in ["cpu", "cpu:0"] {
        assert_eq!(planned(&["--devices", name])["device"]["name"], "cpu");
    }
    let (code, stdout, _) = run(&["plan", "nuclei.toml", "--placement", "best"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    let (code, _, stderr) = run(&[
        "plan",
        "nuclei.toml",
        "--record",
        "64x64:u8",
        "--depth",
        "0",
    ]);
    assert_eq!(code, 2);
    assert!(stderr.contains("WL0332"), "{stderr}");
}

/// They were on stderr and in the summary as well.
#[test]
fn warnings_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let text = "[[step]]\nname = \"a\"\nop = \"sqrt\"\n[[step]]\nop = \"abs\"\ninput = \"image\"\n";
    std::fs::write(&file, text).unwrap();
    let plan = ["plan", file.to_str().unwrap(), "--record", "64x64:u8"];
    for flags in [&[] as &[&str], &["--explain"], &["--json"], &["--dot"]] {
        let (code, stdout, stderr) = run(&[plan.as_slice(), flags].concat());
        assert_eq!(code, 0, "{stderr}");
        let for_people = if flags == ["--json"] {
            stderr
        } else {
            stdout + &stderr
        };
        assert_eq!(
            for_people.matches("WL0311").count(),
            1,
            "{flags:?}: {for_people}"
        );
    }
}

/// An npy file of these extents whose pixels nobody ever wrote.
fn hollow(path: &Path, extents: &[u64]) {
    let head = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': {extents:?}, }}");
    let head = head.replace('[', "(").replace(']', ")");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{head:<117}\n").bytes());
    std::fs::write(path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let pixels: u64 = extents.iter().product();
    file.set_len(bytes.len() as u64 + 2 * pixels).unwrap();
}

#[test]
fn a_stack_of_a_hundred_gigabytes_is_planned_by_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let stack = folder.path().join("stack.npy");
    hollow(&stack, &[12_500, 2048, 2048]);
    assert!(std::fs::metadata(&stack).unwrap().len() > 100_000_000_000);
    let file = folder.path().join("p.toml");
    std::fs::write(&file, "foreach = \"plane\"\n[[step]]\nop = \"sqrt\"\n").unwrap();
    let begun = std::time::Instant::now();
    let args = [
        "plan",
        file.to_str().unwrap(),
        "-i",
        stack.to_str().unwrap(),
        "--json",
    ];
    let (code, stdout, stderr) = run(&args);
    assert_eq!(code, 0, "{stderr}");
    let plan: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(plan["record"]["planes"], 12_500);
    // Reading it would take minutes; looking at its header takes no time that can be told.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    // A constant is looked at in the same way, from beside the pipeline.
    let text = "[constants]\nflat = \"stack.npy\"\n[[step]]\nop = \"flat_field\"\ninput = [\"image\", \"flat\"]\n";
    std::fs::write(&file, text).unwrap();
    let (code, _, stderr) = run(&["plan", file.to_str().unwrap(), "--record", "64x64:u16"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("12500x2048x2048"), "{stderr}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(40));
}

#[test]
fn the_first_record_of_a_folder_or_pattern_decides() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for channel in ["dapi", "gfp"] {
        for well in ["A01", "A02"] {
            hollow(&at(&format!("{well}_{channel}.npy")), &[30, 40]);
        }
    }
    let pipeline = at("p.toml");
    let text =
        "[[step]]\nname = \"a\"\nbranch = { by = \"channel\", dapi = [\"sqrt\"], gfp = [] }\n";
    std::fs::write(&pipeline, text).unwrap();
    let plan = |input: &Path| {
        let args = [
            "plan",
            pipeline.to_str().unwrap(),
            "-i",
            input.to_str().unwrap(),
            "--json",
        ];
        run(&args)
    };
    let (code, stdout, stderr) = plan(&at("{well}_{channel}.npy"));
    assert_eq!(code, 0, "{stderr}");
    let data: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        data["record"]["channels"],
        serde_json::json!(["dapi", "gfp"])
    );
    assert_eq!(data["record"]["dims"], serde_json::json!([1, 30, 40]));
    // A folder: each file by itself, so there is no channel for the branch.
    assert_eq!(plan(folder.path()).0, 2);
    std::fs::write(&pipeline, "[[step]]\nop = \"sqrt\"\n").unwrap();
    assert_eq!(plan(folder.path()).0, 0);
    // A record that is not whole is told, and another decides.
    std::fs::remove_file(at("A01_gfp.npy")).unwrap();
    let (code, _, stderr) = plan(&at("{well}_{channel}.npy"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("A01") && stderr.contains("`A02` decides"),
        "{stderr}"
    );
    let (code, _, stderr) = plan(&at("{well}.png"));
    assert_eq!(code, 2);
    assert!(stderr.contains("WL0721"), "{stderr}");
}

#[test]
fn every_example_checks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            let (code, _, stderr) = run(&["check", path.to_str().unwrap()]);
            assert_eq!(code, 0, "{stderr}");
            count += 1;
        }
    }
    assert!(count >= 5);
}

/// The examples as they are shipped, beside constants that a user would have.
#[test]
fn every_example_is_planned() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (raw, made, extents) in [
        ("a.npy", "flat.tif", [8, 64, 48]),
        ("p.npy", "psf.tif", [5, 9, 9]),
    ] {
        hollow(&at(raw), &extents);
        let (from, to) = (at(raw), at(made));
        let args = ["apply", "gaussian", "sigma=1", "-i", from.to_str().unwrap()];
        let (code, _, stderr) = run(&[args.as_slice(), &["-o", to.to_str().unwrap()]].concat());
        assert_eq!(code, 0, "{stderr}");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let mut planned = Vec::new();
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let copy = at(&format!("{name}.toml"));
        std::fs::copy(&path, &copy).unwrap();
        let record = match name.as_str() {
            "two_channels" => "8x64x48:u16:1,2",
            _ => "8x64x48:u16",
        };
        let (code, stdout, stderr) = run(&["plan", copy.to_str().unwrap(), "--record", record]);
        if name == "two_backends" {
            // There is no card here: every backend is named with its reason.
            assert_eq!((code, stdout.as_str()), (2, ""));
            assert!(stderr.contains("WL0324"), "{stderr}");
            assert!(
                stderr.contains("`cuda`") && stderr.contains("`opencl`"),
                "{stderr}"
            );
            continue;
        }
        assert_eq!(code, 0, "{name}: {stderr}");
        assert!(stdout.contains(": on cpu"), "{name}: {stdout}");
        planned.push(name);
    }
    planned.sort();
    let expected = [
        "bright_cells",
        "deconvolution",
        "flat_projection",
        "nuclei",
        "two_channels",
    ];
    assert_eq!(planned, expected);
}

/// Case 48 of the ancestor's list: `WARPLOOM_CPU_ONLY`, which `run` sets, and a step for a GPU.
#[test]
fn c48_the_cpu_only_switch_refuses_gpu_steps_and_takes_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let plan = |memory: &str| {
        let text = format!("[[step]]\nop = \"sqrt\"\nmemory = \"{memory}\"\n");
        std::fs::write(&file, text).unwrap();
        run(&["plan", file.to_str().unwrap(), "--record", "64x64:u8"])
    };
    let (code, _, stderr) = plan("cupy");
    assert_eq!(code, 2);
    assert!(
        stderr.contains("WL0324") && stderr.contains("`cuda`"),
        "{stderr}"
    );
    let (code, stdout, _) = plan("numpy");
    assert_eq!(code, 0);
    assert!(stdout.contains("through cpu:0"), "{stdout}");
}

#[test]
fn codes_are_explained() {
    let (code, stdout, _) = run(&["explain", "wl0331"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(stdout);
    let (code, stdout, _) = run(&["explain", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 0);
    assert!(all.len() > 100, "{}", all.len());
}
