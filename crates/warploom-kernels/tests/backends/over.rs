//! Results that are written over what they are made of are the same bytes.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use warploom_core::{DType, Math};
use warploom_kernels::cpu::Engine;
use warploom_kernels::expr::Ty;
use warploom_kernels::flow::{Flow, Number, ValueId, ValueKind};
use warploom_kernels::fuse::Fused;
use warploom_kernels::program::{Loader, Program};

use super::case::{Case, DTYPES, image};
use super::compare::{Rule, numbers, same};
use super::fused::{case, run};
use super::rig::{Rig, cpu};

/// What a flow computes, node by node and every value in memory of its own.
fn apart(flow: &Flow, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let Fused { flow, passes, .. } = Fused::none(flow);
    let length = |id: &ValueId| usize::try_from(flow.kind(*id).bytes()).unwrap();
    let mut memory: Vec<Vec<u64>> = (0..flow.values().len())
        .map(|id| vec![0; length(&(id as u32)).div_ceil(8)])
        .collect();
    let mut put = |id: &ValueId, bytes: &[u8]| {
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut memory[*id as usize]);
        target[..bytes.len()].copy_from_slice(bytes);
    };
    for (id, bytes) in flow.inputs().iter().zip(inputs) {
        put(id, bytes);
    }
    for (id, value) in (0_u32..).zip(flow.values()) {
        if let Some(bytes) = &value.constant {
            put(&id, bytes);
        }
    }
    for pass in &passes {
        let take = |id: &ValueId| std::mem::take(&mut memory[*id as usize]);
        let mut results: Vec<Vec<u64>> = pass.outputs.iter().map(take).collect();
        let read = |id: &ValueId| bytemuck::cast_slice(&memory[*id as usize]);
        let reads: Vec<&[u8]> = pass.inputs.iter().map(read).collect();
        let writes = results
            .iter_mut()
            .map(|words| bytemuck::cast_slice_mut(words));
        let mut writes: Vec<&mut [u8]> = writes.collect();
        Engine::new(&flow, pass).run(&flow, &reads, &mut writes);
        for (id, words) in pass.outputs.iter().zip(results) {
            memory[*id as usize] = words;
        }
    }
    let outputs = flow.outputs().iter();
    outputs
        .map(|id| bytemuck::cast_slice::<u64, u8>(&memory[*id as usize])[..length(id)].to_vec())
        .collect()
}

/// Flows of which an expression reads one image at its own place, and another beside it.
fn expression(dtype: DType, dims: [u64; 3], both: bool) -> Flow {
    let mut flow = Flow::new();
    let inputs = [0, 1].map(|_| flow.input(ValueKind::Image(image(dtype, dims))));
    let read = if both { [inputs[0]; 2] } else { inputs };
    let numbers = [Number::F32(1.5)];
    let result = flow.map(&read, inputs[0], dtype, &numbers, |g, images, n| {
        let own = g.pixel(images[0]).cast(Ty::F32);
        let near = if both { [0; 3] } else { [0, 1, -1] };
        let other = g.near(images[1], near, warploom_kernels::Boundary::Reflect);
        (own - n[0]).max(other.cast(Ty::F32))
    });
    flow.output(result);
    flow
}

/// Every element type, images of any extents, on every device: what an input is replaced by is what
/// it would have been elsewhere.
#[test]
fn inputs_are_replaced_on_every_device() {
    let rig = Rig::take();
    let others = rig.others.iter().map(|other| &other.loader);
    for loader in others.chain([&rig.cpu]) {
        let info = loader.device().info().clone();
        let mut replaced = 0;
        for dtype in DTYPES {
            for (dims, both) in [
                ([1, 40, 37], false),
                ([3, 9, 33], false),
                ([2, 70, 64], true),
            ] {
                let case = Case::new(format!("{dtype} {dims:?}"), expression(dtype, dims, both));
                let program = Program::new(&case.flow, &info);
                // Numbers of 64 bits are computed on the host where a device has none.
                let Some(pair) = program.replaceable().first().copied() else {
                    assert!(!program.detours().is_empty(), "{} {}", info.id, case.name);
                    continue;
                };
                assert_eq!(pair, (0, 0), "the one that is read beside the pixel stays");
                let there = run(loader, program.clone(), &case);
                let over = program.replacing(&[pair]).unwrap();
                assert_eq!(over.in_place(), [0]);
                assert_eq!(run(loader, over, &case), there, "{} {}", info.id, case.name);
                replaced += 1;
            }
        }
        assert!(replaced >= 18, "{}: {replaced} of 21", info.id);
        println!("{}: {replaced} expressions in place", info.id);
    }
}

