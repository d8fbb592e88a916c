//! Flows run in the plainest way, in f64 and pixel by pixel: to see whether an operation is made of
//! the right primitives.

use warploom_core::DType;

use super::lower;
use crate::Boundary;
use crate::expr::{Datum, Evaluator, Pixels, Source, Ty};
use crate::flow::{Combine, Flow, Footprint, Node, Prim, ValueKind, Weights};
use crate::image::ImageType;
use crate::op::{Given, OpCall};

/// Runs `op key=value …` on an image of these pixels in an element type; as many copies of it as
/// the operation needs, and one more for a word without `=`.
pub(super) fn run(call: &str, dtype: DType, dims: [u64; 3], pixels: &[u8]) -> Vec<f64> {
    let (name, rest) = call.split_once(' ').unwrap_or((call, ""));
    let (given, extra): (Vec<&str>, Vec<&str>) =
        rest.split_whitespace().partition(|word| word.contains('='));
    let op = crate::op::find(name).unwrap();
    let image = ImageType {
        dtype,
        dims,
        rank: if dims[0] > 1 { 3 } else { 2 },
    };
    let images = vec![image; op.input_count().0 + extra.len()];
    let call = OpCall::new(name, &Given::parse(given).unwrap(), &images).unwrap();
    let flow = lower(&call);
    let pixels: Vec<f64> = pixels.iter().map(|v| f64::from(*v)).collect();
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); flow.values().len()];
    for id in flow.inputs() {
        values[*id as usize].clone_from(&pixels);
    }
    for node in flow.nodes() {
        let inputs: Vec<Values<'_>> = node
            .inputs
            .iter()
            .map(|id| Values {
                kind: flow.kind(*id),
                numbers: &values[*id as usize],
            })
            .collect();
        let result = apply(&flow, node, &inputs);
        values[node.outputs[0] as usize] = result;
    }
    values.swap_remove(flow.outputs()[0] as usize)
}

/// An image or a list.
struct Values<'a> {
    kind: ValueKind,
    numbers: &'a [f64],
}

impl Values<'_> {
    fn dims(&self) -> [i64; 3] {
        self.kind.dims().map(u64::cast_signed)
    }

    fn at(&self, at: [i64; 3], boundary: Boundary) -> f64 {
        let dims = self.dims();
        let mut index = 0;
        for axis in 0..3 {
            let Some(source) = boundary.source(at[axis], dims[axis]) else {
                return 0.0;
            };
            index = index * dims[axis] + source;
        }
        self.numbers[usize::try_from(index).unwrap()]
    }

    fn bytes(&self) -> Vec<u8> {
        let dtype = self.kind.dtype();
        let mut bytes = vec![0; usize::try_from(self.kind.bytes()).unwrap()];
        let width = usize::try_from(dtype.bytes()).unwrap();
        for (number, bytes) in self.numbers.iter().zip(bytes.chunks_exact_mut(width)) {
            stored(*number, dtype).write(dtype, bytes);
        }
        bytes
    }
}

/// A number as it is kept in an image.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturated, as it must be"
)]
fn stored(number: f64, dtype: DType) -> Datum {
    match Ty::of(dtype).unwrap() {
        Ty::U32 => Datum::U32(number as u32),
        Ty::F32 => Datum::F32(number as f32),
        Ty::F64 => Datum::F64(number),
        _ => Datum::I32(number as i32),
    }
}

