//! Moving bytes to every device and back, through pinned memory, with one event.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use warploom::{Bytes, CheckedDevice, Options, Queue, QueueDesc, Slice, registry};

const BYTES: u64 = 16 << 20;

fn main() -> anyhow::Result<()> {
    let status = registry().setup(&Options::default())?;
    for face in status
        .survey
        .devices
        .iter()
        .flat_map(|device| &device.faces)
    {
        let took = round_trip(&registry().open(face.id)?)?;
        let rate = 2.0 * BYTES as f64 / took.as_secs_f64() / 1e9;
        println!(
            "{:10} {:32} {rate:6.1} GB/s there and back",
            face.id.to_string(),
            face.name
        );
    }
    println!("{} were the same on every device", Bytes(BYTES));
    Ok(())
}

fn round_trip(device: &CheckedDevice) -> anyhow::Result<Duration> {
    // Every device has a kind of its own memory and one to stage bytes through.
    let local = device
        .info()
        .local_kind()
        .context("no memory for kernels")?;
    let staging = device
        .info()
        .staging_kind()
        .context("no memory to stage through")?;
    let source = device.alloc(staging, BYTES)?;
    let inside = device.alloc(local, BYTES)?;
    let back = device.alloc(staging, BYTES)?;
    source.with_host(&mut |bytes| {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = at.to_le_bytes()[0] ^ at.to_le_bytes()[1];
        }
    })?;

    let mut queue = device.queue(&QueueDesc::named("copies"))?;
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        // Both copies are asynchronous and in order; `record` submits them.
        queue.copy(&Slice::whole(&source), &Slice::whole(&inside))?;
        queue.copy(&Slice::whole(&inside), &Slice::whole(&back))?;
        // Every wait has a deadline, so that a lost device is an error and not a hang.
        queue.record()?.wait(Some(Duration::from_mins(1)))?;
        best = best.min(started.elapsed());
    }

    let mut sent = Vec::new();
    let mut same = false;
    source.with_host(&mut |bytes| sent = bytes.to_vec())?;
    back.with_host(&mut |bytes| same = bytes == sent)?;
    ensure!(
        same,
        "the bytes that came back are not the bytes that were sent"
    );
    Ok(best)
}
