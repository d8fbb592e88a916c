//! Allocations.

use crate::Scene;
use crate::rig::*;

/// What a context takes.
const CONTEXT: usize = 8 << 20;

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("memory_is_counted_exactly", memory_is_counted_exactly)
        .with(&[("WARPLOOM_EMU_DEVICES", "memory=32MiB")]),
    Scene::new("a_device_too_small_for_a_context", too_small)
        .with(&[("WARPLOOM_EMU_DEVICES", "memory=1MiB")]),
    Scene::new("fresh_memory_is_poisoned", fresh_memory_is_poisoned),
    Scene::new("wrong_frees_are_reported", wrong_frees_are_reported).says(&[
        "was freed before",
        "is inside the allocation of 1000 bytes",
        "nothing was allocated at 0x10",
        "is no device memory that can be freed so",
    ]),
    Scene::new(
        "copies_stay_in_their_allocations",
        copies_stay_in_their_allocations,
    )
    .says(&[
        "101 bytes at",
        "leave the allocation of 100 bytes",
        "which has been freed",
        "is given as host memory and is device memory",
        "overlap",
    ]),
    Scene::new(
        "page_locked_memory_is_limited",
        page_locked_memory_is_limited,
    )
    .with(&[("WARPLOOM_EMU_PINNED", "1MiB")]),
    Scene::new("registered_memory", registered_memory),
    Scene::new("pointers_tell_what_they_are", pointers_tell_what_they_are),
    Scene::new("pitched_memory", pitched_memory),
    Scene::new("many_threads_allocate", many_threads_allocate),
    Scene::new("freeing_waits_for_work", freeing_waits_for_work),
];

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(
        Out::new(&raw mut free),
        Out::new(&raw mut total)
    ));
    free
}

fn try_alloc(bytes: usize) -> Status {
    let mut address = 0;
    cu!(cuMemAlloc_v2(Out::new(&raw mut address), bytes))
}

fn memory_is_counted_exactly() {
    enter(0);
    assert_eq!(free_bytes(), (32 << 20) - CONTEXT);
    let one = alloc(1);
    assert_eq!(free_bytes(), (32 << 20) - CONTEXT - 256);
    assert_eq!(try_alloc(free_bytes() + 1), Status::OUT_OF_MEMORY);
    assert_eq!(try_alloc(usize::MAX), Status::OUT_OF_MEMORY);
    assert_eq!(try_alloc(0), Status::INVALID_VALUE);
    let all = alloc(free_bytes());
    assert_eq!(free_bytes(), 0);
    assert_eq!(try_alloc(1), Status::OUT_OF_MEMORY);
    ok!(cuMemFree_v2(one));
    ok!(cuMemFree_v2(all));
    assert_eq!(free_bytes(), (32 << 20) - CONTEXT);
    // Again and again: addresses come back, and nothing is lost.
    for _ in 0..100 {
        ok!(cuMemFree_v2(alloc(24 << 20)));
    }
}

fn too_small() {
    ok!(cuInit(0));
    let mut context = Handle::NULL;
    let answer = cu!(cuDevicePrimaryCtxRetain(Out::new(&raw mut context), 0));
    assert_eq!(answer, Status::OUT_OF_MEMORY);
}

fn fresh_memory_is_poisoned() {
    enter(0);
    let address = alloc(1000);
    assert_eq!(address % 256, 0);
    assert_eq!(download(address, 1000), [0xcb; 1000]);
    upload(address, &[1; 1000]);
    ok!(cuMemFree_v2(address));
    assert_eq!(download(alloc(1000), 1000), [0xcb; 1000]);
    let page_locked: u64 = made!(cuMemHostAlloc(100, 0));
    assert_eq!(peek(page_locked, 100), [0xcb; 100]);
}

fn wrong_frees_are_reported() {
    enter(0);
    let address = alloc(1000);
    assert_eq!(cu!(cuMemFree_v2(address + 256)), Status::INVALID_VALUE);
    ok!(cuMemFree_v2(address));
    assert_eq!(cu!(cuMemFree_v2(address)), Status::INVALID_VALUE);
    assert_eq!(cu!(cuMemFree_v2(0x10)), Status::INVALID_VALUE);
    let page_locked = pinned(&[0; 10]);
    assert_eq!(cu!(cuMemFree_v2(page_locked)), Status::INVALID_VALUE);
    ok!(cuMemFreeHost(page_locked));
    assert_eq!(cu!(cuMemFreeHost(page_locked)), Status::INVALID_VALUE);
    // Mistakes of calls do not end the context.
    ok!(cuMemFree_v2(alloc(1)));
}

fn copies_stay_in_their_allocations() {
    enter(0);
    let (a, b) = (alloc(100), alloc(100));
    let bytes = vec![1; 200];
    let invalid = Status::INVALID_VALUE;
    ok!(cuMemcpyHtoD_v2(a, host(&bytes), 100));
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, host(&bytes), 101)), invalid);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a + 1, host(&bytes), 100)), invalid);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a + 100, host(&bytes), 1)), invalid);
    assert_eq!(cu!(cuMemcpyHtoD_v2(host(&bytes), host(&bytes), 1)), invalid);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, b, 1)), invalid);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, 0, 1)), invalid);
    assert_eq!(
        cu!(cuMemcpy(a, a + (1 << 20), 1)),
        invalid,
        "no memory of the host either"
    );
    assert_eq!(cu!(cuMemcpyDtoD_v2(a, a + 40, 41)), invalid);
    ok!(cuMemcpyDtoD_v2(a, a + 50, 50));
    ok!(cuMemcpyDtoD_v2(a, b, 0));
    ok!(cuMemFree_v2(b));
    assert_eq!(cu!(cuMemcpyDtoD_v2(a, b, 1)), invalid);
    assert_eq!(cu!(cuMemsetD8_v2(a, 0, 101)), invalid);
    assert_eq!(cu!(cuMemsetD32_v2(a + 2, 0, 1)), invalid);
    ok!(cuCtxSynchronize());
}

