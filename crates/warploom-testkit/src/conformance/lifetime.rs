//! Promises about handles: work keeps what it uses.

use warploom_core::{Queue, QueueDesc, Slice};

use crate::case::{Verdict, cases, ensure};
use crate::programs::AFFINE;
use crate::rig::{Rig, content, done, eventually, load, same};
use crate::slow::Slow;

cases! { Device "lifetime":
    work_keeps_its_buffers = "Every asynchronous call keeps its own handle until the work is done.";
    work_keeps_its_kernel = "A kernel may be dropped right after its launch.";
    work_survives_every_handle = "Callers may drop their handles at any time.";
    a_dropped_queue_starts_its_work = "Work that is followed by the queue's drop starts.";
    memory_is_not_reused_early = "Memory of queued work is not given to others before the work is done.";
    dropping_does_not_lose_events = "Events of a dropped queue are reached.";
}

/// Holds the queue up, so that what follows is still queued when handles are dropped.
fn hold_up(rig: &Rig, slow: &Slow, queue: &mut dyn Queue) -> Verdict {
    let words = rig.holding(queue, &[1u32, 0])?;
    slow.start(queue, &words, 1, 1)
}

fn work_keeps_its_buffers(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    for kind in rig.info().memory.clone() {
        let mut queue = rig.queue()?;
        let out = Slice::whole(&rig.buffer(3000)?);
        hold_up(rig, &slow, &mut queue)?;
        {
            let first = rig.holding(&mut queue, &[0x77u8; 3000])?;
            let second = Slice::whole(&rig.device.alloc(kind, 3000)?);
            queue.copy(&first, &second)?;
            queue.copy(&second, &out)?;
        }
        same(
            "bytes through dropped buffers",
            &content::<u8>(&mut queue, &out)?,
            &[0x77; 3000],
        )?;
    }
    Ok(())
}

fn work_keeps_its_kernel(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let slice = rig.holding(&mut queue, &[1u32; 128])?;
    hold_up(rig, &slow, &mut queue)?;
    for _ in 0..4 {
        let affine = rig.load(AFFINE)?;
        affine.line(
            &mut queue,
            128,
            &[slice.clone().into(), 2u32.into(), 1u32.into()],
        )?;
    }
    same(
        "dropped kernels' work",
        &content::<u32>(&mut queue, &slice)?,
        &[31; 128],
    )
}

fn work_survives_every_handle(rig: &Rig) -> Verdict {
    // Of this opening, only these two and the event survive.
    let (mut reader, out, event) = {
        let device = rig.reopen()?;
        let slow = rig.slow_on(&device)?;
        let affine = load(&device, AFFINE)?;
        let kind = rig.local()?;
        let mut queue = device.queue(&QueueDesc::named("dropped"))?;
        let reader = device.queue(&QueueDesc::named("kept"))?;
        let out = Slice::whole(&device.alloc(kind, 400)?);
        let words = Slice::whole(&device.alloc(kind, 8)?);
        let work = Slice::whole(&device.alloc(kind, 400)?);
        queue.upload(&[1; 8], &words)?;
        slow.start(&mut queue, &words, 1, 1)?;
        queue.upload(bytemuck::cast_slice(&[3u32; 100]), &work)?;
        affine.line(
            &mut queue,
            100,
            &[work.clone().into(), 5u32.into(), 2u32.into()],
        )?;
        queue.copy(&work, &out)?;
        (reader, out, queue.record()?)
    };
    done(&event)?;
    same(
        "work whose handles are gone",
        &content::<u32>(&mut reader, &out)?,
        &[17; 100],
    )
}

fn a_dropped_queue_starts_its_work(rig: &Rig) -> Verdict {
    let affine = rig.load(AFFINE)?;
    let mut reader = rig.queue()?;
    let out = rig.holding(&mut reader, &[0u32; 100])?;
    done(&reader.record()?)?;
    {
        let mut queue = rig.queue()?;
        let work = rig.holding(&mut queue, &[4u32; 100])?;
        affine.line(
            &mut queue,
            100,
            &[work.clone().into(), 2u32.into(), 1u32.into()],
        )?;
        queue.copy(&work, &out)?;
        // No record, no download.
    }
    let came = eventually(|| Ok(content::<u32>(&mut reader, &out)? == [9; 100]))?;
    ensure!(came, "a dropped queue's work is not done within seconds");
    Ok(())
}

fn memory_is_not_reused_early(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let [mut queue, mut other] = rig.queues()?;
    let len = 1u64 << 20;
    let out = Slice::whole(&rig.buffer(len)?);
    let bytes = vec![0x3cu8; 1 << 20];
    {
        let source = rig.holding(&mut queue, &bytes)?;
        done(&queue.record()?)?;
        hold_up(rig, &slow, &mut queue)?;
        queue.copy(&source, &out)?;
    }
    drop(queue.record()?);
    // Whoever gave the source's memory back too early gives it to one of these.
    let rubbish = vec![0xffu8; 1 << 20];
    let taken: Vec<Slice> = (0..8)
        .map(|_| rig.holding(&mut other, &rubbish))
        .collect::<Verdict<_>>()?;
    done(&other.record()?)?;
    drop(taken);
    same(
        "a copy of a dropped buffer",
        &content::<u8>(&mut queue, &out)?,
        &bytes,
    )
}

fn dropping_does_not_lose_events(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut events = Vec::new();
    for _ in 0..3 {
        let mut queue = rig.queue()?;
        hold_up(rig, &slow, &mut queue)?;
        events.push(queue.record()?);
    }
    for event in &events {
        done(event)?;
    }
    Ok(())
}
