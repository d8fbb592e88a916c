//! Promises of `GpuBackend`.

use std::time::{Duration, Instant};

use warploom_core::{DeviceInfo, MemoryKind};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::rig::{content, same};
use crate::session::{Bench, left_behind, threads};

cases! { Backend "backend":
    id_is_the_registered_one = "`id` is the name under which it registers.";
    kinds_belong_to_it = "A kind is named `backend.place` after the backend that owns it.";
    devices_are_numbered_from_zero = "A device's ordinal is the backend's own number for it, counted from 0.";
    devices_use_listed_kinds = "`memory_kinds` is every kind of memory its devices may offer.";
    probe_twice_agrees = "Probing changes nothing.";
    probe_from_four_threads = "A backend is shared between threads.";
    #[alone] probe_is_fast = "Where the driver answers, a probe takes less than 200 ms.";
    #[alone] probe_leaves_no_thread = "No thread stays behind after a probe.";
    every_listed_device_opens = "`open` opens a device that `probe` listed.";
    unknown_ordinals_are_errors = "Opening what was not listed is an error, not a panic.";
    two_devices_do_not_interfere = "Devices of one backend work side by side.";
}

fn id_is_the_registered_one(bench: &Bench) -> Verdict {
    let id = bench.backend().id();
    match bench.session.registered {
        None => Err(Stop::skip("the backend was not given as an entry")),
        Some(entry) => {
            ensure!(
                entry == id,
                "it registered as {entry} and calls itself {id}"
            );
            Ok(())
        }
    }
}

fn kinds_belong_to_it(bench: &Bench) -> Verdict {
    let (id, kinds) = (bench.backend().id(), bench.backend().memory_kinds());
    ensure!(!kinds.is_empty(), "{id} has no memory kind");
    for (at, kind) in kinds.iter().enumerate() {
        ensure!(kind.backend() == id, "{kind} belongs to {}", kind.backend());
        let twice = kinds[..at].iter().any(|k| k.name() == kind.name());
        ensure!(!twice, "{kind} is listed twice");
    }
    Ok(())
}

fn devices_are_numbered_from_zero(bench: &Bench) -> Verdict {
    let infos = &bench.session.infos;
    let mut ordinals: Vec<u32> = infos.iter().map(|info| info.id.ordinal).collect();
    ordinals.sort_unstable();
    let good = ordinals.iter().zip(0..).all(|(ordinal, at)| *ordinal == at);
    ensure!(good, "the ordinals are {ordinals:?}");
    let id = bench.backend().id();
    for info in infos {
        ensure!(info.id.backend == id, "{} is not a device of {id}", info.id);
    }
    Ok(())
}

fn devices_use_listed_kinds(bench: &Bench) -> Verdict {
    let listed: &[MemoryKind] = bench.backend().memory_kinds();
    for info in &bench.session.infos {
        for kind in &info.memory {
            ensure!(
                listed.contains(kind),
                "{} offers {kind:?}, listed are {listed:?}",
                info.id
            );
        }
    }
    Ok(())
}

/// What must not change from probe to probe: all but the memory others use.
fn steady(infos: &[DeviceInfo]) -> Vec<DeviceInfo> {
    let mut infos = infos.to_vec();
    for info in &mut infos {
        info.free_memory = None;
    }
    infos
}

fn agree(bench: &Bench, again: &[DeviceInfo]) -> Verdict {
    let (first, again) = (steady(&bench.session.infos), steady(again));
    ensure!(
        first.len() == again.len(),
        "{} devices, then {}",
        first.len(),
        again.len()
    );
    for (first, again) in first.iter().zip(&again) {
        ensure!(first == again, "first {first:?}, then {again:?}");
    }
    Ok(())
}

fn probe_twice_agrees(bench: &Bench) -> Verdict {
    agree(bench, &bench.backend().probe()?)?;
    // An open device must not change the answer either.
    let held = bench.open(bench.session.infos[0].id.ordinal)?;
    let again = bench.backend().probe()?;
    drop(held);
    agree(bench, &again)
}

