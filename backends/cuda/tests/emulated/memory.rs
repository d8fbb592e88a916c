//! Memory that runs out, really or on order.

use rstest::{Context, rstest};
use warploom_core::{DeviceError, GpuBackend, MemoryKind, Queue, QueueDesc, Slice, memory};

use crate::rig::{Kind, alloc, backend, content, fill, filled, kind, load, open, queue, work};
use crate::scene::Scene;

const MIB: u64 = 1 << 20;

/// Two cards of 64 MiB, of which a context takes 8, and as much memory to lock.
fn small<'a>(test: &'a Context, name: &str) -> Scene<'a> {
    Scene::new(test, name)
        .devices("memory=64MiB;memory=64MiB")
        .with("WARPLOOM_EMU_PINNED", "64MiB")
}

#[rstest]
#[case::of_the_device(memory::CUDA_DEVICE, 5, Some(6 * MIB))]
#[case::to_lock(memory::CUDA_PINNED, 6, None)]
fn exhausted_memory_is_told_with_numbers_and_comes_back(
    #[context] test: Context,
    #[case] sort: MemoryKind,
    #[case] fit: usize,
    #[case] left: Option<u64>,
) {
    let play = || {
        let (device, other) = (open(0), open(1));
        let mut held: Vec<Slice> = Vec::new();
        let error = loop {
            match alloc(&device, sort, 10 * MIB) {
                Ok(slice) => held.push(slice),
                Err(error) => break error,
            }
        };
        assert_eq!(held.len(), fit);
        let id = device.info().id;
        let wanted = DeviceError::OutOfMemory {
            device: id,
            kind: sort,
            asked: 10 * MIB,
            free: left,
        };
        assert_eq!(error, wanted);
        let before = device.memory().expect("numbers").ours;
        assert_eq!(before, fit as u64 * 10 * MIB, "what failed is not counted");
        // What is small still fits, and the device works on; without memory to lock, uploads are
        // slower and nothing else.
        work(&device).expect("there is room for little");
        work(&other).expect("its memory is its own");
        drop(held);
        assert_eq!(device.memory().expect("numbers").ours, 0);
        let again: Vec<_> = (0..fit).map(|_| alloc(&device, sort, 10 * MIB)).collect();
        assert!(again.iter().all(Result::is_ok), "all of it came back");
    };
    small(&test, "fills up").play(play).says_nothing();
}

#[rstest]
fn work_in_flight_gives_its_memory_back_before_an_allocation_fails(#[context] test: Context) {
    let play = || {
        let device = open(0);
        let kernel = load(&device, "fill").expect("it loads");
        let mut queue = queue(&device);
        for turn in 0..6 {
            // The last one fills the card, is dropped while a kernel works on it, and nobody waits.
            let slice = alloc(&device, memory::CUDA_DEVICE, 40 * MIB).expect("room for one");
            fill(&mut queue, &kernel, &slice, turn).expect("a launch");
        }
    };
    small(&test, "reclaims").play(play).says_nothing();
}

#[rstest]
#[case::for_a_context(4)]
#[case::for_the_first_buffer(8)]
fn a_card_that_is_full_is_out_of_memory(#[context] test: Context, #[case] mebibytes: u64) {
    let play = || {
        let opened = backend().open(0);
        let error = match opened {
            Err(error) => error,
            Ok(device) => device.alloc(memory::CUDA_DEVICE, 64).expect_err("full"),
        };
        assert_eq!(kind(&error), Kind::OutOfMemory, "{error}");
        work(&open(1)).expect("the other card has room");
    };
    Scene::new(&test, "full")
        .devices(format!("memory={mebibytes}MiB;memory=64MiB"))
        .play(play)
        .says_nothing();
}

