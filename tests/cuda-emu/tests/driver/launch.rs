//! Launches, and what goes wrong in them.

use warploom_cuda_emu::driver::ffi::LaunchConfig;

use crate::Scene;
use crate::kernels::*;
use crate::rig::*;

const STEADY: &[(&str, &str)] = &[("WARPLOOM_EMU_JITTER", "0")];

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("kernels_run_on_both_devices", kernels_run_on_both_devices),
    Scene::new("parameters_are_packed", parameters_are_packed).says(&[
        "kernel `pack`: a parameter is a null pointer",
        "has another size than the kernel's",
    ]),
    Scene::new("shapes_are_checked", shapes_are_checked).says(&[
        "a grid of [0, 1, 1] blocks",
        "a block of [1025, 1, 1] threads",
        "a block of 65 threads, the kernel allows 64",
        "49153 bytes of dynamic shared memory, at most 49152",
    ]),
    Scene::new("dynamic_shared_memory", dynamic_shared_memory),
    Scene::new("launches_with_attributes", launches_with_attributes).says(&["launch attribute 2"]),
    Scene::new("occupancy", occupancy),
    Scene::new("out_of_bounds_by_one", out_of_bounds_by_one).says(&[
        "device 0: CUDA_ERROR_ILLEGAL_ADDRESS: kernel `fill`, block [3, 0, 0], thread [4, 0, 0]",
    ]),
    Scene::new("misaligned", misaligned).says(&["CUDA_ERROR_MISALIGNED_ADDRESS: kernel `store`"]),
    Scene::new("trapped", trapped).says(&["kernel `stop`"]),
    Scene::new("use_after_free_in_a_kernel", use_after_free).says(&["has been freed"]),
    Scene::new("wild_addresses_in_a_kernel", wild_addresses),
    Scene::new("memory_of_another_device", memory_of_another_device)
        .says(&["it belongs to a device that is no peer"]),
    Scene::new("memory_of_a_peer", memory_of_a_peer),
    Scene::new(
        "page_locked_memory_in_a_kernel",
        page_locked_memory_in_a_kernel,
    ),
    Scene::new("what_waits_behind_a_fault_is_dropped", dropped_work).with(STEADY),
    Scene::new(
        "a_fault_ends_with_its_context",
        a_fault_ends_with_its_context,
    ),
    Scene::new("kernels_of_many_threads", kernels_of_many_threads),
];

fn kernels_run_on_both_devices() {
    for device in 0..2 {
        enter(device);
        let address = alloc(400);
        let kernel = kernel(c"fill");
        let stream = stream(NON_BLOCKING);
        assert_eq!(fill(kernel, address, 90, 7, stream), Status::SUCCESS);
        ok!(cuStreamSynchronize(stream));
        let content = numbers(address, 100);
        assert_eq!(content[..90], [7; 90]);
        assert_eq!(content[90..], [0xcbcb_cbcb; 10]);
    }
}

fn parameters_are_packed() {
    enter(0);
    let address = alloc(12);
    let kernel = kernel(c"pack");
    let params = [
        param(&200_u8),
        param(&address),
        param(&[1_u32, 2, 3]),
        param(&60_000_u16),
    ];
    assert_eq!(launch(kernel, (1, 1), 0, DEFAULT, &params), Status::SUCCESS);
    assert_eq!(numbers(address, 3), [200, 3, 60_000]);
    let missing = [params[0], std::ptr::null(), params[2], params[3]];
    assert_eq!(
        launch(kernel, (1, 1), 0, DEFAULT, &missing),
        Status::INVALID_VALUE
    );
    // The same as one block: 8 bytes for the first, then 8, 12, and 2.
    let mut block = [0_u8; 30];
    block[0] = 100;
    block[8..16].copy_from_slice(&address.to_le_bytes());
    block[24] = 9;
    block[28] = 4;
    let launch_block = |bytes: usize| {
        let extra = [
            1,
            block.as_ptr().expose_provenance(),
            2,
            (&raw const bytes).expose_provenance(),
            0,
        ];
        let extra = In::new(extra.as_ptr());
        cu!(cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            DEFAULT,
            In::null(),
            extra
        ))
    };
    assert_eq!(launch_block(30), Status::SUCCESS);
    assert_eq!(numbers(address, 3), [100, 9, 4]);
    assert_eq!(launch_block(29), Status::INVALID_VALUE);
    let none = cu!(cuLaunchKernel(
        kernel,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        DEFAULT,
        In::null(),
        In::null()
    ));
    assert_eq!(none, Status::INVALID_VALUE);
    let (mut offset, mut bytes) = (0, 0);
    ok!(cuFuncGetParamInfo(
        kernel,
        2,
        Out::new(&raw mut offset),
        Out::new(&raw mut bytes)
    ));
    assert_eq!((offset, bytes), (16, 12));
    let beyond = cu!(cuFuncGetParamInfo(
        kernel,
        4,
        Out::new(&raw mut offset),
        Out::null()
    ));
    assert_eq!(beyond, Status::INVALID_VALUE);
}

