//! Jumps, calls, and where variables of functions lie.

use warploom_cuda_emu::engine::{FaultKind, Module, Options};

use crate::args;
use crate::rig::{Rig, Shape};

/// A module around these declarations and this body of `k(to, n)`.
fn module(before: &str, body: &str) -> String {
    format!(
        "
.version 8.0
.target sm_80
.address_size 64
{before}
.visible .entry k(.param .u64 to, .param .u32 n)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [n];
{body}
    st.global.u32 [%rd1], %r2;
    ret;
}}
"
    )
}

fn result(text: &str, n: u32) -> u32 {
    let rig = Rig::new(text);
    let to = rig.memory.zeros::<u32>(1);
    rig.run("k", Shape::line(1, 1), args!(to, n));
    rig.memory.read(to, 1)[0]
}

#[test]
fn jumps_by_index() {
    let text = module(
        "",
        "    mov.u32 %r2, 0;
AGAIN:
    list: .branchtargets ZERO, ONE, AGAIN, ZERO;
    add.u32 %r2, %r2, 1;
    mov.u32 %r3, %r1;
    setp.gt.u32 %p1, %r2, 5;
    @%p1 mov.u32 %r3, 1;
    brx.idx %r3, list;
ZERO:
    mov.u32 %r2, 100;
    bra END;
ONE:
    add.u32 %r2, %r2, 200;
END:",
    );
    assert_eq!(result(&text, 0), 100);
    assert_eq!(result(&text, 1), 201);
    // Backwards until the counter says otherwise.
    assert_eq!(result(&text, 2), 206);
    assert_eq!(result(&text, 3), 100);
    for index in [4, u32::MAX] {
        let rig = Rig::new(&text);
        let to = rig.memory.zeros::<u32>(1);
        let fault = rig.launch("k", Shape::line(1, 1), args!(to, index));
        let fault = fault.unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::IllegalCall { .. }),
            "{fault}"
        );
    }
}

#[test]
fn arguments_in_registers_and_numbers() {
    let text = module(
        ".func (.param .b32 out) weigh (.param .b32 a, .param .b64 b, .param .f32 c)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<2>;
    ld.param.u32 %r1, [a];
    ld.param.u64 %rd1, [b];
    ld.param.f32 %f1, [c];
    cvt.u32.u64 %r2, %rd1;
    cvt.rzi.u32.f32 %r3, %f1;
    mad.lo.u32 %r1, %r2, 10, %r1;
    mad.lo.u32 %r1, %r3, 100, %r1;
    st.param.b32 [out], %r1;
    ret;
}
.func (.param .b32 out) pass (.param .b32 a)
{
    .reg .b32 %r<4>;
    .param .b32 there;
    .param .b32 back;
    ld.param.u32 %r1, [a];
    st.param.b32 [there], %r1;
    call (back), weigh, (there, 2, 0f40400000);
    ld.param.b32 %r2, [back];
    st.param.b32 [out], %r2;
    ret;
}",
        "    mov.u64 %rd2, 7;
    call (%r2), weigh, (%r1, %rd2, 0f41100000);
    call (%r3), pass, (%r1);
    mad.lo.u32 %r2, %r3, 1000, %r2;",
    );
    assert_eq!(result(&text, 4), 324_974);
}

#[test]
fn large_arguments_by_value() {
    // More than a page: every page of the frame is touched in turn.
    let text = module(
        ".func (.param .align 8 .b8 out[9000]) turn (.param .align 8 .b8 in[9000])
{
    .reg .b64 %rd<4>;
    ld.param.b64 %rd1, [in+8992];
    add.u64 %rd1, %rd1, 1;
    st.param.b64 [out], %rd1;
    ld.param.b64 %rd1, [in];
    st.param.b64 [out+8992], %rd1;
    ret;
}",
        "    .param .align 8 .b8 there[9000];
    .param .align 8 .b8 back[9000];
    cvt.u64.u32 %rd2, %r1;
    st.param.b64 [there], 40;
    st.param.b64 [there+8992], %rd2;
    call (back), turn, (there);
    ld.param.b64 %rd3, [back];
    ld.param.b64 %rd4, [back+8992];
    mad.lo.u64 %rd3, %rd3, 1000, %rd4;
    cvt.u32.u64 %r2, %rd3;",
    );
    assert_eq!(result(&text, 5), 6040);
}

