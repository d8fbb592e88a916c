//! Tapes against the evaluator that computes expressions as they are written.

use proptest::prelude::*;
use warploom_core::DType;

use super::super::lanes::{Level, levels};
use super::native::Native;
use super::{RowIn, RowOut, Slots, Tape};
use warploom_flow::expr::{Bin, Dag, Datum, Evaluator, Ex, Graph, Node, Pixels, Source, Ty, Un};

/// Numbers that are likely to find a fault.
fn number(ty: Ty, pick: u64) -> f64 {
    let odd = [
        0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.5, -7.25, 255.0, 256.0, 65_535.0, 1e9, -1e9, 1e-40,
    ];
    let value: f64 = odd[(pick % odd.len() as u64) as usize];
    match ty {
        Ty::I32 => value.trunc(),
        Ty::U32 => value.trunc().abs(),
        _ => value,
    }
}

const TYPES: [DType; 7] = [
    DType::U8,
    DType::U16,
    DType::I16,
    DType::I32,
    DType::U32,
    DType::F32,
    DType::F64,
];

/// Grows a random expression; with division of whole numbers, if it `divides`.
fn grow<'g>(graph: &'g Graph, images: &[u32], picks: &[u64], divides: bool) -> Vec<Ex<'g>> {
    let mut terms: Vec<Ex<'g>> = images.iter().map(|&image| graph.pixel(image)).collect();
    terms.extend(graph.coords());
    for &pick in picks {
        let a = terms[(pick >> 8) as usize % terms.len()];
        let same: Vec<Ex<'g>> = terms.iter().copied().filter(|t| t.ty() == a.ty()).collect();
        let b = same[(pick >> 24) as usize % same.len()];
        let b = if pick & 64 != 0 && a.ty() != Ty::Bool {
            graph.number(a.ty(), number(a.ty(), pick >> 32))
        } else {
            b
        };
        let uns = [
            Un::Neg,
            Un::Abs,
            Un::Sqrt,
            Un::Floor,
            Un::Ceil,
            Un::Round,
            Un::IsNan,
        ];
        let bins = [
            Bin::Add,
            Bin::Sub,
            Bin::Mul,
            Bin::Div,
            Bin::Min,
            Bin::Max,
            Bin::Lt,
            Bin::Le,
            Bin::Eq,
            Bin::Ne,
        ];
        let logic = [Bin::And, Bin::Or, Bin::Xor];
        let at = (pick >> 40) as usize;
        let float = a.ty().is_float();
        let new = match (pick % 8, a.ty()) {
            (0 | 1, Ty::Bool) => !a,
            (_, Ty::Bool) if pick % 8 == 2 => graph.add(Node::Bin(logic[at % 3], a.id(), b.id())),
            (_, Ty::Bool) => {
                let yes = terms[at % terms.len()];
                let no = terms
                    .iter()
                    .rev()
                    .find(|t| t.ty() == yes.ty())
                    .copied()
                    .unwrap_or(yes);
                a.select(yes, no)
            }
            (0, _) if float => graph.add(Node::Un(uns[at % 7], a.id())),
            (0, Ty::I32) => graph.add(Node::Un([Un::Neg, Un::Abs, Un::Not][at % 3], a.id())),
            (1, _) if float => a.fma(b, same[at % same.len()]),
            (1, _) => graph.add(Node::Bin(logic[at % 3], a.id(), b.id())),
            (2, _) if float && at.is_multiple_of(3) => {
                a.saturate([DType::I32, DType::U32][at / 3 % 2])
            }
            (2, Ty::F32) => a.cast(Ty::F64),
            (2, Ty::F64) => a.cast(Ty::F32),
            (2, _) => a.cast([Ty::F32, Ty::F64][at % 2]),
            (3, _) if !float => graph.add(Node::Bin(
                [Bin::Shl, Bin::Shr][at % 2],
                a.id(),
                graph.number(a.ty(), (at % 32) as f64).id(),
            )),
            (4, _) if !float && divides => {
                graph.add(Node::Bin([Bin::Div, Bin::Rem][at % 2], a.id(), b.id()))
            }
            (4, _) => a.saturate([DType::I32, DType::U32, DType::U8][at % 3]),
            _ if !float && !divides && bins[at % 10] == Bin::Div => a * b,
            _ => graph.add(Node::Bin(bins[at % 10], a.id(), b.id())),
        };
        terms.push(new);
    }
    terms
}

