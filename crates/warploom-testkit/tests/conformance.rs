//! The fake keeps the contract too.

use warploom_core::{BackendEntry, BackendId};
use warploom_testkit::{FakeBackend, FakeDevice};

fn main() {
    warploom_testkit::main(&[
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
    ]);
}
