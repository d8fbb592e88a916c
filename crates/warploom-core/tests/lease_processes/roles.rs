//! What this binary does when it is started by itself.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use warploom_core::{DeskDevice, LeaseCapacity, LeaseDesk, LeaseRequest};

use crate::{audit, journal};

pub(crate) const NAMES: [&str; 2] = ["gpu0", "gpu1"];
pub(crate) const SLOTS: u32 = 4;
pub(crate) const BYTES: u64 = 1000;
/// Long enough for anything that works; so that what does not fails, and does not hang.
pub(crate) const ENOUGH: Duration = Duration::from_secs(30);

pub(crate) fn key(at: usize) -> String {
    format!("pci-0000-4{at}-00.0")
}

pub(crate) fn desk(dir: &Path) -> LeaseDesk {
    let capacity = LeaseCapacity {
        slots: SLOTS,
        bytes: BYTES,
    };
    let devices = NAMES.iter().enumerate();
    let devices = devices.map(|(at, name)| DeskDevice::new(*name, key(at), capacity));
    LeaseDesk::shared(devices.collect(), dir).expect("a desk opens")
}

pub(crate) fn play(words: &[String]) -> ExitCode {
    // Whoever started this process may be killed itself: nobody plays without an audience.
    thread::spawn(|| {
        let mut words = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut words);
        std::process::abort();
    });
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["worker", dir, journal, seed, count] => work(dir, journal, seed, count, false),
        ["small", dir, journal, seed, count] => work(dir, journal, seed, count, true),
        ["holder", dir, device, slots] => hold(dir, device, slots),
        ["auditor", dir, stop] => watch(Path::new(dir), Path::new(stop)),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().ok().expect("a number")
}

/// Says something to whoever started this process.
fn say(text: &str) {
    let mut out = std::io::stdout();
    let said = writeln!(out, "{text}").and_then(|()| out.flush());
    said.expect("somebody listens");
}

/// Takes random leases and notes them.
fn work(dir: &str, journal: &str, seed: &str, count: &str, small: bool) {
    let mut journal = File::create(journal).expect("a journal");
    let mut note = |text: String| journal.write_all(text.as_bytes()).expect("a note");
    let mut random = number::<u64>(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut dice = |sides: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % sides
    };
    let desk = desk(Path::new(dir));
    for _ in 0..number::<usize>(count) {
        let request = if small {
            LeaseRequest::new(1, dice(200)).on(["gpu0"])
        } else {
            let slots = u32::try_from(dice(3) + 1).expect("small");
            let request = LeaseRequest::new(slots, dice(600));
            match dice(4) {
                0 => request.on([NAMES[0]]),
                1 => request.on([NAMES[1]]),
                2 => request.on([NAMES[1], NAMES[0]]),
                _ => request,
            }
        };
        let asked = journal::now();
        let lease = desk.lease(&request.label("worker").within(ENOUGH));
        let lease = lease.expect("nobody starves");
        let (device, slots, bytes) = (lease.device(), lease.slots(), lease.bytes());
        let acquired = journal::now();
        note(format!("{device} {slots} {bytes} {asked} {acquired}\n"));
        // Mostly nothing, so that a kill often comes in the middle of the ledger.
        if small || dice(3) == 0 {
            thread::sleep(Duration::from_micros(dice(1500)));
        }
        note(format!("released {}\n", journal::now()));
    }
}

/// Holds until it is killed.
fn hold(dir: &str, device: &str, slots: &str) {
    let desk = desk(Path::new(dir));
    let request = LeaseRequest::new(number(slots), 0).on([device]);
    let lease = desk.lease(&request.label("holder").within(ENOUGH));
    let lease = lease.expect("nobody starves");
    say("held");
    loop {
        thread::park();
        assert!(lease.slots() > 0);
    }
}

/// Reads the ledgers over and over, without their locks, and adds up.
fn watch(dir: &Path, stop: &Path) {
    let (mut samples, mut slots, mut waiting) = ([0_u64; 2], [0_u64; 2], [0_usize; 2]);
    while !stop.exists() {
        for at in 0..NAMES.len() {
            // Caught in the middle of a write, or not made yet: look again.
            let Some(lines) = audit::read(&dir.join(format!("{}.ledger", key(at)))) else {
                continue;
            };
            let held = lines.iter().filter(|line| line.holds);
            let sum: u64 = held.clone().map(|line| u64::from(line.slots)).sum();
            assert!(sum <= SLOTS.into(), "{sum} slots: {lines:?}");
            let bytes: u64 = held.map(|line| line.bytes).sum();
            assert!(bytes <= BYTES, "{bytes} bytes: {lines:?}");
            assert!(
                lines.is_sorted_by_key(|line| (line.ticket, line.owner)),
                "out of order: {lines:?}"
            );
            assert!(
                lines
                    .iter()
                    .all(|line| line.label == "worker" && line.pid > 0)
            );
            samples[at] += 1;
            slots[at] = slots[at].max(sum);
            waiting[at] = waiting[at].max(lines.iter().filter(|line| !line.holds).count());
        }
        thread::sleep(Duration::from_micros(300));
    }
    for at in 0..NAMES.len() {
        say(&format!("{} {} {}", samples[at], slots[at], waiting[at]));
    }
}
