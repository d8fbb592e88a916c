//! From a node of a flow to the function that does it.

use warploom_core::DType;

use super::image::with_type;
use super::rows::{Axis, RowGraph};
use super::taps::{self, Taps};
use super::window::Fold;
use super::{Image, ImageMut, View, ViewMut, around, pixelwise, places, things, whole};
use warploom_flow::flow::{
    Combine, CustomInput, CustomOutput, Flow, Node, Prim, ValueKind, Weights,
};

/// A value's bytes as an image to read; a list is one row.
pub(super) fn image<'a>(kind: &ValueKind, bytes: &'a [u8]) -> Image<'a> {
    let dims = kind.dims().map(|n| n as usize);
    let count = kind.bytes() as usize;
    with_type!(
        kind.dtype(),
        T => Image::from(View::<T>::packed(bytemuck::cast_slice(&bytes[..count]), dims)),
        else unreachable!("values have element types that operations take")
    )
}

/// A value's bytes as an image to write; a list is one row.
pub(super) fn image_mut<'a>(kind: &ValueKind, bytes: &'a mut [u8]) -> ImageMut<'a> {
    let dims = kind.dims().map(|n| n as usize);
    let count = kind.bytes() as usize;
    with_type!(
        kind.dtype(),
        T => ImageMut::from(ViewMut::<T>::packed(bytemuck::cast_slice_mut(&mut bytes[..count]), dims)),
        else unreachable!("values have element types that operations take")
    )
}

/// Runs a node: bytes of its inputs and of its outputs, in its order.
pub(super) fn run(flow: &Flow, node: &Node, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
    if let Prim::Map { dag, numbers } = &node.prim {
        pixelwise::run(flow, node, dag, numbers, inputs, outputs);
        return;
    }
    if let Prim::Custom(custom) = &node.prim {
        let kinds =
            |ids: &[u32]| -> Vec<ValueKind> { ids.iter().map(|id| flow.kind(*id)).collect() };
        let given = kinds(&node.inputs).into_iter().zip(inputs);
        let given: Vec<_> = given
            .map(|(kind, bytes)| CustomInput::new(kind, bytes))
            .collect();
        let taken = kinds(&node.outputs).into_iter().zip(outputs);
        let mut taken: Vec<_> = taken
            .map(|(kind, bytes)| CustomOutput::new(kind, bytes))
            .collect();
        custom.op().run(&given, &mut taken);
        return;
    }
    let sources: Vec<Image<'_>> = node
        .inputs
        .iter()
        .zip(inputs)
        .map(|(id, bytes)| image(&flow.kind(*id), bytes))
        .collect();
    let mut targets: Vec<ImageMut<'_>> = node
        .outputs
        .iter()
        .zip(outputs)
        .map(|(id, bytes)| image_mut(&flow.kind(*id), bytes))
        .collect();
    match &node.prim {
        Prim::Taps(spec) => {
            let target = targets.remove(0);
            let weights = weights(&spec.weights);
            let axis = usize::from(spec.axis);
            taps::correlate(sources[0], target, axis, &weights, spec.boundary);
        }
        Prim::Window {
            axis,
            radius,
            combine,
            boundary,
        } => {
            let fold = match combine {
                Combine::Sum => Fold::Sum,
                Combine::Min => Fold::Min,
                Combine::Max => Fold::Max,
            };
            let target = targets.remove(0);
            window(sources[0], target, *axis, fold, *radius as usize, *boundary);
        }
        prim => {
            let known = whole::run(prim, &sources, &mut targets)
                || around::run(prim, &sources, &mut targets)
                || places::run(prim, &sources, &mut targets)
                || things::run(prim, &sources, &mut targets);
            assert!(
                known,
                "the CPU engine knows every primitive, and not {}",
                prim.name()
            );
        }
    }
}

pub(super) fn weights(weights: &Weights) -> Taps<f64> {
    match weights {
        Weights::Even(w) => Taps::Symmetric(w.clone()),
        Weights::Odd(w) => Taps::Antisymmetric(w.clone()),
        Weights::Any(w) => Taps::General {
            weights: w.clone(),
            before: w.len() / 2,
        },
    }
}

/// A sum in a wider type than the image's starts from the image in that type.
fn window(
    source: Image<'_>,
    target: ImageMut<'_>,
    axis: u8,
    fold: Fold,
    radius: usize,
    boundary: warploom_flow::Boundary,
) {
    let widen = fold == Fold::Sum && target.dtype() == DType::F64 && source.dtype() != DType::F64;
    if !widen {
        super::window::along(source, target, usize::from(axis), fold, radius, boundary);
        return;
    }
    let axis = match axis {
        1 => Axis::Y,
        2 => Axis::X,
        _ => {
            let dims = source.dims();
            let mut wide = vec![0.0_f64; dims.iter().product()];
            let mut graph = RowGraph::new();
            let value = graph.input(source.dtype());
            graph.output(value, DType::F64);
            let copy = ViewMut::packed(&mut wide, dims);
            graph.finish().run(&[source], vec![ImageMut::from(copy)]);
            let wide = Image::from(View::packed(&wide, dims));
            super::window::along(wide, target, 0, fold, radius, boundary);
            return;
        }
    };
    let mut graph = RowGraph::new();
    let value = graph.input(source.dtype());
    let value = graph.cast(value, DType::F64);
    let value = graph.window(value, axis, fold, radius, boundary);
    graph.output(value, DType::F64);
    graph.finish().run(&[source], vec![target]);
}
