//! What each of the driver's numbers becomes.

use rstest::{Context, rstest};
use warploom_core::{DeviceError, LoadError, Queue, memory};

use crate::rig::{Kind, alloc, assert_lost, content, fill, filled, kind, load, open, queue};
use crate::scene::Scene;

#[rstest]
#[case(1, Kind::Driver)]
#[case(2, Kind::OutOfMemory)]
#[case(3, Kind::Driver)]
#[case(4, Kind::Lost)]
#[case(46, Kind::Driver)]
#[case(100, Kind::Driver)]
#[case(101, Kind::Driver)]
#[case(201, Kind::Driver)]
#[case(209, Kind::Driver)]
#[case(214, Kind::Lost)]
#[case(220, Kind::Lost)]
#[case(226, Kind::Lost)]
#[case(304, Kind::Driver)]
#[case(400, Kind::Driver)]
#[case(401, Kind::Driver)]
#[case(600, Kind::Driver)]
#[case(700, Kind::Lost)]
#[case(701, Kind::Driver)]
#[case(702, Kind::Lost)]
#[case(703, Kind::Driver)]
#[case(709, Kind::Lost)]
#[case(710, Kind::Lost)]
#[case(714, Kind::Lost)]
#[case(715, Kind::Lost)]
#[case(716, Kind::Lost)]
#[case(717, Kind::Lost)]
#[case(718, Kind::Lost)]
#[case(719, Kind::Lost)]
#[case(720, Kind::Driver)]
#[case(721, Kind::Lost)]
#[case(800, Kind::Driver)]
#[case(801, Kind::Unsupported)]
#[case(802, Kind::Driver)]
#[case(806, Kind::Lost)]
#[case(810, Kind::Lost)]
#[case(900, Kind::Driver)]
#[case(911, Kind::Driver)]
#[case(999, Kind::Driver)]
fn a_launch_fails(#[context] test: Context, #[case] code: u32, #[case] wanted: Kind) {
    let play = || {
        let device = open(0);
        let mut lane = queue(&device);
        let kernel = load(&device, "fill").expect("it loads");
        let slice = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        fill(&mut lane, &kernel, &slice, 1).expect("the first launch");
        let error = fill(&mut lane, &kernel, &slice, 2).expect_err("it was ordered");
        assert_eq!(kind(&error), wanted, "{error}");
        let text = error.to_string();
        assert!(text.contains("cuda:0"), "{text}");
        if wanted == Kind::Lost {
            let number = format!("({code})");
            assert!(
                text.contains("cuLaunchKernel") && text.contains(&number),
                "{text}"
            );
            assert_eq!(lane.record().err(), Some(error.clone()));
            return assert_lost(&device, &error);
        }
        if let DeviceError::Driver { call, message, .. } = &error {
            assert_eq!(call, "cuLaunchKernel");
            assert!(message.starts_with("CUDA_ERROR_"), "{message}");
            assert!(message.contains(&format!(" ({code}): ")), "{message}");
        }
        // The failed launch did nothing, and the next one works.
        let found = content(&mut lane, &slice).expect("a download");
        assert!(found == filled(1, 400));
        fill(&mut lane, &kernel, &slice, 3).expect("the third launch");
        let found = content(&mut lane, &slice).expect("a download");
        assert!(found == filled(3, 400));
    };
    Scene::new(&test, "second launch")
        .fail(format!("cuLaunchKernel#2={code}"))
        .play(play)
        .says("call 2, as planned")
        .says_only_what_was_planned();
}

#[rstest]
#[case::name("cuGetErrorName", "CUDA error (999): unknown error")]
#[case::words("cuGetErrorString", "CUDA_ERROR_UNKNOWN (999)")]
fn a_driver_that_cannot_explain_itself_gives_its_number(
    #[context] test: Context,
    #[case] call: &str,
    #[case] wanted: &str,
) {
    let play = || {
        let device = open(0);
        let mut lane = queue(&device);
        let kernel = load(&device, "fill").expect("it loads");
        let slice = alloc(&device, memory::CUDA_DEVICE, 400).expect("room");
        let error = fill(&mut lane, &kernel, &slice, 2).expect_err("it was ordered");
        let told = format!("cuLaunchKernel failed on cuda:0: {wanted}");
        assert_eq!(error.to_string(), told);
    };
    Scene::new(&test, "mute")
        .fail(format!("cuLaunchKernel#1=UNKNOWN;{call}#1+=UNKNOWN"))
        .play(play)
        .says_only_what_was_planned();
}

#[rstest]
#[case::stub("STUB_LIBRARY", Some("the toolkit's link stub"))]
#[case::not_started("NOT_INITIALIZED", Some("the kernel module is not loaded"))]
#[case::system("OPERATING_SYSTEM", Some("the kernel module is not loaded"))]
#[case::fabric("SYSTEM_NOT_READY", Some("the fabric manager"))]
#[case::mismatch("SYSTEM_DRIVER_MISMATCH", Some("restart the machine"))]
#[case::compat("COMPAT_NOT_SUPPORTED_ON_DEVICE", Some("forward-compatibility"))]
#[case::unknown("UNKNOWN", None)]
fn a_driver_that_does_not_start_is_broken_and_may_start_later(
    #[context] test: Context,
    #[case] error: &str,
    #[case] hint: Option<&str>,
) {
    let play = || {
        let broken = warploom_cuda::ENTRY.load().expect_err("it was ordered");
        assert!(matches!(broken, LoadError::Broken { .. }), "{broken:?}");
        let text = broken.to_string();
        let began = format!("cuInit answered CUDA_ERROR_{error} (");
        assert!(text.starts_with(&began), "{text}");
        assert_eq!(text.contains("; "), hint.is_some(), "{text}");
        assert!(hint.is_none_or(|hint| text.contains(hint)), "{text}");
        let backend = warploom_cuda::ENTRY.load().expect("it starts now");
        assert_eq!(backend.probe().expect("a list").len(), 2);
    };
    Scene::new(&test, "does not start")
        .fail(format!("cuInit#1={error}"))
        .play(play)
        .says_only_what_was_planned();
}