fn probe_from_four_threads(bench: &Bench) -> Verdict {
    std::thread::scope(|scope| {
        let probes: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| bench.backend().probe()))
            .collect();
        for probe in probes {
            let infos = probe.join().map_err(|_| Stop::fail("a probe panicked"))??;
            agree(bench, &infos)?;
        }
        Ok(())
    })
}

fn probe_is_fast(bench: &Bench) -> Verdict {
    let mut times = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        bench.backend().probe()?;
        times.push(begun.elapsed());
    }
    let best = times.into_iter().min().unwrap_or_default();
    let first = bench.session.first_probe;
    bench.note(format!(
        "the first probe took {first:.1?}, a later one {best:.1?}"
    ));
    if best > Duration::from_millis(200) {
        bench.note("a probe should take less than 200 ms");
    }
    // The contract says 200 ms; a busy machine may be ten times slower.
    ensure!(
        best < Duration::from_secs(2),
        "the fastest of three probes took {best:.1?}"
    );
    Ok(())
}

fn probe_leaves_no_thread(bench: &Bench) -> Verdict {
    // A driver may start threads when it is loaded, once, which no backend can prevent; what a
    // backend leaves behind comes with every probe.
    if let Some(first @ 1..) = bench.session.first_threads {
        bench.note(format!(
            "the first probe left {first} threads, as drivers do when loaded"
        ));
    }
    bench.backend().probe()?;
    let before = threads().ok_or_else(|| Stop::skip("this system does not list threads"))?;
    for _ in 0..3 {
        bench.backend().probe()?;
    }
    let left = left_behind(Some(&before)).unwrap_or_default();
    // Another thread of this process may have begun meanwhile; three probes would leave three.
    ensure!(
        left.len() < 3,
        "three probes left {} threads behind",
        left.len()
    );
    Ok(())
}

fn every_listed_device_opens(bench: &Bench) -> Verdict {
    for info in &bench.session.infos {
        let device = bench.open(info.id.ordinal)?;
        let opened = device.info().id;
        ensure!(opened == info.id, "asked for {}, got {opened}", info.id);
    }
    Ok(())
}

fn unknown_ordinals_are_errors(bench: &Bench) -> Verdict {
    let count = u32::try_from(bench.session.infos.len()).unwrap_or(u32::MAX);
    for ordinal in [count, count + 7, u32::MAX] {
        match bench.backend().open(ordinal) {
            Ok(device) => {
                let got = device.info().id;
                return Err(Stop::fail(format!(
                    "device {ordinal} of {count} opened as {got}"
                )));
            }
            Err(error) => ensure!(!error.to_string().is_empty(), "the error says nothing"),
        }
    }
    Ok(())
}

fn two_devices_do_not_interfere(bench: &Bench) -> Verdict {
    let [first, second, ..] = &bench.session.infos[..] else {
        return Err(Stop::skip("there is one device only"));
    };
    let (a, b) = (
        bench.open(first.id.ordinal)?,
        bench.open(second.id.ordinal)?,
    );
    let desc = warploom_core::QueueDesc::default();
    let (mut on_a, mut on_b) = (a.queue(&desc)?, b.queue(&desc)?);
    let no_kind = || Stop::fail("no memory kind that kernels can use");
    let kind_a = a.info().local_kind().ok_or_else(no_kind)?;
    let kind_b = b.info().local_kind().ok_or_else(no_kind)?;
    let (bytes_a, bytes_b) = ([0xaau8; 4096], [0x55u8; 4096]);
    let buffer_a = warploom_core::Slice::whole(&a.alloc(kind_a, 4096)?);
    let buffer_b = warploom_core::Slice::whole(&b.alloc(kind_b, 4096)?);
    for _ in 0..8 {
        warploom_core::Queue::upload(&mut on_a, &bytes_a, &buffer_a)?;
        warploom_core::Queue::upload(&mut on_b, &bytes_b, &buffer_b)?;
    }
    same(
        "the first device's bytes",
        &content::<u8>(&mut on_a, &buffer_a)?,
        &bytes_a,
    )?;
    // Closing one must leave the other alone.
    drop((on_a, buffer_a, a));
    same(
        "the second device's bytes",
        &content::<u8>(&mut on_b, &buffer_b)?,
        &bytes_b,
    )
}