/// What reads its neighbours, gives other elements, or is read later is not written over.
#[test]
fn what_is_still_needed_is_not_replaced() {
    let info = cpu().info().clone();
    let shifted = |dtype: DType, offset: [i32; 3]| {
        let mut flow = Flow::new();
        let from = flow.input(ValueKind::Image(image(DType::F32, [1, 8, 8])));
        let to = flow.map(&[from], from, dtype, &[], |g, images, _| {
            g.near(images[0], offset, warploom_kernels::Boundary::Wrap)
        });
        (flow, from, to)
    };
    let options = |flow: &Flow| Program::unfused(flow, &info).replaceable();
    let (mut flow, _, to) = shifted(DType::F32, [0; 3]);
    flow.output(to);
    assert_eq!(options(&flow), [(0, 0)]);
    for (dtype, offset) in [
        (DType::F32, [0, 0, 1]),
        (DType::I32, [0; 3]),
        (DType::U8, [0; 3]),
    ] {
        let (mut flow, _, to) = shifted(dtype, offset);
        flow.output(to);
        assert_eq!(options(&flow), [], "{dtype} {offset:?}");
    }
    // The input is an output, too; and the input is read again after it.
    let (mut flow, from, to) = shifted(DType::F32, [0; 3]);
    flow.output(to);
    flow.output(from);
    assert_eq!(options(&flow), []);
    let (mut flow, from, to) = shifted(DType::F32, [0; 3]);
    let late = flow.taps(
        from,
        2,
        warploom_kernels::flow::Weights::Even(vec![0.5, 0.25]),
        warploom_kernels::Boundary::Clamp,
    );
    flow.output(to);
    flow.output(late);
    assert_eq!(options(&flow), []);
    assert!(
        Program::unfused(&flow, &info)
            .replacing(&[(0, 0)])
            .is_none()
    );
}

/// Random flows on the processor: values that only a program knows are written over as far as may be,
/// and so is every input that may be.
#[test]
fn random_flows_in_place_are_those_in_memory_of_their_own() {
    let loader = Loader::new(cpu(), Math::Strict);
    let info = loader.device().info().clone();
    let mut runner = TestRunner::deterministic();
    let (mut inner, mut replaced) = (0, 0);
    for _ in 0..300 {
        let case = case().new_tree(&mut runner).unwrap().current();
        let expected = apart(&case.flow, &case.inputs);
        for program in [
            Program::unfused(&case.flow, &info),
            Program::new(&case.flow, &info),
        ] {
            inner += program.in_place().len();
            let pairs = program.replaceable();
            replaced += pairs.len();
            let program = program.replacing(&pairs).unwrap();
            let got = run(&loader, program, &case);
            for ((id, got), want) in case.flow.outputs().iter().zip(&got).zip(&expected) {
                let dtype = case.flow.kind(*id).dtype();
                let same = same(Rule::Bits.of(&case.flow), dtype, &numbers(dtype, want), got);
                assert!(same.is_ok(), "{same:?} in {}", case.name);
            }
        }
    }
    // Where nothing is in place, this test proves nothing.
    assert!(
        inner > 10 && replaced > 10,
        "{inner} inside, {replaced} inputs"
    );
    println!("{inner} passes in place, {replaced} inputs replaced");
}
