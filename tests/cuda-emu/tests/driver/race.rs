//! A program with two streams, with and without the wait that orders them.

use libtest_mimic::{Failed, Trial};

use crate::rig::*;
use crate::{Scene, play};

const BYTES: usize = 4096;

/// Scenes that are played many times, and are no tests by themselves.
pub(crate) const SCENES: &[Scene] = &[
    Scene::new(WITH, || produce_and_consume(true)).with(RESTLESS),
    Scene::new(WITHOUT, || produce_and_consume(false)).with(RESTLESS),
];

const WITH: &str = "race_with_the_wait";
const WITHOUT: &str = "race_without_the_wait";

const SEEDS: usize = 50;

/// Longer delays than usual, so that a busy machine does not decide the race.
const RESTLESS: &[(&str, &str)] = &[("WARPLOOM_EMU_JITTER", "2000")];

pub(crate) fn is_extra(name: &str) -> bool {
    name == WITH || name == WITHOUT
}

pub(crate) fn trials() -> Vec<Trial> {
    let with = || match wrong(WITH)? {
        0 => Ok(()),
        count => Err(format!("{count} of {SEEDS} seeds gave wrong results").into()),
    };
    let without = || match wrong(WITHOUT)? {
        20.. => Ok(()),
        count => Err(format!("the missing wait was noticed in {count} of {SEEDS} seeds").into()),
    };
    vec![
        Trial::test("a_program_with_its_wait_is_right_under_all_seeds", with),
        Trial::test("a_missing_wait_shows_under_most_seeds", without),
    ]
}

/// Under how many seeds the result is wrong.
fn wrong(name: &str) -> Result<usize, Failed> {
    let scene = SCENES.iter().find(|scene| scene.name == name);
    let scene = scene.expect("one of the two");
    let mut wrong = 0;
    for seed in 0..SEEDS {
        let (well, said) = play(scene, &[("WARPLOOM_EMU_SEED", seed.to_string())])?;
        if !well {
            if !said.contains("stale result") {
                return Err(said.into());
            }
            wrong += 1;
        }
    }
    Ok(wrong)
}

fn produce_and_consume(wait: bool) {
    enter(0);
    let (producer, consumer) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (input, output) = (pinned(&[1; BYTES]), pinned(&[0; BYTES]));
    let (raw, done) = (alloc(BYTES), alloc(BYTES));
    let ready = event();
    ok!(cuMemcpyHtoDAsync_v2(raw, input, BYTES, producer));
    ok!(cuMemcpyDtoDAsync_v2(done, raw, BYTES, producer));
    ok!(cuEventRecord(ready, producer));
    if wait {
        ok!(cuStreamWaitEvent(consumer, ready, 0));
    }
    ok!(cuMemcpyDtoHAsync_v2(output, done, BYTES, consumer));
    ok!(cuStreamSynchronize(consumer));
    assert_eq!(peek(output, BYTES), [1; BYTES], "stale result");
}
