//! Promises of `Event`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_core::{DeviceError, Event, KernelSource, Language, Param, Queue, QueueDesc, Slice};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::rig::{PATIENCE, Rig, content, done, eventually, same};

cases! { Device "event":
    comes_without_being_waited_for = "`record` submits everything before it; `is_done` tells when it is reached.";
    of_an_empty_queue_is_done = "An event is done when everything submitted before it is done, even if that is nothing.";
    done_means_done = "An event is done when everything submitted before it is done, and not before.";
    stays_done = "A point that is reached stays reached.";
    comes_after_earlier_ones = "Events of one queue are reached in order.";
    waits_for_ever_when_told = "`wait` without a timeout blocks until the event is reached.";
    gives_up_in_time = "`wait` blocks at most `timeout`; the work goes on and the event stays usable.";
    is_done_does_not_block = "`is_done` never blocks.";
    is_waited_for_by_many = "An event is shared between threads.";
    outlives_queue_and_device = "An event is a handle of its own.";
    failed_work_is_an_error_for_good = "When the work before it failed, it is an error and stays one.";
    failed_work_harms_no_other_queue = "A failed kernel fails its own queue's events.";
    failed_work_fails_all_that_follows = "Every event recorded after failed work on its queue is an error, for good.";
    failed_work_leaves_what_was_done = "When work fails, what its queue did before it stays done.";
    failed_work_hangs_no_other_queue = "A queue that waits for an event that failed never hangs over it.";
}

fn comes_without_being_waited_for(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let a = rig.holding(&mut queue, &[1u8; 10_000])?;
    let b = Slice::whole(&rig.buffer(10_000)?);
    queue.copy(&a, &b)?;
    let event = queue.record()?;
    // Nothing but asking, on no queue and with no wait.
    let came = eventually(|| Ok(event.is_done()?))?;
    ensure!(
        came,
        "an event nobody waits for is not reached within seconds"
    );
    Ok(())
}

fn of_an_empty_queue_is_done(rig: &Rig) -> Verdict {
    let event = rig.queue()?.record()?;
    done(&event)?;
    ensure!(event.is_done()?, "it was waited for and is not done");
    let mut queue = rig.queue()?;
    for _ in 0..10 {
        done(&queue.record()?)?;
    }
    Ok(())
}

