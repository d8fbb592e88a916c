//! `warploom status`: runs that go on, are over, were interrupted, killed or damaged, and folders that are
//! none.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warploom::fleet::journal::{Cause, Durability, Event, Holder, Journal};
use warploom::fleet::{Answer, Reason, Record, rundir};

use plate::Bench;

/// What `warploom status` says: exit code, stdout, stderr.
fn status(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .arg("status")
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn told(path: &Path) -> (i32, Value) {
    let (code, stdout, stderr) = status(&[path.to_str().unwrap(), "--json"]);
    let answer = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    (code, answer)
}

/// The run below a folder of results.
fn only_run(output: &Path) -> PathBuf {
    let runs = fs::read_dir(output.join(".warploom")).unwrap();
    let runs = runs.map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = runs.filter(|path| path.is_dir()).collect();
    assert_eq!(runs.len(), 1);
    runs.pop().unwrap()
}

/// Text without what differs from run to run.
fn plain(text: &str, folder: &Path) -> String {
    text.replace(folder.to_str().unwrap(), "FOLDER")
}

/// A run of two devices as its coordinator writes it down, up to the middle.
struct Scene {
    folder: tempfile::TempDir,
    about: File,
    journal: Journal,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("out/.warploom/run-1700000000000-4242");
        fs::create_dir_all(&run).unwrap();
        let device = |label: &str, workers: u32| json!({ "label": label, "name": "Card", "id": format!("id/{label}"), "workers": workers });
        let about = json!({
            "pid": 4242, "host": "lab", "started": 1_700_000_000_000_u64,
            "pipeline": "nuclei", "plan": "abc",
            "devices": [device("cuda:0", 2), device("cuda:1", 1)],
            "open": (0..8).map(|at| format!("w{at}")).collect::<Vec<_>>(),
            "skipped": 3,
            "lacking": [{ "record": "w9", "outcome": "failed", "code": null,
                "reason": "it lacks channel 2", "help": null }],
        });
        fs::write(run.join("about.json"), about.to_string()).unwrap();
        let about = File::open(run.join("about.json")).unwrap();
        about.lock().unwrap();
        let opened = Journal::open(&run.join("journal"), Durability::Never).unwrap();
        Self {
            folder,
            about,
            journal: opened.journal,
        }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn run(&self) -> PathBuf {
        only_run(&self.out())
    }

    fn write(&mut self, events: Vec<Event>) {
        for event in events {
            self.journal.push(event).unwrap();
        }
        self.journal.commit().unwrap();
    }

    /// The coordinator is killed.
    fn dies(&mut self) {
        self.about.unlock().unwrap();
    }

    fn ends(&mut self, with: &Value) {
        let run = self.run();
        fs::write(run.join("ended.json"), with.to_string()).unwrap();
        self.dies();
    }
}

fn attempt(batch: u64, slot: u32, records: &[u64]) -> Event {
    Event::Attempt {
        batch,
        slot,
        records: records.iter().copied().collect(),
    }
}

fn ok(record: u64) -> Event {
    Event::Ok {
        record,
        attempts: 1,
        result: Answer::Kept(b"{}".to_vec()),
    }
}

/// What happens to the scene's run: one record is done, one has killed its worker too often, a device is
/// in quarantine, and two records are at workers.
fn half() -> Vec<Event> {
    vec![
        Event::Began { earlier: 0 },
        Event::Signed {
            holder: Holder::this(),
            slots: vec!["id/cuda:0".into(), "id/cuda:0".into(), "id/cuda:1".into()],
        },
        attempt(0, 0, &[0, 1]),
        attempt(1, 2, &[2]),
        ok(0),
        Event::Charged {
            batch: 1,
            cause: Cause::Crashed {
                how: "it ended by signal 11".into(),
            },
            records: [2].into_iter().collect(),
        },
        Event::Failed {
            record: 2,
            attempts: 3,
            reason: Reason::Crashed {
                how: "it ended by signal 11".into(),
                log: "reading w2\nabout to fall".into(),
            },
        },
        Event::Quarantined {
            device: "id/cuda:1".into(),
            why: "3 batches in a row came to grief on it".into(),
        },
        attempt(2, 1, &[3]),
    ]
}

#[test]
fn a_run_that_goes_on_is_told_from_one_that_was_killed() {
    let mut scene = Scene::new();
    // It has only begun: nothing is in its journal yet.
    let (code, answer) = told(&scene.out());
    assert_eq!((code, &answer["state"]), (0, &json!("running")));
    assert_eq!(answer["tally"]["not_started"], 8);
    scene.write(half());
    let before = fs::read(scene.run().join("journal")).unwrap();
    for path in [scene.out(), scene.run()] {
        let (code, answer) = told(&path);
        assert_eq!((code, &answer["state"]), (0, &json!("running")));
        let tally = json!({ "ok": 1, "failed": 2, "skipped": 3, "not_started": 6 });
        assert_eq!(answer["tally"], tally);
        assert_eq!(answer["under_way"], 2);
        let devices = answer["devices"].as_array().unwrap();
        assert_eq!(devices[0]["state"], "working");
        assert_eq!(devices[0]["batch"], 1);
        assert_eq!(devices[0]["ok"], 1);
        assert_eq!(devices[1]["state"], "quarantined");
        assert_eq!(
            (&devices[1]["griefs"], &devices[1]["failed"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(answer["failures"][1]["record"], "w2");
        assert_eq!(answer["failures"][1]["log"], "reading w2\nabout to fall");
        assert_eq!(answer["failures"][1]["attempts"], 3);
    }
    assert!(fs::read(scene.run().join("journal")).unwrap() == before);
    scene.dies();
    let (code, answer) = told(&scene.out());
    assert_eq!((code, &answer["state"]), (1, &json!("died")));
    assert_eq!(
        (&answer["under_way"], &answer["left"]),
        (&json!(0), &Value::Null)
    );
    let out = scene.out();
    let (code, text, _) = status(&[out.to_str().unwrap()]);
    assert_eq!(code, 1);
    // The scene began years ago, so only how long ago differs from run to run.
    let seconds = answer["seconds"].as_f64().unwrap();
    let text = text.replace(&format!("{seconds:.1} s"), "SECONDS");
    insta::assert_snapshot!("died", plain(&text, scene.folder.path()));
}

#[test]
fn one_that_watches_sees_a_run_go_on_and_end() {
    let mut scene = Scene::new();
    scene.write(half());
    let mut watching = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .arg("status")
        .arg(scene.out())
        .args(["--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut line = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = line();
    assert_eq!(
        (&first["state"], &first["tally"]["ok"]),
        (&json!("running"), &json!(1))
    );
    scene.write([1, 3].map(ok).to_vec());
    let second = line();
    assert_eq!(
        (&second["state"], &second["tally"]["ok"]),
        (&json!("running"), &json!(3))
    );
    scene.ends(&json!({ "at": 1_700_000_004_000_u64, "seconds": 4.0, "interrupted": true }));
    let last = line();
    assert_eq!(last["state"], "interrupted");
    assert!(lines.next().is_none());
    assert_eq!(watching.wait().unwrap().code(), Some(130));
}

#[test]
fn ends_are_told_apart_by_their_exit_codes() {
    let all = |scene: &mut Scene| {
        scene.write(half());
        let mut rest = vec![attempt(3, 0, &[4, 5, 6, 7])];
        rest.extend([1, 3, 4, 5, 6, 7].map(ok));
        scene.write(rest);
    };
    let mut scene = Scene::new();
    all(&mut scene);
    scene.ends(&json!({ "at": 1_700_000_004_000_u64, "seconds": 4.0,
        "changes": ["a worker on cuda:1 came to grief: it ended by signal 11"] }));
    let (code, answer) = told(&scene.out());
    assert_eq!((code, &answer["state"]), (3, &json!("finished")));
    assert_eq!(answer["seconds"], 4.0);
    assert_eq!(answer["incidents"].as_array().unwrap().len(), 1);
    let mut scene = Scene::new();
    scene.write(half());
    scene.ends(&json!({ "at": 1_700_000_004_000_u64, "seconds": 4.0, "interrupted": true }));
    let (code, answer) = told(&scene.out());
    assert_eq!((code, &answer["state"]), (130, &json!("interrupted")));
    let mut scene = Scene::new();
    scene.write(half());
    scene.ends(
        &json!({ "at": 1_700_000_004_000_u64, "seconds": 4.0, "error": "no device is left" }),
    );
    let (code, answer) = told(&scene.out());
    assert_eq!((code, &answer["state"]), (3, &json!("broken")));
    assert_eq!(answer["error"], "no device is left");
}

#[test]
fn a_damaged_run_says_so_and_tells_what_can_be_read() {
    let mut scene = Scene::new();
    scene.write(half());
    let path = scene.run().join("journal");
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let (code, answer) = told(&scene.out());
    assert_eq!(code, 1);
    let damage = answer["damage"].as_str().unwrap();
    assert!(
        damage.starts_with("the journal is damaged from byte "),
        "{damage}"
    );
    // Cut where its writer died it is not damaged, and neither is one whose writer is at it.
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    assert_eq!(told(&scene.out()).1["damage"], Value::Null);
    fs::write(&path, "something else").unwrap();
    let (code, _, stderr) = status(&[scene.out().to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("error[WL0852]"), "{stderr}");
    fs::write(&path, &whole).unwrap();
    fs::write(scene.run().join("about.json"), "{ \"pid\": 4").unwrap();
    let (code, _, stderr) = status(&[scene.out().to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("about.json makes no sense"), "{stderr}");
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    fs::create_dir_all(folder.path().join("begun/.warploom")).unwrap();
    let mut told = String::new();
    for name in ["", "missing", "file", "begun"] {
        let (code, stdout, stderr) = status(&[folder.path().join(name).to_str().unwrap()]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        told.push_str(&plain(&stderr, folder.path()));
    }
    insta::assert_snapshot!("no_run", told);
}

#[test]
fn the_folder_of_a_fleet_of_ones_own_is_told_by_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..8_u8).map(|n| Record::new([n])).collect();
    let identity = rundir::Identity::of("squares", &records);
    let mut open = rundir::open(folder.path(), &identity, Durability::Never).unwrap();
    for event in half() {
        open.journal.push(event).unwrap();
    }
    open.journal.commit().unwrap();
    let (code, answer) = told(folder.path());
    assert_eq!((code, &answer["state"]), (0, &json!("running")));
    assert_eq!(answer["pid"], std::process::id());
    assert_eq!(answer["failures"][0]["record"], "record 2");
    assert_eq!(answer["devices"][1]["label"], "id/cuda:1");
    drop(open);
    assert_eq!(told(folder.path()).1["state"], "died");
}

#[test]
fn real_runs_are_told_when_they_are_over() {
    let bench = Bench::new(12);
    let cut = fs::read(bench.input(7)).unwrap();
    fs::write(bench.input(7), &cut[..cut.len() - 9]).unwrap();
    let crew = ["--devices", "cpu:0", "--workers-per-device", "2"];
    for (out, more) in [("one", &[][..]), ("many", &crew[..])] {
        let args = [&["-o", out, "-q"][..], more].concat();
        assert_eq!(bench.run(&args).0, 3);
        let (code, answer) = told(&bench.path(out));
        assert_eq!(
            (code, &answer["state"]),
            (3, &json!("finished")),
            "{answer}"
        );
        assert_eq!(
            (&answer["tally"]["ok"], &answer["tally"]["failed"]),
            (&json!(11), &json!(1))
        );
        assert_eq!(answer["failures"][0]["record"], "s007");
        assert_eq!(answer["failures"][0]["code"], "WL0706");
        assert_eq!(answer["failures"][0]["attempts"], 1);
        assert_eq!(answer["devices"][0]["state"], "ended");
        assert_eq!(answer["devices"][0]["ok"], 11);
        assert_eq!(answer["devices"][0]["failed"], 1);
        bench.image(7, 7);
        let args = [&args[..], &["--resume"]].concat();
        assert_eq!(bench.run(&args).0, 0);
        // The newest run is meant; the one before is still there.
        let (code, answer) = told(&bench.path(out));
        assert_eq!(code, 0, "{answer}");
        assert_eq!(
            (&answer["tally"]["ok"], &answer["tally"]["skipped"]),
            (&json!(1), &json!(11))
        );
        let (code, text, _) = status(&[bench.path(out).to_str().unwrap()]);
        assert_eq!(code, 0);
        assert!(
            text.contains("12 records: 1 ok, 11 done before\n"),
            "{text}"
        );
        // One that watches sees the end, and ends.
        let (code, lines, _) = status(&[bench.path(out).to_str().unwrap(), "--watch", "--json"]);
        assert_eq!((code, lines.lines().count()), (0, 1));
        fs::write(bench.input(7), &cut[..cut.len() - 9]).unwrap();
    }
}

#[test]
fn a_second_run_is_refused_with_who_has_the_results() {
    let bench = Bench::new(2);
    let mut scene = Scene::new();
    // The test itself is the run that goes on there: it has the list of results.
    let list = scene.out().join(".warploom/finished.jsonl");
    let list = File::create(list).unwrap();
    list.lock().unwrap();
    let out = scene.out();
    for more in [&[][..], &["--devices", "cpu:0"][..]] {
        let args = [&["-o", out.to_str().unwrap(), "--resume"][..], more].concat();
        let (code, _, stderr) = bench.run(&args);
        assert_eq!(code, 2, "{stderr}");
        assert!(
            stderr.contains("error[WL0843]: another run, process 4242 on lab, is writing results"),
            "{stderr}"
        );
        assert!(stderr.contains("`warploom status "), "{stderr}");
    }
    // Nothing was changed for the one that has it.
    scene.write(half());
    assert_eq!(told(&out).1["state"], "running");
}

/// Sends a signal to a process.
fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_real_run_is_seen_while_it_runs_and_after_it_was_killed() {
    let bench = Bench::new(40);
    let crew = ["--devices", "cpu:0", "--workers-per-device", "2"];
    for (name, more) in [("one", &[][..]), ("many", &crew[..])] {
        // A run that was over before it could be stopped is tried again, in another folder.
        let stopped = (0..20).find_map(|attempt| {
            let out = format!("{name}{attempt}");
            let args = [&["-o", &out, "-q", "--batch", "1"][..], more].concat();
            let mut child = bench.start(&args);
            let end = Instant::now() + Duration::from_mins(2);
            while status(&[bench.path(&out).to_str().unwrap()]).0 == 2 {
                assert!(Instant::now() < end, "no run was seen in two minutes");
                std::thread::sleep(Duration::from_millis(1));
            }
            signal("-STOP", child.id());
            if bench.path(&out).join(".warploom").exists()
                && told(&bench.path(&out)).1["state"] == "running"
            {
                return Some((child, out));
            }
            signal("-CONT", child.id());
            child.wait().unwrap();
            None
        });
        let (mut child, out) = stopped.expect("a run that lasts long enough to be stopped");
        let path = bench.path(&out);
        let (code, answer) = told(&path);
        assert_eq!((code, &answer["state"]), (0, &json!("running")));
        assert_eq!(answer["pid"], child.id());
        assert_eq!(answer["tally"]["failed"], 0);
        // Whoever wants the same results meanwhile learns who has them.
        let args = [&["-o", &out, "-q", "--resume"][..], more].concat();
        let (code, _, stderr) = bench.run(&args);
        assert_eq!(code, 2, "{stderr}");
        let holder = format!("another run, process {}", child.id());
        assert!(stderr.contains(&holder), "{stderr}");
        child.kill().unwrap();
        child.wait().unwrap();
        // A process that it was just starting has its locks for a moment longer.
        let end = Instant::now() + Duration::from_mins(2);
        while told(&path).1["state"] != "died" {
            assert!(Instant::now() < end, "it is taken for alive");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(told(&path).0, 1);
        let (code, _, stderr) = bench.run(&args);
        assert_eq!(code, 0, "{stderr}");
        let (code, answer) = told(&path);
        assert_eq!((code, &answer["state"]), (0, &json!("finished")));
        let tally = &answer["tally"];
        let done = tally["ok"].as_u64().unwrap() + tally["skipped"].as_u64().unwrap();
        assert_eq!(done, 40, "{tally}");
    }
}
