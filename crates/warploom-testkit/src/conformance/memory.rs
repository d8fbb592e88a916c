//! Promises about memory: what is counted, what is given, what is refused.

use std::sync::Arc;

use warploom_core::{Buffer, DeviceError, MemoryKind, Queue, Slice};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::noise::Noise;
use crate::rig::{Rig, content, eventually, same};

cases! { Device "memory":
    any_size_is_given = "`alloc` gives as many bytes as asked, of the kind asked, on this device.";
    ours_grows_by_what_is_held = "`ours` is what buffers of this opened device hold.";
    ours_shrinks_when_dropped = "A dropped buffer's bytes are given back.";
    ours_shrinks_after_queued_work = "A buffer is held until the work that uses it is done, and no longer.";
    free_is_part_of_total = "`total` is all there is, `free` what the driver calls free.";
    buffers_do_not_share_bytes = "Two allocations are two places.";
    #[alone] too_much_is_out_of_memory = "A device that has no room says so, with numbers, and goes on.";
}

/// What an allocator may add to a buffer and count.
const SLACK: u64 = 1 << 20;

fn any_size_is_given(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.info().memory.clone() {
        for bytes in [
            1u64,
            2,
            3,
            4,
            5,
            17,
            255,
            257,
            4095,
            4097,
            65_537,
            (8 << 20) + 3,
        ] {
            let buffer = rig.device.alloc(kind, bytes)?;
            let got = buffer.bytes();
            ensure!(got == bytes, "asked for {bytes} bytes of {kind}, got {got}");
            ensure!(
                buffer.kind() == kind,
                "asked for {kind}, got {}",
                buffer.kind()
            );
            let owner = buffer.device();
            ensure!(
                owner == rig.id(),
                "asked {}, got a buffer of {owner}",
                rig.id()
            );
            // The last byte is there.
            let last = Slice::new(buffer, bytes - 1..bytes)?;
            queue.upload(&[0x5a], &last)?;
            same("the last byte", &content::<u8>(&mut queue, &last)?, &[0x5a])?;
        }
    }
    Ok(())
}

fn ours(rig: &Rig) -> Verdict<u64> {
    Ok(rig.device.memory()?.ours)
}

fn ours_grows_by_what_is_held(rig: &Rig) -> Verdict {
    for kind in rig.info().memory.clone() {
        let before = ours(rig)?;
        let bytes = (4 << 20) + 3;
        let first = rig.device.alloc(kind, bytes)?;
        let one = ours(rig)?;
        let second = rig.device.alloc(kind, bytes)?;
        let two = ours(rig)?;
        for (held, grown) in [(1, one.wrapping_sub(before)), (2, two.wrapping_sub(before))] {
            let least = held * bytes;
            let good = (least..=least + held * SLACK).contains(&grown);
            ensure!(
                good,
                "{held} buffers of {bytes} bytes of {kind} grew `ours` by {grown}"
            );
        }
        drop((first, second));
    }
    Ok(())
}

fn ours_shrinks_when_dropped(rig: &Rig) -> Verdict {
    for kind in rig.info().memory.clone() {
        let before = ours(rig)?;
        for _ in 0..20 {
            rig.device.alloc(kind, 3 << 20)?;
        }
        let back = eventually(|| Ok(ours(rig)? <= before))?;
        ensure!(
            back,
            "dropped {kind} buffers left `ours` at {}, not {before}",
            ours(rig)?
        );
    }
    Ok(())
}

fn ours_shrinks_after_queued_work(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let kept = rig.holding(&mut queue, &vec![1u8; 1 << 20])?;
    let before = ours(rig)?;
    for _ in 0..8 {
        let dropped = Slice::whole(&rig.buffer(1 << 20)?);
        queue.copy(&kept, &dropped)?;
    }
    crate::rig::done(&queue.record()?)?;
    // A backend may need the queue's next call to notice; a download is one.
    let back = eventually(|| {
        content::<u8>(&mut queue, &kept.part(0..1)?)?;
        Ok(ours(rig)? <= before)
    })?;
    ensure!(
        back,
        "buffers of finished work left `ours` at {}, not {before}",
        ours(rig)?
    );
    Ok(())
}

