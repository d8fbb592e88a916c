//! Calls on one queue take effect in order; between queues, events make the order.

use std::sync::Arc;
use std::time::Duration;

use warploom_core::{Event, Queue, QueueDesc, Slice};

use super::stranger::{HostEvent, stranger};
use crate::case::{Stop, Verdict, cases, ensure};
use crate::noise::Noise;
use crate::programs::AFFINE;
use crate::rig::{Rig, content, done, part, same};

cases! { Device "order":
    uploads_do_not_overtake = "An upload takes effect after the calls before it.";
    copies_and_launches_alternate = "Copies and launches on one queue take effect in order.";
    launches_keep_their_order = "Launches on one queue take effect in order.";
    a_thousand_calls_then_one_record = "`record` marks the point after all calls before it, however many.";
    unrecorded_calls_come_first = "Calls before a `download` take effect before it, recorded or not.";
    a_consumer_waits_for_its_producer = "Later work on a queue starts after an event it waits for.";
    three_queues_make_a_chain = "Waits add up across queues.";
    waiting_for_oneself_is_harmless = "A queue may wait for an event of its own.";
    waiting_for_the_past_is_harmless = "A queue may wait for an event that is done.";
    another_opening_is_waited_for = "An event of the same backend is waited for, whichever opened device it is of.";
    a_strangers_event_is_waited_for = "An event of another backend is waited for by the host.";
    a_strangers_done_event_is_fine = "An event of another backend that is done holds nothing up.";
}

fn uploads_do_not_overtake(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    for kind in rig.info().memory.clone() {
        let source = Slice::whole(&rig.device.alloc(kind, 1000)?);
        let copies: Vec<Slice> = (0..10)
            .map(|_| Ok(Slice::whole(&rig.buffer(1000)?)))
            .collect::<Verdict<_>>()?;
        for (round, copy) in (0u8..).zip(&copies) {
            queue.upload(&[round; 1000], &source)?;
            queue.copy(&source, copy)?;
        }
        queue.upload(&[0xff; 1000], &source)?;
        for (round, copy) in (0u8..).zip(&copies) {
            let what = format!("copy {round} of a {kind} buffer that was uploaded to again");
            same(&what, &content::<u8>(&mut queue, copy)?, &[round; 1000])?;
        }
    }
    Ok(())
}

fn copies_and_launches_alternate(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let (len, rounds) = (257u64, 30u64);
    let work = rig.holding(&mut queue, &[1u32; 257])?;
    let log = rig.buffer(4 * len * rounds)?;
    let (mut value, mut want) = (1u32, Vec::new());
    for round in 0..rounds {
        let args = [work.clone().into(), 7u32.into(), 3u32.into()];
        affine.line(&mut queue, len, &args)?;
        value = value.wrapping_mul(7).wrapping_add(3);
        queue.copy(&work, &part(&log, 4 * len * round..4 * len * (round + 1))?)?;
        want.extend([value; 257]);
    }
    let got = content::<u32>(&mut queue, &Slice::whole(&log))?;
    same("a log of thirty launches", &got, &want)
}

fn launches_keep_their_order(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slice = rig.holding(&mut queue, &[1u32; 100])?;
    let mut want = 1u32;
    for round in 0..64u32 {
        let args = [slice.clone().into(), (round + 2).into(), round.into()];
        affine.line(&mut queue, 100, &args)?;
        want = want.wrapping_mul(round + 2).wrapping_add(round);
    }
    same(
        "64 launches",
        &content::<u32>(&mut queue, &slice)?,
        &[want; 100],
    )
}

fn a_thousand_calls_then_one_record(rig: &Rig) -> Verdict {
    let [mut queue, mut other] = rig.queues()?;
    let affine = rig.load(AFFINE)?;
    let slice = rig.holding(&mut queue, &[0u32; 64])?;
    let spare = Slice::whole(&rig.buffer(slice.len())?);
    let mut want = 0u32;
    for round in 0..500u32 {
        affine.line(
            &mut queue,
            64,
            &[slice.clone().into(), 3u32.into(), round.into()],
        )?;
        queue.copy(&slice, &spare)?;
        want = want.wrapping_mul(3).wrapping_add(round);
    }
    done(&queue.record()?)?;
    // The event is all that orders this queue after the other.
    same(
        "a thousand calls",
        &content::<u32>(&mut other, &spare)?,
        &[want; 64],
    )
}

fn unrecorded_calls_come_first(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let (a, b) = (
        rig.holding(&mut queue, &[2u32; 50])?,
        Slice::whole(&rig.buffer(200)?),
    );
    affine.line(
        &mut queue,
        50,
        &[a.clone().into(), 4u32.into(), 1u32.into()],
    )?;
    drop(queue.record()?);
    queue.copy(&a, &b)?;
    affine.line(
        &mut queue,
        50,
        &[b.clone().into(), 1u32.into(), 1u32.into()],
    )?;
    same(
        "after a forgotten event",
        &content::<u32>(&mut queue, &b)?,
        &[10; 50],
    )
}

