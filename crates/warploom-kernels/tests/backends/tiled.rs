//! Parts of an image with the halo their flow states give the bytes of the whole.

use std::ops::Range;

use proptest::prelude::*;
use warploom_core::Math;
use warploom_kernels::Dims;
use warploom_kernels::fuse::{Part, halo};
use warploom_kernels::program::{Loader, Program};

use super::case::Case;
use super::compare::{Rule, numbers, same};
use super::fused::{local_case, run};
use super::rig::cpu;

/// The rows of a part of an image, as ranges of bytes of the whole.
fn rows(part: &[Range<u64>; 3], dims: Dims, size: u64) -> Vec<Range<usize>> {
    let [planes, lines, columns] = part.clone();
    let lines = planes.flat_map(|z| lines.clone().map(move |y| z * dims[1] + y));
    let starts = lines.map(|line| (line * dims[2] + columns.start) * size);
    let length = (columns.end - columns.start) * size;
    starts
        .map(|start| start as usize..(start + length) as usize)
        .collect()
}

/// A part's results, put where they belong.
fn work_on(cpu: &Loader, case: &Case, part: &Part, whole: &mut [Vec<u8>]) {
    let flow = case.flow.with_extents(part.extents());
    let dims = case.flow.image(case.flow.inputs()[0]).dims;
    let inputs = case.flow.inputs().iter().zip(&case.inputs);
    let inputs = inputs.map(|(id, bytes)| {
        let size = case.flow.kind(*id).dtype().bytes();
        let rows = rows(&part.reads, dims, size).into_iter();
        rows.flat_map(|row| bytes[row].to_vec()).collect()
    });
    let tile = Case {
        inputs: inputs.collect(),
        ..Case::new("a part", flow)
    };
    let program = Program::new(&tile.flow, cpu.device().info());
    let results = run(cpu, program, &tile);
    let inner = [0, 1, 2].map(|axis| {
        let start = part.reads[axis].start;
        part.gives[axis].start - start..part.gives[axis].end - start
    });
    for ((id, made), whole) in case.flow.outputs().iter().zip(results).zip(whole) {
        let size = case.flow.kind(*id).dtype().bytes();
        let from = rows(&inner, part.extents(), size);
        for (from, to) in from.into_iter().zip(rows(&part.gives, dims, size)) {
            whole[to].copy_from_slice(&made[from]);
        }
    }
}

thread_local! {
    static CPU: Loader = Loader::new(cpu(), Math::Strict);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn parts_are_the_whole_bit_for_bit(
        case in local_case(),
        most in (1..5_u64, 5..30_u64, 5..30_u64),
    ) {
        let halo = halo(&case.flow).expect("nothing here looks farther than its surroundings");
        let dims = case.flow.image(case.flow.inputs()[0]).dims;
        CPU.with(|cpu| {
            let want = run(cpu, Program::new(&case.flow, cpu.device().info()), &case);
            let mut got: Vec<Vec<u8>> = want.iter().map(|bytes| vec![0; bytes.len()]).collect();
            for part in halo.parts(dims, most.into()) {
                work_on(cpu, &case, &part, &mut got);
            }
            for ((id, got), want) in case.flow.outputs().iter().zip(&got).zip(&want) {
                let dtype = case.flow.kind(*id).dtype();
                let same = same(Rule::Bits.of(&case.flow), dtype, &numbers(dtype, want), got);
                prop_assert!(same.is_ok(), "{:?} with {:?} in {}", same, halo, case.name);
            }
            Ok(())
        })?;
    }
}
