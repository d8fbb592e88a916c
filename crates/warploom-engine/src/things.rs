//! Primitives about objects: distances, labels, tables.

use super::arms::{to_same, unfit};
use super::image::with_image;
use super::label::Connectivity;
use super::objects::{self, Statistics};
use super::{Image, ImageMut, distance, label, watershed};
use warploom_flow::flow::{self, Prim};

/// Runs a primitive of this family; answers whether it is one.
pub(super) fn run(prim: &Prim, sources: &[Image<'_>], targets: &mut Vec<ImageMut<'_>>) -> bool {
    let mut target = || targets.remove(0);
    let source = || sources[0];
    match prim {
        Prim::Distance => match target() {
            ImageMut::F32(out) => {
                with_image!(source(), a => distance::distance_transform(a, out));
            }
            ImageMut::F64(out) => {
                with_image!(source(), a => distance::distance_transform(a, out));
            }
            other => unfit(source().dtype(), other.dtype()),
        },
        Prim::Label(neighbours) => {
            let neighbours = match neighbours {
                flow::Connectivity::Diamond => Connectivity::Diamond,
                flow::Connectivity::Box => Connectivity::Box,
            };
            match target() {
                ImageMut::U32(out) => {
                    with_image!(source(), a => label::label(a, neighbours, out));
                }
                other => unfit(source().dtype(), other.dtype()),
            }
        }
        Prim::KeepSizes { least, most } => match target() {
            ImageMut::U32(out) => {
                with_image!(source(), a => objects::keep_sizes(a, *least, *most, out));
            }
            other => unfit(source().dtype(), other.dtype()),
        },
        Prim::Relabel => match target() {
            ImageMut::U32(out) => {
                with_image!(source(), a => objects::relabel_sequential(a, out));
            }
            other => unfit(source().dtype(), other.dtype()),
        },
        Prim::ClearBorder => {
            to_same!(source(), target(), a, out => label::clear_border(a, out));
        }
        Prim::Expand { distance } => {
            to_same!(source(), target(), a, out => distance::expand_labels(a, *distance, out));
        }
        Prim::Watershed => flood(sources, target()),
        Prim::Statistics { columns } => table(sources, *columns as usize, target()),
        _ => return false,
    }
    true
}

/// Markers, the image, and the mask if there is one.
fn flood(sources: &[Image<'_>], target: ImageMut<'_>) {
    let (Image::U32(markers), ImageMut::U32(out)) = (sources[0], target) else {
        unreachable!("markers and labels are u32");
    };
    let mask = match sources.get(2) {
        Some(Image::U8(mask)) => Some(*mask),
        _ => None,
    };
    with_image!(sources[1], image => watershed::watershed(image, markers, mask, out));
}

/// The number of objects, then a row of numbers for each that fits.
fn table(sources: &[Image<'_>], columns: usize, target: ImageMut<'_>) {
    let (Image::U32(labels), ImageMut::F64(mut list)) = (sources[0], target) else {
        unreachable!("labels are u32 and a table's numbers f64");
    };
    let found = with_image!(sources[1], image => objects::label_statistics(labels, image));
    let list = list.row(0, 0);
    list.fill(0.0);
    list[0] = found.len() as f64;
    // A plane has no numbers along z.
    let axes = (columns - 7) / 3;
    for (row, object) in list[1..].chunks_exact_mut(columns).zip(&found) {
        fill(row, object, 3 - axes);
    }
}

fn fill(row: &mut [f64], object: &Statistics, first: usize) {
    let single = [
        object.label as f64,
        object.area as f64,
        object.sum,
        object.mean,
        object.minimum,
        object.maximum,
        object.std,
    ];
    let places = object.centroid[first..].iter().copied();
    let starts = object.start[first..].iter().map(|at| *at as f64);
    let stops = object.stop[first..].iter().map(|at| *at as f64);
    let numbers = single.into_iter().chain(places).chain(starts).chain(stops);
    for (to, number) in row.iter_mut().zip(numbers) {
        *to = number;
    }
}
