//! Promises of `Buffer`: what the host sees, and when.

use std::sync::mpsc::channel;
use std::time::Duration;

use warploom_core::{DeviceError, Queue, Slice};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::noise::Noise;
use crate::programs::AFFINE;
use crate::rig::{Rig, content, done, same};

cases! { Device "buffer":
    host_writes_reach_the_device = "`with_host` lends the bytes to the host.";
    host_sees_queued_work = "`with_host` first submits and waits for all queued work that touches the buffer.";
    host_sees_queued_slow_work = "`with_host` waits for work that takes long.";
    host_waits_for_other_queues = "`with_host` waits for the work of every queue.";
    host_access_is_exclusive = "`with_host` lends the bytes exclusively.";
    queued_work_keeps_out = "Queued work does not touch bytes that are lent to the host.";
    hidden_kinds_are_unsupported = "Kinds the host cannot see answer `Unsupported`.";
    lends_every_byte = "The host sees exactly the buffer's bytes.";
}

fn host_writes_reach_the_device(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.visible()? {
        let bytes = Noise::new(11).bytes(5001);
        let buffer = rig.device.alloc(kind, 5001)?;
        buffer.with_host(&mut |lent| lent.copy_from_slice(&bytes))?;
        let whole = Slice::whole(&buffer);
        same(
            "bytes the host wrote",
            &content::<u8>(&mut queue, &whole)?,
            &bytes,
        )?;
        let copy = Slice::whole(&rig.buffer(5001)?);
        queue.copy(&whole, &copy)?;
        same("a copy of them", &content::<u8>(&mut queue, &copy)?, &bytes)?;
        // And again: a later write is seen by a later copy.
        buffer.with_host(&mut |lent| lent.fill(9))?;
        queue.copy(&whole, &copy)?;
        same(
            "a later copy",
            &content::<u8>(&mut queue, &copy)?,
            &[9; 5001],
        )?;
    }
    Ok(())
}

/// The bytes as the host sees them.
fn seen(slice: &Slice) -> Verdict<Vec<u8>> {
    let mut seen = Vec::new();
    slice
        .buffer()
        .with_host(&mut |bytes| seen.extend_from_slice(bytes))?;
    Ok(seen)
}

fn host_sees_queued_work(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.visible()? {
        for round in 0..16u8 {
            let src = rig.holding(&mut queue, &[round; 3001])?;
            let dst = Slice::whole(&rig.device.alloc(kind, 3001)?);
            queue.copy(&src, &dst)?;
            // No record, no wait: host access is enough.
            same("a queued copy", &seen(&dst)?, &[round; 3001])?;
        }
    }
    Ok(())
}

fn host_sees_queued_slow_work(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    for kind in rig.visible()? {
        let words = rig.holding(&mut queue, &[1u32, 0])?;
        let dst = rig.holding_in(kind, &mut queue, &[0u32; 2])?;
        slow.start(&mut queue, &words, 1, 0xfeed)?;
        queue.copy(&words, &dst)?;
        let tag = seen(&dst)?[4..].to_vec();
        same("a slow kernel's result", &tag, &0xfeed_u32.to_ne_bytes())?;
    }
    Ok(())
}

fn host_waits_for_other_queues(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let kind = rig.visible()?[0];
    let [mut first, mut second] = rig.queues()?;
    let dst = rig.holding_in(kind, &mut first, &[0u32; 4])?;
    done(&first.record()?)?;
    for (queue, half) in [(&mut first, 0..8), (&mut second, 8..16)] {
        let words = rig.holding(queue, &[1u32, 0])?;
        slow.start(queue, &words, 1, 77)?;
        queue.copy(&words, &dst.part(half)?)?;
        drop(queue.record()?);
    }
    let bytes = seen(&dst)?;
    let tags = [&bytes[4..8], &bytes[12..16]].concat();
    same(
        "two queues' results",
        &tags,
        &[77u32, 77].map(u32::to_ne_bytes).concat(),
    )
}

