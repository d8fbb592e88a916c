//! What a lease costs when nobody else wants one: taken and dropped, in one process and through
//! the machine-wide ledger. `cargo xtask bench contract` runs it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use warploom_core::{
    DeskDevice, LeaseCapacity, LeaseDesk, LeaseError, LeaseRequest, default_ledger_dir,
};

/// The best of `rounds`, in nanoseconds per lease: what the code costs when nothing else runs.
fn best_ns(rounds: u32, leases: u32, desk: &LeaseDesk, request: &LeaseRequest) -> Measured {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let started = Instant::now();
        for _ in 0..leases {
            drop(black_box(desk.lease(black_box(request))?));
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / f64::from(leases));
    }
    Ok(best)
}

type Measured = Result<f64, LeaseError>;

fn main() -> Result<(), Box<dyn Error>> {
    let capacity = LeaseCapacity {
        slots: 4,
        bytes: 16 << 30,
    };
    let device = |at| DeskDevice::new(format!("gpu{at}"), format!("bench-{at}"), capacity);
    let devices: Vec<DeskDevice> = (0..2).map(device).collect();
    let one = LeaseRequest::new(1, 1 << 30).on(["gpu0"]).label("bench");
    let any = LeaseRequest::new(1, 1 << 30).label("bench");

    let local = LeaseDesk::local(devices.clone())?;
    println!("lease_local_ns {:.0}", best_ns(50, 2000, &local, &one)?);
    println!("lease_local_any_ns {:.0}", best_ns(50, 2000, &local, &any)?);

    // Beside the real ledgers, so that it is the same file system; never among them.
    let beside = default_ledger_dir();
    let beside = beside
        .parent()
        .ok_or("the ledger directory has no parent")?;
    let dir = tempfile::tempdir_in(beside)?;
    let shared = LeaseDesk::shared(devices.clone(), dir.path())?;
    println!("lease_shared_ns {:.0}", best_ns(50, 200, &shared, &one)?);
    println!(
        "lease_shared_any_ns {:.0}",
        best_ns(50, 200, &shared, &any)?
    );

    // Another desk holds something: its lines are read and written along.
    let other = LeaseDesk::shared(devices, dir.path())?;
    let held = other.lease(&one)?;
    println!(
        "lease_shared_beside_ns {:.0}",
        best_ns(50, 200, &shared, &one)?
    );
    drop(held);
    Ok(())
}
