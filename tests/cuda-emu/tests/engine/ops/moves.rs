//! Copies, loads, stores, addresses and special registers.

use crate::args;
use crate::rig::{Out, Rig, Shape, check};

fn words() -> Vec<[u64; 3]> {
    vec![
        [
            0x0123_4567_89ab_cdef,
            0xfedc_ba98_7654_3210,
            0x8000_0000_0000_0001,
        ],
        [u64::MAX, 0, 1 << 63],
    ]
}

#[test]
fn registers_are_taken_apart_and_put_together() {
    let inputs = words();
    check(
        "mov.b64 {%d32, %e32}, %a64;",
        Out::Two,
        &inputs,
        |a, _, _| a,
    );
    check("mov.b64 {_, %d32}, %a64;", Out::D32, &inputs, |a, _, _| {
        a >> 32
    });
    check(
        "mov.b32 {%c16, %d16}, %a32;",
        Out::D16,
        &inputs,
        |a, _, _| a >> 16 & 0xffff,
    );
    check(
        "mov.b32 %d32, {%b16, %a16};",
        Out::D32,
        &inputs,
        |a, b, _| (a & 0xffff) << 16 | (b & 0xffff),
    );
    check(
        "mov.b64 %d64, {%a16, %b16, %c16, 7};",
        Out::D64,
        &inputs,
        |a, b, c| 7 << 48 | (c & 0xffff) << 32 | (b & 0xffff) << 16 | (a & 0xffff),
    );
    check("mov.b64 %d64, {%fa, %fb};", Out::D64, &inputs, |a, b, _| {
        b << 32 | a & 0xffff_ffff
    });
    check("mov.b32 %d32, 0f40490FDB;", Out::D32, &inputs, |_, _, _| {
        0x4049_0fdb
    });
    check(
        "mov.f64 %gd, -1.5; mov.b64 %d64, %gd;",
        Out::D64,
        &inputs,
        |_, _, _| (-1.5f64).to_bits(),
    );
    check(
        "mov.f32 %fd, 0.25; mov.b32 %d32, %fd;",
        Out::D32,
        &inputs,
        |_, _, _| u64::from(0.25f32.to_bits()),
    );
    check("mov.b16 %d16, -2;", Out::D16, &inputs, |_, _, _| 0xfffe);
}

#[test]
fn names_are_local_to_their_block() {
    let body = "
    { .reg .b32 t; mov.b32 t, 5; { .reg .b32 t; mov.b32 t, 6; mov.b32 %d32, t; } add.u32 %d32, %d32, t; }
    { .reg .b32 t; mov.b32 t, 100; add.u32 %d32, %d32, t; bra L; add.u32 %d32, %d32, t; L: }
    { bra L; L: add.u32 %d32, %d32, 1000; }";
    check(body, Out::D32, &words(), |_, _, _| 1111);
}

/// What loads of a type leave in a register of 64 bits, for each byte of memory being `bytes`.
#[test]
fn loads_extend_and_stores_cut() {
    let memory: Vec<u8> = (0..32).map(|i| 0x80 + i * 3).collect();
    let types = [
        ("u8", 1, false),
        ("s8", 1, true),
        ("b8", 1, false),
        ("u16", 2, false),
        ("s16", 2, true),
        ("u32", 4, false),
        ("s32", 4, true),
        ("b32", 4, false),
        ("u64", 8, false),
        ("s64", 8, true),
        ("b64", 8, false),
    ];
    for space in ["global", "shared", "local", "generic"] {
        for (ty, bytes, signed) in types {
            let text = moved(space, ty);
            let rig = Rig::new(&text);
            let from = rig.memory.buffer(&memory);
            let to = rig.memory.buffer(&[0xa5u8; 32]);
            rig.run("k", Shape::line(1, 1), args!(from, to));
            let mut word = [0; 8];
            word[..bytes].copy_from_slice(&memory[8..8 + bytes]);
            let raw = u64::from_le_bytes(word);
            let unused = 64 - 8 * bytes;
            let value = if signed {
                (raw << unused) as i64 >> unused
            } else {
                raw as i64
            };
            let found: Vec<u8> = rig.memory.read(to, 32);
            assert_eq!(found[..8], value.to_le_bytes(), "{space} {ty}");
            // The store wrote as many bytes as the type has.
            assert_eq!(found[8..8 + bytes], memory[8..8 + bytes], "{space} {ty}");
            assert!(
                found[8 + bytes..].iter().all(|byte| *byte == 0xa5),
                "{space} {ty}"
            );
        }
    }
}

