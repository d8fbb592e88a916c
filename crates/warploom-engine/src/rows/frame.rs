//! The step that takes a part of an image, or one with something around it.

use std::ops::Range;

use super::super::image::with_image;
use super::super::moves::frame_row;
use super::super::pixel::Pixel;
use super::graph::{Place, RowGraph, Step, Value, Work};
use super::map::Around;
use super::strip::Ring;
use warploom_flow::Boundary;

/// Which part of an input becomes an image of a pass: rows of it are made when they are asked for, from
/// wherever they lie in the input, whose extents are its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// Where it starts in z, y, x.
    pub start: [i64; 3],
    /// What is seen outside.
    pub boundary: Boundary,
    /// What [`Boundary::Zero`] gives.
    pub fill: f64,
    /// Its extents, which are those of all other images of the pass.
    pub dims: [usize; 3],
}

impl RowGraph {
    /// A part of an input, whose extents may be others than those of all other images.
    ///
    /// # Panics
    /// When it is a part of something that is made here: of that, only some rows are there at a time.
    #[must_use]
    pub fn frame(&mut self, value: Value, frame: Frame) -> Value {
        let place = self.values[value.0].place;
        assert!(
            matches!(place, Place::Input(_)),
            "parts are taken of inputs, and not of {place:?}"
        );
        self.step(Work::Frame(frame), &[value], self.dtype(value), Place::Ring)
    }

    /// The extents of the pass, where parts tell them.
    pub(super) fn framed(&self) -> Option<[usize; 3]> {
        self.steps.iter().find_map(|step| match &step.work {
            Work::Frame(frame) => Some(frame.dims),
            _ => None,
        })
    }

    /// Is a value read, and only parts of it?
    pub(super) fn is_framed(&self, value: usize) -> bool {
        let mut readers = self
            .steps
            .iter()
            .filter(|step| step.from.contains(&value))
            .peekable();
        readers.peek().is_some() && readers.all(|step| matches!(step.work, Work::Frame(_)))
    }
}

impl Around<'_, '_> {
    pub(super) fn frame(
        &self,
        graph: &RowGraph,
        step: &Step,
        frame: &Frame,
        ring: &mut Ring,
        rows: Range<i64>,
    ) {
        let source = &graph.values[step.from[0]];
        let Place::Input(at) = source.place else {
            unreachable!("parts are taken of inputs")
        };
        let Frame {
            start,
            boundary,
            fill,
            dims,
        } = *frame;
        with_image!(self.inputs[at], view => {
            let fill = Pixel::from_f64(fill);
            for y in rows {
                let place = [self.z, y.rem_euclid(dims[1] as i64) as usize];
                let bytes = ring.bytes_mut(source.dtype, y);
                let row = &mut bytemuck::cast_slice_mut(bytes)[..dims[2]];
                frame_row(view, start, boundary, fill, place, row);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warploom_core::DType;

    use super::*;
    use crate::moves;
    use crate::rows::Axis;
    use crate::taps::Taps;
    use crate::{Image, ImageMut, View, ViewMut};

    proptest! {
        #[test]
        fn parts_are_read_as_if_they_were_images(
            from in [1_usize..4, 1_usize..40, 1_usize..40],
            dims in [1_usize..3, 1_usize..70, 1_usize..50],
            start in [-3_i64..4, -30_i64..40, -60_i64..40],
            boundary in 0..Boundary::ALL.len(),
            around in 0..Boundary::ALL.len(),
        ) {
            let data: Vec<u16> = (0..from.iter().product())
                .map(|at: usize| (at * 7919 % 1009) as u16)
                .collect();
            let image = View::packed(&data, from);
            let frame = Frame { start, boundary: Boundary::ALL[boundary], fill: 7.0, dims };
            let taps = Taps::Symmetric(vec![0.5, 0.125, 0.0625]);
            // A part that is blurred down and along, beside itself.
            let build = |is_part: bool| {
                let mut graph = RowGraph::new();
                let mut value = graph.input(DType::U16);
                if is_part {
                    value = graph.frame(value, frame);
                }
                graph.output(value, DType::U16);
                for axis in [Axis::Y, Axis::X] {
                    value = graph.taps(value, axis, &taps, Boundary::ALL[around]);
                }
                graph.output(value, DType::F32);
                graph.finish()
            };
            let run = |is_part: bool, image: View<'_, u16>| {
                let count = dims.iter().product();
                let (mut same, mut blurred) = (vec![0_u16; count], vec![0.0_f32; count]);
                let outputs = vec![
                    ImageMut::from(ViewMut::packed(&mut same, dims)),
                    ImageMut::from(ViewMut::packed(&mut blurred, dims)),
                ];
                build(is_part).run(&[Image::from(image)], outputs);
                (same, blurred)
            };
            let mut part = vec![0; dims.iter().product()];
            let moved = ViewMut::packed(&mut part, dims);
            moves::frame(image, start, frame.boundary, 7, moved);
            prop_assert_eq!(run(true, image), run(false, View::packed(&part, dims)));
        }
    }
}
