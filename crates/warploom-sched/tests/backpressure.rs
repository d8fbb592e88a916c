//! Slots that are all in use hold back whoever would write, and nobody waits inside a pool.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use warploom_core::{CancelToken, CheckedDevice, GpuBackend as _, Space};
use warploom_sched::{
    Options, Payloads, Pipeline, Plan, Resource, RunError, RunOptions, Slots, Stage, StageGraph,
    Threads, plan,
};
use warploom_testkit::{FakeBackend, FakeDevice};

const SLOTS: u64 = 4;

/// A source that counts what it wrote, four slots, and a sink that takes one for every word.
fn held(made: &Arc<AtomicU64>, words: Receiver<()>) -> (Plan, Payloads) {
    let mut graph = StageGraph::new();
    let output = Resource::new("output", Space::Pinned, 64).with_slots(Slots::Exactly(4));
    let output = graph.resource(output);
    let make = graph.stage(Stage::host("make").writes(output));
    let take = graph.stage(Stage::host("take").reads(output));
    let made = Arc::clone(made);
    let payloads = Payloads::new()
        .host(make, move |turn| {
            made.fetch_add(1, Ordering::SeqCst);
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.write(output, |bytes| bytes.fill(byte))
        })
        .host(take, move |turn| {
            // Without anybody to say so, it goes on.
            let _ = words.recv();
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.read(output, |bytes| {
                assert!(bytes.iter().all(|own| *own == byte));
            })
        });
    (plan(&graph, &Options::default()).unwrap(), payloads)
}

/// Exactly so many were written, and stay so many.
fn settles_at(made: &AtomicU64, wanted: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    while made.load(Ordering::SeqCst) < wanted {
        assert!(Instant::now() < end, "{made:?} of {wanted}");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(
        made.load(Ordering::SeqCst),
        wanted,
        "the slots are all in use"
    );
}

/// Runs it on a thread of its own while `watch` looks on.
fn watched(
    records: u64,
    token: &CancelToken,
    watch: impl FnOnce(&AtomicU64, Sender<()>),
) -> Result<u64, RunError> {
    let backend = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    let device = CheckedDevice::new(backend.open(0).unwrap());
    let made = Arc::default();
    let (say, words) = channel();
    let (plan, payloads) = held(&made, words);
    let options = RunOptions::of(records, 1).cancelled_by(token);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options).unwrap();
    std::thread::scope(|scope| {
        let ran = scope.spawn(move || {
            let ended = pipeline.run().map(|summary| summary.generations);
            assert_eq!(pipeline.pool().held(), 0);
            ended
        });
        watch(&made, say);
        ran.join().unwrap()
    })
}

#[test]
fn a_source_without_a_free_slot_waits_and_goes_on_with_each_that_is_given_back() {
    let ended = watched(12, &CancelToken::new(), |made, say| {
        for given_back in 0..4 {
            settles_at(made, SLOTS + given_back);
            say.send(()).unwrap();
        }
        settles_at(made, SLOTS + 4);
    });
    assert_eq!(ended, Ok(12));
}

/// Whoever waits is told of the end by the driver, because nobody else knows that it waits.
#[test]
fn a_source_without_a_free_slot_does_not_outlast_a_call_off() {
    let token = CancelToken::new();
    let ended = watched(12, &token, |made, say| {
        settles_at(made, SLOTS);
        token.cancel();
        drop(say);
    });
    let Err(RunError::Cancelled { delivered }) = ended else {
        panic!("{ended:?}");
    };
    assert!((SLOTS..12).contains(&delivered), "{delivered}");
}