fn shapes_are_checked() {
    enter(0);
    let module = load(PTX);
    let (count, narrow) = (function(module, c"count"), function(module, c"narrow"));
    let shape = |kernel, size, shared| launch(kernel, size, shared, DEFAULT, &[]);
    assert_eq!(shape(count, (0, 1), 0), Status::INVALID_VALUE);
    assert_eq!(shape(count, (1, 0), 0), Status::INVALID_VALUE);
    assert_eq!(shape(count, (1, 1025), 0), Status::INVALID_VALUE);
    assert_eq!(shape(narrow, (1, 64), 0), Status::SUCCESS);
    assert_eq!(shape(narrow, (1, 65), 0), Status::LAUNCH_OUT_OF_RESOURCES);
    assert_eq!(shape(count, (1, 1), 48 << 10), Status::SUCCESS);
    assert_eq!(shape(count, (1, 1), (48 << 10) + 1), Status::INVALID_VALUE);
    ok!(cuFuncSetAttribute(count, 8, 64 << 10));
    assert_eq!(shape(count, (1, 1), 64 << 10), Status::SUCCESS);
    assert_eq!(
        cu!(cuFuncSetAttribute(count, 8, 1 << 20)),
        Status::INVALID_VALUE
    );
    assert_eq!(made!(cuFuncGetAttribute(0, narrow)), 64);
    assert_eq!(made!(cuFuncGetAttribute(8, count)), 64 << 10);
    assert_eq!(
        made!(cuFuncGetAttribute(5, count)),
        80,
        "version of the PTX"
    );
    ok!(cuCtxSynchronize());
}

fn dynamic_shared_memory() {
    enter(0);
    let address = alloc(256);
    let kernel = kernel(c"through");
    let params = [param(&address)];
    assert_eq!(
        launch(kernel, (1, 64), 256, DEFAULT, &params),
        Status::SUCCESS
    );
    assert_eq!(numbers(address, 64), (0..64).collect::<Vec<_>>());
    assert_eq!(
        launch(kernel, (1, 64), 252, DEFAULT, &params),
        Status::SUCCESS
    );
    assert_eq!(
        cu!(cuCtxSynchronize()),
        Status::ILLEGAL_ADDRESS,
        "one word too little"
    );
}

/// Launches with an attribute that says nothing and one more.
fn launch_with(kernel: Handle, attribute: u64) -> Status {
    let mut attributes = [[0_u64; 9]; 2];
    attributes[1][0] = attribute;
    let config = LaunchConfig {
        grid: [2, 1, 1],
        block: [3, 1, 1],
        shared: 0,
        stream: DEFAULT,
        attributes: In::new(attributes.as_ptr().cast()),
        attribute_count: 2,
    };
    cu!(cuLaunchKernelEx(
        In::from(&config),
        kernel,
        In::null(),
        In::null()
    ))
}

fn launches_with_attributes() {
    enter(0);
    let kernel = kernel(c"count");
    assert_eq!(
        launch_with(kernel, 8),
        Status::SUCCESS,
        "a priority is a hint"
    );
    assert_eq!(
        launch_with(kernel, 2),
        Status::NOT_SUPPORTED,
        "a cooperative launch"
    );
    ok!(cuCtxSynchronize());
}

fn occupancy() {
    enter(0);
    let kernel = kernel(c"count");
    let blocks = |threads, shared| {
        made!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
            kernel, threads, shared
        ))
    };
    assert!(blocks(256, 0) >= 1);
    assert_eq!(blocks(256, 40 << 10), 2, "two times 40 KiB fit 100");
    assert_eq!(blocks(2048, 0), 0);
    let (mut grid, mut block) = (0, 0);
    ok!(cuOccupancyMaxPotentialBlockSize(
        Out::new(&raw mut grid),
        Out::new(&raw mut block),
        kernel,
        None,
        0,
        0,
    ));
    assert!(grid >= 4 && (32..=1024).contains(&block), "{grid} {block}");
}

fn out_of_bounds_by_one() {
    enter(0);
    let address = alloc(400);
    let kernel = kernel(c"fill");
    assert_eq!(fill(kernel, address, 101, 1, DEFAULT), Status::SUCCESS);
    assert_eq!(cu!(cuCtxSynchronize()), Status::ILLEGAL_ADDRESS);
    let fault = last_fault();
    for part in [
        "`fill`",
        "PTX line 27",
        "write of 4 bytes",
        "allocation of 400 bytes",
    ] {
        assert!(fault.contains(part), "{part}: {fault}");
    }
    assert!(fault.contains(&format!("{:#x}", address + 400)), "{fault}");
    // Everything in the context answers the same from now on.
    let mut place = 0;
    let broken = Status::ILLEGAL_ADDRESS;
    assert_eq!(cu!(cuMemAlloc_v2(Out::new(&raw mut place), 1)), broken);
    assert_eq!(fill(kernel, address, 1, 1, DEFAULT), broken);
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(host_mut(&mut [0; 4]), address, 4)),
        broken
    );
    assert_eq!(cu!(cuStreamSynchronize(DEFAULT)), broken);
    assert_eq!(cu!(cuStreamQuery(DEFAULT)), broken);
    assert_eq!(cu!(cuMemFree_v2(address)), broken);
    // And nothing else is touched.
    enter(1);
    let address = alloc(400);
    assert_eq!(
        fill(crate::kernels::kernel(c"fill"), address, 100, 1, DEFAULT),
        Status::SUCCESS
    );
    assert_eq!(numbers(address, 100), [1; 100]);
}

