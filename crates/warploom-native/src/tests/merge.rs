//! Instructions that do the work of two, and routines that take two vectors at a time.

use super::super::merge::{merged, twins};
use super::{Bin, Ins, Routine, Un, Width, bytes, put, row, run, widths, words};

#[test]
fn signs_and_comparisons_are_merged() {
    let code = [
        row(0),
        row(1),
        Ins::Un(Un::NegF, 0),
        Ins::Fma(2, 1, 1),
        Ins::Fma(1, 1, 2),
        Ins::Bin(Bin::LtF, 0, 1),
        Ins::Select(5, 3, 4),
        put(0, 6),
    ];
    let short = merged(&code, Width::Bits512);
    assert_eq!(short[3], Ins::Fnma(0, 1, 1));
    assert_eq!(short[4], Ins::Fms(1, 1, 0));
    assert_eq!(short[6], Ins::SelectIf(Bin::LtF, [0, 1], [3, 4]));
    // Without masks a comparison is a vector.
    assert_eq!(merged(&code, Width::Bits256)[6], code[6]);
    // One that is more than a condition stays.
    let code = [&code[..6], &[Ins::Select(5, 5, 4), put(0, 6)]].concat();
    assert_eq!(merged(&code, Width::Bits512)[6], code[6]);
}

#[test]
fn twins_have_numbers_in_common() {
    let code = [row(0), Ins::Number(0), Ins::Bin(Bin::AddF, 0, 1), put(0, 2)];
    let both = twins(&code);
    assert_eq!(both[4], Ins::Bin(Bin::AddF, 0, 2));
    assert_eq!(both[5], Ins::Bin(Bin::AddF, 1, 2));
    assert_eq!((both[6], both[7]), (put(0, 4), put(0, 5)));
}

/// Long enough for two vectors at a time, with odd and even numbers of them.
#[test]
fn long_routines_go_by_pairs_and_leave_none_out() {
    for width in widths() {
        let mut code = vec![row(0), row(1)];
        for step in 1..40 {
            let (last, before) = (step, step - 1);
            code.push(match step % 3 {
                0 => Ins::Bin(Bin::AddI, last, before),
                1 => Ins::Bin(Bin::Xor, last, before),
                _ => Ins::Bin(Bin::SubI, last, before),
            });
        }
        code.push(put(0, 40));
        let routine = Routine::new(&code, width).expect("vectors are there");
        for vectors in 1..6 {
            let count = vectors * routine.lanes();
            let rows: [Vec<u32>; 2] = [3_u32, 7].map(|seed| {
                let all = 0..count as u32;
                all.map(|i| (i + seed).wrapping_mul(2_654_435_769))
                    .collect()
            });
            let found = run(&routine, &rows.clone().map(|row| bytes(&row)), 1, 0, count);
            for (at, found) in words(&found[0]).into_iter().enumerate() {
                let mut values = vec![rows[0][at], rows[1][at]];
                for step in 1..40 {
                    let (last, before) = (values[step], values[step - 1]);
                    values.push(match step % 3 {
                        0 => last.wrapping_add(before),
                        1 => last ^ before,
                        _ => last.wrapping_sub(before),
                    });
                }
                assert_eq!(found, values[40], "pixel {at} of {count}");
            }
        }
    }
}
