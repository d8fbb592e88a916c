//! Accesses that are wrong in other ways than by their bounds.

use warploom_cuda_emu::engine::{Access, FaultKind, Space, Why};

use super::{line_of, module};
use crate::args;
use crate::rig::{Rig, Shape};

const ONE: &str = ".param .u64 array";

#[test]
fn misaligned_accesses() {
    let accesses = [
        (
            "ld.global.u32 %r1, [%rd1+2];",
            4,
            Space::Global,
            Access::Read,
        ),
        (
            "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+8];",
            16,
            Space::Global,
            Access::Read,
        ),
        (
            "st.global.u16 [%rd1+1], %h1;",
            2,
            Space::Global,
            Access::Write,
        ),
        ("st.f64 [%rd1+4], %fd1;", 8, Space::Generic, Access::Write),
        (
            "red.global.add.u32 [%rd1+3], 1;",
            4,
            Space::Global,
            Access::Atomic,
        ),
        (
            "st.shared.v2.u32 [tile+4], {%r1, %r2};",
            8,
            Space::Shared,
            Access::Write,
        ),
        (
            "st.local.u64 [scratch+12], %rd1;",
            8,
            Space::Local,
            Access::Write,
        ),
    ];
    for (access, wanted_bytes, wanted_space, wanted_access) in accesses {
        let body = format!(
            "    .shared .align 16 .b8 tile[32];
    .local .align 16 .b8 scratch[32];
    ld.param.u64 %rd1, [array];
    {access}
    ret;"
        );
        let text = module("", ONE, &body);
        let rig = Rig::new(&text);
        let array = rig.memory.zeros::<u8>(64);
        let fault = rig
            .launch("k", Shape::line(1, 1), args!(array))
            .unwrap_err();
        assert_eq!(fault.line, line_of(&text, access));
        let FaultKind::Misaligned {
            space,
            bytes,
            access,
            ..
        } = fault.kind
        else {
            panic!("{fault}");
        };
        assert_eq!(
            (bytes, space, access),
            (wanted_bytes, wanted_space, wanted_access)
        );
    }
}

#[test]
fn freed_memory() {
    let text = module(
        "",
        ONE,
        "    ld.param.u64 %rd1, [array];
    ld.global.u32 %r1, [%rd1+8];
    ret;",
    );
    let rig = Rig::new(&text);
    let array = rig.memory.zeros::<u32>(4);
    rig.run("k", Shape::line(1, 1), args!(array));
    rig.memory.free(array);
    let fault = rig
        .launch("k", Shape::line(1, 1), args!(array))
        .unwrap_err();
    let FaultKind::IllegalAddress { address, why, .. } = fault.kind else {
        panic!("{fault}");
    };
    assert_eq!(address, array + 8);
    assert!(matches!(why, Why::Freed { allocation } if allocation.base == array));
}

#[test]
fn addresses_of_nothing() {
    let text = module(
        "",
        ONE,
        "    ld.param.u64 %rd1, [array];
    st.global.u8 [%rd1], 1;
    ret;",
    );
    let rig = Rig::new(&text);
    for address in [0u64, 8, 0x1000, u64::MAX, u64::MAX - 16, 1 << 47] {
        let fault = rig
            .launch("k", Shape::line(1, 1), args!(address))
            .unwrap_err();
        let FaultKind::IllegalAddress {
            address: found,
            why,
            ..
        } = fault.kind
        else {
            panic!("{fault}");
        };
        assert_eq!((found, why), (address, Why::Unmapped));
    }
}

