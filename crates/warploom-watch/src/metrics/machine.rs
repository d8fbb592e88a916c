//! Metrics of a machine.

use super::Measured;
use super::family::{Families, Kind, Labels};
use super::notice::runs;
use crate::machine::{Machine, MachineDevice};

impl Measured for Machine {
    fn render(&self) -> String {
        let mut families = Families::default();
        devices(self, &mut families);
        runs(&self.runs, &mut families);
        families.text()
    }
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
