//! Sharing a device: the right to use slots and bytes of it, waited for in order and agreed with
//! every other process of the machine.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::thread;
use std::time::Duration;

use warploom::{Bytes, LeaseRequest, Options, registry};

fn main() -> anyhow::Result<()> {
    registry().setup(&Options::default())?;
    let desk = registry().desk()?;
    for device in desk.devices() {
        let (slots, bytes) = (device.capacity.slots, Bytes(device.capacity.bytes));
        println!("{} has {slots} slots and {bytes} to lease", device.name);
    }

    // Eight workers want the processor, one slot and 64 MiB each. They get it in the order they
    // asked, never more at once than there are slots; dropping the lease is giving it back.
    thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                let request = LeaseRequest::new(1, 64 << 20)
                    .on(["cpu"])
                    .within(Duration::from_secs(30))
                    .label(&format!("worker {worker}"));
                match registry().lease(&request) {
                    Ok(lease) => {
                        thread::sleep(Duration::from_millis(20));
                        println!("worker {worker} is done with {}", lease.device());
                    }
                    Err(error) => println!("worker {worker} got nothing: {error}"),
                }
            });
        }
    });

    // What can never be granted is refused at once, with the numbers.
    let too_much = LeaseRequest::new(1, u64::MAX).on(["cpu"]);
    if let Err(error) = registry().lease(&too_much) {
        println!("as expected: {error}");
    }
    Ok(())
}
