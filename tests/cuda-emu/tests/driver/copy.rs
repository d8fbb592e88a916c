//! Copies: what they move, and when.

use warploom_cuda_emu::driver::ffi::{Memcpy2D, Memcpy3D};

use crate::Scene;
use crate::rig::*;

/// No chance: these scenes decide themselves who comes first.
const STEADY: &[(&str, &str)] = &[("WARPLOOM_EMU_JITTER", "0")];

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("uploads_of_ordinary_memory_are_staged", staged_uploads).with(STEADY),
    Scene::new("uploads_of_locked_memory_read_late", late_uploads).with(STEADY),
    Scene::new("downloads_to_ordinary_memory_wait", waiting_downloads).with(STEADY),
    Scene::new("downloads_to_locked_memory_write_late", late_downloads).with(STEADY),
    Scene::new(
        "locked_memory_freed_too_early",
        locked_memory_freed_too_early,
    )
    .with(STEADY)
    .says(&[
        "cuMemcpyHtoDAsync_v2, when it ran: 100 bytes at",
        "has been freed",
    ]),
    Scene::new("synchronous_calls", synchronous_calls).with(STEADY),
    Scene::new("from_anywhere_to_anywhere", from_anywhere_to_anywhere),
    Scene::new("fills_of_all_widths", fills_of_all_widths),
    Scene::new("rectangles", rectangles)
        .says(&["rows of 20 bytes 16 bytes apart", "arrays are not"]),
    Scene::new("cuboids", cuboids),
    Scene::new("between_devices", between_devices).says(&["is on another device than its context"]),
];

fn staged_uploads() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(100);
    let gate = Gate::close(stream);
    let mut bytes = vec![1; 100];
    ok!(cuMemcpyHtoDAsync_v2(address, host(&bytes), 100, stream));
    bytes.fill(2);
    drop(bytes);
    assert_eq!(cu!(cuStreamQuery(stream)), Status::NOT_READY);
    gate.open();
    assert_eq!(download(address, 100), [1; 100]);
}

fn late_uploads() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(100);
    let bytes = pinned(&[1; 100]);
    let gate = Gate::close(stream);
    ok!(cuMemcpyHtoDAsync_v2(address, bytes, 100, stream));
    poke(bytes, &[2; 100]);
    gate.open();
    assert_eq!(download(address, 100), [2; 100], "the mistake shows");
}

fn waiting_downloads() {
    let context = enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(100);
    let gate = Gate::close(stream);
    ok!(cuMemsetD8Async(address, 3, 100, stream));
    std::thread::scope(|scope| {
        let download = scope.spawn(|| {
            ok!(cuCtxSetCurrent(context));
            let mut bytes = vec![0; 100];
            ok!(cuMemcpyDtoHAsync_v2(
                host_mut(&mut bytes),
                address,
                100,
                stream
            ));
            assert_eq!(bytes, [3; 100], "it is there when the call returns");
        });
        gate.wait();
        gate.open();
        download.join().unwrap();
    });
}

fn late_downloads() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(100);
    upload(address, &[4; 100]);
    let bytes = pinned(&[0; 100]);
    let gate = Gate::close(stream);
    ok!(cuMemcpyDtoHAsync_v2(bytes, address, 100, stream));
    assert_eq!(peek(bytes, 100), [0; 100], "not there yet");
    gate.open();
    ok!(cuStreamSynchronize(stream));
    assert_eq!(peek(bytes, 100), [4; 100]);
}

fn locked_memory_freed_too_early() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(100);
    let bytes = pinned(&[1; 100]);
    let gate = Gate::close(stream);
    ok!(cuMemcpyHtoDAsync_v2(address, bytes, 100, stream));
    ok!(cuMemFreeHost(bytes));
    gate.open();
    assert_eq!(cu!(cuStreamSynchronize(stream)), Status::ILLEGAL_ADDRESS);
    assert_eq!(
        cu!(cuMemFree_v2(address)),
        Status::ILLEGAL_ADDRESS,
        "it stays"
    );
    assert!(last_fault().contains("has been freed"), "{}", last_fault());
}

