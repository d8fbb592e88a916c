//! What a running process tells others about itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What a running process tells others about itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Notice {
    /// The process, as it calls itself; in a container that may be another number than outside.
    pub pid: u32,
    /// What people call this run.
    pub title: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// The plan's fingerprint.
    pub plan: String,
    /// What it is busy with.
    pub phase: Phase,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// When this was written, in milliseconds since 1970; pinning sets it.
    pub updated: u64,
    /// Records there are to do.
    pub total: u64,
    /// Records that went well.
    pub ok: u64,
    /// Records that failed.
    pub failed: u64,
    /// Records whose outputs were there already.
    pub skipped: u64,
    /// Records per second, lately.
    pub rate: Option<f64>,
    /// Records per second at best, according to the model.
    pub bound: Option<f64>,
    /// The devices it uses.
    pub devices: Vec<DeviceNotice>,
}

/// What a process is busy with.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Compiling the plan, opening devices.
    #[default]
    Starting,
    /// Waiting for a lease.
    Waiting,
    /// Working.
    Running,
    /// Finishing what is begun, and nothing else.
    Draining,
}

impl Phase {
    /// `starting`, `waiting`, `running`, `draining`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Draining => "draining",
        }
    }
}

/// One device of a running process.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceNotice {
    /// What users call it: `gpu0`.
    pub label: String,
    /// Records it did well.
    pub ok: u64,
    /// Records that failed on it.
    pub failed: u64,
    /// Records per second, lately.
    pub rate: Option<f64>,
    /// Bytes in use there by this process.
    pub memory: Option<u64>,
    /// Bytes this process may use there.
    pub budget: Option<u64>,
    /// Does it get no work at the moment, because it failed too often?
    pub quarantined: bool,
    /// What it is about, in a word; empty where nobody says.
    pub state: String,
    /// Its worker processes, where it has some of its own.
    pub workers: Option<u64>,
    /// Records of its latest batch.
    pub batch: Option<u64>,
    /// How often a worker came to grief on it.
    pub griefs: u64,
    /// How often it got no work for a while.
    pub quarantines: u64,
}

impl Notice {
    /// A notice of this process, which starts now.
    pub fn new(title: impl Into<String>, pipeline: impl Into<String>, total: u64) -> Self {
        Self {
            pid: std::process::id(),
            title: title.into(),
            pipeline: pipeline.into(),
            started: now(),
            total,
            ..Self::default()
        }
    }

    /// Records that ended, one way or another.
    pub fn done(&self) -> u64 {
        self.ok
            .saturating_add(self.failed)
            .saturating_add(self.skipped)
    }

    /// How long the rest takes at the present rate; `None` while nobody can know.
    pub fn remaining(&self) -> Option<Duration> {
        let rest = self.total.saturating_sub(self.done());
        let rate = self.rate.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        Duration::try_from_secs_f64(rest as f64 / rate).ok()
    }

    /// Bytes in use on all devices; `None` where nobody says.
    pub fn memory(&self) -> Option<u64> {
        self.devices
            .iter()
            .filter_map(|device| device.memory)
            .reduce(u64::saturating_add)
    }
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_follows_from_the_rate() {
        let mut notice = Notice::new("t", "p", 100);
        assert_eq!(notice.remaining(), None);
        (notice.ok, notice.failed, notice.skipped) = (30, 5, 15);
        notice.rate = Some(25.0);
        assert_eq!(notice.done(), 50);
        assert_eq!(notice.remaining(), Some(Duration::from_secs(2)));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            notice.rate = Some(rate);
            assert_eq!(notice.remaining(), None, "{rate}");
        }
        // A count that overshoots is no reason for an underflow.
        (notice.ok, notice.rate) = (u64::MAX, Some(1.0));
        assert_eq!(notice.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn memory_that_nobody_told_is_unknown() {
        let mut notice = Notice::new("t", "p", 1);
        notice.devices.push(DeviceNotice::default());
        assert_eq!(notice.memory(), None);
        for memory in [3, 4] {
            notice.devices.push(DeviceNotice {
                memory: Some(memory),
                ..DeviceNotice::default()
            });
        }
        assert_eq!(notice.memory(), Some(7));
    }
}
