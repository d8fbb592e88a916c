//! Metrics of runs that go on, as their notices tell.

use super::Measured;
use super::family::{Families, Kind, Labels};
use crate::board::{DeviceNotice, Notice};

impl Measured for Notice {
    fn render(&self) -> String {
        let mut families = Families::default();
        runs(std::slice::from_ref(self), &mut families);
        let pid = self.pid.to_string();
        families.add(
            "warploom_run_updated_time_seconds",
            Kind::Gauge,
            "When this was written, in seconds since 1970.",
            (self.updated > 0).then(|| (labels(self, &pid), self.updated as f64 * 1e-3)),
        );
        let each = |number: &dyn Fn(&DeviceNotice) -> Option<f64>| {
            let samples = self.devices.iter().filter_map(|device| {
                let mut labels = labels(self, &pid);
                labels.push(("device", &device.label));
                Some((labels, number(device)?))
            });
            samples.collect::<Vec<_>>()
        };
        let mut ended = Vec::new();
        for device in &self.devices {
            for (word, number) in [("ok", device.ok), ("failed", device.failed)] {
                let mut labels = labels(self, &pid);
                labels.extend([("device", device.label.as_str()), ("outcome", word)]);
                ended.push((labels, number as f64));
            }
        }
        families.add(
            "warploom_run_device_records",
            Kind::Gauge,
            "Records by device and how they ended so far.",
            ended,
        );
        families.add(
            "warploom_run_device_records_per_second",
            Kind::Gauge,
            "Records per second by device, lately.",
            each(&|device| device.rate),
        );
        families.add(
            "warploom_run_device_workers",
            Kind::Gauge,
            "Worker processes by device.",
            each(&|device| device.workers.map(|workers| workers as f64)),
        );
        families.add(
            "warploom_run_device_batch_records",
            Kind::Gauge,
            "Records of the latest batch by device.",
            each(&|device| device.batch.map(|batch| batch as f64)),
        );
        // Only fleets have workers that come to grief.
        let of_fleet = |device: &DeviceNotice, number: u64| device.workers.map(|_| number as f64);
        families.add(
            "warploom_run_device_quarantined",
            Kind::Gauge,
            "1 while a device gets no work because it failed too often.",
            each(&|device| of_fleet(device, u64::from(device.quarantined))),
        );
        families.add(
            "warploom_run_device_griefs_total",
            Kind::Counter,
            "How often a worker came to grief, by device.",
            each(&|device| of_fleet(device, device.griefs)),
        );
        families.add(
            "warploom_run_device_quarantines_total",
            Kind::Counter,
            "How often a device got no work for a while.",
            each(&|device| of_fleet(device, device.quarantines)),
        );
        families.text()
    }
}

fn labels<'r>(run: &'r Notice, pid: &'r str) -> Labels<'r> {
    vec![("pipeline", &run.pipeline), ("pid", pid)]
}

/// What is told of every run.
pub(super) fn runs(runs: &[Notice], families: &mut Families) {
    let pids: Vec<String> = runs.iter().map(|run| run.pid.to_string()).collect();
    let of = |number: fn(&Notice) -> Option<f64>| {
        let runs = runs.iter().zip(&pids);
        let samples = runs.filter_map(|(run, pid)| Some((labels(run, pid), number(run)?)));
        samples.collect::<Vec<_>>()
    };
    let ended = runs.iter().zip(&pids).flat_map(|(run, pid)| {
        let outcomes = [
            ("ok", run.ok),
            ("failed", run.failed),
            ("skipped", run.skipped),
        ];
        outcomes.map(|(word, number)| {
            let mut labels = labels(run, pid);
            labels.push(("outcome", word));
            (labels, number as f64)
        })
    });
    families.add(
        "warploom_run_records",
        Kind::Gauge,
        "Records by how they ended so far.",
        ended,
    );
    families.add(
        "warploom_run_records_asked",
        Kind::Gauge,
        "Records there are to do.",
        of(|run| Some(run.total as f64)),
    );
    families.add(
        "warploom_run_records_per_second",
        Kind::Gauge,
        "Records per second, lately.",
        of(|run| run.rate),
    );
    families.add(
        "warploom_run_bound_records_per_second",
        Kind::Gauge,
        "Records per second that the times of the stages allow.",
        of(|run| run.bound),
    );
    families.add(
        "warploom_run_memory_bytes",
        Kind::Gauge,
        "Bytes in use on all devices.",
        of(|run| run.memory().map(|bytes| bytes as f64)),
    );
}
