//! The fake and the simulation keep the contract too.

use warploom_core::{BackendEntry, BackendId, Caps};
use warploom_testkit::sim::Sim;
use warploom_testkit::{Expect, FakeBackend, FakeDevice};

/// Simulated work takes simulated time, so a real deadline passes before it does or not at all.
const VIRTUAL: Expect = Expect {
    backend: "sim",
    device: "",
    driver: "",
    case: "event::gives_up_in_time",
    text: "came to the end",
    reason: "time is virtual",
    sometimes: false,
};

fn main() {
    let entries = [
        BackendEntry::new(BackendId::new("fake"), || {
            Ok(Box::new(
                FakeBackend::new("fake")
                    .device(FakeDevice::new("Fake 1000").pci("0000:41:00.0"))
                    .device(FakeDevice::new("Fake 2000").memory(64 << 20)),
            ))
        }),
        BackendEntry::new(BackendId::new("prompt"), || {
            Ok(Box::new(
                FakeBackend::new("prompt").device(FakeDevice::new("Fake at once").at_once()),
            ))
        }),
        BackendEntry::new(BackendId::new("sim"), || {
            // Its queues overlap and its clock ticks in a time of its own, which is not ours.
            let device = FakeDevice::new("Simulated")
                .memory(64 << 20)
                .caps(Caps::F64 | Caps::I64 | Caps::STRICT_MATH);
            Ok(Box::new(Sim::build(device, 1).free_running().finish()))
        }),
    ];
    warploom_testkit::main_with(&entries, &[VIRTUAL]);
}
