//! An expression pixel by pixel, as it is written: the way for loads at computed positions.

use rayon::prelude::*;

use warploom_flow::expr::{Dag, Datum, Evaluator, Pixels, Source};
use warploom_flow::flow::{Flow, Node, Number};

/// Runs a map node: bytes of its inputs and of its outputs, in its order.
pub(super) fn run(
    flow: &Flow,
    node: &Node,
    dag: &Dag,
    numbers: &[Number],
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    let numbers: Vec<Datum> = numbers
        .iter()
        .map(|number| match *number {
            Number::I32(v) => Datum::I32(v),
            Number::U32(v) => Datum::U32(v),
            Number::F32(v) => Datum::F32(v),
            Number::F64(v) => Datum::F64(v),
        })
        .collect();
    let sources: Vec<Source<'_>> = node
        .inputs
        .iter()
        .zip(inputs)
        .map(|(id, bytes)| {
            let kind = flow.kind(*id);
            let bytes = &bytes[..kind.bytes() as usize];
            match kind.image() {
                Some(image) => Source::Image(Pixels::packed(bytes, image.dtype, image.dims)),
                None => Source::List(bytemuck::cast_slice(bytes)),
            }
        })
        .collect();
    let dims = flow.kind(node.outputs[0]).dims();
    let [_, ny, nx] = dims.map(|n| n as usize);
    // One row of every output at a time, rows shared out between threads.
    let mut rows: Vec<Vec<&mut [u8]>> = Vec::new();
    for (id, bytes) in node.outputs.iter().zip(outputs) {
        let kind = flow.kind(*id);
        let width = nx * kind.dtype().bytes() as usize;
        let bytes = &mut bytes[..kind.bytes() as usize];
        for (at, row) in bytes.chunks_exact_mut(width.max(1)).enumerate() {
            if rows.len() <= at {
                rows.push(Vec::new());
            }
            rows[at].push(row);
        }
    }
    rows.into_par_iter().enumerate().for_each(|(at, mut row)| {
        let mut evaluator = Evaluator::new(dag, &numbers, &sources, dims);
        let (z, y) = (at / ny, at % ny);
        for x in 0..nx {
            let values = evaluator.pixel([z as i32, y as i32, x as i32]);
            for ((value, dtype), row) in values.zip(&mut row) {
                let width = dtype.bytes() as usize;
                value.write(dtype, &mut row[x * width..][..width]);
            }
        }
    });
}