fn store_to(address: u64) -> Status {
    let params = [param(&address)];
    assert_eq!(
        launch(kernel(c"store"), (1, 1), 0, DEFAULT, &params),
        Status::SUCCESS
    );
    cu!(cuCtxSynchronize())
}

fn misaligned() {
    enter(0);
    assert_eq!(store_to(alloc(16) + 2), Status::MISALIGNED_ADDRESS);
}

fn trapped() {
    enter(0);
    assert_eq!(
        launch(kernel(c"stop"), (1, 1), 0, DEFAULT, &[]),
        Status::SUCCESS
    );
    assert_eq!(cu!(cuCtxSynchronize()), Status::LAUNCH_FAILED);
}

fn use_after_free() {
    enter(0);
    let small = alloc(16);
    ok!(cuMemFree_v2(small));
    // Many others come and go meanwhile, large ones too.
    for _ in 0..100 {
        ok!(cuMemFree_v2(alloc(1 << 20)));
    }
    assert_eq!(store_to(small), Status::ILLEGAL_ADDRESS);
}

fn wild_addresses() {
    enter(0);
    assert_eq!(store_to(0), Status::ILLEGAL_ADDRESS);
    ok!(cuDevicePrimaryCtxReset_v2(0));
    enter(0);
    let ordinary = [0_u8; 4];
    assert_eq!(store_to(host(&ordinary)), Status::ILLEGAL_ADDRESS);
}

fn memory_of_another_device() {
    enter(1);
    let there = alloc(16);
    enter(0);
    assert_eq!(store_to(there), Status::ILLEGAL_ADDRESS);
}

fn memory_of_a_peer() {
    let other = enter(1);
    let there = alloc(16);
    enter(0);
    ok!(cuCtxEnablePeerAccess(other, 0));
    assert_eq!(store_to(there), Status::SUCCESS);
    assert_eq!(numbers(there, 1), [1]);
    ok!(cuCtxDisablePeerAccess(other));
    assert_eq!(store_to(there), Status::ILLEGAL_ADDRESS);
}

fn page_locked_memory_in_a_kernel() {
    enter(0);
    let place = pinned(&[0; 16]);
    assert_eq!(store_to(place), Status::SUCCESS);
    assert_eq!(peek(place, 4), [1, 0, 0, 0]);
    let mut own = vec![0_u8; 64];
    let start = host_mut(&mut own).next_multiple_of(16);
    ok!(cuMemHostRegister_v2(start, 32, 0));
    assert_eq!(store_to(start), Status::SUCCESS);
    ok!(cuMemHostUnregister(start));
    assert_eq!(store_to(start), Status::ILLEGAL_ADDRESS);
}

fn dropped_work() {
    enter(0);
    let address = alloc(400);
    let bytes = pinned(&[0; 4]);
    let kernel = kernel(c"fill");
    let (stream, done) = (stream(NON_BLOCKING), event());
    let gate = Gate::close(stream);
    assert_eq!(fill(kernel, address, 101, 1, stream), Status::SUCCESS);
    ok!(cuMemcpyDtoHAsync_v2(bytes, address, 4, stream));
    ok!(cuEventRecord(done, stream));
    gate.open();
    assert_eq!(cu!(cuEventSynchronize(done)), Status::ILLEGAL_ADDRESS);
    assert_eq!(cu!(cuEventQuery(done)), Status::ILLEGAL_ADDRESS);
    assert_eq!(peek(bytes, 4), [0; 4]);
}

fn a_fault_ends_with_its_context() {
    enter(0);
    assert_eq!(store_to(8), Status::ILLEGAL_ADDRESS);
    ok!(cuDevicePrimaryCtxReset_v2(0));
    enter(0);
    assert_eq!(store_to(alloc(4)), Status::SUCCESS);
}

fn kernels_of_many_threads() {
    let context = enter(0);
    let kernel = kernel(c"fill");
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                ok!(cuCtxSetCurrent(context));
                let stream = stream(NON_BLOCKING);
                let address = alloc(4000);
                for round in 0..10 {
                    let value = 100 * thread + round;
                    assert_eq!(fill(kernel, address, 1000, value, stream), Status::SUCCESS);
                }
                ok!(cuStreamSynchronize(stream));
                assert_eq!(numbers(address, 1000), [100 * thread + 9; 1000]);
            });
        }
    });
}
