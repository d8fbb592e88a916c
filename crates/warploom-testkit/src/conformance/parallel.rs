//! Promises about several threads and queues on one device.

use std::thread::ScopedJoinHandle;

use warploom_core::{Queue, Slice};

use crate::case::{Stop, Verdict, cases};
use crate::noise::Noise;
use crate::programs::{AFFINE, BLEND};
use crate::rig::{Rig, content, done, same};

cases! { Device "parallel":
    four_threads_four_queues = "A device is shared between threads, each with a queue of its own.";
    readers_share_a_buffer = "Two queues may read one buffer at once.";
    disjoint_slices_of_one_buffer = "Two queues may write different parts of one buffer at once.";
    allocation_beside_work = "Memory comes and goes while queues are busy.";
    queues_come_and_go = "Queues are made and dropped at any time.";
}

/// Runs `work` on threads numbered from 0.
fn threads(count: u32, work: impl Fn(u32) -> Verdict + Sync) -> Verdict {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        let ends: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        for end in ends {
            end.map_err(|_| Stop::fail("a thread panicked"))??;
        }
        Ok(())
    })
}

fn four_threads_four_queues(rig: &Rig) -> Verdict {
    let affine = rig.load(AFFINE)?;
    threads(4, |number| {
        let mut queue = rig.queue()?;
        let mut noise = Noise::new(u64::from(number));
        for round in 0..25u32 {
            let mut words = noise.words(500);
            let slice = rig.holding(&mut queue, &words)?;
            let copy = Slice::whole(&rig.buffer(2000)?);
            let args = [slice.clone().into(), (number + 2).into(), round.into()];
            affine.line(&mut queue, 500, &args)?;
            queue.copy(&slice, &copy)?;
            for word in &mut words {
                *word = word.wrapping_mul(number + 2).wrapping_add(round);
            }
            let what = format!("thread {number} in round {round}");
            same(&what, &content::<u32>(&mut queue, &copy)?, &words)?;
        }
        Ok(())
    })
}

fn readers_share_a_buffer(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let blend = rig.load(BLEND)?;
    let words = Noise::new(72).words(1000);
    let shared = rig.holding(&mut queue, &words)?;
    done(&queue.record()?)?;
    threads(2, |number| {
        let mut queue = rig.queue()?;
        let out = Slice::whole(&rig.buffer(4000)?);
        for _ in 0..20 {
            let args = [
                shared.clone().into(),
                number.into(),
                shared.clone().into(),
                out.clone().into(),
            ];
            blend.line(&mut queue, 1000, &args)?;
            let blend = |word: &u32| word.wrapping_mul(4).wrapping_add(number);
            let want: Vec<u32> = words.iter().map(blend).collect();
            same(
                "a reader's result",
                &content::<u32>(&mut queue, &out)?,
                &want,
            )?;
        }
        Ok(())
    })?;
    same(
        "what both read",
        &content::<u32>(&mut queue, &shared)?,
        &words,
    )
}

fn disjoint_slices_of_one_buffer(rig: &Rig) -> Verdict {
    const ROUNDS: u32 = 20;
    let step = rig.aligned(400);
    let affine = rig.load(AFFINE)?;
    for kind in rig.info().memory.clone() {
        let buffer = rig.device.alloc(kind, u64::from(4 * ROUNDS) * step)?;
        let cell = |number: u32| {
            let start = u64::from(number) * step;
            crate::rig::part(&buffer, start..start + 400)
        };
        // Threads take cells in turn, so that each works beside the others' bytes.
        threads(4, |number| {
            let mut queue = rig.queue()?;
            let source = Slice::whole(&rig.buffer(400)?);
            for at in (0..ROUNDS).map(|round| 4 * round + number) {
                queue.upload(bytemuck::cast_slice(&[at; 100]), &source)?;
                queue.copy(&source, &cell(at)?)?;
                if kind.space().kernel_visible() {
                    let args = [cell(at)?.into(), 3u32.into(), 1u32.into()];
                    affine.line(&mut queue, 100, &args)?;
                }
                done(&queue.record()?)?;
            }
            Ok(())
        })?;
        // Checked at the end: what one thread undid of another's work stays undone.
        let mut queue = rig.queue()?;
        for at in 0..4 * ROUNDS {
            let launched = kind.space().kernel_visible();
            let want = if launched { 3 * at + 1 } else { at };
            let what = format!("part {at} of a {kind} buffer");
            same(
                &what,
                &content::<u32>(&mut queue, &cell(at)?)?,
                &[want; 100],
            )?;
        }
    }
    Ok(())
}

fn allocation_beside_work(rig: &Rig) -> Verdict {
    threads(3, |number| {
        let mut queue = rig.queue()?;
        let mut noise = Noise::new(73 + u64::from(number));
        for _ in 0..40 {
            let len = usize::try_from(noise.between(1, 100_000)).unwrap_or(1);
            let bytes = noise.bytes(len);
            let a = rig.holding(&mut queue, &bytes)?;
            let b = Slice::whole(&rig.buffer(len as u64)?);
            queue.copy(&a, &b)?;
            drop(a);
            same(
                "a short-lived buffer",
                &content::<u8>(&mut queue, &b)?,
                &bytes,
            )?;
        }
        Ok(())
    })
}

fn queues_come_and_go(rig: &Rig) -> Verdict {
    let affine = rig.load(AFFINE)?;
    let mut keeper = rig.queue()?;
    let slice = rig.holding(&mut keeper, &[0u32; 64])?;
    let mut last = keeper.record()?;
    for _ in 0..30 {
        let mut queue = rig.queue()?;
        queue.wait(&last)?;
        affine.line(
            &mut queue,
            64,
            &[slice.clone().into(), 1u32.into(), 1u32.into()],
        )?;
        last = queue.record()?;
    }
    keeper.wait(&last)?;
    same(
        "thirty queues' work",
        &content::<u32>(&mut keeper, &slice)?,
        &[30; 64],
    )
}
