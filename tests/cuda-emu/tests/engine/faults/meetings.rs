//! Threads that wait for each other in vain.

use warploom_cuda_emu::engine::FaultKind;

use super::{line_of, module};
use crate::rig::{Rig, Shape};

/// Runs 64 threads of a body in which `%r1` is the thread.
fn run(body: &str) -> (String, Result<(), warploom_cuda_emu::engine::Fault>) {
    let text = module(
        "",
        "",
        &format!("    mov.u32 %r1, %tid.x;\n{body}\n    ret;"),
    );
    let result = Rig::new(&text).launch("k", Shape::line(1, 64), &[]);
    (text, result)
}

#[test]
fn a_barrier_in_one_branch_only() {
    let (text, result) = run("    setp.lt.u32 %p1, %r1, 40;
    @%p1 bra SKIP;
    bar.sync 0;
SKIP:
    bar.sync 1;");
    let fault = result.unwrap_err();
    let FaultKind::BarrierDivergence { detail } = &fault.kind else {
        panic!("{fault}");
    };
    let (zero, one) = (line_of(&text, "bar.sync 0"), line_of(&text, "bar.sync 1"));
    let wanted = format!(
        "24 threads wait at barrier 0, line {zero}; 40 threads wait at barrier 1, line {one}"
    );
    assert_eq!(*detail, wanted);
}

#[test]
fn one_barrier_reached_by_two_instructions() {
    let body = "    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra LOW;
    bar.sync 0;
    bra END;
LOW:
    barrier.sync 0;
END:";
    let (text, result) = run(body);
    let fault = result.unwrap_err();
    assert!(
        matches!(fault.kind, FaultKind::BarrierDivergence { .. }),
        "{fault}"
    );
    assert!(
        fault.line == line_of(&text, "    bar.sync")
            || fault.line == line_of(&text, "barrier.sync")
    );
    // Whole warps at different places are what hardware lets pass.
    let text = module(
        "",
        "",
        &format!("    mov.u32 %r1, %tid.x;\n{body}\n    ret;"),
    );
    let mut rig = Rig::new(&text);
    rig.rules.divergent_barriers = true;
    rig.run("k", Shape::line(1, 64), &[]);
}

#[test]
fn threads_that_have_ended_are_not_waited_for() {
    let (_, result) = run("    setp.ge.u32 %p1, %r1, 17;
    @%p1 ret;
    bar.sync 0;
    activemask.b32 %r2;
    bar.warp.sync 0xffffffff;");
    result.unwrap();
}

#[test]
fn lanes_that_never_come() {
    let (text, result) = run("    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra END;
    shfl.sync.down.b32 %r2, %r1, 1, 31, 0xffffffff;
END:
    bar.sync 0;");
    let fault = result.unwrap_err();
    let FaultKind::Deadlock { detail } = &fault.kind else {
        panic!("{fault}");
    };
    assert!(
        detail.contains("`shfl.down` for lanes 0xffffffff"),
        "{detail}"
    );
    assert!(detail.contains("barrier 0"), "{detail}");
    let lines = [line_of(&text, "shfl"), line_of(&text, "bar.sync")];
    assert!(lines.contains(&fault.line));
}

#[test]
fn lanes_that_wait_with_different_masks() {
    let (_, result) = run("    setp.lt.u32 %p1, %r1, 1;
    selp.b32 %r3, 0x3, 0xffffffff, %p1;
    bar.warp.sync %r3;");
    let fault = result.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn a_lane_outside_of_its_own_mask() {
    let (text, result) = run("    setp.eq.u32 %p1, %r1, 0;
    vote.sync.any.pred %p2, %p1, 0xfffffff0;");
    let fault = result.unwrap_err();
    assert_eq!(fault.line, line_of(&text, "vote.sync"));
    assert!(fault.thread[0] < 4 || (32..36).contains(&fault.thread[0]));
    assert!(
        matches!(fault.kind, FaultKind::InvalidWarpOperation { .. }),
        "{fault}"
    );
}

#[test]
fn groups_of_lanes_meet_on_their_own() {
    // Even and odd lanes shuffle in different branches, each with its own mask.
    let body = "    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN;
    redux.sync.add.u32 %r3, 1, 0xaaaaaaaa;
    bra END;
EVEN:
    redux.sync.add.u32 %r3, 2, 0x55555555;
END:
    setp.eq.u32 %p2, %r3, 16;
    @%p1 setp.eq.u32 %p2, %r3, 32;
    @!%p2 trap;";
    let (_, result) = run(body);
    result.unwrap();
}

#[test]
fn barriers_with_counts() {
    // One warp produces, the other consumes, through two barriers that only one side waits at.
    let body = "    .shared .align 4 .u32 box;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra CONSUMER;
    st.shared.u32 [box], 5;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    ret;
CONSUMER:
    bar.sync 1, 64;
    ld.shared.u32 %r2, [box];
    bar.arrive 2, 64;
    setp.ne.u32 %p2, %r2, 5;
    @%p2 trap;";
    let (_, result) = run(body);
    result.unwrap();
    for wrong in [
        "bar.sync 1, 48;",
        "bar.sync 1, 96;",
        "mov.u32 %r2, 16; bar.sync %r2;",
    ] {
        let (text, result) = run(&format!("    {wrong}"));
        let fault = result.unwrap_err();
        assert_eq!(fault.line, line_of(&text, wrong));
        assert!(
            matches!(fault.kind, FaultKind::BarrierDivergence { .. }),
            "{fault}"
        );
    }
    let (_, result) = run("    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra OTHER;
    bar.sync 1;
    ret;
OTHER:
    bar.sync 1, 64;");
    let fault = result.unwrap_err();
    assert!(fault.to_string().contains("all threads"), "{fault}");
    assert!(fault.to_string().contains("64 threads"), "{fault}");
}

#[test]
fn a_missing_barrier_is_found_by_some_seed() {
    // Each thread reads what its neighbour writes; without a barrier that may not be there yet.
    let body = |barrier: &str| {
        format!(
            "    .shared .align 4 .b8 tile[256];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    {barrier}
    add.u32 %r5, %r1, 1;
    and.b32 %r5, %r5, 63;
    shl.b32 %r5, %r5, 2;
    add.u32 %r5, %r3, %r5;
    ld.shared.u32 %r6, [%r5];
    ret;"
        )
    };
    for seed in 0..8 {
        let with = Rig::new(&module("", "", &body("bar.sync 0;"))).with_seed(seed);
        with.run("k", Shape::line(1, 64), &[]);
        let without = Rig::new(&module("", "", &body(""))).with_seed(seed);
        let fault = without.launch("k", Shape::line(1, 64), &[]).unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::UninitialisedShared { .. }),
            "{fault}"
        );
    }
}
