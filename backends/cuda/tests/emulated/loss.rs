//! Devices that die, and those beside them.

use std::time::Duration;

use rstest::{Context, rstest};
use warploom_core::{DeviceError, GpuBackend, Queue, memory};

use crate::rig::{
    Kind, alloc, assert_lost, backend, content, fill, filled, kind, load, open, queue, work,
};
use crate::scene::Scene;

#[rstest]
#[case::at_once(1)]
#[case::soon(2)]
#[case::later(7)]
fn a_device_is_lost_after_some_launches(#[context] test: Context, #[case] launches: u32) {
    let play = || {
        let (device, other) = (open(0), open(1));
        let mut lane = queue(&device);
        let kernel = load(&device, "fill").expect("it loads");
        let slice = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        let twin = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        let pinned = alloc(&device, memory::CUDA_PINNED, 400).expect("room");
        let early = lane.record().expect("an event");
        early.wait(None).expect("nothing was wrong yet");
        for turn in 1..launches {
            fill(&mut lane, &kernel, &slice, turn).expect("a launch");
            let found = content(&mut lane, &slice).expect("a download");
            assert!(found == filled(turn, 400));
        }
        fill(&mut lane, &kernel, &slice, launches).expect("the last launch");
        let lost = lane.download(&slice, &mut [0; 400]).expect_err("it died");
        let DeviceError::Lost {
            device: id,
            message,
            ..
        } = &lost
        else {
            panic!("{lost}");
        };
        assert_eq!(*id, device.info().id);
        assert!(
            message.contains("CUDA_ERROR_ECC_UNCORRECTABLE (214)"),
            "{lost}"
        );
        assert!(
            !message.contains("launched"),
            "no kernel is to blame: {lost}"
        );
        // Every later operation answers the same.
        let late = [
            lane.upload(&[0; 400], &slice),
            lane.download(&slice, &mut [0; 400]),
            lane.copy(&slice, &twin),
            lane.copy(&slice, &pinned),
            lane.copy(&pinned, &slice),
            lane.download(&pinned, &mut [0; 400]),
            lane.wait(&early),
            fill(&mut lane, &kernel, &slice, 0),
            lane.record().map(drop),
            pinned.buffer().with_host(&mut |_| ()),
        ];
        for (at, answer) in late.into_iter().enumerate() {
            assert_eq!(answer, Err(lost.clone()), "operation {at}");
        }
        assert_lost(&device, &lost);
        assert_eq!(early.is_done(), Ok(true), "what was done stays done");
        early.wait(None).expect("what was done stays done");
        // The other device has lost nothing, and works among the ruins and after them.
        work(&other).expect("another device");
        drop((lane, kernel, slice, twin, pinned, early));
        drop(device);
        let again = backend().open(0).expect_err("it stays lost");
        assert_eq!(kind(&again), Kind::Lost, "{again}");
        work(&other).expect("another device");
        assert_eq!(backend().probe().expect("a list").len(), 2);
    };
    Scene::new(&test, "dies")
        .lose(format!("0@{launches}"))
        .play(play)
        .says("lost after")
        .says_only_what_was_planned();
}

#[rstest]
fn an_event_of_a_lost_device_ends_every_wait(#[context] test: Context) {
    let play = || {
        let device = open(1);
        let mut lane = queue(&device);
        let kernel = load(&device, "fill").expect("it loads");
        let slice = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        fill(&mut lane, &kernel, &slice, 1).expect("a launch");
        // The device may be dead before the event is recorded; then the queue says so.
        let event = match lane.record() {
            Ok(event) => event,
            Err(error) => return assert_eq!(kind(&error), Kind::Lost, "{error}"),
        };
        let lost = event.wait(Some(Duration::from_mins(1)));
        let lost = lost.expect_err("never reached");
        assert_eq!(kind(&lost), Kind::Lost, "{lost}");
        assert_eq!(event.wait(None), Err(lost.clone()));
        assert_eq!(event.is_done(), Err(lost));
        assert_eq!(event.at(), None);
        // A queue of another device that waits for it goes on or says that it cannot.
        let other = open(0);
        let mut across = queue(&other);
        if let Err(error) = across.wait(&event) {
            assert_eq!(kind(&error), Kind::Lost, "{error}");
        }
        drop(across);
        work(&open(0)).expect("another device");
    };
    Scene::new(&test, "waits")
        .lose("1@1")
        .with("WARPLOOM_EMU_JITTER", "2000")
        .play(play)
        .says("lost after")
        .says_only_what_was_planned();
}

#[rstest]
#[case::memory("ECC_UNCORRECTABLE", Kind::Lost)]
#[case::link("NVLINK_UNCORRECTABLE", Kind::Lost)]
#[case::hardware("CONTAINED", Kind::Lost)]
#[case::watchdog("LAUNCH_TIMEOUT", Kind::Lost)]
#[case::service("MPS_CLIENT_TERMINATED", Kind::Lost)]
#[case::shut_down("DEINITIALIZED", Kind::Lost)]
#[case::taken("DEVICE_UNAVAILABLE", Kind::Driver)]
#[case::mystery("UNKNOWN", Kind::Driver)]
fn a_device_is_dead_from_the_start(
    #[context] test: Context,
    #[case] error: &str,
    #[case] wanted: Kind,
) {
    let play = || {
        let backend = backend();
        let found = backend.probe().expect("a list");
        assert_eq!(found.len(), 2, "it is still listed");
        for _ in 0..2 {
            let answer = backend.open(0).expect_err("dead");
            assert_eq!(kind(&answer), wanted, "{answer}");
            let text = answer.to_string();
            for part in ["cuda:0", "cuDevicePrimaryCtxRetain", error] {
                assert!(text.contains(part), "{text}");
            }
        }
        work(&open(1)).expect("another device");
    };
    Scene::new(&test, "dead")
        .lose(format!("0@0={error}"))
        .play(play)
        .says_only_what_was_planned();
}

#[rstest]
fn both_devices_die_each_in_its_own_way(#[context] test: Context) {
    let play = || {
        for (ordinal, name) in [(0, "ECC_UNCORRECTABLE"), (1, "NVLINK_UNCORRECTABLE")] {
            let device = open(ordinal);
            let lost = work(&device).expect_err("it dies");
            assert_eq!(kind(&lost), Kind::Lost);
            assert!(lost.to_string().contains(name), "{lost}");
            assert_lost(&device, &lost);
        }
    };
    Scene::new(&test, "both")
        .lose("0@1;1@2=NVLINK_UNCORRECTABLE")
        .play(play)
        .says_only_what_was_planned();
}