/// Two kernels with different shared memory call one function that has some of its own.
#[test]
fn shared_variables_of_functions() {
    let kernel = |name: &str, own: u32| {
        format!(
            ".visible .entry {name}(.param .u64 to)
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 own_{name}[{own}];
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, own_{name};
    st.shared.u32 [%r1], 1;
    st.shared.u32 [all], 5;
    call touch;
    ld.shared.u32 %r2, [%r1];
    ld.shared.u32 %r3, [all];
    mad.lo.u32 %r2, %r3, 10, %r2;
    st.global.u32 [%rd1], %r2;
    ret;
}}
"
        )
    };
    let text = format!(
        ".version 8.0
.target sm_80
.address_size 64
.shared .align 4 .u32 all;
.shared .align 4 .b8 unused[4096];
.extern .shared .align 16 .b8 rest[];
.func touch
{{
    .reg .b32 %r<4>;
    .shared .align 8 .b8 inner[24];
    mov.u32 %r1, inner;
    st.shared.u32 [%r1+20], 7;
    st.shared.u32 [rest+4], 9;
    ld.shared.u32 %r2, [all];
    add.u32 %r2, %r2, 1;
    st.shared.u32 [all], %r2;
    ret;
}}
{}{}",
        kernel("small", 4),
        kernel("large", 1000)
    );
    let rig = Rig::new(&text);
    for (name, bytes) in [("small", 32), ("large", 1032)] {
        let kernel = rig.module.kernel(name).unwrap();
        assert_eq!(kernel.entry().static_shared, bytes, "{name}");
        let to = rig.memory.zeros::<u32>(1);
        rig.run(name, Shape::line(2, 1).with_shared(8), args!(to));
        assert_eq!(rig.memory.read::<u32>(to, 1), [61]);
        // Without its dynamic part the function steps out of bounds.
        let fault = rig.launch(name, Shape::line(1, 1), args!(to)).unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::IllegalAddress { .. }),
            "{fault}"
        );
    }
}

#[test]
fn functions_have_other_names_and_may_come_later() {
    let text = module(
        ".func (.param .b32 out) later (.param .b32 a);
.visible .func (.param .b32 out) twice (.param .b32 a)
{
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [a];
    shl.b32 %r1, %r1, 1;
    st.param.b32 [out], %r1;
    ret;
}
.func (.param .b32 out) doubled (.param .b32 a);
.alias doubled, twice;",
        "    call (%r3), doubled, (%r1);
    call.uni (%r2), later, (%r3);",
    ) + ".weak .func (.param .b32 out) later (.param .b32 a)
{
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [a];
    add.u32 %r1, %r1, 3;
    st.param.b32 [out], %r1;
    ret;
}
";
    assert_eq!(result(&text, 20), 43);
}

#[test]
fn modules_may_be_dropped_before_their_kernels() {
    let text = module("", "    add.u32 %r2, %r1, 1;");
    let rig = Rig::new(&text);
    let kernel = rig.module.kernel("k").unwrap();
    let other = Module::load(&text, &Options::default()).unwrap();
    let late = other.kernel("k").unwrap();
    drop(other);
    assert_eq!(late.entry().params.len(), kernel.entry().params.len());
    assert_eq!(late.module().kernel_names().collect::<Vec<_>>(), ["k"]);
    for _ in 0..200 {
        // The memory of code that nobody can call any more is given back.
        drop(Module::load(&text, &Options::default()).unwrap());
    }
    assert_eq!(result(&text, 9), 10);
}