fn synchronous_calls() {
    enter(0);
    let other = stream(NON_BLOCKING);
    let (a, b) = (alloc(100), alloc(100));
    let legacy = Gate::close(DEFAULT);
    // Within the device, the host does not wait, whatever the name says.
    ok!(cuMemsetD8_v2(a, 1, 100));
    ok!(cuMemcpyDtoD_v2(b, a, 100));
    let mut early = vec![0; 100];
    ok!(cuMemcpyDtoHAsync_v2(host_mut(&mut early), b, 100, other));
    assert_eq!(
        early, [0xcb; 100],
        "another stream sees that nothing happened yet"
    );
    legacy.open();
    let mut late = vec![0; 100];
    ok!(cuMemcpyDtoH_v2(host_mut(&mut late), b, 100));
    assert_eq!(late, [1; 100]);
}

fn from_anywhere_to_anywhere() {
    enter(0);
    let (a, b) = (alloc(10), alloc(10));
    let locked = pinned(&[0; 10]);
    let mut bytes = vec![9; 10];
    ok!(cuMemcpy(a, host(&bytes), 10));
    ok!(cuMemcpy(b, a, 10));
    ok!(cuMemcpy(locked, b, 10));
    assert_eq!(peek(locked, 10), [9; 10]);
    bytes.fill(0);
    ok!(cuMemcpyAsync(host_mut(&mut bytes), locked, 10, DEFAULT));
    assert_eq!(bytes, [9; 10], "between host and host it is done at once");
}

fn fills_of_all_widths() {
    enter(0);
    let address = alloc(1 << 20);
    ok!(cuMemsetD8_v2(address, 1, 1 << 20));
    ok!(cuMemsetD16_v2(address, 0x0302, 3));
    ok!(cuMemsetD32_v2(address + 8, 0x0706_0504, 2));
    let content = download(address, 1 << 20);
    let start = [2, 3, 2, 3, 2, 3, 1, 1, 4, 5, 6, 7, 4, 5, 6, 7, 1];
    assert_eq!(content[..17], start);
    assert!(content[17..].iter().all(|byte| *byte == 1));
    ok!(cuMemsetD2D32_v2(address, 12, 0, 2, 3));
    let content = download(address, 36);
    for row in content.chunks(12) {
        assert_eq!(row[..8], [0; 8]);
    }
    let page_locked = pinned(&[0; 8]);
    ok!(cuMemsetD16Async(page_locked, 0x0101, 4, DEFAULT));
    ok!(cuCtxSynchronize());
    assert_eq!(peek(page_locked, 8), [1; 8]);
}

/// `CU_MEMORYTYPE_…`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

fn flat() -> Memcpy2D {
    Memcpy2D {
        src_x: 0,
        src_y: 0,
        src_type: HOST,
        src_host: 0,
        src_device: 0,
        src_array: 0,
        src_pitch: 0,
        dst_x: 0,
        dst_y: 0,
        dst_type: DEVICE,
        dst_host: 0,
        dst_device: 0,
        dst_array: 0,
        dst_pitch: 0,
        width: 0,
        height: 0,
    }
}

fn rectangles() {
    enter(0);
    let address = alloc(64 * 10);
    ok!(cuMemsetD8_v2(address, 0, 640));
    let bytes: Vec<u8> = (0..100).collect();
    let up = Memcpy2D {
        src_x: 2,
        src_y: 1,
        src_host: host(&bytes),
        src_pitch: 10,
        dst_x: 5,
        dst_y: 2,
        dst_device: address,
        dst_pitch: 64,
        width: 4,
        height: 3,
        ..flat()
    };
    ok!(cuMemcpy2D_v2(In::from(&up)));
    let content = download(address, 640);
    for y in 0..10 {
        for x in 0..64 {
            let inside = (5..9).contains(&x) && (2..5).contains(&y);
            let want = if inside { (y - 1) * 10 + x - 3 } else { 0 };
            assert_eq!(usize::from(content[y * 64 + x]), want, "{x} {y}");
        }
    }
    // And back into ordinary memory, in a stream.
    let mut back = vec![0; 12];
    let down = Memcpy2D {
        src_type: DEVICE,
        src_x: 5,
        src_y: 2,
        src_device: address,
        src_pitch: 64,
        dst_type: HOST,
        dst_host: host_mut(&mut back),
        dst_pitch: 4,
        width: 4,
        height: 3,
        ..flat()
    };
    ok!(cuMemcpy2DAsync_v2(In::from(&down), stream(BLOCKING)));
    assert_eq!(back, [12, 13, 14, 15, 22, 23, 24, 25, 32, 33, 34, 35]);
    let wrong = [
        Memcpy2D {
            width: 20,
            src_x: 0,
            src_pitch: 16,
            ..up
        },
        Memcpy2D { height: 9, ..up },
        Memcpy2D {
            dst_pitch: 66,
            height: 9,
            ..up
        },
        Memcpy2D { src_type: 9, ..up },
    ];
    for (i, copy) in wrong.iter().enumerate() {
        assert_eq!(
            cu!(cuMemcpy2D_v2(In::from(copy))),
            Status::INVALID_VALUE,
            "{i}"
        );
    }
    let array = Memcpy2D { dst_type: 3, ..up };
    assert_eq!(cu!(cuMemcpy2D_v2(In::from(&array))), Status::NOT_SUPPORTED);
    assert_eq!(cu!(cuMemcpy2D_v2(In::null())), Status::INVALID_VALUE);
    ok!(cuMemcpy2DUnaligned_v2(In::from(&Memcpy2D {
        height: 0,
        ..up
    })));
}

