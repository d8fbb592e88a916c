//! Promises about the device's clock and about overlap.

use std::time::{Duration, Instant};

use warploom_core::{Caps, Queue, Slice};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::rig::{Rig, done};
use crate::slow::Slow;

cases! { Device "timing":
    clock_is_silent_before = "`at` is `None` before the event is reached.";
    clock_answers_after = "`TIMESTAMPS` devices tell when an event was reached.";
    clock_does_not_run_backwards = "`at` of a later event of a queue is not earlier.";
    #[alone] clock_measures_the_work = "Differences between events of one opened device mean time.";
    #[alone] queues_overlap = "On `CONCURRENT_QUEUES` devices, work on several queues really overlaps.";
    #[alone] copies_overlap = "On `COPY_OVERLAP` devices, copies overlap with kernels.";
}

fn has(rig: &Rig, cap: Caps, without: &str) -> Verdict {
    if rig.info().caps.contains(cap) {
        return Ok(());
    }
    Err(Stop::skip(without))
}

fn clock(rig: &Rig) -> Verdict {
    has(rig, Caps::TIMESTAMPS, "it has no clock")
}

fn clock_is_silent_before(rig: &Rig) -> Verdict {
    clock(rig)?;
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    for tenths in [2, 6, 12] {
        slow.start(&mut queue, &words, tenths, 1)?;
        let event = queue.record()?;
        let at = event.at();
        // Asked after: if it is not done now, it was not done then.
        let open = !event.is_done()?;
        done(&event)?;
        if open {
            ensure!(at.is_none(), "it was not reached, and yet at {at:?}");
            return Ok(());
        }
    }
    Err(Stop::skip("its work is always done when `record` returns"))
}

fn clock_answers_after(rig: &Rig) -> Verdict {
    clock(rig)?;
    let mut queue = rig.queue()?;
    let empty = queue.record()?;
    let slice = rig.holding(&mut queue, &[1u8; 1000])?;
    let event = queue.record()?;
    done(&event)?;
    drop(slice);
    ensure!(event.at().is_some(), "a reached event does not know when");
    ensure!(
        empty.at().is_some(),
        "an event without work does not know when"
    );
    let (first, again) = (event.at(), event.at());
    ensure!(
        first == again,
        "it was reached at {first:?}, then at {again:?}"
    );
    Ok(())
}

fn clock_does_not_run_backwards(rig: &Rig) -> Verdict {
    clock(rig)?;
    let mut queue = rig.queue()?;
    let a = rig.holding(&mut queue, &vec![1u8; 100_000])?;
    let b = Slice::whole(&rig.buffer(100_000)?);
    let mut events = vec![queue.record()?];
    for _ in 0..20 {
        queue.copy(&a, &b)?;
        events.push(queue.record()?);
    }
    done(&events[20])?;
    for (number, pair) in events.windows(2).enumerate() {
        let (before, after) = (pair[0].at(), pair[1].at());
        ensure!(
            before <= after,
            "event {number} was at {before:?}, the next at {after:?}"
        );
    }
    Ok(())
}

fn clock_measures_the_work(rig: &Rig) -> Verdict {
    clock(rig)?;
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let start = queue.record()?;
        done(&start)?;
        let begun = Instant::now();
        slow.start(&mut queue, &words, 2, 1)?;
        let end = queue.record()?;
        done(&end)?;
        let host = begun.elapsed();
        let (Some(start), Some(end)) = (start.at(), end.at()) else {
            return Err(Stop::fail("a reached event does not know when"));
        };
        let device = end.saturating_sub(start);
        // The work is nearly all of what the host waited for. A busy machine may delay the host
        // at either end, so the bounds are wide; a wrong unit is a thousand times off.
        let (least, most) = (host / 5, host * 2 + Duration::from_millis(20));
        if (least..=most).contains(&device) {
            return Ok(());
        }
        seen.push((device, host));
    }
    let text = format!("device and host disagree about the time of one kernel: {seen:?}");
    Err(Stop::fail(text))
}

/// Do pieces of `short` work end all the while a long kernel runs on another queue?
///
/// If the queues took turns, there would be a gap between two of them as long as the long kernel.
/// Tried often: on a busy machine anything may pause for a while.
fn overlaps(
    rig: &Rig,
    slow: &Slow,
    mut short: impl FnMut(&mut dyn Queue) -> Verdict,
) -> Verdict<bool> {
    let [mut busy, mut free] = rig.queues()?;
    let words = rig.holding(&mut busy, &[1u32, 0])?;
    for tenths in [2u32, 2, 4, 4, 8, 8] {
        let before = busy.record()?;
        slow.start(&mut busy, &words, tenths, 1)?;
        let long = busy.record()?;
        // The long one must have begun, or the first short ones merely came first.
        done(&before)?;
        std::thread::sleep(Duration::from_millis(30));
        let begun = Instant::now();
        let (mut last, mut gap) = (Duration::ZERO, Duration::ZERO);
        while !long.is_done()? {
            short(&mut free)?;
            done(&free.record()?)?;
            let now = begun.elapsed();
            gap = gap.max(now.saturating_sub(last));
            last = now;
        }
        if last > Duration::from_millis(20) && gap < begun.elapsed() / 2 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn queues_overlap(rig: &Rig) -> Verdict {
    let without = "its queues take turns, and it says so";
    has(rig, Caps::CONCURRENT_QUEUES, without)?;
    let slow = rig.slow()?;
    let affine = rig.load(crate::programs::AFFINE)?;
    let mut queue = rig.queue()?;
    let slice = rig.holding(&mut queue, &[1u32; 64])?;
    done(&queue.record()?)?;
    let both = overlaps(rig, &slow, |queue| {
        let args = [slice.clone().into(), 3u32.into(), 1u32.into()];
        Ok(affine.line(queue, 64, &args)?)
    })?;
    ensure!(
        both,
        "short kernels never ended while a long one ran on another queue"
    );
    Ok(())
}

fn copies_overlap(rig: &Rig) -> Verdict {
    let without = "its copies and kernels take turns, and it says so";
    has(rig, Caps::COPY_OVERLAP, without)?;
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let staging = rig.info().staging_kind().unwrap_or(rig.local()?);
    let src = rig.holding_in(staging, &mut queue, &[1u8; 5000])?;
    let dst = Slice::whole(&rig.buffer(5000)?);
    done(&queue.record()?)?;
    let both = overlaps(rig, &slow, |queue| Ok(queue.copy(&src, &dst)?))?;
    ensure!(
        both,
        "copies never ended while a long kernel ran on another queue"
    );
    Ok(())
}
