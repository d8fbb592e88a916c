//! Metrics of a machine.

use super::Measured;
use super::family::{Families, Kind, Labels};
use crate::board::Notice;
use crate::machine::{Machine, MachineDevice};

impl Measured for Machine {
    fn render(&self) -> String {
        let mut families = Families::default();
        devices(self, &mut families);
        let pids: Vec<String> = self.runs.iter().map(|run| run.pid.to_string()).collect();
        let of = |number: fn(&Notice) -> Option<f64>| {
            let runs = self.runs.iter().zip(&pids);
            let samples = runs.filter_map(|(run, pid)| Some((labels(run, pid), number(run)?)));
            samples.collect::<Vec<_>>()
        };
        let ended = self.runs.iter().zip(&pids).flat_map(|(run, pid)| {
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
            "Records per second that the model allows.",
            of(|run| run.bound),
        );
        families.add(
            "warploom_run_memory_bytes",
            Kind::Gauge,
            "Bytes in use on all devices.",
            of(|run| run.memory().map(|bytes| bytes as f64)),
        );
        families.text()
    }
}

fn labels<'r>(run: &'r Notice, pid: &'r str) -> Labels<'r> {
    vec![("pipeline", &run.pipeline), ("pid", pid)]
}

fn devices(machine: &Machine, families: &mut Families) {
    let mut add = |name: &str, help: &str, number: fn(&MachineDevice) -> Option<f64>| {
        let samples = machine.devices.iter().filter_map(|device| {
            let labels: Labels<'_> = vec![("device", &device.name), ("name", &device.label)];
            Some((labels, number(device)?))
        });
        families.add(name, Kind::Gauge, help, samples);
    };
    add(
        "warploom_device_slots",
        "Slots that can be leased.",
        |device| Some(f64::from(device.capacity.slots)),
    );
    add(
        "warploom_device_slots_leased",
        "Slots that are leased.",
        |device| Some(device.slots_held() as f64),
    );
    add(
        "warploom_device_leasable_bytes",
        "Bytes that can be leased.",
        |device| {
            // Where nobody knows how much there is, only slots limit.
            (device.capacity.bytes < u64::MAX).then_some(device.capacity.bytes as f64)
        },
    );
    add(
        "warploom_device_leased_bytes",
        "Bytes that are leased.",
        |device| Some(device.bytes_held() as f64),
    );
    add(
        "warploom_device_waiting",
        "Requests that wait for a lease.",
        |device| Some(device.waiting.len() as f64),
    );
    add(
        "warploom_device_used_bytes",
        "Bytes that running processes say they use.",
        |device| device.used.map(|used| used as f64),
    );
    add("warploom_device_memory_bytes", "Its memory.", |device| {
        device.total_memory.map(|total| total as f64)
    });
}