/// Copies 32 bytes into a state space, loads one value from it and stores it.
fn moved(space: &str, ty: &str) -> String {
    let (declare, base, prefix) = match space {
        "shared" => (
            ".shared .align 16 .b8 there[32];",
            "mov.u64 %rd3, there;",
            ".shared",
        ),
        "local" => (
            ".local .align 16 .b8 there[32];",
            "mov.u64 %rd3, there;",
            ".local",
        ),
        "global" => ("", "mov.u64 %rd3, %rd1;", ".global"),
        _ => (
            ".local .align 16 .b8 there[32];",
            "cvta.local.u64 %rd3, there;",
            "",
        ),
    };
    let copies: Vec<String> = [0, 16]
        .map(|at| {
            format!(
                "ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd1+{at}];
            st{prefix}.v4.u32 [%rd3+{at}], {{%r1, %r2, %r3, %r4}};"
            )
        })
        .into();
    let copy = copies.join("\n");
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{{
    .reg .b32 %r<5>;
    .reg .b64 %rd<6>;
    {declare}
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    {base}
    {copy}
    ld{prefix}.{ty} %rd4, [%rd3+8];
    st.global.u64 [%rd2], %rd4;
    st.{ty} [%rd2+8], %rd4;
    ret;
}}"
    )
}

#[test]
fn loads_with_all_their_words() {
    for load in [
        "ld.weak.global.ca.u32",
        "ld.volatile.global.u32",
        "ld.relaxed.gpu.global.u32",
        "ld.acquire.sys.global.u32",
        "ld.global.nc.L1::no_allocate.L2::128B.u32",
        "ldu.global.u32",
        "ld.relaxed.cta.u32",
        "ld.global.cv.u32",
        "ld.mmio.relaxed.sys.global.u32",
    ] {
        let body = format!("{load} %d32, [%in];");
        check(&body, Out::D32, &words(), |a, _, _| a & 0xffff_ffff);
    }
    for store in [
        "st.weak.global.wb.u32",
        "st.volatile.u32",
        "st.relaxed.gpu.global.u32",
        "st.release.sys.global.u32",
        "st.global.L1::no_allocate.u32",
    ] {
        let body = format!(
            "prefetch.global.L2 [%in]; prefetchu.L1 [%in]; {store} [%in+4], %b32; ld.global.u64 %d64, [%in];"
        );
        check(&body, Out::D64, &words(), |a, b, _| {
            b << 32 | a & 0xffff_ffff
        });
    }
}

