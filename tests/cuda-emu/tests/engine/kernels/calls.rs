//! Functions, parameters, printing, asserting.

use warploom_cuda_emu::engine::FaultKind;

use super::{each, texts};
use crate::args;
use crate::rig::Shape;

#[test]
fn functions_with_results_recursion_and_pointers() {
    each(texts!("calls"), |rig| {
        for which in [0, 1, 5] {
            let out = rig.memory.zeros::<f64>(5 * 20);
            rig.run("calls", Shape::line(1, 20), args!(out, which));
            let found: Vec<f64> = rig.memory.read(out, 5 * 20);
            for i in 0..20i32 {
                let row = &found[i as usize * 5..][..5];
                let (lo, hi) = (i + 3, 2.0);
                assert_eq!(row[0], f64::from(lo) + hi + 2.0 + f64::from(lo));
                assert_eq!(row[1], f64::from((250 + i + 7) as u8));
                let fib = (0..i).fold((0u32, 1u32), |(a, b), _| (b, a + b)).0;
                assert_eq!(row[2], f64::from(fib));
                assert_eq!(row[3], f64::from(8 * i + 28));
                let result = match (i + which) % 3 {
                    0 => i + 10,
                    1 => i - 10,
                    _ => i * 10,
                };
                assert_eq!(row[4], f64::from(result));
            }
        }
    });
}

#[test]
fn structures_by_value() {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Small(i8, [u8; 1], i16, i32);
    // SAFETY: the padding is spelled out, so all bytes are initialised, and any of them are fine.
    unsafe impl bytemuck::NoUninit for Small {}
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Matrix([[f32; 4]; 3], i32, [u8; 4], f64);
    // SAFETY: as above.
    unsafe impl bytemuck::NoUninit for Matrix {}

    let rows = [
        [1.0, 2.0, 3.0, 4.0],
        [0.5, 0.0, -1.0, 2.0],
        [9.0, 8.0, 7.0, 6.0],
    ];
    let vector = [1.0f32, -2.0, 0.5, 4.0];
    each(texts!("params"), |rig| {
        let v = rig.memory.buffer(&vector);
        let out = rig.memory.buffer(&[-1.0f64; 4]);
        let small = Small(-3, [0], 1000, -7);
        let matrix = Matrix(rows, 3, [0; 4], 0.25);
        rig.run(
            "params",
            Shape::line(1, 32),
            args!(small, matrix, v, out, 200u8),
        );
        let found: Vec<f64> = rig.memory.read(out, 4);
        for (row, found) in rows.iter().zip(&found) {
            let sum: f32 = row.iter().zip(&vector).map(|(a, b)| a * b).sum();
            assert_eq!(*found, f64::from(sum) * 0.25 - 3.0 - 7000.0 + 200.0);
        }
        assert_eq!(found[3], -1.0);
    });
}

#[test]
fn switches_of_many_cases() {
    let cases: Vec<i32> = (-2..12).collect();
    let values: Vec<i32> = cases.iter().map(|case| 1000 - 137 * case).collect();
    each(texts!("switches"), |rig| {
        let a = rig.memory.buffer(&cases);
        let b = rig.memory.buffer(&values);
        rig.run(
            "switches",
            Shape::line(1, 32),
            args!(a, b, cases.len() as i32),
        );
        let expected: Vec<i32> = cases
            .iter()
            .zip(&values)
            .map(|(case, b)| match case {
                0 => b + 7,
                1 => b * 3,
                2 => b / 5,
                3 => b ^ 0x55,
                4 => b << 2,
                5 => -b,
                6 => b % 11,
                7 => b * b,
                8 => b | 64,
                _ => -1,
            })
            .collect();
        assert_eq!(rig.memory.read::<i32>(b, cases.len()), expected);
    });
}

#[test]
fn what_kernels_print() {
    each(texts!("printing"), |rig| {
        rig.run("printing", Shape::line(1, 8), args!(3i32));
        let text = rig.printed.lock().unwrap().clone();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "plain",
                "thread 0 of block:  0.00 8589934592 a%",
                "thread 1 of block:  0.50 17179869184 b%",
                "thread 2 of block:  1.00 34359738368 c%",
            ]
        );
    });
}

#[test]
fn an_assertion_that_fails_names_itself() {
    each(texts!("asserting"), |rig| {
        let a = rig.memory.buffer(&[1i32, 2, 4, 5]);
        rig.run("asserting", Shape::line(1, 4), args!(a));
        let a = rig.memory.buffer(&[1i32, 2, 3, 4]);
        let fault = rig.launch("asserting", Shape::line(1, 4), args!(a));
        let fault = fault.unwrap_err();
        assert_eq!(fault.thread, [2, 0, 0]);
        let FaultKind::Assert {
            message,
            file,
            source_line,
            function,
        } = fault.kind
        else {
            panic!("{fault}");
        };
        assert_eq!(&*message, "a[threadIdx.x] != 3");
        assert_eq!(&*file, "kernel.cu");
        assert_eq!(source_line, 2);
        assert!(function.contains("asserting"), "{function}");
    });
}
