//! `warploom run` over an input that does not answer, before anything runs: a pipe that nobody writes to hangs
//! whoever opens it, as a disk does that is gone.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use plate::Bench;
use plate::processes::{signal, wait_within};

/// Seven images, one of which is a pipe.
fn bench() -> Bench {
    let bench = Bench::new(7);
    Bench::hangs(&bench.input(3));
    bench
}

#[test]
fn a_file_that_never_answers_is_given_up_in_time_and_named() {
    let bench = bench();
    for how in [&[][..], &["--devices", "cpu:0"], &["--dry-run"]] {
        let begun = Instant::now();
        let args = [&["-o", "out", "--patience", "1", "-q"], how].concat();
        let (code, stdout, stderr) = bench.run(&args);
        let took = begun.elapsed();
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("error[WL0853]: images/s003.npy said nothing for 1."));
        assert!(stderr.contains("= help: "), "{stderr}");
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert!(!bench.path("out").exists(), "nothing ran");
    }
}

/// Has it a thread of this name?
fn has_thread(child: &Child, name: &str) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id()));
    let mut tasks = tasks.into_iter().flatten().flatten();
    tasks.any(|task| {
        let comm = fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim() == name)
    })
}

#[test]
fn an_interrupt_ends_a_run_that_waits_for_a_file() {
    let bench = bench();
    for how in [&[][..], &["--devices", "cpu:0"]] {
        let mut command = bench.command(&[&["-o", "out"], how].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let limit = Duration::from_secs(20);
        wait_within(limit, "a look at the images", || {
            has_thread(&child, "lookout")
        });
        // It has come to the pipe by then, or comes to it after the interrupt.
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "it hangs");
        assert!(signal("-INT", child.id()));
        wait_within(limit, "its end", || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        assert!(stderr.contains("error[WL0823]"), "{stderr}");
        assert!(!bench.path("out").exists(), "nothing ran");
    }
}

/// What was done is looked at, too, where it is to be left out.
#[test]
fn a_file_that_no_longer_answers_is_given_up_when_a_run_is_resumed() {
    let bench = Bench::of_channels();
    let run = |how: &[&str]| {
        let mut command = bench.command_of_channels(&["-o", "out", "-q"]);
        let output = command.args(how).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), stderr)
    };
    assert_eq!(run(&[]).0, 0);
    let whole = bench.results("out");
    Bench::hangs(&bench.channel(7, "b"));
    let (code, stderr) = run(&["--resume", "--patience", "1"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("07_a.npy said nothing for 1."), "{stderr}");
    assert!(bench.results("out") == whole, "what was done stays");
}