#[test]
fn special_registers() {
    let names = [
        "%tid.x",
        "%tid.y",
        "%tid.z",
        "%ntid.x",
        "%ntid.y",
        "%ntid.z",
        "%ctaid.x",
        "%ctaid.y",
        "%ctaid.z",
        "%nctaid.x",
        "%nctaid.y",
        "%nctaid.z",
        "%laneid",
        "%warpid",
        "%nwarpid",
        "WARP_SZ",
        "%lanemask_eq",
        "%lanemask_lt",
        "%lanemask_le",
        "%lanemask_gt",
        "%lanemask_ge",
        "%total_smem_size",
        "%dynamic_smem_size",
        "%smid",
        "%nsmid",
    ];
    let stores: Vec<String> = (0..)
        .zip(names)
        .map(|(i, name)| format!("mov.u32 %r1, {name}; st.global.u32 [%rd1+{}], %r1;", i * 4))
        .collect();
    let stores = stores.join("\n");
    let bytes = names.len() * 4;
    let text = format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 to)
{{
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    .shared .align 4 .b8 tile[40];
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %ctaid.z; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r1, %r1, 2, %r2; mad.lo.u32 %r1, %r1, 3, %r3;
    mov.u32 %r2, %tid.z; mov.u32 %r3, %tid.y; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, 4, %r3; mad.lo.u32 %r2, %r2, 7, %r4;
    mad.lo.u32 %r1, %r1, 56, %r2;
    mad.wide.u32 %rd1, %r1, {bytes}, %rd1;
    {stores}
    mov.u32 %r5, tile;
    ret;
}}"
    );
    let rig = Rig::new(&text);
    let shape = Shape {
        grid: [3, 2, 2],
        block: [7, 4, 2],
        shared: 100,
    };
    let threads = 56;
    let to = rig.memory.zeros::<u8>(12 * threads * bytes);
    rig.run("k", shape, args!(to));
    let found: Vec<u32> = rig.memory.read(to, 12 * threads * names.len());
    for (place, row) in found.chunks(names.len()).enumerate() {
        let (block, thread) = (place / threads, place % threads);
        let lane = thread as u32 % 32;
        let below = (1u32 << lane) - 1;
        let own = 1u32 << lane;
        let expected = [
            thread % 7,
            thread / 7 % 4,
            thread / 28,
            7,
            4,
            2,
            block % 3,
            block / 3 % 2,
            block / 6,
            3,
            2,
            2,
            lane as usize,
            thread / 32,
            2,
            32,
        ]
        .map(|value| value as u32);
        assert_eq!(row[..16], expected);
        assert_eq!(
            row[16..21],
            [own, below, below | own, !(below | own), !below]
        );
        assert_eq!(row[21..23], [148, 100]);
        assert!(row[23] < row[24]);
    }
}

#[test]
fn clocks_go_forward() {
    let body = "mov.u64 %a64, %clock64; mov.u32 %a32, %clock; mov.u64 %b64, %globaltimer;
        nanosleep.u32 100; mov.u64 %c64, %clock64; sub.u64 %d64, %c64, %a64; mov.u32 %t32, %clock_hi;
        mov.u32 %t32, %globaltimer_lo; mov.u32 %t32, %globaltimer_hi; mov.u64 %t, %globaltimer;
        sub.u64 %t, %t, %b64; shr.u64 %t, %t, 40; add.u64 %d64, %d64, %t; shr.u64 %d64, %d64, 40;";
    check(body, Out::D64, &words(), |_, _, _| 0);
}

