//! Atomic operations, one thread and many.

use half::{bf16, f16};

use super::values::{doubles, integers, singles};
use crate::args;
use crate::rig::{Out, Rig, Shape, check, check_that, pairs, triples};

/// Updates the first operand in place: gives what was there, and leaves what is there now in memory.
fn body(space: &str, operation: &str, bits: u32, operands: &str) -> String {
    match space {
        "shared" => format!(
            "{{ .shared .align 8 .u64 box[256]; mov.u32 %t32, %tid.x; shl.b32 %t32, %t32, 3;
            mov.u32 %n, box; add.u32 %t32, %t32, %n;
            st.shared.u64 [%t32], %a64;
            atom.shared.{operation} %e{bits}, [%t32], {operands};
            ld.shared.b{bits} %d{bits}, [%t32]; }}"
        ),
        "generic" => format!(
            "atom.{operation} %e{bits}, [%in], {operands}; ld.global.b{bits} %d{bits}, [%in];"
        ),
        _ => format!(
            "atom.relaxed.gpu.global.{operation} %e{bits}, [%in], {operands};
            ld.global.b{bits} %d{bits}, [%in];"
        ),
    }
}

/// Checks the new value, and that the old one was given.
fn check_update(
    operation: &str,
    bits: u32,
    operands: &str,
    inputs: &[[u64; 3]],
    reference: impl Fn(u64, u64, u64) -> u64,
) {
    let out = if bits == 64 { Out::D64 } else { Out::D32 };
    for space in ["global", "shared", "generic"] {
        let update = body(space, operation, bits, operands);
        check(&update, out, inputs, &reference);
        let old = format!("{update} mov.b{bits} %d{bits}, %e{bits};");
        check(&old, out, inputs, |a, _, _| a & (u64::MAX >> (64 - bits)));
    }
}

#[test]
fn integers_are_updated() {
    for bits in [32u32, 64] {
        let mask = u64::MAX >> (64 - bits);
        let unused = 64 - bits;
        let signed = |x: u64| (x << unused) as i64 >> unused;
        let inputs = pairs(&integers(bits));
        let b = format!("%b{bits}");
        let go = |name: &str, ty: &str, reference: &dyn Fn(u64, u64) -> u64| {
            check_update(
                &format!("{name}.{ty}{bits}"),
                bits,
                &b,
                &inputs,
                |a, b, _| reference(a, b) & mask,
            );
        };
        go("add", "u", &|a, b| a.wrapping_add(b));
        go("min", "u", &u64::min);
        go("max", "u", &u64::max);
        go("min", "s", &|a, b| signed(a).min(signed(b)) as u64);
        go("max", "s", &|a, b| signed(a).max(signed(b)) as u64);
        go("and", "b", &|a, b| a & b);
        go("or", "b", &|a, b| a | b);
        go("xor", "b", &|a, b| a ^ b);
        go("exch", "b", &|_, b| b);
        let operands = format!("%b{bits}, %c{bits}");
        let inputs = triples(&integers(bits)[..6], 500);
        check_update(
            &format!("cas.b{bits}"),
            bits,
            &operands,
            &inputs,
            |a, b, c| {
                if a == b { c } else { a }
            },
        );
    }
    let inputs = pairs(&integers(32));
    check_update("inc.u32", 32, "%b32", &inputs, |a, b, _| {
        if a >= b { 0 } else { a + 1 }
    });
    check_update("dec.u32", 32, "%b32", &inputs, |a, b, _| {
        if a == 0 || a > b { b } else { a - 1 }
    });
}

#[test]
fn floats_are_added() {
    let single = |x: u64| f32::from_bits(x as u32);
    let bits = |x: f32| u64::from(if x.is_nan() { 0x7fff_ffff } else { x.to_bits() });
    let flushed = |x: f32| {
        if x.is_subnormal() {
            0f32.copysign(x)
        } else {
            x
        }
    };
    let inputs = pairs(&singles());
    check(
        &body("shared", "add.f32", 32, "%b32"),
        Out::D32,
        &inputs,
        |a, b, _| bits(single(a) + single(b)),
    );
    check(
        &body("global", "add.f32", 32, "%b32"),
        Out::D32,
        &inputs,
        |a, b, _| bits(flushed(flushed(single(a)) + flushed(single(b)))),
    );
    check_that(
        &body("global", "add.f64", 64, "%b64"),
        Out::D64,
        &pairs(&doubles()),
        |[a, b, _], found| {
            let wanted = f64::from_bits(a) + f64::from_bits(b);
            let same =
                wanted.to_bits() == found || (wanted.is_nan() && f64::from_bits(found).is_nan());
            same.then_some(()).ok_or(wanted.to_bits())
        },
    );
    let small: Vec<u64> = [0.5, 1.0, -2.25, 100.0, 0.001]
        .iter()
        .flat_map(|x| [f16::from_f64(*x).to_bits(), bf16::from_f64(*x).to_bits()])
        .map(u64::from)
        .collect();
    let inputs = pairs(&small);
    check(
        &body("global", "add.noftz.f16", 16, "%b16"),
        Out::D16,
        &inputs,
        |a, b, _| {
            let wide = |x: u64| f16::from_bits(x as u16).to_f64();
            u64::from(f16::from_f64(wide(a) + wide(b)).to_bits())
        },
    );
    let doubled: Vec<[u64; 3]> = inputs
        .iter()
        .map(|[a, b, _]| [a << 16 | b, b << 16 | a, 0])
        .collect();
    check(
        &body("global", "add.noftz.bf16x2", 32, "%b32"),
        Out::D32,
        &doubled,
        |a, b, _| {
            let sum = |place: u32| {
                let wide = |x: u64| bf16::from_bits((x >> place) as u16).to_f64();
                u64::from(bf16::from_f64(wide(a) + wide(b)).to_bits())
            };
            sum(16) << 16 | sum(0)
        },
    );
    check(
        &body("global", "cas.b16", 16, "%b16, %c16"),
        Out::D16,
        &triples(&[1, 2], 20),
        |a, b, c| {
            if a == b { c } else { a }
        },
    );
}

#[test]
fn many_threads_lose_no_update() {
    let text = ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 to)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, 0;
AGAIN:
    red.global.add.u32 [%rd1], 1;
    atom.global.add.u64 %rd2, [%rd1+8], 3;
    red.relaxed.gpu.global.add.f32 [%rd1+16], 0f3F800000;
    atom.global.inc.u32 %r2, [%rd1+20], 6;
    red.global.max.u32 [%rd1+24], %r1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 20;
    @%p bra AGAIN;
    ret;
}";
    for workers in [1, 2, 4] {
        let mut rig = Rig::new(text).with_seed(workers as u64);
        rig.rules.workers = workers;
        let to = rig.memory.zeros::<u32>(8);
        rig.run("k", Shape::line(50, 40), args!(to));
        let found: Vec<u32> = rig.memory.read(to, 8);
        let updates = 50 * 40 * 20;
        assert_eq!(found[0], updates);
        assert_eq!(found[2], 3 * updates);
        assert_eq!(f32::from_bits(found[4]), updates as f32);
        assert_eq!(found[5], updates % 7);
        assert_eq!(found[6], 19);
    }
}