fn apply(flow: &Flow, node: &Node, inputs: &[Values<'_>]) -> Vec<f64> {
    let kind = flow.kind(node.outputs[0]);
    match &node.prim {
        Prim::Totals => totals(inputs[0].numbers),
        Prim::Map { dag, numbers } => {
            let numbers: Vec<Datum> = numbers.iter().map(|number| (*number).into()).collect();
            let bytes: Vec<Vec<u8>> = inputs.iter().map(Values::bytes).collect();
            let mut sources = Vec::new();
            for (input, bytes) in inputs.iter().zip(&bytes) {
                sources.push(match input.kind {
                    ValueKind::Image(image) => {
                        Source::Image(Pixels::packed(bytes, image.dtype, image.dims))
                    }
                    ValueKind::List { .. } => Source::List(input.numbers),
                });
            }
            let result = Evaluator::new(dag, &numbers, &sources, kind.dims()).all();
            let width = usize::try_from(kind.dtype().bytes()).unwrap();
            let elements = result[0].chunks_exact(width);
            elements
                .map(|bytes| Datum::read(kind.dtype(), bytes).unwrap().to_f64())
                .collect()
        }
        prim => {
            let [nz, ny, nx] = kind.dims().map(u64::cast_signed);
            let mut result = Vec::new();
            for z in 0..nz {
                for y in 0..ny {
                    for x in 0..nx {
                        let number = pixel(prim, inputs, [z, y, x]);
                        result.push(stored(number, kind.dtype()).to_f64());
                    }
                }
            }
            result
        }
    }
}

fn totals(numbers: &[f64]) -> Vec<f64> {
    let sum: f64 = numbers.iter().sum();
    let min = numbers.iter().fold(f64::INFINITY, |a, b| a.min(*b));
    let max = numbers.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    vec![min, max, sum, sum / numbers.len() as f64, f64::NAN]
}

fn pixel(prim: &Prim, inputs: &[Values<'_>], at: [i64; 3]) -> f64 {
    let image = &inputs[0];
    let shifted = |by: [i64; 3]| [at[0] + by[0], at[1] + by[1], at[2] + by[2]];
    let along = |axis: u8, by: i64| {
        let mut offset = [0; 3];
        offset[usize::from(axis)] = by;
        shifted(offset)
    };
    match prim {
        Prim::Taps(taps) => {
            let near = |by| image.at(along(taps.axis, by), taps.boundary);
            let Weights::Even(weights) = &taps.weights else {
                panic!("no operation has other weights");
            };
            let sides = weights.iter().zip(0..).skip(1);
            let sides = sides.map(|(weight, k)| weight * (near(-k) + near(k)));
            weights[0] * near(0) + sides.sum::<f64>()
        }
        Prim::Window {
            axis,
            radius,
            combine,
            boundary,
        } => {
            let radius = i64::from(*radius);
            let window = (-radius..=radius).map(|by| image.at(along(*axis, by), *boundary));
            combined(*combine, window)
        }
        Prim::Around {
            footprint,
            combine,
            boundary,
        } => combined(
            *combine,
            around(image, footprint, at, *boundary).into_iter(),
        ),
        Prim::Convolve { mirrored, boundary } => {
            let kernel = &inputs[1];
            let [nz, ny, nx] = kernel.dims();
            let mut sum = 0.0;
            for z in 0..nz {
                for y in 0..ny {
                    for x in 0..nx {
                        let by = [nz / 2 - z, ny / 2 - y, nx / 2 - x];
                        let by = if *mirrored { by.map(|by| -by) } else { by };
                        let weight = kernel.at([z, y, x], Boundary::Zero);
                        sum += weight * image.at(shifted(by), *boundary);
                    }
                }
            }
            sum
        }
        Prim::Crop {
            start, boundary, ..
        } => image.at(shifted(*start), *boundary),
        // What the circle brings in from the other side is what the frame is for.
        Prim::FftConvolve => {
            let prim = Prim::Convolve {
                mirrored: false,
                boundary: Boundary::Wrap,
            };
            pixel(&prim, inputs, at)
        }
        other => panic!("{} is not plain", other.name()),
    }
}

fn around(image: &Values<'_>, footprint: &Footprint, at: [i64; 3], rule: Boundary) -> Vec<f64> {
    let offsets = footprint.offsets().into_iter();
    let offsets = offsets.map(|offset| [0, 1, 2].map(|axis| at[axis] + i64::from(offset[axis])));
    offsets.map(|at| image.at(at, rule)).collect()
}

fn combined(combine: Combine, window: impl Iterator<Item = f64>) -> f64 {
    match combine {
        Combine::Sum => window.sum(),
        Combine::Min => window.fold(f64::INFINITY, f64::min),
        Combine::Max => window.fold(f64::NEG_INFINITY, f64::max),
    }
}
