//! Kernels that bring their device down for the rest of the process.

use rstest::{Context, rstest};
use warploom_core::{Arg, DeviceError, Grid, Queue, memory};

use crate::rig::{alloc, assert_lost, content, fill, filled, load, open, queue, work};
use crate::scene::Scene;

#[rstest]
#[case::out_of_bounds("beyond", "CUDA_ERROR_ILLEGAL_ADDRESS (700)")]
#[case::misaligned("crooked", "CUDA_ERROR_MISALIGNED_ADDRESS (716)")]
#[case::trap("trapped", "CUDA_ERROR_LAUNCH_FAILED (719)")]
fn a_fault_names_its_kernel_and_stays(
    #[context] test: Context,
    #[case] name: &str,
    #[case] code: &str,
) {
    let play = || {
        let (device, other) = (open(0), open(1));
        let (mut lane, mut beside) = (queue(&device), queue(&device));
        let good = load(&device, "fill").expect("it loads");
        let bad = load(&device, name).expect("it loads");
        let slice = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        fill(&mut lane, &good, &slice, 5).expect("a launch");
        assert!(content(&mut lane, &slice).expect("a download") == filled(5, 400));
        let before = beside.record().expect("an event");
        before.wait(None).expect("nothing was wrong yet");
        // A launch is taken; the fault is told by whoever waits.
        lane.launch(&bad, Grid::groups([1, 1, 1]), &[Arg::from(slice.clone())])
            .expect("a launch");
        let lost = lane.download(&slice, &mut [0; 400]).expect_err("a fault");
        let DeviceError::Lost {
            device: id,
            message,
            ..
        } = &lost
        else {
            panic!("{lost}");
        };
        assert_eq!(*id, device.info().id);
        assert!(message.starts_with(code), "{lost}");
        let suspects = format!("; launched last, latest first: `{name}`, `fill`");
        assert!(message.ends_with(&suspects), "{lost}");
        // Not this queue alone: the whole device, for as long as anybody has it open.
        for _ in 0..2 {
            assert_eq!(fill(&mut lane, &good, &slice, 6), Err(lost.clone()));
            assert_eq!(fill(&mut beside, &good, &slice, 6), Err(lost.clone()));
            assert_eq!(beside.record().err(), Some(lost.clone()));
            assert_lost(&device, &lost);
        }
        assert_eq!(before.is_done(), Ok(true), "what was done stays done");
        work(&other).expect("another device");
    };
    Scene::new(&test, "faults")
        .play(play)
        .says(&format!("kernel `{name}`"));
    // A new process begins anew, and the same device works.
    Scene::new(&test, "recovers")
        .play(|| {
            work(&open(0)).expect("the device works again");
            work(&open(1)).expect("the other as well");
        })
        .says_nothing();
}

#[rstest]
fn kernels_launched_last_are_named_once_each_and_not_all(#[context] test: Context) {
    let play = || {
        let device = open(0);
        let mut lane = queue(&device);
        let slice = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        let good = load(&device, "fill").expect("it loads");
        for turn in 0..10 {
            fill(&mut lane, &good, &slice, turn).expect("a launch");
        }
        let bad = load(&device, "trapped").expect("it loads");
        lane.launch(&bad, Grid::groups([1, 1, 1]), &[Arg::from(slice.clone())])
            .expect("a launch");
        // Whether the fault was met already or not, these are refused or dropped.
        let _ = fill(&mut lane, &good, &slice, 11);
        let lost = lane.download(&slice, &mut [0; 400]).expect_err("a fault");
        let text = lost.to_string();
        assert_eq!(text.matches("`fill`").count(), 1, "{text}");
        assert_eq!(text.matches("`trapped`").count(), 1, "{text}");
    };
    Scene::new(&test, "names")
        .play(play)
        .says("kernel `trapped`");
}
