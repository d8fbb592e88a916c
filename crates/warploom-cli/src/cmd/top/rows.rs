//! The machine as rows of words, for a terminal that is drawn on and for one that is printed to.

use std::time::{Duration, SystemTime};

use warploom::Bytes;
use warploom::watch::board::Notice;
use warploom::watch::{Machine, MachineDevice};

use crate::output;

pub(super) const DEVICE_HEADS: [&str; 7] =
    ["DEVICE", "NAME", "SLOTS", "LEASED", "OF", "USED", "WAIT"];
pub(super) const LEASE_HEADS: [&str; 7] =
    ["DEVICE", "PID", "FOR", "SLOTS", "BYTES", "SINCE", "STATE"];
pub(super) const RUN_HEADS: [&str; 9] = [
    "PID", "PIPELINE", "PHASE", "ON", "DONE", "FAILED", "RATE", "MEMORY", "LEFT",
];

/// What stands for a number that nobody told.
const UNKNOWN: &str = "-";

/// One row per device.
pub(super) fn devices(machine: &Machine) -> Vec<[String; 7]> {
    machine.devices.iter().map(device).collect()
}

fn device(device: &MachineDevice) -> [String; 7] {
    let of = match device.capacity.bytes {
        u64::MAX => UNKNOWN.to_owned(),
        bytes => Bytes(bytes).to_string(),
    };
    [
        device.name.clone(),
        clean(&device.label),
        format!("{}/{}", device.slots_held(), device.capacity.slots),
        Bytes(device.bytes_held()).to_string(),
        of,
        device
            .used
            .map_or_else(|| UNKNOWN.into(), |used| Bytes(used).to_string()),
        device.waiting.len().to_string(),
    ]
}

/// One row per lease that is held or waited for, device by device.
pub(super) fn leases(machine: &Machine, now: SystemTime) -> Vec<[String; 7]> {
    let mut rows = Vec::new();
    for device in &machine.devices {
        let held = device.held.iter().map(|holder| (holder, "held"));
        let waiting = device.waiting.iter().map(|holder| (holder, "waiting"));
        for (holder, state) in held.chain(waiting) {
            let since = now.duration_since(holder.since).unwrap_or_default();
            rows.push([
                device.name.clone(),
                holder.pid.to_string(),
                clean(&holder.label),
                holder.slots.to_string(),
                Bytes(holder.bytes).to_string(),
                span(since),
                state.to_owned(),
            ]);
        }
    }
    rows
}

/// One row of a running process.
pub(super) fn run(run: &Notice) -> [String; 9] {
    let devices: Vec<String> = run
        .devices
        .iter()
        .map(|device| clean(&device.label))
        .collect();
    [
        run.pid.to_string(),
        clean(&run.pipeline),
        run.phase.word().to_owned(),
        devices.join(","),
        format!("{:>3} % {}/{}", percent(run), run.done(), run.total),
        run.failed.to_string(),
        rate(run.rate),
        run.memory()
            .map_or_else(|| UNKNOWN.into(), |bytes| Bytes(bytes).to_string()),
        run.remaining().map_or_else(|| UNKNOWN.into(), span),
    ]
}

/// What is done of a run, in whole percent, and 100 only when all is.
pub(super) fn percent(run: &Notice) -> u64 {
    if run.total == 0 {
        return 0;
    }
    let done = u128::from(run.done().min(run.total)) * 100 / u128::from(run.total);
    u64::try_from(done).unwrap_or(100)
}

/// Records per second.
pub(super) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => UNKNOWN.to_owned(),
        Some(rate) if !rate.is_finite() => UNKNOWN.to_owned(),
        Some(rate) if rate >= 100.0 => format!("{rate:.0}/s"),
        Some(rate) => format!("{rate:.1}/s"),
    }
}

/// A stretch of time in few letters: `45s`, `12m05s`, `3h12m`, `2d05h`.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Names come from other processes: nothing in them may steer a terminal.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|letter| {
            if letter.is_control() {
                '\u{fffd}'
            } else {
                letter
            }
        })
        .collect()
}

/// Everything, printed once.
pub(super) fn text(machine: &Machine, now: SystemTime) -> String {
    let part = |title: &str, heads: &[&str], rows: Vec<Vec<String>>| {
        if rows.is_empty() {
            return format!("no {title}\n");
        }
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
        format!("{title}\n{}", output::table(&rows, "  "))
    };
    let list = |rows: Vec<[String; 7]>| rows.into_iter().map(Vec::from).collect();
    [
        part("devices", &DEVICE_HEADS, list(devices(machine))),
        part("leases", &LEASE_HEADS, list(leases(machine, now))),
        part(
            "runs",
            &RUN_HEADS,
            machine
                .runs
                .iter()
                .map(|notice| run(notice).into())
                .collect(),
        ),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_time_are_short() {
        let cases = [
            (0, "0s"),
            (59, "59s"),
            (725, "12m05s"),
            (11_520, "3h12m"),
            (190_800, "2d05h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_share_is_whole_only_when_all_is_done() {
        let mut notice = Notice::new("t", "p", 1_000);
        notice.ok = 999;
        assert_eq!(percent(&notice), 99);
        notice.failed = 1;
        assert_eq!(percent(&notice), 100);
        notice.ok = u64::MAX;
        assert_eq!(percent(&notice), 100);
        notice.total = 0;
        assert_eq!(percent(&notice), 0);
    }

    #[test]
    fn names_of_others_cannot_steer_a_terminal() {
        let notice = Notice::new("t", "a\u{1b}[2Jb\nc\u{9b}", 1);
        assert_eq!(run(&notice)[1], "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
    }
}