#[test]
fn a_fault_names_its_thread() {
    let text = module(
        "",
        ".param .u64 array, .param .u32 wrong",
        "    ld.param.u64 %rd1, [array];
    ld.param.u32 %r1, [wrong];
    mov.u32 %r2, %ctaid.y;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %ctaid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    mov.u32 %r5, %tid.z;
    mov.u32 %r6, %ntid.x;
    mov.u32 %r7, %tid.x;
    mad.lo.u32 %r5, %r5, %r6, %r7;
    mad.lo.u32 %r8, %r2, 6, %r5;
    setp.eq.u32 %p1, %r8, %r1;
    selp.u32 %r9, 64, 0, %p1;
    mad.wide.u32 %rd2, %r9, 4, %rd1;
    ld.global.u32 %r10, [%rd2];
    ret;",
    );
    let shape = Shape {
        grid: [3, 2, 1],
        block: [2, 1, 3],
        shared: 0,
    };
    for (workers, seed) in [(1, 0), (1, 9), (2, 4)] {
        let mut rig = Rig::new(&text).with_seed(seed);
        rig.rules.workers = workers;
        let array = rig.memory.zeros::<u32>(64);
        let fault = rig.launch("k", shape, args!(array, 23u32)).unwrap_err();
        // 23 is thread 5 of block 3.
        assert_eq!((fault.block, fault.thread), ([0, 1, 0], [1, 0, 2]));
        assert_eq!(fault.kernel, "k");
        assert_eq!(fault.line, line_of(&text, "ld.global.u32 %r10"));
        let text = fault.to_string();
        assert!(
            text.starts_with("kernel `k`, block [0, 1, 0], thread [1, 0, 2]"),
            "{text}"
        );
    }
}

#[test]
fn constant_memory_is_read_only() {
    let text = module(
        ".const .align 4 .u32 one = 1;",
        "",
        "    cvta.const.u64 %rd1, one;
    ld.u32 %r1, [%rd1];
    st.u32 [%rd1], %r1;
    ret;",
    );
    let fault = Rig::new(&text)
        .launch("k", Shape::line(1, 1), &[])
        .unwrap_err();
    assert_eq!(fault.line, line_of(&text, "st.u32"));
    assert!(matches!(
        fault.kind,
        FaultKind::IllegalAddress {
            why: Why::ReadOnly,
            ..
        }
    ));
}

#[test]
fn local_memory_of_another_thread() {
    // Each thread gives away the address of its variable, and one of them uses it.
    let text = module(
        "",
        ONE,
        "    .local .align 8 .b8 own[8];
    ld.param.u64 %rd1, [array];
    mov.u32 %r1, %tid.x;
    cvta.local.u64 %rd2, own;
    st.u64 [%rd2], 5;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra MEET;
    st.global.u64 [%rd1], %rd2;
MEET:
    bar.sync 0;
    ld.global.u64 %rd3, [%rd1];
    ld.u64 %rd4, [%rd3];
    ret;",
    );
    let rig = Rig::new(&text);
    let array = rig.memory.zeros::<u64>(1);
    let fault = rig
        .launch("k", Shape::line(1, 2), args!(array))
        .unwrap_err();
    assert_eq!(fault.thread, [1, 0, 0]);
    assert_eq!(fault.line, line_of(&text, "ld.u64 %rd4"));
}

#[test]
fn shared_memory_that_nobody_wrote() {
    let body = |read: &str, store: &str| {
        format!(
            "    .shared .align 16 .b8 tile[64];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r2, %r2, %r3;
    {store}
    bar.sync 0;
    {read}
    ret;"
        )
    };
    // Sixteen threads write all of it; a byte less is noticed.
    let whole = "st.shared.u32 [%r2], %r1;";
    let part = "st.shared.u16 [%r2], 3; setp.ne.u32 %p1, %r1, 7;
    @%p1 st.shared.u16 [%r2+2], 4;";
    let reads = [
        ("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [tile+16];", 16, 16),
        ("ld.shared.u16 %h1, [tile+30];", 30, 2),
        ("ld.shared.f64 %fd1, [tile+24];", 24, 8),
        ("atom.shared.add.u32 %r4, [tile+28], 1;", 28, 4),
        ("cvta.shared.u64 %rd1, tile; ld.u32 %r4, [%rd1+28];", 28, 4),
    ];
    for (read, wanted, wanted_bytes) in reads {
        let fine = Rig::new(&module("", "", &body(read, whole)));
        fine.run("k", Shape::line(1, 16), &[]);
        let text = module("", "", &body(read, part));
        let mut rig = Rig::new(&text);
        let fault = rig.launch("k", Shape::line(1, 16), &[]).unwrap_err();
        assert_eq!(fault.line, line_of(&text, read));
        let FaultKind::UninitialisedShared { address, bytes } = fault.kind else {
            panic!("{fault}");
        };
        assert_eq!((address, bytes), (wanted, wanted_bytes));
        rig.rules.uninitialised_shared = false;
        rig.run("k", Shape::line(1, 16), &[]);
    }
}

