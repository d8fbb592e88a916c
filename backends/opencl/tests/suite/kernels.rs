//! Compiling: messages, checks, arithmetic.

use warploom_core::{DeviceError, KernelCode, KernelSource, Math, Param, Queue, Slice};

use crate::rig::{CODE, Rig, each, grid, read, source};

fn build(rig: &Rig, name: &str, code: &str, params: &[Param]) -> DeviceError {
    // SAFETY: nothing in these tests is launched.
    let source = unsafe { KernelSource::vouch(name, KernelCode::OpenClC(code), params, [1, 1, 1]) };
    rig.device.kernel(&source).unwrap_err()
}

#[test]
fn the_compilers_words_point_at_the_right_line() {
    each(|rig| {
        let code = "// one\n__kernel void broken(__global float *a) {\n    a[0] = missing;\n}\n";
        let error = build(rig, "broken", code, &[Param::Write]);
        let DeviceError::Build { kernel, log, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(kernel, "broken");
        assert!(log.contains("missing"), "{log}");
        assert!(log.contains(":3:"), "{log}");
    });
}

#[test]
fn a_missing_function_is_told_with_those_that_exist() {
    each(|rig| {
        let error = build(rig, "nobody", CODE, &[Param::Write]);
        assert!(matches!(error, DeviceError::Build { .. }), "{error}");
        assert!(error.to_string().contains("scale"), "{error}");
        let error = build(rig, "zero\0byte", CODE, &[Param::Write]);
        assert!(matches!(error, DeviceError::Build { .. }), "{error}");
    });
}

#[test]
fn a_declaration_that_does_not_fit_the_code_is_refused() {
    each(|rig| {
        let error = build(rig, "scale", CODE, &[Param::ReadWrite]);
        assert!(error.to_string().contains("takes 3 arguments"), "{error}");
    });
}

#[test]
fn another_language_is_unsupported_even_unchecked() {
    each(|rig| {
        let source = KernelSource::wgsl("k", "", &[], [1, 1, 1]);
        let error = rig.device.bare().kernel(&source).unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    });
}

#[test]
fn strict_arithmetic_is_rusts() {
    each(|rig| {
        let count = 10_000_u32;
        let series = |seed: u32| -> Vec<f32> {
            let mut state = seed;
            (0..count)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / 65_536.0
                })
                .collect()
        };
        let (a, b) = (series(1), series(2));
        let run = |math| {
            let out = rig.buffer(u64::from(count) * 4);
            let args = [
                rig.filled(&a).into(),
                rig.filled(&b).into(),
                Slice::whole(&out).into(),
                count.into(),
            ];
            let kernel = rig.device.kernel(&source("blend").with_math(math)).unwrap();
            let mut queue = rig.queue();
            queue.launch(&kernel, grid(count), &args).unwrap();
            read::<f32>(&mut queue, &Slice::whole(&out))
        };
        let wanted: Vec<f32> = std::iter::zip(&a, &b)
            .map(|(a, b)| {
                let sum = a * b + a;
                (sum * sum + b * b).sqrt() / (1.0 + b) - a * 0.3
            })
            .collect();
        let strict = run(Math::Strict);
        if rig
            .device
            .info()
            .caps
            .contains(warploom_core::Caps::STRICT_MATH)
        {
            let differ =
                std::iter::zip(&strict, &wanted).filter(|(s, w)| s.to_bits() != w.to_bits());
            assert_eq!(differ.count(), 0);
        }
        for (fast, wanted) in std::iter::zip(run(Math::Fast), &wanted) {
            let error = (fast - wanted).abs() / wanted.abs().max(1.0);
            assert!(error < 1e-4, "{fast} {wanted}");
        }
    });
}