fn bytes(dtype: DType, seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut all = Vec::new();
    for i in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        let bits = state >> 20;
        let value = match i % 5 {
            0 => number(Ty::F64, bits),
            1 if i % 35 == 1 => f64::NAN,
            _ => (bits % 100_000) as f64 / 16.0 - 1000.0,
        };
        match dtype {
            DType::F32 => all.extend((value as f32).to_ne_bytes()),
            DType::F64 => all.extend(value.to_ne_bytes()),
            other => all.extend(&bits.to_ne_bytes()[..other.bytes() as usize]),
        }
    }
    all
}

/// Equal bits, or both not a number: which one it is, no two machines agree on.
fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let width = dtype.bytes() as usize;
    a.chunks(width).zip(b.chunks(width)).all(|(a, b)| {
        let nan = |bytes| Datum::read(dtype, bytes).is_some_and(|v| v.to_f64().is_nan());
        a == b || (nan(a) && nan(b))
    })
}

fn check(dag: &Dag, seed: u64, width: usize) -> Result<(), TestCaseError> {
    let inputs: Vec<Vec<u8>> = (0..)
        .zip(dag.inputs())
        .map(|(i, &dtype)| bytes(dtype, seed + i, width))
        .collect();
    let sources: Vec<Source<'_>> = inputs
        .iter()
        .zip(dag.inputs())
        .map(|(bytes, &dtype)| Source::Image(Pixels::packed(bytes, dtype, [1, 1, width as u64])))
        .collect();
    let expected = Evaluator::new(dag, &[], &sources, [1, 1, width as u64]).all();
    let ways = levels().into_iter().flat_map(|level| {
        [
            (level, false, true),
            (level, true, true),
            (level, true, false),
            (level, false, false),
        ]
    });
    for (level, is_interpreted, is_bytes) in ways {
        let mut tape = Tape::new(dag).expect("it reads no other pixels");
        if !is_bytes {
            tape.bytes = None;
        } else if tape.bytes.is_none() {
            continue;
        }
        if is_interpreted {
            tape.native.set(None).expect("it has not run");
        }
        let mut slots = Slots::default();
        tape.prepare(level, &mut slots, &[], &|_, _| 0.0, [1, 1, width as i32]);
        let rows: Vec<RowIn<'_>> = tape
            .reads()
            .iter()
            .map(|read| RowIn::new(dag.inputs()[read.image], &inputs[read.image]))
            .collect();
        let mut results: Vec<Vec<f64>> = vec![vec![0.0; width]; tape.outputs().len()];
        let mut outs: Vec<RowOut<'_>> = results
            .iter_mut()
            .zip(tape.outputs())
            .map(|(result, &dtype)| {
                let bytes = bytemuck::cast_slice_mut(result);
                RowOut::new(dtype, &mut bytes[..width * dtype.bytes() as usize])
            })
            .collect();
        tape.run(level, &mut slots, &rows, &mut outs, [0, 0], width, false);
        for ((result, expected), &dtype) in results.iter().zip(&expected).zip(tape.outputs()) {
            let result: &[u8] = bytemuck::cast_slice(result);
            prop_assert!(
                same(dtype, &result[..expected.len()], expected),
                "{:?}, interpreted: {}, {:?}, {:?}",
                level,
                is_interpreted,
                tape.bytes.as_ref().filter(|_| is_bytes),
                tape.code
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tapes_compute_what_expressions_say(
        picks in prop::collection::vec(any::<u64>(), 1..40),
        types in prop::collection::vec(0..7_usize, 1..4),
        outs in prop::collection::vec((any::<usize>(), 0..7_usize), 1..4),
        seed: u64,
        width in prop_oneof![Just(1_usize), 1..300_usize],
    ) {
        let graph = Graph::new();
        let images: Vec<u32> = types.iter().map(|&at| graph.input(TYPES[at])).collect();
        let terms = grow(&graph, &images, &picks, true);
        let outputs: Vec<(Ex<'_>, DType)> = outs
            .iter()
            .map(|(at, dtype)| (terms[terms.len() - 1 - at % terms.len().min(6)], TYPES[*dtype]))
            .collect();
        check(&Dag::new(&graph, &outputs), seed, width)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn machine_code_computes_what_expressions_say(
        picks in prop::collection::vec(any::<u64>(), 1..120),
        types in prop::collection::vec(0..7_usize, 1..8),
        outs in prop::collection::vec((any::<usize>(), 0..7_usize), 1..6),
        seed: u64,
        width in prop_oneof![16..48_usize, 1..300_usize],
    ) {
        let graph = Graph::new();
        let images: Vec<u32> = types.iter().map(|&at| graph.input(TYPES[at])).collect();
        let terms = grow(&graph, &images, &picks, false);
        let outputs: Vec<(Ex<'_>, DType)> = outs
            .iter()
            .map(|(at, dtype)| (terms[terms.len() - 1 - at % terms.len().min(30)], TYPES[*dtype]))
            .collect();
        let dag = Dag::new(&graph, &outputs);
        if cfg!(target_arch = "x86_64") && levels().len() > 2 {
            let tape = Tape::new(&dag).expect("it reads no other pixels");
            let native = Native::new(&dag, &tape.reads, &[], levels()[0]);
            prop_assert!(native.is_some(), "{:?}", tape.code);
        }
        check(&dag, seed, width)?;
    }
}

/// Grows a random expression that never leaves the bytes.
fn grow_bytes<'g>(graph: &'g Graph, images: &[u32], picks: &[u64]) -> Vec<Ex<'g>> {
    let mut terms: Vec<Ex<'g>> = images.iter().map(|&image| graph.pixel(image)).collect();
    for &pick in picks {
        let of = |ty: Ty, at: u64| {
            let all: Vec<Ex<'g>> = terms.iter().copied().filter(|t| t.ty() == ty).collect();
            all.get(at as usize % all.len().max(1)).copied()
        };
        let number = graph.number(Ty::I32, (pick >> 16 & 255) as f64);
        let (Some(a), Some(b)) = (of(Ty::I32, pick >> 24), of(Ty::I32, pick >> 32)) else {
            unreachable!("images are whole numbers")
        };
        let b = if pick & 64 != 0 { number } else { b };
        let bins = [Bin::Lt, Bin::Le, Bin::Eq, Bin::Ne, Bin::Min, Bin::Max];
        let logic = [Bin::And, Bin::Or, Bin::Xor][(pick >> 40) as usize % 3];
        let bin = |bin, a: Ex<'g>, b: Ex<'g>| graph.add(Node::Bin(bin, a.id(), b.id()));
        let new = match (pick % 8, of(Ty::Bool, pick >> 44), of(Ty::Bool, pick >> 52)) {
            (0, Some(cond), _) => cond.select(a, b),
            (1, Some(truth), _) => !truth,
            (2, Some(one), Some(other)) => bin(logic, one, other),
            (3, Some(truth), _) => truth.cast(Ty::I32),
            (4, Some(cond), Some(other)) => cond.select(other, !other),
            (5, ..) => bin(logic, a, b),
            _ => bin(bins[(pick >> 48) as usize % 6], a, b),
        };
        terms.push(new);
    }
    terms
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bytes_compute_what_expressions_say(
        picks in prop::collection::vec(any::<u64>(), 1..60),
        images in 1..4_usize,
        outs in prop::collection::vec(any::<usize>(), 1..5),
        seed: u64,
        width in prop_oneof![1..300_usize, 2000..4200_usize],
    ) {
        let graph = Graph::new();
        let images: Vec<u32> = (0..images).map(|_| graph.input(DType::U8)).collect();
        let terms = grow_bytes(&graph, &images, &picks);
        let outputs: Vec<(Ex<'_>, DType)> = outs
            .iter()
            .map(|at| (terms[terms.len() - 1 - at % terms.len().min(9)], DType::U8))
            .collect();
        let dag = Dag::new(&graph, &outputs);
        let tape = Tape::new(&dag).expect("it reads no other pixels");
        prop_assert!(tape.bytes.is_some(), "{:?}", tape.code);
        if cfg!(target_arch = "x86_64") && levels().len() > 2 && !tape.reads.is_empty() {
            let bytes = tape.bytes.as_ref().expect("seen above");
            let native = Native::of_bytes(bytes, tape.reads.len(), levels()[0]);
            prop_assert!(native.is_some(), "{:?}", bytes);
        }
        check(&dag, seed, width)?;
    }
}

#[test]
fn what_leaves_the_bytes_is_not_computed_as_bytes() {
    let graph = Graph::new();
    let (a, b) = (
        graph.pixel(graph.input(DType::U8)),
        graph.pixel(graph.input(DType::U8)),
    );
    let wide = graph.pixel(graph.input(DType::U16));
    let is_bytes = |term: Ex<'_>| {
        let tape = Tape::new(&Dag::new(&graph, &[(term, DType::U8)])).unwrap();
        tape.bytes.is_some()
    };
    assert!(is_bytes(a & b) && is_bytes(a.lt(b).cast(Ty::I32) + b.lt(a).cast(Ty::I32)));
    assert!(!is_bytes(a + b) && !is_bytes(a - b) && !is_bytes(wide.lt(a)));
    assert!(!is_bytes(a.lt(256)) && !is_bytes(-a) && !is_bytes(a.cast(Ty::F32)));
}

#[test]
fn functions_run_on_tapes() {
    for ty in [Ty::F32, Ty::F64] {
        let graph = Graph::new();
        let dtype = if ty == Ty::F32 {
            DType::F32
        } else {
            DType::F64
        };
        let (a, b) = (
            graph.pixel(graph.input(dtype)),
            graph.pixel(graph.input(dtype)),
        );
        let outputs = [
            (a.exp(), dtype),
            (a.log(), dtype),
            (a.pow(b), dtype),
            (a.log1p(), DType::U8),
        ];
        check(&Dag::new(&graph, &outputs), 5, 777).unwrap();
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn common_expressions_become_machine_code() {
    let graph = Graph::new();
    let (a, b) = (graph.input(DType::U16), graph.input(DType::F32));
    let raw = graph.pixel(a).cast(Ty::F32) - graph.pixel(b);
    let outputs = [(raw.pow(raw.log1p()).exp().sqrt(), DType::U8)];
    // A cast with a scale, as its operation has it.
    let scaled = (raw.cast(Ty::F64) - 0.25) * 65_535.0 / 3.0;
    let compared = graph.pixel(a).cast(Ty::F64).gt(0.5);
    let wide = [(scaled, DType::U16), (compared, DType::U8)];
    for outputs in [&outputs[..], &wide] {
        let tape = Tape::new(&Dag::new(&graph, outputs)).unwrap();
        for level in levels() {
            let width = match level {
                Level::Avx512(_) | Level::Avx2(_) => 16,
                _ => continue,
            };
            let native =
                Native::new(&tape.dag, &tape.reads, &[], level).expect("all of it is known");
            assert!(native.fits(width) && !native.fits(7));
        }
    }
}

#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let graph = Graph::new();
    let a = graph.pixel(graph.input(DType::F32));
    let deep = (0..20_000).fold(a, |sum, _| (sum + a) * 0.5);
    check(&Dag::new(&graph, &[(deep, DType::F32)]), 5, 130).unwrap();
}
