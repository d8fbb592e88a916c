//! Promises of `Queue` about plain slices: uploads and downloads.

use warploom_core::{Queue, Slice};

use crate::case::{Verdict, cases};
use crate::noise::Noise;
use crate::programs::AFFINE;
use crate::rig::{Rig, content, part, same};

cases! { Device "queue":
    uploads_at_any_offset = "`upload` takes any byte offset and length.";
    downloads_at_any_offset = "`download` takes any byte offset and length.";
    big_transfers = "`upload` and `download` take any length.";
    source_is_free_on_return = "`upload`'s source is free for reuse on return.";
    download_sees_earlier_work = "`download` is full on return, after all earlier work of this queue.";
    download_sees_slow_work = "`download` waits for work that takes long.";
    moves_to_another_thread = "A queue has one owner, which may be another thread.";
}

fn uploads_at_any_offset(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let mut noise = Noise::new(21);
    for kind in rig.info().memory.clone() {
        let buffer = rig.device.alloc(kind, 40)?;
        let whole = Slice::whole(&buffer);
        for offset in 0..=9usize {
            for len in 1..=17usize {
                let (mut want, bytes) = (noise.bytes(40), noise.bytes(len));
                queue.upload(&want, &whole)?;
                let range = offset as u64..(offset + len) as u64;
                queue.upload(&bytes, &part(&buffer, range)?)?;
                want[offset..offset + len].copy_from_slice(&bytes);
                let what = format!("{len} bytes uploaded to byte {offset} of {kind}");
                same(&what, &content::<u8>(&mut queue, &whole)?, &want)?;
            }
        }
    }
    Ok(())
}

fn downloads_at_any_offset(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let want = Noise::new(22).bytes(40);
    for kind in rig.info().memory.clone() {
        let whole = rig.holding_in(kind, &mut queue, &want)?;
        for offset in 0..=9usize {
            for len in 1..=17usize {
                let range = offset as u64..(offset + len) as u64;
                let got = content::<u8>(&mut queue, &whole.part(range)?)?;
                let what = format!("{len} bytes downloaded from byte {offset} of {kind}");
                same(&what, &got, &want[offset..offset + len])?;
            }
        }
    }
    Ok(())
}

fn big_transfers(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.info().memory.clone() {
        for len in [65_537usize, (1 << 20) + 1, (8 << 20) + 3] {
            let bytes = Noise::new(len as u64).bytes(len);
            let buffer = rig.device.alloc(kind, len as u64 + 10)?;
            let whole = Slice::whole(&buffer);
            queue.upload(&vec![0xee; len + 10], &whole)?;
            queue.upload(&bytes, &part(&buffer, 5..5 + len as u64)?)?;
            let want = [&[0xee; 5], &bytes[..], &[0xee; 5]].concat();
            let what = format!("{len} bytes in {kind}");
            same(&what, &content::<u8>(&mut queue, &whole)?, &want)?;
        }
    }
    Ok(())
}

fn source_is_free_on_return(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.info().memory.clone() {
        for len in [4usize, 1000, 1 << 20] {
            let mut source = vec![0u8; len];
            let slices: Vec<Slice> = (0..4)
                .map(|_| Ok(Slice::whole(&rig.device.alloc(kind, len as u64)?)))
                .collect::<Verdict<_>>()?;
            for (round, slice) in (1u8..).zip(&slices) {
                source.fill(round);
                queue.upload(&source, slice)?;
                // Whoever still reads the source reads this.
                source.fill(0xff);
            }
            drop(source);
            for (round, slice) in (1u8..).zip(&slices) {
                let got = content::<u8>(&mut queue, slice)?;
                same("an upload from a reused source", &got, &vec![round; len])?;
            }
        }
    }
    Ok(())
}

fn download_sees_earlier_work(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slice = rig.holding(&mut queue, &[1u32; 1000])?;
    let copy = Slice::whole(&rig.buffer(4000)?);
    let mut want = 1u32;
    for round in 0..20u32 {
        let args = [slice.clone().into(), 3u32.into(), round.into()];
        affine.line(&mut queue, 1000, &args)?;
        want = want.wrapping_mul(3).wrapping_add(round);
        same(
            "a kernel's result",
            &content::<u32>(&mut queue, &slice)?,
            &[want; 1000],
        )?;
        queue.copy(&slice, &copy)?;
        same(
            "a copy of it",
            &content::<u32>(&mut queue, &copy)?,
            &[want; 1000],
        )?;
    }
    Ok(())
}

fn download_sees_slow_work(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    let elsewhere = Slice::whole(&rig.buffer(8)?);
    slow.start(&mut queue, &words, 1, 0xbeef)?;
    queue.copy(&words, &elsewhere)?;
    let got = content::<u32>(&mut queue, &elsewhere)?;
    same("a copy of a slow kernel's result", &got[1..], &[0xbeef])
}

fn moves_to_another_thread(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let slice = rig.holding(&mut queue, &[3u32; 100])?;
    let affine = rig.load(AFFINE)?;
    let mut queue = std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            let args = [slice.clone().into(), 5u32.into(), 1u32.into()];
            affine.line(&mut queue, 100, &args)?;
            Ok::<_, crate::case::Stop>(queue)
        });
        there
            .join()
            .map_err(|_| crate::case::Stop::fail("a queue panicked on another thread"))?
    })?;
    same(
        "work from two threads",
        &content::<u32>(&mut queue, &slice)?,
        &[16; 100],
    )
}
