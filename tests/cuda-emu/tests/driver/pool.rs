//! Stream-ordered memory.

use warploom_cuda_emu::driver::ffi::{MemAccess, MemLocation, MemPoolProps};

use crate::Scene;
use crate::rig::*;

const SMALL: &[(&str, &str)] = &[
    ("WARPLOOM_EMU_DEVICES", "memory=16MiB;memory=16MiB"),
    ("WARPLOOM_EMU_JITTER", "0"),
];

pub(crate) const SCENES: &[Scene] = &[
    Scene::new(
        "memory_comes_and_goes_in_order",
        memory_comes_and_goes_in_order,
    )
    .with(SMALL),
    Scene::new("use_before_the_allocation", use_before_the_allocation)
        .with(SMALL)
        .says(&["cuMemsetD8Async, when it ran: 10 bytes at"]),
    Scene::new("use_after_the_free", use_after_the_free)
        .with(SMALL)
        .says(&["cuMemsetD8Async, when it ran", "has been freed"]),
    Scene::new("freed_twice_in_order", freed_twice_in_order)
        .with(SMALL)
        .says(&["cuMemFreeAsync, when it ran", "was freed before"]),
    Scene::new("pools_are_counted", pools_are_counted).with(SMALL),
    Scene::new("own_pools", own_pools).with(SMALL),
];

fn alloc_async(bytes: usize, stream: Handle) -> u64 {
    made!(cuMemAllocAsync(bytes, stream))
}

fn memory_comes_and_goes_in_order() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc_async(100, stream);
    ok!(cuMemsetD8Async(address, 5, 50, stream));
    let bytes = pinned(&[0; 100]);
    ok!(cuMemcpyDtoHAsync_v2(bytes, address, 100, stream));
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(peek(bytes, 100)[..50], [5; 50]);
    assert_eq!(peek(bytes, 100)[50..], [0xcb; 50]);
    // What was allocated in one way can be freed in the other.
    let address = alloc_async(100, stream);
    ok!(cuStreamSynchronize(stream));
    ok!(cuMemFree_v2(address));
    ok!(cuMemFreeAsync(alloc(100), stream));
    ok!(cuStreamSynchronize(stream));
}

fn use_before_the_allocation() {
    enter(0);
    let (a, b) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let gate = Gate::close(a);
    let address = alloc_async(10, a);
    ok!(cuMemsetD8Async(address, 1, 10, b));
    assert_eq!(cu!(cuStreamSynchronize(b)), Status::ILLEGAL_ADDRESS);
    gate.open();
}

fn use_after_the_free() {
    enter(0);
    let (a, b) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let address = alloc_async(10, a);
    ok!(cuStreamSynchronize(a));
    let gate = Gate::close(b);
    ok!(cuMemsetD8Async(address, 1, 10, b));
    ok!(cuMemFreeAsync(address, a));
    ok!(cuStreamSynchronize(a));
    gate.open();
    assert_eq!(cu!(cuStreamSynchronize(b)), Status::ILLEGAL_ADDRESS);
}

fn freed_twice_in_order() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc_async(10, stream);
    let gate = Gate::close(stream);
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuMemFreeAsync(address, stream));
    gate.open();
    assert_eq!(cu!(cuStreamSynchronize(stream)), Status::ILLEGAL_ADDRESS);
}

fn attribute(pool: Handle, number: u32) -> u64 {
    let mut value = 0_u64;
    ok!(cuMemPoolGetAttribute(pool, number, (&raw mut value).cast()));
    value
}

fn set_attribute(pool: Handle, number: u32, value: u64) {
    ok!(cuMemPoolSetAttribute(
        pool,
        number,
        (&raw const value).cast()
    ));
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(
        Out::new(&raw mut free),
        Out::new(&raw mut total)
    ));
    free
}

fn pools_are_counted() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let pool: Handle = made!(cuDeviceGetDefaultMemPool(0));
    assert_eq!(made!(cuDeviceGetMemPool(0)), pool);
    let before = free_bytes();
    let address = alloc_async(1 << 20, stream);
    assert_eq!((attribute(pool, 7), attribute(pool, 5)), (1 << 20, 1 << 20));
    assert_eq!(free_bytes(), before - (1 << 20));
    set_attribute(pool, 4, 1 << 19);
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!((attribute(pool, 7), attribute(pool, 8)), (0, 1 << 20));
    assert_eq!(free_bytes(), before - (1 << 19), "the threshold is kept");
    ok!(cuMemPoolTrimTo(pool, 0));
    assert_eq!(free_bytes(), before);
    let mut none = 0;
    let more = cu!(cuMemAllocAsync(Out::new(&raw mut none), before + 1, stream));
    assert_eq!(more, Status::OUT_OF_MEMORY);
    assert_eq!(cu!(cuMemPoolDestroy(pool)), Status::INVALID_VALUE);
}

fn own_pools() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let mut props = MemPoolProps {
        kind: 1,
        handle_types: 0,
        location: MemLocation { kind: 1, id: 0 },
        security: std::ptr::null_mut(),
        max_size: 4096,
        reserved: [0; 56],
    };
    let pool: Handle = made!(cuMemPoolCreate(In::from(&props)));
    let before = free_bytes();
    let address: u64 = made!(cuMemAllocFromPoolAsync(4096, pool, stream));
    let mut none = 0;
    let more = cu!(cuMemAllocFromPoolAsync(
        Out::new(&raw mut none),
        1,
        pool,
        stream
    ));
    assert_eq!(more, Status::OUT_OF_MEMORY, "beyond the pool's own limit");
    ok!(cuDeviceSetMemPool(0, pool));
    assert_eq!(made!(cuDeviceGetMemPool(0)), pool);
    let other = MemLocation { kind: 1, id: 1 };
    let mut flags = 9;
    ok!(cuMemPoolGetAccess(
        Out::new(&raw mut flags),
        pool,
        In::from(&other)
    ));
    assert_eq!(flags, 0);
    let access = MemAccess {
        location: other,
        flags: 3,
    };
    ok!(cuMemPoolSetAccess(pool, In::from(&access), 1));
    ok!(cuMemPoolGetAccess(
        Out::new(&raw mut flags),
        pool,
        In::from(&other)
    ));
    assert_eq!(flags, 3);
    ok!(cuMemPoolDestroy(pool));
    assert_ne!(made!(cuDeviceGetMemPool(0)), pool);
    ok!(cuMemsetD8Async(address, 1, 4096, stream));
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuStreamSynchronize(stream));
    props.handle_types = 1;
    let mut shared = Handle::NULL;
    let answer = cu!(cuMemPoolCreate(Out::new(&raw mut shared), In::from(&props)));
    assert_eq!(answer, Status::NOT_SUPPORTED);
    assert_eq!(free_bytes(), before);
}