fn done_means_done(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let [mut queue, mut other] = rig.queues()?;
    for tag in 1..4u32 {
        let words = rig.holding(&mut queue, &[1u32, 0])?;
        slow.start(&mut queue, &words, 1, tag)?;
        let event = queue.record()?;
        let begun = Instant::now();
        while !event.is_done()? {
            ensure!(
                begun.elapsed() < PATIENCE,
                "it is not done within {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        // Another queue looks, which no order but the event's keeps back.
        same(
            "what a done event promised",
            &content::<u32>(&mut other, &words)?[1..],
            &[tag],
        )?;
    }
    Ok(())
}

fn stays_done(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    let event = queue.record()?;
    done(&event)?;
    // New work on the queue must not take the old event back.
    slow.start(&mut queue, &words, 1, 1)?;
    let later = queue.record()?;
    for _ in 0..20 {
        ensure!(event.is_done()?, "it was done and is no longer");
    }
    event.wait(Some(Duration::ZERO))?;
    event.wait(None)?;
    done(&later)
}

fn comes_after_earlier_ones(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    slow.start(&mut queue, &words, 1, 1)?;
    let mut events = Vec::new();
    for _ in 0..10 {
        queue.upload(&[0; 4], &words.part(0..4)?)?;
        events.push(queue.record()?);
    }
    for (at, event) in events.iter().enumerate().rev() {
        // Asked from the last on, so that the order is not an effect of asking.
        if event.is_done()? {
            for earlier in &events[..at] {
                ensure!(
                    earlier.is_done()?,
                    "event {at} is done and an earlier one is not"
                );
            }
        }
    }
    done(&events[9])?;
    for (at, event) in events.iter().enumerate() {
        ensure!(
            event.is_done()?,
            "the last event is done and event {at} is not"
        );
    }
    Ok(())
}

fn waits_for_ever_when_told(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    slow.start(&mut queue, &words, 2, 1)?;
    let event = queue.record()?;
    event.wait(None)?;
    ensure!(event.is_done()?, "it was waited for and is not done");
    Ok(())
}

fn gives_up_in_time(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    for tenths in [1u32, 4, 12] {
        slow.start(&mut queue, &words, tenths, tenths)?;
        let event = queue.record()?;
        if event.is_done()? {
            continue;
        }
        let (begun, limit) = (Instant::now(), Duration::from_millis(2));
        let outcome = event.wait(Some(limit));
        let waited = begun.elapsed();
        match outcome {
            // Reached within two milliseconds, or the wait was deaf; longer work will tell.
            Ok(()) if waited < Duration::from_millis(50) || tenths < 12 => continue,
            Ok(()) => {
                let text = format!("a wait of {limit:?} took {waited:.1?} and came to the end");
                return Err(Stop::fail(text));
            }
            Err(DeviceError::Timeout { device, .. }) => {
                ensure!(device == rig.id(), "the timeout is of {device}");
            }
            Err(other) => return Err(other.into()),
        }
        ensure!(
            waited >= limit,
            "it gave up after {waited:?}, not {limit:?}"
        );
        // Usable: it can be waited for in vain once more, then in earnest.
        match event.wait(Some(Duration::ZERO)) {
            Ok(()) | Err(DeviceError::Timeout { .. }) => {}
            Err(other) => return Err(other.into()),
        }
        done(&event)?;
        ensure!(event.is_done()?, "it was waited for and is not done");
        let got = content::<u32>(&mut queue, &words)?;
        return same("work that went on", &got[1..], &[tenths]);
    }
    Err(Stop::skip("its work is always done when `record` returns"))
}

fn is_done_does_not_block(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    let mut longest = Duration::ZERO;
    for _ in 0..3 {
        slow.start(&mut queue, &words, 3, 1)?;
        let event = queue.record()?;
        let begun = Instant::now();
        let reached = event.is_done()?;
        let took = begun.elapsed();
        done(&event)?;
        // "Not yet" proves it; so does a quick "yes".
        if !reached || took < Duration::from_millis(20) {
            return Ok(());
        }
        longest = longest.max(took);
    }
    Err(Stop::fail(format!(
        "asking whether it is done took {longest:.1?}, three times"
    )))
}

fn is_waited_for_by_many(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let mut queue = rig.queue()?;
    let words = rig.holding(&mut queue, &[1u32, 0])?;
    slow.start(&mut queue, &words, 1, 5)?;
    let event = queue.record()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| done(&event))).collect();
        for thread in threads {
            thread.join().map_err(|_| Stop::fail("a wait panicked"))??;
        }
        ensure!(event.is_done()?, "four waited for it and it is not done");
        Ok(())
    })
}

fn outlives_queue_and_device(rig: &Rig) -> Verdict {
    let event = {
        let device = rig.reopen()?;
        let slow = rig.slow_on(&device)?;
        let mut queue = device.queue(&QueueDesc::default())?;
        let words = Slice::whole(&device.alloc(rig.local()?, 8)?);
        slow.start(&mut queue, &words, 1, 1)?;
        queue.record()?
    };
    done(&event)?;
    ensure!(event.is_done()?, "it was waited for and is not done");
    Ok(())
}

/// A kernel that fails, when it is told to or does not want to wait for that any longer.
fn panics(may: &AtomicBool) {
    const LONG: Duration = Duration::from_millis(500);
    let begun = Instant::now();
    while !may.load(Ordering::Acquire) && begun.elapsed() < LONG {
        std::thread::sleep(Duration::from_micros(50));
    }
    // A panic as far as anyone can catch, without the hook that would print it here.
    let text = "this kernel panics on purpose".to_owned();
    std::panic::resume_unwind(Box::new(text));
}