#[rstest]
#[case::device_first("cuMemAlloc_v2", memory::CUDA_DEVICE, 1)]
#[case::device_second("cuMemAlloc_v2", memory::CUDA_DEVICE, 2)]
#[case::device_third("cuMemAlloc_v2", memory::CUDA_DEVICE, 3)]
#[case::pinned_first("cuMemHostAlloc", memory::CUDA_PINNED, 1)]
#[case::pinned_second("cuMemHostAlloc", memory::CUDA_PINNED, 2)]
#[case::pinned_third("cuMemHostAlloc", memory::CUDA_PINNED, 3)]
fn the_nth_allocation_fails_on_order(
    #[context] test: Context,
    #[case] call: &str,
    #[case] sort: MemoryKind,
    #[case] nth: usize,
) {
    // An allocation is tried three times, with what is no longer used given back in between. So
    // three refusals are one failure, and fewer are none.
    let refusals = |count: usize| {
        let rules = (nth..nth + count).map(|n| format!("{call}#{n}=OUT_OF_MEMORY"));
        rules.collect::<Vec<_>>().join(";")
    };
    let attempts = |wanted: Option<usize>| {
        let device = open(0);
        let mut held = Vec::new();
        for at in 1..=4 {
            match alloc(&device, sort, 4096) {
                Ok(slice) => held.push(slice),
                Err(error) => {
                    assert_eq!(Some(at), wanted, "{error}");
                    assert_eq!(kind(&error), Kind::OutOfMemory, "{error}");
                    let text = error.to_string();
                    let asked = format!("cuda:0 has no room for 4.0 KiB of {sort}");
                    assert!(text.starts_with(&asked), "{text}");
                }
            }
        }
        assert_eq!(held.len(), if wanted.is_some() { 3 } else { 4 });
        let ours = device.memory().expect("numbers").ours;
        assert_eq!(ours, held.len() as u64 * 4096, "what failed is not counted");
        work(&device).expect("the device works on");
        work(&open(1)).expect("the other device works on");
    };
    for count in [1, 2] {
        Scene::new(&test, format!("{count} refusals"))
            .fail(refusals(count))
            .play(|| attempts(None))
            .says("as planned")
            .says_only_what_was_planned();
    }
    Scene::new(&test, "3 refusals")
        .fail(refusals(3))
        .play(|| attempts(Some(nth)))
        .says("as planned")
        .says_only_what_was_planned();
}

#[rstest]
fn uploads_do_without_memory_to_lock(#[context] test: Context) {
    let play = || {
        let device = open(0);
        let mut queue = queue(&device);
        let slice = alloc(&device, memory::CUDA_DEVICE, 9 * MIB).expect("room");
        let bytes = filled(7, 9 << 20);
        queue.upload(&bytes, &slice).expect("an upload");
        assert!(content(&mut queue, &slice).expect("a download") == bytes);
        let error = alloc(&device, memory::CUDA_PINNED, 64).expect_err("none to lock");
        assert_eq!(kind(&error), Kind::OutOfMemory, "{error}");
    };
    Scene::new(&test, "never any")
        .fail("cuMemHostAlloc#1+=OUT_OF_MEMORY")
        .play(play)
        .says_only_what_was_planned();
}

#[rstest]
#[case::a_queue("cuStreamCreate#2=OUT_OF_MEMORY")]
#[case::an_event("cuEventCreate#2=OUT_OF_MEMORY")]
#[case::code("cuModuleLoadDataEx#1=OUT_OF_MEMORY")]
#[case::a_launch("cuLaunchKernel#1=OUT_OF_MEMORY")]
fn other_things_need_memory_too(#[context] test: Context, #[case] rule: &str) {
    let play = || {
        let device = open(0);
        let error = work(&device).expect_err("it was ordered");
        let DeviceError::OutOfMemory { kind, free, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*kind, memory::CUDA_DEVICE);
        assert!(free.is_some(), "the device can be asked: {error}");
        work(&device).expect("the device works on");
        drop(device.queue(&QueueDesc::named("more")).expect("a queue"));
    };
    Scene::new(&test, "no room")
        .fail(rule)
        .play(play)
        .says("as planned")
        .says_only_what_was_planned();
}