fn host_access_is_exclusive(rig: &Rig) -> Verdict {
    const TIMES: u8 = 20;
    for kind in rig.visible()? {
        let buffer = rig.device.alloc(kind, 8)?;
        buffer.with_host(&mut |bytes| bytes.fill(0))?;
        let count = || {
            for _ in 0..TIMES {
                buffer.with_host(&mut |bytes| {
                    let seen = bytes[0];
                    std::thread::sleep(Duration::from_micros(200));
                    bytes[0] = seen + 1;
                })?;
            }
            Ok::<(), DeviceError>(())
        };
        std::thread::scope(|scope| {
            let threads = [scope.spawn(count), scope.spawn(count)];
            for thread in threads {
                thread
                    .join()
                    .map_err(|_| Stop::fail("host access panicked"))??;
            }
            Ok::<(), Stop>(())
        })?;
        let mut counted = 0;
        buffer.with_host(&mut |bytes| counted = bytes[0])?;
        ensure!(
            counted == 2 * TIMES,
            "{} turns counted to {counted}",
            2 * TIMES
        );
    }
    Ok(())
}

fn queued_work_keeps_out(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.visible()? {
        let src = rig.holding(&mut queue, &[2u8; 4096])?;
        let dst = rig.holding_in(kind, &mut queue, &[1u8; 4096])?;
        done(&queue.record()?)?;
        let (lent, is_lent) = channel();
        let mut steady = true;
        // The copy may be accepted meanwhile or may have to wait; it may not show.
        let event = std::thread::scope(|scope| {
            let (queue, src, dst) = (&mut queue, &src, &dst);
            let copier = scope.spawn(move || {
                let _ = is_lent.recv();
                queue.copy(src, dst)?;
                queue.record()
            });
            let access = dst.buffer().with_host(&mut |bytes| {
                let _ = lent.send(());
                for _ in 0..20 {
                    std::thread::sleep(Duration::from_millis(1));
                    steady &= bytes.iter().all(|byte| *byte == 1);
                }
            });
            // Whatever went wrong, the copier must not wait for ever.
            let _ = lent.send(());
            let event = copier.join().map_err(|_| Stop::fail("a copy panicked"))?;
            access?;
            event.map_err(Stop::from)
        })?;
        ensure!(
            steady,
            "a copy changed {kind} bytes that were lent to the host"
        );
        done(&event)?;
        same(
            "the copy, afterwards",
            &content::<u8>(&mut queue, &dst)?,
            &[2; 4096],
        )?;
    }
    Ok(())
}

fn hidden_kinds_are_unsupported(rig: &Rig) -> Verdict {
    let mut hidden = rig.info().memory.clone();
    hidden.retain(|kind| !kind.space().host_visible());
    if hidden.is_empty() {
        return Err(Stop::skip("the host can see every kind of this device"));
    }
    for kind in hidden {
        let buffer = rig.device.alloc(kind, 64)?;
        let mut called = false;
        match buffer.with_host(&mut |_| called = true) {
            Err(DeviceError::Unsupported { .. }) => {}
            other => return Err(Stop::fail(format!("host access to {kind} gave {other:?}"))),
        }
        ensure!(!called, "{kind} was lent and refused");
    }
    Ok(())
}

fn lends_every_byte(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    for kind in rig.visible()? {
        for bytes in [1u64, 3, 8, 4099] {
            let buffer = rig.device.alloc(kind, bytes)?;
            let mut lent = 0;
            buffer.with_host(&mut |all| lent = all.len() as u64)?;
            ensure!(lent == bytes, "{lent} bytes of {bytes} were lent");
        }
        if kind.space().kernel_visible() {
            let slice = rig.holding_in(kind, &mut queue, &[4u32; 10])?;
            affine.line(
                &mut queue,
                10,
                &[slice.clone().into(), 2u32.into(), 1u32.into()],
            )?;
            same(
                "a kernel's result",
                &seen(&slice)?,
                &[9u32; 10].map(u32::to_ne_bytes).concat(),
            )?;
        }
    }
    Ok(())
}