#[test]
fn fresh_memory_is_poisoned_and_not_left_over() {
    // Every block reads what the block before it may have left.
    let text = module(
        "",
        ONE,
        "    .shared .align 4 .u32 tile;
    .local .align 4 .u32 own;
    ld.param.u64 %rd1, [array];
    mov.u32 %r1, %ctaid.x;
    mad.wide.u32 %rd1, %r1, 8, %rd1;
    ld.shared.u32 %r2, [tile];
    ld.local.u32 %r3, [own];
    st.global.v2.u32 [%rd1], {%r2, %r3};
    st.shared.u32 [tile], 17;
    st.local.u32 [own], 18;
    ret;",
    );
    let mut rig = Rig::new(&text);
    rig.rules.uninitialised_shared = false;
    let array = rig.memory.zeros::<[u32; 2]>(4);
    rig.run("k", Shape::line(4, 1), args!(array));
    for found in rig.memory.read::<[u32; 2]>(array, 4) {
        assert!(
            found.iter().all(|word| f32::from_bits(*word).is_nan()),
            "{found:x?}"
        );
    }
}

#[test]
fn the_heap_of_a_kernel() {
    let text = module(
        ".extern .func (.param .b64 out) malloc (.param .b64 bytes);
.extern .func free (.param .b64 pointer);",
        ".param .u64 array, .param .u32 twice",
        "    .param .b64 a;
    .param .b64 r;
    ld.param.u64 %rd1, [array];
    st.param.b64 [a], 24;
    call.uni (r), malloc, (a);
    ld.param.b64 %rd2, [r];
    st.global.u64 [%rd1], %rd2;
    setp.eq.u64 %p1, %rd2, 0;
    @%p1 ret;
    st.u64 [%rd2+16], 77;
    ld.u64 %rd3, [%rd2+16];
    st.global.u64 [%rd1+8], %rd3;
    st.param.b64 [a], %rd2;
    call.uni free, (a);
    ld.param.u32 %r1, [twice];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    ld.u64 %rd3, [%rd2];
    ret;",
    );
    let mut rig = Rig::new(&text);
    let array = rig.memory.zeros::<u64>(2);
    rig.run("k", Shape::line(1, 1), args!(array, 0u32));
    assert_eq!(rig.memory.read::<u64>(array, 1), [0]);
    rig.memory.has_heap = true;
    rig.run("k", Shape::line(1, 1), args!(array, 0u32));
    assert_eq!(rig.memory.read::<u64>(array, 2)[1], 77);
    let fault = rig
        .launch("k", Shape::line(1, 1), args!(array, 1u32))
        .unwrap_err();
    assert_eq!(fault.line, line_of(&text, "ld.u64 %rd3, [%rd2];"));
    assert!(matches!(
        fault.kind,
        FaultKind::IllegalAddress {
            why: Why::Freed { .. },
            ..
        }
    ));
}

#[test]
fn state_spaces_are_kept_apart() {
    // A generic read reaches parameters and constants; global and constant reads do not, even when
    // the quick check has met those addresses before.
    let accesses = [
        ("ld.global.u32 %r3, [%rd2];", "a parameter"),
        ("ld.const.u32 %r3, [%rd1];", "global memory"),
    ];
    for (access, what) in accesses {
        let fill: Vec<String> = (0..40)
            .map(|_| "    ld.u32 %r1, [%rd2];\n    ld.u32 %r2, [%rd1];".to_owned())
            .collect();
        let body = format!(
            "    ld.param.u64 %rd1, [array];
    mov.b64 %rd2, array;
    cvta.param.u64 %rd2, %rd2;
{}
    {access}
    ret;",
            fill.join("\n")
        );
        let text = module("", ONE, &body);
        let rig = Rig::new(&text);
        let array = rig.memory.zeros::<u32>(4);
        let fault = rig.launch("k", Shape::line(1, 1), args!(array));
        assert_eq!(fault.expect_err(what).line, line_of(&text, access));
    }
}