#[test]
fn state_spaces_of_addresses() {
    let text = ".version 8.0
.target sm_80
.address_size 64
.const .align 4 .u32 c = 7;
.global .align 4 .u32 g[2] = {1, 2};
.visible .entry k(.param .u64 to, .param .align 8 .b8 p[16])
{
    .reg .pred %p<5>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<16>;
    .shared .align 4 .u32 s;
    .local .align 4 .u32 l;
    ld.param.u64 %rd1, [to];
    st.shared.u32 [s], 3; st.local.u32 [l], 4;
    cvta.shared.u64 %rd2, s; cvta.local.u64 %rd3, l; cvta.const.u64 %rd4, c; cvta.global.u64 %rd5, g;
    mov.b64 %rd6, p; cvta.param.u64 %rd6, %rd6;
    add.u64 %rd5, %rd5, 4;
    mov.u32 %r1, 0;
    ld.u32 %r2, [%rd2]; add.u32 %r1, %r1, %r2;
    ld.u32 %r2, [%rd3]; mad.lo.u32 %r1, %r2, 10, %r1;
    ld.u32 %r2, [%rd4]; mad.lo.u32 %r1, %r2, 100, %r1;
    ld.u32 %r2, [%rd5]; mad.lo.u32 %r1, %r2, 1000, %r1;
    ld.u32 %r2, [%rd6+8]; mad.lo.u32 %r1, %r2, 10000, %r1;
    st.global.u32 [%rd1], %r1;
    cvta.to.shared.u64 %rd7, %rd2; cvta.to.local.u64 %rd8, %rd3;
    ld.shared.u32 %r2, [%rd7]; ld.local.u32 %r3, [%rd8]; mad.lo.u32 %r2, %r3, 10, %r2;
    st.global.u32 [%rd1+4], %r2;
    mov.u32 %r4, 0;
    isspacep.shared %p1, %rd2; @%p1 or.b32 %r4, %r4, 1;
    isspacep.local %p1, %rd3; @%p1 or.b32 %r4, %r4, 2;
    isspacep.const %p1, %rd4; @%p1 or.b32 %r4, %r4, 4;
    isspacep.global %p1, %rd5; @%p1 or.b32 %r4, %r4, 8;
    isspacep.param %p1, %rd6; @%p1 or.b32 %r4, %r4, 16;
    isspacep.shared %p1, %rd5; @%p1 or.b32 %r4, %r4, 32;
    isspacep.global %p1, %rd2; @%p1 or.b32 %r4, %r4, 64;
    isspacep.local %p1, %rd1; @%p1 or.b32 %r4, %r4, 128;
    st.global.u32 [%rd1+8], %r4;
    mov.b64 %rd9, p; ld.param.u32 %r5, [%rd9+12];
    st.global.u32 [%rd1+12], %r5;
    ret;
}";
    let rig = Rig::new(text);
    let to = rig.memory.zeros::<u32>(4);
    rig.run("k", Shape::line(1, 1), args!(to, [0u32, 1, 5, 6]));
    assert_eq!(rig.memory.read::<u32>(to, 4), [52743, 43, 31, 6]);
}

#[test]
fn initial_values_of_all_sorts() {
    let text = ".version 8.0
.target sm_80
.address_size 64
.func f { ret; }
.global .align 2 .u16 scalar = 513;
.visible .global .f32 pi = 0f40490FDB;
.global .f64 many[3] = {0d3FF0000000000000, 0d4000000000000000};
.global .s32 rows[2][3] = {{1, -2}, {3, 4, 5}};
.const .align 8 .b8 bytes[] = {1, 2, 0xFF};
.global .u64 pointers[4] = {rows, generic(rows)+8, bytes+1, f};
.weak .global .align 64 .b8 zeros[5];
.visible .entry k() { ret; }";
    let rig = Rig::new(text);
    let names: Vec<&str> = rig
        .module
        .globals()
        .iter()
        .map(|v| v.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["scalar", "pi", "many", "rows", "bytes", "pointers", "zeros"]
    );
    let sizes: Vec<u64> = rig.module.globals().iter().map(|v| v.size).collect();
    assert_eq!(sizes, [2, 4, 24, 24, 3, 32, 5]);
    assert_eq!(rig.memory.read::<u16>(rig.global("scalar"), 1), [513]);
    assert_eq!(
        rig.memory.read::<f32>(rig.global("pi"), 1),
        [std::f32::consts::PI]
    );
    assert_eq!(
        rig.memory.read::<f64>(rig.global("many"), 3),
        [1.0, 2.0, 0.0]
    );
    assert_eq!(
        rig.memory.read::<i32>(rig.global("rows"), 6),
        [1, -2, 0, 3, 4, 5]
    );
    assert_eq!(rig.memory.read::<u8>(rig.global("bytes"), 3), [1, 2, 255]);
    let pointers: Vec<u64> = rig.memory.read(rig.global("pointers"), 4);
    let (rows, bytes) = (rig.global("rows"), rig.global("bytes"));
    assert_eq!(pointers[..3], [rows, rows + 8, bytes + 1]);
    assert_ne!(pointers[3], 0);
    assert_eq!(rig.global("zeros") % 64, 0);
}
