//! Four bytes to a word.

use super::{BINARY, put, row, run, widths};
use crate::{Bin, BinB, Ins, Routine};

pub(super) fn of_bytes(op: BinB, a: u8, b: u8) -> u8 {
    let truth = |is: bool| if is { u8::MAX } else { 0 };
    match op {
        BinB::Add => a.wrapping_add(b),
        BinB::Sub => a.wrapping_sub(b),
        BinB::Min => a.min(b),
        BinB::Max => a.max(b),
        BinB::Lt => truth(a < b),
        BinB::Le => truth(a <= b),
        BinB::Eq => truth(a == b),
        BinB::Ne => truth(a != b),
    }
}

#[test]
fn every_pair_of_bytes_is_compared_and_added() {
    let all = || 0..=u8::MAX;
    let left: Vec<u8> = all().flat_map(|a| all().map(move |_| a)).collect();
    let right: Vec<u8> = all().flat_map(|_| all()).collect();
    let pairs = left.len() / 4;
    for width in widths() {
        for op in BINARY {
            let Bin::Bytes(of) = op else { continue };
            let code = [row(0), row(1), Ins::Bin(op, 0, 1), put(0, 2)];
            let routine = Routine::new(&code, width).unwrap();
            let rows = [left.clone(), right.clone()];
            let found = &run(&routine, &rows, 1, 0, pairs)[0];
            let wanted = left.iter().zip(&right).map(|(&a, &b)| of_bytes(of, a, b));
            assert!(wanted.eq(found.iter().copied()), "{width:?} {of:?}");
        }
    }
}
