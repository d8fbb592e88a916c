//! What is not understood is refused, by name and line.

use warploom_cuda_emu::engine::{Header, Module, Options};

fn refusal(body: &str) -> (u32, String) {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
.shared .align 4 .b8 tile[16];
{body}
ret;\n}}\n"
    );
    let error = Module::load(&text, &Options::default()).expect_err(body);
    (error.line, error.message)
}

#[test]
fn opcodes_and_modifiers() {
    let cases = [
        (
            "wmma.load.a.sync.aligned.m16n16k16.row.f16 {%r1}, [%rd1], %r2;",
            "is not supported",
        ),
        (
            "tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [tile, {%r1, %r2}];",
            "",
        ),
        (
            "frobnicate.u32 %r1, %r2;",
            "`frobnicate.u32` is not supported",
        ),
        (
            "add.sideways.u32 %r1, %r2, %r3;",
            "`.sideways` is unknown here",
        ),
        ("add.u32 %r1, %r2;", "has three operands"),
        ("add.b32 %r1, %r2, %r3;", "is not supported for `.b32`"),
        (
            "ld.global.tenths.u32 %r1, [%rd1];",
            "`.tenths` is unknown here",
        ),
        ("ld.tensor.u32 %r1, [%rd1];", "`.tensor` is unknown here"),
        ("shl.u32 %r1, %r2, 1;", "is not supported"),
        ("cvt.f32.u32 %f1;", "has another number of operands"),
        ("cvt.s32.f32 %r1, %f1;", "needs a rounding to whole numbers"),
        ("atom.global.mul.u32 %r1, [%rd1], 2;", "names no operation"),
        (
            "ld.shared.v4.u64 {%rd0, %rd1, %rd2, %rd3}, [tile];",
            "moves 32 bytes, at most 16 are possible",
        ),
        ("vote.any.pred %p1, %p2;", "needs `.sync` for sm_80"),
        (
            "cvt.sat.u32.u16 %r1, %h1;",
            "saturates although every value fits",
        ),
        ("bar.async 0;", "is not supported"),
        ("mul.u32 %r1, %r2, %r3;", "needs `.lo`, `.hi` or `.wide`"),
    ];
    for (text, wanted) in cases {
        let (line, message) = refusal(text);
        assert_eq!(line, 8, "{text}: {message}");
        assert!(message.contains(wanted), "{text}: {message}");
    }
}

#[test]
fn operands_that_do_not_fit() {
    let cases = [
        (
            "add.u32 %r1, %r2, %rd1;",
            "a register of type `.b64` as `.u32`",
        ),
        (
            "add.u64 %rd1, %rd2, %r1;",
            "a register of type `.b32` as `.u64`",
        ),
        ("mov.u32 %r1, %p1;", "a register of type `.pred` as `.u32`"),
        (
            "and.pred %p1, %r1, %p2;",
            "a register of type `.b32` as `.pred`",
        ),
        ("add.f32 %f1, %f2, 1;", "an operand does not fit `.f32`"),
        ("add.u32 1, %r1, %r2;", "the result has to go to a register"),
        (
            "mov.u32 %r1, %nonsense;",
            "register `%nonsense` is not known",
        ),
        ("mov.u32 %r1, %r99;", "register `%r99` is not known"),
        ("mov.u32 %r1, nowhere;", "`nowhere` is not declared"),
        ("bra NOWHERE;", "`NOWHERE` is not declared"),
        ("ld.global.u32 %r1, [%r2];", "an address of type `.b32`"),
        ("ld.global.u32 %r1, [tile];", "another state space"),
        ("ld.shared.v2.u32 %r1, [tile];", "a vector of 2 is expected"),
        (
            "ld.param.u32 %r1, [a+8];",
            "4 bytes at 8 of `a`, which has 8 bytes",
        ),
        ("st.param.u32 [a], %r1;", "cannot be written"),
        (
            "st.const.u32 [%rd1], %r1;",
            "constant memory cannot be written",
        ),
        ("call missing;", "`missing` is not declared"),
        (
            "ld.u16 %p1, [%rd1];",
            "a register of type `.pred` as `.u16`",
        ),
        (
            "cvt.u64.u32 %r1, %r2;",
            "a register of type `.b32` as `.u64`",
        ),
    ];
    for (text, wanted) in cases {
        let (line, message) = refusal(text);
        assert_eq!(line, 8, "{text}: {message}");
        assert!(message.contains(wanted), "{text}: {message}");
    }
}

#[test]
fn modules_that_are_not_whole() {
    let cases = [
        ("", 1, "`.version` is expected, not the end of the text"),
        (
            ".version 8.0\n.target sm_80\n.address_size 32",
            3,
            "addresses of 32 bits",
        ),
        (
            ".version 8.0\n.target sm_80\n.texref t;",
            3,
            "directive `.texref` is not supported",
        ),
        (
            ".version 8.0\n.target sm_80\n.extern .global .u32 x;",
            3,
            "nothing is linked",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k {\nadd.u32",
            4,
            "an operand is expected, not the end of the text",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k { {\nret; }",
            4,
            "the text ends inside",
        ),
        (
            ".version 8.0\n.target sm_80\n.func f;\n.entry k {\ncall f; }",
            5,
            "called but not defined",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k {\nret; }\n.entry k { ret; }",
            5,
            "defined twice",
        ),
        (
            ".version 8.0\n.target sm_80\n.global .u32 x;\n.global .u32 x;",
            4,
            "declared twice",
        ),
        (
            ".version 8.0\n.target sm_80\n.global .u8 x[2] = {1, 2, 3};",
            3,
            "longer than the variable",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k .reqnctapercluster 2 { ret; }",
            3,
            "`.reqnctapercluster`",
        ),
    ];
    for (text, line, wanted) in cases {
        let error = Module::load(text, &Options::default()).expect_err(text);
        assert!(error.message.contains(wanted), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

#[test]
fn headers_are_read_before_anything_else() {
    let text = "// made by hand\n.version 99.1\n.target sm_999a, debug\n.address_size 64\n\u{e9}\"";
    let header = Header::read(text).unwrap();
    assert_eq!(
        (header.version, header.target.as_str()),
        ((99, 1), "sm_999a")
    );
    assert!(Header::read("\u{7f}ELF").is_err());
    assert!(Header::read("").is_err());
    assert!(Header::read(".version x").is_err());
}

#[test]
fn debug_information_is_passed_over() {
    let text = "
.version 8.0
.target sm_80, debug
.address_size 64
.file 1 \"/somewhere/kernel.cu\"
.visible .entry k()
.maxntid 32, 1, 1
.pragma \"nounroll\";
{
.loc 1 3 5
.pragma \"used_bytes_mask 3\";
    .reg .b32 %r<2>;
.loc 1 4 7, function_name $L__info_string0, inlined_at 1 3 5
    mov.u32 %r1, 5;
$L__tmp0:
    ret;
}
.section .debug_abbrev
{
.b8 1 .b8 17
$L__x:
.b32 .debug_line
}
.section .debug_str { .b8 0 }
";
    let module = Module::load(text, &Options::default()).unwrap();
    let kernel = module.kernel("k").unwrap();
    assert_eq!(kernel.entry().max_threads, Some(32));
    assert!(module.kernel("other").is_none());
}