fn cuboids() {
    enter(0);
    let address = alloc(8 * 8 * 8);
    ok!(cuMemsetD8_v2(address, 0, 512));
    let bytes: Vec<u8> = (0..60).collect();
    let up = Memcpy3D {
        src_x: 1,
        src_y: 1,
        src_z: 1,
        src_lod: 0,
        src_type: HOST,
        src_host: host(&bytes),
        src_device: 0,
        src_array: 0,
        src_context: Handle::NULL,
        src_pitch: 5,
        src_height: 4,
        dst_x: 4,
        dst_y: 5,
        dst_z: 6,
        dst_lod: 0,
        dst_type: DEVICE,
        dst_host: 0,
        dst_device: address,
        dst_array: 0,
        dst_context: Handle::NULL,
        dst_pitch: 8,
        dst_height: 8,
        width: 3,
        height: 2,
        depth: 2,
    };
    ok!(cuMemcpy3D_v2(In::from(&up)));
    let content = download(address, 512);
    let mut moved = 0;
    for (i, byte) in content.iter().enumerate() {
        let (x, y, z) = (i % 8, i / 8 % 8, i / 64);
        if (4..7).contains(&x) && (5..7).contains(&y) && (6..8).contains(&z) {
            assert_eq!(usize::from(*byte), (z - 5) * 20 + (y - 4) * 5 + x - 3);
            moved += 1;
        } else {
            assert_eq!(*byte, 0);
        }
    }
    assert_eq!(moved, 12);
    let beyond = Memcpy3D {
        depth: 3,
        dst_z: 6,
        ..up
    };
    assert_eq!(cu!(cuMemcpy3D_v2(In::from(&beyond))), Status::INVALID_VALUE);
    let low = Memcpy3D {
        src_height: 2,
        ..up
    };
    assert_eq!(cu!(cuMemcpy3D_v2(In::from(&low))), Status::INVALID_VALUE);
}

fn between_devices() {
    let first = enter(0);
    let a = alloc(100);
    ok!(cuMemsetD8_v2(a, 6, 100));
    let second = enter(1);
    let b = alloc(100);
    ok!(cuMemcpyPeer(b, second, a, first, 100));
    assert_eq!(download(b, 100), [6; 100]);
    let stream = stream(NON_BLOCKING);
    ok!(cuMemsetD8Async(b, 7, 100, stream));
    ok!(cuMemcpyPeerAsync(a, first, b, second, 100, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(download(a, 100), [7; 100]);
    let swapped = cu!(cuMemcpyPeerAsync(a, second, b, first, 100, stream));
    assert_eq!(swapped, Status::INVALID_VALUE);
    let peer = cu!(cuCtxEnablePeerAccess(second, 0));
    assert_eq!(peer, Status::PEER_ACCESS_UNSUPPORTED, "with itself");
    ok!(cuCtxEnablePeerAccess(first, 0));
    let again = cu!(cuCtxEnablePeerAccess(first, 0));
    assert_eq!(again, Status::PEER_ACCESS_ALREADY_ENABLED);
    ok!(cuCtxDisablePeerAccess(first));
    let again = cu!(cuCtxDisablePeerAccess(first));
    assert_eq!(again, Status::PEER_ACCESS_NOT_ENABLED);
}
