//! One instruction applied to many operands.

use super::{Noise, Rig, Shape};
use crate::args;

/// Where the instruction leaves its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// `%d16`, `%d32`, `%d64`.
    D16,
    D32,
    D64,
    /// `%pd` as bit 0, `%pe` as bit 1.
    Predicates,
    /// `%d32` below, `%e32` above.
    Two,
}

fn kernel(body: &str, out: Out) -> String {
    let collect = match out {
        Out::D16 => "cvt.u64.u16 %out, %d16;",
        Out::D32 => "cvt.u64.u32 %out, %d32;",
        Out::D64 => "mov.b64 %out, %d64;",
        Out::Predicates => {
            "selp.b64 %out, 1, 0, %pd; selp.b64 %t, 2, 0, %pe; or.b64 %out, %out, %t;"
        }
        Out::Two => "mov.b64 %out, {%d32, %e32};",
    };
    format!(
        "
.version 8.6
.target sm_90
.address_size 64
.visible .entry op(.param .u64 in, .param .u64 out, .param .u32 n)
{{
    .reg .pred %end, %pa, %pb, %pc, %pd, %pe;
    .reg .b16 %a16, %b16, %c16, %d16, %e16;
    .reg .b32 %a32, %b32, %c32, %d32, %e32, %i, %n, %t32;
    .reg .b64 %a64, %b64, %c64, %d64, %e64, %in, %to, %out, %t;
    .reg .f32 %fa, %fb, %fc, %fd;
    .reg .f64 %ga, %gb, %gc, %gd;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %t32, %tid.x;
    mad.lo.u32 %i, %i, %n, %t32;
    ld.param.u32 %n, [n];
    setp.ge.u32 %end, %i, %n;
    @%end bra END;
    ld.param.u64 %in, [in];
    mad.wide.u32 %in, %i, 24, %in;
    ld.global.u64 %a64, [%in];
    ld.global.u64 %b64, [%in+8];
    ld.global.u64 %c64, [%in+16];
    cvt.u32.u64 %a32, %a64;
    cvt.u32.u64 %b32, %b64;
    cvt.u32.u64 %c32, %c64;
    cvt.u16.u64 %a16, %a64;
    cvt.u16.u64 %b16, %b64;
    cvt.u16.u64 %c16, %c64;
    setp.ne.u64 %pa, %a64, 0;
    setp.ne.u64 %pb, %b64, 0;
    setp.ne.u64 %pc, %c64, 0;
    mov.b32 %fa, %a32;
    mov.b32 %fb, %b32;
    mov.b32 %fc, %c32;
    mov.b64 %ga, %a64;
    mov.b64 %gb, %b64;
    mov.b64 %gc, %c64;
    {body}
    {collect}
    ld.param.u64 %to, [out];
    mad.wide.u32 %to, %i, 8, %to;
    st.global.u64 [%to], %out;
END:
    ret;
}}
"
    )
}

/// The results of `body` for each input.
fn run(body: &str, out: Out, inputs: &[[u64; 3]]) -> Vec<u64> {
    let rig = Rig::new(&kernel(body, out));
    let flat: Vec<u64> = inputs.iter().flatten().copied().collect();
    let from = rig.memory.buffer(&flat);
    let to = rig.memory.zeros::<u64>(inputs.len());
    let count = u32::try_from(inputs.len()).expect("inputs are few");
    let shape = Shape::line(count.div_ceil(256), 256);
    rig.run("op", shape, args!(from, to, count));
    rig.memory.read(to, inputs.len())
}

/// Compares each result with what `expected` says.
pub(crate) fn check(
    body: &str,
    out: Out,
    inputs: &[[u64; 3]],
    expected: impl Fn(u64, u64, u64) -> u64,
) {
    check_that(body, out, inputs, |[a, b, c], found| {
        let wanted = expected(a, b, c);
        (found == wanted).then_some(()).ok_or(wanted)
    });
}

/// Lets `is_fine` judge each result; what it wanted instead goes into the message.
pub(crate) fn check_that(
    body: &str,
    out: Out,
    inputs: &[[u64; 3]],
    is_fine: impl Fn([u64; 3], u64) -> Result<(), u64>,
) {
    let found = run(body, out, inputs);
    for (input, found) in inputs.iter().zip(found) {
        if let Err(wanted) = is_fine(*input, found) {
            let [a, b, c] = input;
            panic!("`{body}` of {a:#x}, {b:#x}, {c:#x} gave {found:#x}, expected {wanted:#x}");
        }
    }
}

/// Each value alone.
pub(crate) fn singles(values: &[u64]) -> Vec<[u64; 3]> {
    values.iter().map(|a| [*a, 0, 0]).collect()
}

/// Each value with each, and a small third one that varies.
pub(crate) fn pairs(values: &[u64]) -> Vec<[u64; 3]> {
    let pairs = values
        .iter()
        .flat_map(|a| values.iter().map(move |b| [*a, *b]));
    let mut pairs: Vec<[u64; 3]> = pairs.map(|[a, b]| [a, b, 0]).collect();
    for (index, pair) in (0..).zip(&mut pairs) {
        pair[2] = values[index % values.len()];
    }
    pairs
}

/// Values in threes: many of them, at random.
pub(crate) fn triples(values: &[u64], count: usize) -> Vec<[u64; 3]> {
    let mut noise = Noise::new(count as u64);
    (0..count)
        .map(|_| std::array::from_fn(|_| *noise.pick(values)))
        .collect()
}
