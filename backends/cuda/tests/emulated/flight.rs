//! Work that cannot be waited for: what it uses must outlive it all the same.

use std::time::Duration;

use rstest::{Context, rstest};
use warploom_core::{Queue, memory};

use crate::rig::{alloc, content, fill, filled, load, open, queue};
use crate::scene::Scene;

/// Ways in which nobody learns that work is done.
const DEAF: &[&str] = &[
    "cuStreamSynchronize#1+=UNKNOWN",
    "cuStreamSynchronize#1+=UNKNOWN;cuEventQuery#1+=UNKNOWN",
    "cuStreamSynchronize#1+=UNKNOWN;cuEventSynchronize#2+=UNKNOWN;cuEventQuery#1+=UNKNOWN",
    "cuCtxSetCurrent#12+=UNKNOWN",
    "cuCtxSetCurrent#16+=UNKNOWN",
    "cuCtxSetCurrent#20+=UNKNOWN",
    "cuCtxSetCurrent#24+=UNKNOWN",
];

#[rstest]
fn nothing_is_freed_under_work_that_nobody_can_wait_for(#[context] test: Context) {
    let play = || {
        let device = open(0);
        let mut lane = queue(&device);
        // Any of these may fail; what counts is what the emulator says of the rest.
        let Ok(slice) = alloc(&device, memory::CUDA_DEVICE, 1 << 20) else {
            return;
        };
        let kernel = load(&device, "fill");
        let pinned = alloc(&device, memory::CUDA_PINNED, 1 << 20);
        for turn in 0..4 {
            let _ = lane.upload(&filled(turn, 1 << 20), &slice);
            if let Ok(kernel) = &kernel {
                let _ = fill(&mut lane, kernel, &slice, turn);
            }
            if let Ok(pinned) = &pinned {
                let _ = lane.copy(pinned, &slice);
                let _ = lane.copy(&slice, pinned);
            }
        }
        drop((pinned, kernel, slice));
        drop(lane);
        drop(device);
        // Long enough for what is still under way.
        std::thread::sleep(Duration::from_millis(300));
    };
    for rules in DEAF {
        for seed in ["1", "2"] {
            Scene::new(&test, format!("{rules} with seed {seed}"))
                .fail(*rules)
                .with("WARPLOOM_EMU_JITTER", "10000")
                .with("WARPLOOM_EMU_SEED", seed)
                .play(play)
                .says("as planned")
                .says_only_what_was_planned();
        }
    }
}

#[rstest]
#[case::the_mark("cuEventRecord#3=UNKNOWN")]
#[case::the_wait("cuEventSynchronize#2=UNKNOWN")]
fn a_failed_upload_does_not_spoil_the_one_before(#[context] test: Context, #[case] rule: &str) {
    // One half of the staging memory each, so that the third has to wait for the first.
    const PIECE: usize = 4 << 20;
    let play = || {
        let device = open(0);
        let mut lane = queue(&device);
        let slices: Vec<_> = (0..4)
            .map(|_| alloc(&device, memory::CUDA_DEVICE, PIECE as u64).expect("room"))
            .collect();
        let bytes = |turn| filled(turn, PIECE);
        lane.upload(&bytes(0), &slices[0]).expect("the first half");
        lane.upload(&bytes(1), &slices[1]).expect("the second half");
        lane.upload(&bytes(2), &slices[2])
            .expect_err("it was ordered");
        lane.upload(&bytes(3), &slices[3]).expect("the next one");
        for turn in [0, 1, 3] {
            let found = content(&mut lane, &slices[turn]).expect("a download");
            let turn = u32::try_from(turn).expect("small");
            assert!(found == bytes(turn), "upload {turn}");
        }
    };
    Scene::new(&test, rule)
        .fail(rule)
        .with("WARPLOOM_EMU_JITTER", "200000")
        .play(play)
        .says("as planned")
        .says_only_what_was_planned();
}
