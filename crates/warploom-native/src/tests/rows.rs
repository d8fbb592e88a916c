//! Rows that are read from several places, and again and again.

use super::super::{Bin, Element, Ins, Routine, Value, Width};
use super::{bytes, put, row, run, widths, words};

#[test]
fn places_further_on_are_read_there() {
    const BY: [u16; 4] = [0, 1, 5, 300];
    let mut code: Vec<Ins> = BY.map(|by| Ins::Beside { row: 0, by }).to_vec();
    code.extend([
        row(1),
        Ins::Bin(Bin::SubI, 0, 1),
        Ins::Bin(Bin::SubI, 2, 3),
        Ins::Bin(Bin::MulI, 5, 6),
        Ins::Bin(Bin::AddI, 7, 4),
        put(0, 8),
        // Much at once, and everything again: registers are scarce.
        Ins::Bin(Bin::Xor, 8, 0),
        Ins::Bin(Bin::AddI, 10, 3),
        put(1, 11),
    ]);
    let count = 48;
    let far: Vec<u32> = (0..count as u32 + 300)
        .map(|n| n.wrapping_mul(0x9e37_79b9))
        .collect();
    let near: Vec<u32> = (0..count as u32).map(|n| n * n).collect();
    for width in widths() {
        let routine = Routine::new(&code, width).unwrap();
        let found = run(&routine, &[bytes(&far), bytes(&near)], 2, 0, count);
        for x in 0..count {
            let [a, b, c, d] = BY.map(|by| far[x + usize::from(by)]);
            let first = a
                .wrapping_sub(b)
                .wrapping_mul(c.wrapping_sub(d))
                .wrapping_add(near[x]);
            assert_eq!(words(&found[0])[x], first, "{width:?} {x}");
            assert_eq!(
                words(&found[1])[x],
                (first ^ a).wrapping_add(d),
                "{width:?} {x}"
            );
        }
        let short = bytes(&far[..count + 299]);
        let caught =
            std::panic::catch_unwind(|| run(&routine, &[short, bytes(&near)], 2, 0, count));
        assert!(caught.is_err(), "the row ends too early");
    }
}

#[test]
fn what_is_fetched_for_later_changes_nothing() {
    for width in widths() {
        // Pointers of some rows are in registers for the whole loop, those of others are not.
        for ahead in [1_u8, 6] {
            let mut code: Vec<Ins> = (0..ahead).map(row).collect();
            let element = Element::Word;
            code.extend([
                Ins::Soon {
                    row: ahead,
                    element,
                },
                Ins::Bin(Bin::AddI, 0, Value::from(ahead) - 1),
                put(0, Value::from(ahead) + 1),
            ]);
            let routine = Routine::new(&code, width).unwrap();
            let rows: Vec<Vec<u8>> = (0..=u32::from(ahead))
                .map(|k| bytes(&[k + 1; 48]))
                .collect();
            let found = run(&routine, &rows, 1, 0, 48);
            assert_eq!(words(&found[0]), [1 + u32::from(ahead); 48], "{width:?}");
        }
    }
}

#[test]
fn rows_that_are_read_often_leave_room_for_numbers() {
    for width in widths() {
        // As many numbers as there are registers beside what a sum of rows needs.
        let most = if width == Width::Bits512 { 28 } else { 12 };
        for count in most - 6..=most + 2 {
            let mut code: Vec<Ins> = (0..4).map(row).collect();
            code.extend((0..count).map(Ins::Number));
            let mut sum = 0;
            for value in [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3] {
                code.push(Ins::Bin(Bin::AddI, sum, value));
                sum = (code.len() - 1) as Value;
            }
            for number in 4..4 + Value::from(count) {
                code.push(Ins::Bin(Bin::Xor, sum, number));
                sum = (code.len() - 1) as Value;
            }
            code.push(put(0, sum));
            let routine = Routine::new(&code, width).unwrap();
            let rows: Vec<Vec<u8>> = (1..5).map(|k| bytes(&[k; 32])).collect();
            let outs = run_with(&routine, &rows, count, 32);
            let wanted = (0..u32::from(count)).fold(30, |sum, number| sum ^ (number << 8));
            assert_eq!(words(&outs), [wanted; 32], "{width:?}, {count} numbers");
        }
    }
}

/// Runs a routine whose numbers are multiples of 256.
fn run_with(routine: &Routine, rows: &[Vec<u8>], numbers: u16, count: usize) -> Vec<u8> {
    let mut memory = vec![f32::NAN; routine.memory()];
    routine.start(&mut memory);
    for number in 0..numbers {
        routine.set_number(&mut memory, number, u32::from(number) << 8);
    }
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut out = vec![0xaa_u8; count * 4];
    routine.run(&mut memory, &rows, &mut [&mut out], 0, count);
    out
}