fn free_is_part_of_total(rig: &Rig) -> Verdict {
    let held = rig.buffer(1 << 20)?;
    let memory = rig.device.memory()?;
    drop(held);
    if let (Some(free), total @ 1..) = (memory.free, memory.total) {
        ensure!(free <= total, "{free} bytes are free of {total}");
    }
    if memory.total > 0 {
        let (ours, total) = (memory.ours, memory.total);
        ensure!(ours <= total, "{ours} bytes are ours of {total}");
    }
    Ok(())
}

fn buffers_do_not_share_bytes(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let mut noise = Noise::new(3);
    let mut kept: Vec<(Slice, Vec<u8>)> = Vec::new();
    for kind in rig.info().memory.clone() {
        for len in [1, 3, 64, 1000, 4096, 70_001] {
            let bytes = noise.bytes(len);
            kept.push((rig.holding_in(kind, &mut queue, &bytes)?, bytes));
        }
    }
    for (slice, bytes) in &kept {
        same(
            "one of many buffers",
            &content::<u8>(&mut queue, slice)?,
            bytes,
        )?;
    }
    Ok(())
}

fn too_much_is_out_of_memory(rig: &Rig) -> Verdict {
    let (kind, limits) = (rig.local()?, rig.info().limits);
    let total = rig.device.memory()?.total.max(rig.info().total_memory);
    // Beyond this memory, or any, where one allocation may ask for that.
    let at_once = limits.max_alloc.min(1 << 50);
    let beyond = at_once >= 1 << 44 || (total > 0 && at_once > total);
    let mut held: Vec<Arc<dyn Buffer>> = Vec::new();
    let (asked, error) = if beyond {
        (at_once, rig.device.alloc(kind, at_once).err())
    } else if total == 0 {
        return Err(Stop::skip("the memory's size is unknown"));
    } else if total > 4 << 30 && rig.info().software {
        let text = "it is played by the processor: filling it would fill this machine's memory";
        return Err(Stop::skip(text));
    } else {
        fill(rig, kind, total, &mut held)
    };
    match error {
        None => {
            let count = held.len();
            let text = format!("{count} allocations of {asked} bytes fit into {total}");
            return Err(Stop::fail(text));
        }
        Some(DeviceError::OutOfMemory {
            device,
            kind: of,
            asked: told,
            free,
        }) => {
            ensure!(
                device == rig.id(),
                "the error is about {device}, not {}",
                rig.id()
            );
            ensure!(of == kind, "the error is about {of}, not {kind}");
            ensure!(told == asked, "asked for {asked}, the error says {told}");
            if let Some(free) = free {
                ensure!(
                    free < asked,
                    "{asked} bytes do not fit, although {free} are free"
                );
            }
        }
        Some(other) => return Err(Stop::fail(format!("not out of memory, but: {other}"))),
    }
    drop(held);
    let mut queue = rig.queue()?;
    let bytes = Noise::new(4).bytes(1 << 20);
    let slice = rig.holding(&mut queue, &bytes)?;
    same(
        "after running out of memory",
        &content::<u8>(&mut queue, &slice)?,
        &bytes,
    )
}

/// Allocates as much as there is, and once more.
fn fill(
    rig: &Rig,
    kind: MemoryKind,
    total: u64,
    held: &mut Vec<Arc<dyn Buffer>>,
) -> (u64, Option<DeviceError>) {
    let piece = rig.info().limits.max_alloc.min(total + (1 << 20));
    for _ in 0..=total / piece {
        match rig.device.alloc(kind, piece) {
            Ok(buffer) => held.push(buffer),
            Err(error) => return (piece, Some(error)),
        }
    }
    (piece, None)
}
