//! Kernels that do not end, end too early, or nest too deeply.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_cuda_emu::engine::{FaultKind, Launch, Rules, launch};

use super::{line_of, module};
use crate::args;
use crate::rig::{Rig, Shape};

const FOREVER: &str = "FOREVER:
    add.u32 %r1, %r1, 1;
    bra FOREVER;";

#[test]
fn loops_that_never_end() {
    let meeting = format!("    bar.sync 0;\n{FOREVER}");
    for body in [FOREVER, &meeting] {
        let text = module("", "", body);
        let mut rig = Rig::new(&text);
        rig.rules.time = Some(Duration::from_millis(100));
        let start = Instant::now();
        let fault = rig.launch("k", Shape::line(2, 64), &[]).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(fault.line, line_of(&text, "bra FOREVER"));
        assert!(matches!(fault.kind, FaultKind::Runaway { .. }), "{fault}");
    }
}

#[test]
fn loops_that_take_too_many_steps() {
    let text = module("", "", FOREVER);
    let mut rig = Rig::new(&text);
    rig.rules.steps = Some(1_000_000);
    let fault = rig.launch("k", Shape::line(1, 1), &[]).unwrap_err();
    let FaultKind::Runaway { steps, .. } = fault.kind else {
        panic!("{fault}");
    };
    assert!((1_000_000..1_100_000).contains(&steps), "{steps}");
}

#[test]
fn a_thread_that_waits_for_one_that_has_ended() {
    let text = module(
        "",
        ".param .u64 flag",
        "    ld.param.u64 %rd1, [flag];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
SPIN:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra SPIN;
    ret;",
    );
    let mut rig = Rig::new(&text);
    rig.rules.time = Some(Duration::from_millis(50));
    let flag = rig.memory.zeros::<u32>(1);
    let fault = rig
        .launch("k", Shape::line(1, 32), args!(flag))
        .unwrap_err();
    assert_eq!(fault.thread, [0, 0, 0]);
    assert!(matches!(fault.kind, FaultKind::Runaway { .. }), "{fault}");
}

#[test]
fn a_launch_that_is_cancelled() {
    let rig = Rig::new(&module("", "", FOREVER));
    let kernel = rig.module.kernel("k").unwrap();
    let cancel = AtomicBool::new(false);
    let fault = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            launch(&Launch {
                kernel: &kernel,
                grid: [1; 3],
                block: [1; 3],
                dynamic_shared: 0,
                params: &[],
                globals: &[],
                memory: &rig.memory,
                print: &|_| {},
                cancel: Some(&cancel),
                rules: Rules {
                    time: None,
                    ..Rules::default()
                },
            })
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!running.is_finished());
        cancel.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap_err()
    });
    assert_eq!(fault.kind, FaultKind::Cancelled);
}

#[test]
fn traps() {
    for trap in ["trap;", "brkpt;"] {
        let text = module(
            "",
            "",
            &format!(
                "    mov.u32 %r1, %tid.x;\n    setp.eq.u32 %p1, %r1, 5;\n    @%p1 {trap}\n    ret;"
            ),
        );
        let fault = Rig::new(&text)
            .launch("k", Shape::line(1, 8), &[])
            .unwrap_err();
        assert_eq!((fault.kind, fault.thread), (FaultKind::Trap, [5, 0, 0]));
        assert_eq!(fault.line, line_of(&text, trap));
    }
}

#[test]
fn exits_inside_of_functions_end_the_thread() {
    let text = module(
        ".func leave (.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p<4>;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 3;
    @%p1 exit;
    ret;
}",
        ".param .u64 out",
        "    .param .b32 n;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.param.b32 [n], %r1;
    call leave, (n);
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    st.global.u32 [%rd1], 1;
    ret;",
    );
    let rig = Rig::new(&text);
    let out = rig.memory.zeros::<u32>(6);
    rig.run("k", Shape::line(1, 6), args!(out));
    assert_eq!(rig.memory.read::<u32>(out, 6), [1, 1, 1, 0, 1, 1]);
}

fn recursive(locals: &str) -> String {
    module(
        &format!(
            ".func deeper (.param .b32 n)
{{
    .reg .b32 %r<4>;
    .reg .pred %p<4>;
    {locals}
    .param .b32 m;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    sub.u32 %r1, %r1, 1;
    st.param.b32 [m], %r1;
    call deeper, (m);
    ret;
}}"
        ),
        ".param .u32 depth",
        "    .param .b32 n;
    ld.param.u32 %r1, [depth];
    st.param.b32 [n], %r1;
    call deeper, (n);
    ret;",
    )
}

#[test]
fn recursion_that_is_too_deep() {
    for locals in ["", ".local .align 4 .b8 big[500];"] {
        let mut rig = Rig::new(&recursive(locals));
        let run = |rig: &Rig, depth: u32| rig.launch("k", Shape::line(1, 2), args!(depth));
        run(&rig, 20).unwrap();
        let fault = run(&rig, 1 << 30).unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::StackOverflow { .. }),
            "{fault}"
        );
        // With plenty of local memory it is the stack of the host that gives out.
        rig.rules.stack_bytes = 400 << 10;
        let fault = run(&rig, 1 << 30).unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::StackOverflow { .. }),
            "{fault}"
        );
    }
}

#[test]
fn calls_through_bad_pointers() {
    let text = module(
        ".func plain { ret; }
.func other (.param .b32 a) { ret; }",
        ".param .u64 pointer, .param .u32 which",
        "    ld.param.u64 %rd1, [pointer];
    ld.param.u32 %r1, [which];
    setp.eq.u32 %p1, %r1, 1;
    @%p1 mov.u64 %rd1, plain;
    setp.eq.u32 %p1, %r1, 2;
    @%p1 mov.u64 %rd1, other;
    proto: .callprototype _ ();
    call %rd1, (), proto;
    ret;",
    );
    let rig = Rig::new(&text);
    let run = |pointer: u64, which: u32| rig.launch("k", Shape::line(1, 1), args!(pointer, which));
    run(0, 1).unwrap();
    for (pointer, which) in [(0, 0), (12345, 0), (0, 2), (rig.memory.zeros::<u8>(8), 0)] {
        let fault = run(pointer, which).unwrap_err();
        assert_eq!(fault.line, line_of(&text, "call %rd1"));
        assert!(
            matches!(fault.kind, FaultKind::IllegalCall { .. }),
            "{fault}"
        );
    }
}

#[test]
fn grids_that_are_too_large() {
    // No thread of it takes long; all of them together would.
    let mut rig = Rig::new(&module("", "", "    ret;"));
    rig.rules.time = Some(Duration::from_millis(50));
    let shape = Shape {
        grid: [1 << 20, 1 << 15, 1],
        block: [1, 1, 1],
        shared: 0,
    };
    let fault = rig.launch("k", shape, &[]).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Runaway { .. }), "{fault}");
}