fn a_consumer_waits_for_its_producer(rig: &Rig) -> Verdict {
    const ROUNDS: usize = 200;
    let slow = rig.slow()?;
    let [mut producer, mut consumer] = rig.queues()?;
    let mut noise = Noise::new(41);
    let cell = 2048u64;
    let shared = rig.buffer(cell)?;
    let log = rig.buffer(cell * ROUNDS as u64)?;
    let words = rig.holding(&mut producer, &[1u32, 0])?;
    let mut wanted = Vec::new();
    for round in 0..ROUNDS as u64 {
        // Now and then the producer is late, so that a consumer that does not wait is early.
        if round % 80 == 3 {
            slow.start(&mut producer, &words, 1, 1)?;
        }
        let len = noise.between(1, cell);
        let bytes = noise.bytes(usize::try_from(len).unwrap_or(1));
        producer.upload(&bytes, &part(&shared, 0..len)?)?;
        let made = producer.record()?;
        consumer.wait(&made)?;
        let place = part(&log, round * cell..round * cell + len)?;
        consumer.copy(&part(&shared, 0..len)?, &place)?;
        // And the producer must not overwrite what is not consumed yet.
        let used = consumer.record()?;
        producer.wait(&used)?;
        wanted.push((place, bytes));
    }
    for (round, (place, bytes)) in wanted.iter().enumerate() {
        let what = format!("what the consumer got in round {round}");
        same(&what, &content::<u8>(&mut consumer, place)?, bytes)?;
    }
    Ok(())
}

fn three_queues_make_a_chain(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let affine = rig.load(AFFINE)?;
    let mut queues: [_; 3] = rig.queues()?;
    for round in 0..3u32 {
        let slice = rig.holding(&mut queues[0], &[round; 300])?;
        let words = rig.holding(&mut queues[0], &[1u32, 0])?;
        slow.start(&mut queues[0], &words, 1, 1)?;
        let mut want = round;
        let mut before: Option<Arc<dyn Event>> = None;
        for (queue, (m, a)) in queues.iter_mut().zip([(3u32, 1u32), (5, 2), (7, 3)]) {
            if let Some(event) = &before {
                queue.wait(event)?;
            }
            affine.line(queue, 300, &[slice.clone().into(), m.into(), a.into()])?;
            want = want * m + a;
            before = Some(queue.record()?);
        }
        same(
            "after three queues",
            &content::<u32>(&mut queues[2], &slice)?,
            &[want; 300],
        )?;
    }
    Ok(())
}

fn waiting_for_oneself_is_harmless(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slice = rig.holding(&mut queue, &[1u32; 10])?;
    for _ in 0..20 {
        affine.line(
            &mut queue,
            10,
            &[slice.clone().into(), 2u32.into(), 0u32.into()],
        )?;
        let event = queue.record()?;
        queue.wait(&event)?;
    }
    same(
        "after twenty waits",
        &content::<u32>(&mut queue, &slice)?,
        &[1 << 20; 10],
    )
}

fn waiting_for_the_past_is_harmless(rig: &Rig) -> Verdict {
    let [mut first, mut second] = rig.queues()?;
    let slice = rig.holding(&mut first, &[5u8; 100])?;
    let event = first.record()?;
    done(&event)?;
    drop(first);
    for _ in 0..10 {
        second.wait(&event)?;
    }
    same(
        "after the past",
        &content::<u8>(&mut second, &slice)?,
        &[5; 100],
    )
}

fn another_opening_is_waited_for(rig: &Rig) -> Verdict {
    let slow = rig.slow()?;
    let twin = rig.reopen()?;
    let mut here = rig.queue()?;
    let mut there = twin.queue(&QueueDesc::named("twin"))?;
    let words = rig.holding(&mut here, &[1u32, 0])?;
    slow.start(&mut here, &words, 1, 1)?;
    let first = here.record()?;
    there.wait(&first)?;
    let second = there.record()?;
    done(&second)?;
    ensure!(
        first.is_done()?,
        "the second is done and the first it waits for is not"
    );
    Ok(())
}

fn a_strangers_event_is_waited_for(rig: &Rig) -> Verdict {
    let [mut writer, mut reader] = rig.queues()?;
    let src = rig.holding(&mut writer, &[1u8; 500])?;
    let dst = Slice::whole(&rig.buffer(500)?);
    done(&writer.record()?)?;
    let event = Arc::new(HostEvent::default());
    let stranger: Arc<dyn Event> = Arc::<HostEvent>::clone(&event);
    std::thread::scope(|scope| {
        // `wait` may block its thread: that is the host's wait.
        let reading = scope.spawn(|| {
            reader.wait(&stranger)?;
            reader.copy(&src, &dst)?;
            content::<u8>(&mut reader, &dst)
        });
        std::thread::sleep(Duration::from_millis(60));
        let written = writer
            .upload(&[2; 500], &src)
            .and_then(|()| writer.record());
        let written = written.map_err(Stop::from).and_then(|event| done(&event));
        // Whatever went wrong, the reader must not wait for ever.
        event.reach();
        let got = reading.join().map_err(|_| Stop::fail("a wait panicked"))?;
        written?;
        same("a copy after a stranger's event", &got?, &[2; 500])
    })
}

fn a_strangers_done_event_is_fine(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let event = stranger()?.queue(&QueueDesc::default())?.record()?;
    queue.wait(&event)?;
    let slice = rig.holding(&mut queue, &[8u8; 9])?;
    same(
        "after a stranger's event",
        &content::<u8>(&mut queue, &slice)?,
        &[8; 9],
    )
}
