//! Promises of `Queue::copy`.

use std::sync::Arc;

use warploom_core::{Queue, Slice};

use crate::case::{Verdict, cases};
use crate::noise::Noise;
use crate::rig::{Rig, content, part, same};

cases! { Device "copy":
    at_odd_offsets = "`copy` takes any byte offset and length, between any two kinds.";
    within_one_buffer = "`copy` takes two parts of one buffer that do not overlap.";
    of_big_slices = "`copy` takes any length.";
    leaves_neighbours_alone = "`copy` writes its destination and nothing else.";
    chains = "Copies on one queue take effect in order.";
}

/// Each copy has a cell of its own, so that one download checks them all.
const CELL: usize = 48;

fn at_odd_offsets(rig: &Rig) -> Verdict {
    let offsets = [0usize, 1, 2, 3, 4, 5, 7, 8];
    let lengths = [1usize, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31];
    let mut queue = rig.queue()?;
    let kinds = rig.info().memory.clone();
    for from in &kinds {
        for to in &kinds {
            let cells = offsets.len() * offsets.len() * lengths.len();
            let mut noise = Noise::new(31);
            let (source, mut want) = (noise.bytes(64), noise.bytes(cells * CELL));
            let src = rig.holding_in(*from, &mut queue, &source)?;
            let dst = rig.holding_in(*to, &mut queue, &want)?;
            let mut cell = 0;
            for a in offsets {
                for b in offsets {
                    for len in lengths {
                        let at = cell * CELL + b;
                        let target = part(dst.buffer(), at as u64..(at + len) as u64)?;
                        queue.copy(&src.part(a as u64..(a + len) as u64)?, &target)?;
                        want[at..at + len].copy_from_slice(&source[a..a + len]);
                        cell += 1;
                    }
                }
            }
            let what = format!("{cells} copies from {from} to {to}");
            same(&what, &content::<u8>(&mut queue, &dst)?, &want)?;
        }
    }
    Ok(())
}

fn within_one_buffer(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.info().memory.clone() {
        // Forwards, backwards, touching, apart; at whole words and not.
        for (src, dst, len) in [
            (0usize, 64usize, 64usize),
            (64, 0, 64),
            (0, 17, 17),
            (17, 0, 17),
            (3, 150, 41),
            (151, 2, 43),
            (5, 6, 1),
            (1, 130, 100),
        ] {
            let mut want = Noise::new(32).bytes(256);
            let whole = rig.holding_in(kind, &mut queue, &want)?;
            let range = |at: usize| at as u64..(at + len) as u64;
            queue.copy(&whole.part(range(src))?, &whole.part(range(dst))?)?;
            want.copy_within(src..src + len, dst);
            let what = format!("{len} bytes of {kind} from {src} to {dst}");
            same(&what, &content::<u8>(&mut queue, &whole)?, &want)?;
        }
    }
    Ok(())
}

fn of_big_slices(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let kinds = rig.info().memory.clone();
    for from in &kinds {
        for to in &kinds {
            let len = (4 << 20) + 1;
            let bytes = Noise::new(33).bytes(len);
            let src = rig.holding_in(*from, &mut queue, &bytes)?;
            let dst = Slice::whole(&rig.device.alloc(*to, len as u64)?);
            queue.copy(&src, &dst)?;
            let what = format!("{len} bytes from {from} to {to}");
            same(&what, &content::<u8>(&mut queue, &dst)?, &bytes)?;
            // From an even place to an odd one.
            queue.upload(&vec![0; len], &dst)?;
            let (head, tail) = (0..len as u64 - 3, 3..len as u64);
            queue.copy(&src.part(head)?, &dst.part(tail)?)?;
            let want = [&[0; 3], &bytes[..len - 3]].concat();
            same(&what, &content::<u8>(&mut queue, &dst)?, &want)?;
        }
    }
    Ok(())
}

fn leaves_neighbours_alone(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.info().memory.clone() {
        let src = rig.holding(&mut queue, &[0x11u8; 64])?;
        for (at, len) in [(1usize, 1usize), (3, 2), (2, 5), (7, 9), (13, 33)] {
            let mut want = vec![0xeeu8; 64];
            let dst = rig.holding_in(kind, &mut queue, &want)?;
            let range = at as u64..(at + len) as u64;
            queue.copy(&src.part(range.clone())?, &dst.part(range)?)?;
            want[at..at + len].fill(0x11);
            let what = format!("{len} bytes copied to byte {at} of {kind}");
            same(&what, &content::<u8>(&mut queue, &dst)?, &want)?;
        }
    }
    Ok(())
}

fn chains(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let kinds = rig.info().memory.clone();
    let len = 10_001usize;
    let bytes = Noise::new(34).bytes(len);
    let mut at = rig.holding(&mut queue, &bytes)?;
    for hop in 0..40 {
        // Each buffer is dropped as soon as it is copied from.
        let kind = kinds[hop % kinds.len()];
        let next = Slice::whole(&rig.device.alloc(kind, len as u64)?);
        queue.copy(&at, &next)?;
        at = Slice::whole(&Arc::clone(next.buffer()));
    }
    same(
        "bytes after forty copies",
        &content::<u8>(&mut queue, &at)?,
        &bytes,
    )
}