fn page_locked_memory_is_limited() {
    enter(0);
    let mut address = 0;
    let more = cu!(cuMemHostAlloc(Out::new(&raw mut address), (1 << 20) + 1, 0));
    assert_eq!(more, Status::OUT_OF_MEMORY);
    let all: u64 = made!(cuMemAllocHost_v2(1 << 20));
    assert_eq!(
        cu!(cuMemHostAlloc(Out::new(&raw mut address), 1, 0)),
        Status::OUT_OF_MEMORY
    );
    ok!(cuMemFreeHost(all));
    let _: u64 = made!(cuMemHostAlloc(1 << 20, 7));
    assert_eq!(
        cu!(cuMemHostAlloc(Out::new(&raw mut address), 1, 8)),
        Status::INVALID_VALUE
    );
}

fn registered_memory() {
    enter(0);
    let bytes = vec![7_u8; 1000];
    let place = host(&bytes);
    ok!(cuMemHostRegister_v2(place, 1000, 0));
    let again = cu!(cuMemHostRegister_v2(place + 500, 1000, 0));
    assert_eq!(again, Status::HOST_MEMORY_ALREADY_REGISTERED);
    assert_eq!(made!(cuMemHostGetDevicePointer_v2(place, 0)), place);
    let address = alloc(1000);
    let beyond = cu!(cuMemcpyHtoD_v2(address, place + 1, 1000));
    assert_eq!(beyond, Status::INVALID_VALUE, "its length is known");
    ok!(cuMemcpyHtoD_v2(address, place, 1000));
    ok!(cuMemHostUnregister(place));
    let again = cu!(cuMemHostUnregister(place));
    assert_eq!(again, Status::HOST_MEMORY_NOT_REGISTERED);
    assert_eq!(download(address, 1000), bytes);
}

fn attribute<T: Default>(number: u32, address: u64) -> Result<T, Status> {
    let mut value = T::default();
    let place = (&raw mut value).cast();
    match cu!(cuPointerGetAttribute(place, number, address)) {
        Status::SUCCESS => Ok(value),
        status => Err(status),
    }
}

fn pointers_tell_what_they_are() {
    let context = enter(1);
    let address = alloc(1000);
    let page_locked = pinned(&[0; 100]);
    assert_eq!(attribute::<usize>(1, address), Ok(context.0));
    assert_eq!(attribute::<u32>(2, address + 999), Ok(2));
    assert_eq!(attribute::<u32>(2, page_locked), Ok(1));
    assert_eq!(
        attribute::<u32>(2, address + 1000),
        Err(Status::INVALID_VALUE)
    );
    assert_eq!(attribute::<i32>(9, address), Ok(1));
    assert_eq!(attribute::<u64>(11, address + 10), Ok(address));
    assert_eq!(attribute::<u64>(12, address + 10), Ok(1000));
    let (mut base, mut bytes) = (0, 0);
    ok!(cuMemGetAddressRange_v2(
        Out::new(&raw mut base),
        Out::new(&raw mut bytes),
        address + 7
    ));
    assert_eq!((base, bytes), (address, 1000));
    // Several at once are answered for any address.
    let ordinary = host(&[0]);
    let (mut kind, mut ordinal) = (9_u32, 9_i32);
    let data = [(&raw mut kind).cast(), (&raw mut ordinal).cast()];
    ok!(cuPointerGetAttributes(
        2,
        In::new([2, 9].as_ptr()),
        In::new(data.as_ptr()),
        ordinary
    ));
    assert_eq!((kind, ordinal), (0, -2));
}

fn pitched_memory() {
    enter(0);
    let (mut address, mut pitch) = (0, 0);
    let (at, step) = (Out::new(&raw mut address), Out::new(&raw mut pitch));
    ok!(cuMemAllocPitch_v2(at, step, 1000, 10, 4));
    assert_eq!(pitch, 1024);
    ok!(cuMemsetD2D8_v2(address, pitch, 5, 1000, 10));
    let content = download(address, 10_240);
    for row in content.chunks(1024) {
        assert_eq!(
            (&row[..1000], &row[1000..]),
            (&[5; 1000][..], &[0xcb; 24][..])
        );
    }
    assert_eq!(
        cu!(cuMemAllocPitch_v2(at, step, 1000, 10, 3)),
        Status::INVALID_VALUE
    );
}

fn many_threads_allocate() {
    let context = enter(0);
    let before = free_bytes();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            scope.spawn(move || {
                ok!(cuCtxSetCurrent(context));
                for round in 1..50_usize {
                    let bytes = round * 100;
                    let address = alloc(bytes);
                    let written = vec![thread; bytes];
                    ok!(cuMemcpyHtoD_v2(address, host(&written), bytes));
                    let mut back = vec![0; bytes];
                    ok!(cuMemcpyDtoH_v2(host_mut(&mut back), address, bytes));
                    assert_eq!(back, written);
                    ok!(cuMemFree_v2(address));
                }
            });
        }
    });
    assert_eq!(free_bytes(), before);
}

fn freeing_waits_for_work() {
    let context = enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(100);
    let gate = Gate::close(stream);
    ok!(cuMemsetD8Async(address, 1, 100, stream));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            ok!(cuCtxSetCurrent(context));
            ok!(cuMemFree_v2(address));
        });
        gate.wait();
        gate.open();
    });
    ok!(cuStreamSynchronize(stream));
}