/// The event after a kernel that fails.
fn failed(rig: &Rig, queue: &mut dyn Queue) -> Verdict<Arc<dyn Event>> {
    if !rig.info().languages.contains(&Language::Host) {
        let text = "only host code can fail without taking the device along";
        return Err(Stop::skip(text));
    }
    // A queue that knows of its failure refuses to record; there has to be an event before.
    let may = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&may);
    let source = KernelSource::host("panics", &[Param::Write], move |_| panics(&told));
    let kernel = rig.device.kernel(&source)?;
    let slice = Slice::whole(&rig.buffer(64)?);
    let grid = warploom_core::Grid::groups([1, 1, 1]);
    if queue.launch(&kernel, grid, &[slice.into()]).is_err() {
        // A device that runs everything at once may say so at once, and then has nothing to mark.
        return Err(Stop::skip("a failing launch fails at once here"));
    }
    let event = queue.record();
    may.store(true, Ordering::Release);
    Ok(event?)
}

fn failed_work_is_an_error_for_good(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let event = failed(rig, &mut queue)?;
    for _ in 0..3 {
        match event.wait(Some(PATIENCE)) {
            Err(DeviceError::Timeout { .. }) => {
                return Err(Stop::fail("an event after failed work is never reached"));
            }
            Err(error) => {
                let text = error.to_string();
                ensure!(
                    text.contains("on purpose"),
                    "the error hides the reason: {text}"
                );
            }
            Ok(()) => return Err(Stop::fail("failed work counts as done")),
        }
        ensure!(
            event.is_done().is_err(),
            "an event that failed is asked again and is fine"
        );
    }
    Ok(())
}

fn failed_work_harms_no_other_queue(rig: &Rig) -> Verdict {
    let [mut bad, mut good] = rig.queues()?;
    let event = failed(rig, &mut bad)?;
    ensure!(
        event.wait(Some(PATIENCE)).is_err(),
        "failed work counts as done"
    );
    let slice = rig.holding(&mut good, &[6u8; 100])?;
    done(&good.record()?)?;
    same(
        "another queue's work",
        &content::<u8>(&mut good, &slice)?,
        &[6; 100],
    )?;
    drop(bad);
    let mut fresh = rig.queue()?;
    same(
        "a fresh queue's work",
        &content::<u8>(&mut fresh, &slice)?,
        &[6; 100],
    )
}

fn failed_work_fails_all_that_follows(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let slice = rig.holding(&mut queue, &[1u8; 64])?;
    let first = failed(rig, &mut queue)?;
    for _ in 0..3 {
        // Refusing right away is as good.
        let more = queue.upload(&[2; 64], &slice);
        let later = more.and_then(|()| queue.record());
        let outcome = later.and_then(|event| event.wait(Some(PATIENCE)));
        match outcome {
            Ok(()) => return Err(Stop::fail("work after failed work counts as done")),
            Err(DeviceError::Timeout { .. }) => {
                return Err(Stop::fail("an event after failed work is never reached"));
            }
            Err(_) => {}
        }
        ensure!(
            first.is_done().is_err(),
            "an event that failed is fine after later calls"
        );
    }
    Ok(())
}

fn failed_work_leaves_what_was_done(rig: &Rig) -> Verdict {
    let [mut bad, mut good] = rig.queues()?;
    let slice = rig.holding(&mut bad, &[7u8; 100])?;
    let before = bad.record()?;
    let after = failed(rig, &mut bad)?;
    ensure!(
        after.wait(Some(PATIENCE)).is_err(),
        "failed work counts as done"
    );
    done(&before)?;
    ensure!(before.is_done()?, "what was done before is not done");
    same(
        "bytes from before a failure",
        &content::<u8>(&mut good, &slice)?,
        &[7; 100],
    )
}

fn failed_work_hangs_no_other_queue(rig: &Rig) -> Verdict {
    let [mut bad, mut good] = rig.queues()?;
    let event = failed(rig, &mut bad)?;
    // It may refuse, fail or go on; it may not hang.
    let waited = good.wait(&event).and_then(|()| good.record());
    if let Ok(after) = waited
        && let Err(DeviceError::Timeout { .. }) = after.wait(Some(PATIENCE))
    {
        return Err(Stop::fail("a queue behind a failed event stands still"));
    }
    drop(good);
    let mut fresh = rig.queue()?;
    done(&fresh.record()?)
}
