//! How busy the machine is while something is measured.

use std::fmt;
use std::thread;
use std::time::Duration;

/// Below this, times of ours say as much about the neighbours.
const IDLE_ENOUGH: f64 = 80.0;

/// How long one looks.
const LOOK: Duration = Duration::from_millis(500);

/// The machine before a measurement.
#[derive(Debug, PartialEq)]
pub(crate) struct Load {
    /// Runnable threads, the mean of the last minute.
    minute: f64,
    /// Percent of all processors just now.
    idle: f64,
}

impl Load {
    /// Looks for half a second; `None` where the system does not tell.
    pub(crate) fn now() -> Option<Self> {
        let read = |file: &str| std::fs::read_to_string(file).ok();
        let minute = read("/proc/loadavg")?;
        let before = ticks(&read("/proc/stat")?)?;
        thread::sleep(LOOK);
        let after = ticks(&read("/proc/stat")?)?;
        let [idle, all] = [after.0 - before.0, after.1 - before.1];
        Some(Self {
            minute: minute.split_whitespace().next()?.parse().ok()?,
            idle: 100.0 * idle / all.max(1.0),
        })
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.idle < IDLE_ENOUGH
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "load {:.2}, {:.0} % idle", self.minute, self.idle)?;
        if self.is_busy() {
            f.write_str(": the machine was busy, so what is measured in time is void; counts, bytes and simulated times stand")?;
        }
        Ok(())
    }
}

/// Idle and all ticks of all processors since the machine started.
fn ticks(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let all: Vec<f64> = line.split_whitespace().flat_map(str::parse).collect();
    // Idle, and idle while a disk is at work. The last two are counted in the first two as well.
    let idle = all.get(3)? + all.get(4)?;
    Some((idle, all.iter().take(8).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_as_the_kernel_writes_them() {
        let stat = "cpu  10 1 5 80 4 0 0 0 3 3\ncpu0 10 1 5 80 4 0 0 0 3 3\nintr 5\n";
        assert_eq!(ticks(stat), Some((84.0, 100.0)));
        assert_eq!(ticks("intr 5\n"), None);
    }

    #[test]
    fn a_busy_machine_is_told_of() {
        let load = |idle| Load { minute: 1.5, idle };
        assert_eq!(load(95.0).to_string(), "load 1.50, 95 % idle");
        let busy = load(20.0).to_string();
        assert!(
            busy.starts_with("load 1.50, 20 % idle: the machine was busy"),
            "{busy}"
        );
        assert!(!load(80.0).is_busy());
    }
}
