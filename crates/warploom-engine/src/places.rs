//! Primitives that put pixels in other places, or fewer of them.

use super::arms::{to_real, to_same, unfit};
use super::image::with_image;
use super::resample::{self, Affine};
use super::{Image, ImageMut, Pixel, moves, project, tiles};
use warploom_flow::flow::{Prim, Project, Tile};

/// Runs a primitive of this family; answers whether it is one.
pub(super) fn run(prim: &Prim, sources: &[Image<'_>], targets: &mut Vec<ImageMut<'_>>) -> bool {
    let mut target = || targets.remove(0);
    match prim {
        Prim::Project(what) => projection(*what, sources[0], target()),
        Prim::Bin { factor, tile } => {
            let factor = factor.map(|n| n as usize);
            match tile {
                Tile::Max => {
                    to_same!(sources[0], target(), a, out => tiles::bin_max(a, factor, out));
                }
                Tile::Sum | Tile::Mean => {
                    let fold = match tile {
                        Tile::Mean => tiles::Fold::Mean,
                        _ => tiles::Fold::Sum,
                    };
                    to_real!(sources[0], target(), a, out => tiles::bin(a, factor, fold, out));
                }
            }
        }
        Prim::Crop {
            start,
            boundary,
            fill,
        } => to_same!(sources[0], target(), a, out => {
            moves::frame(a, *start, *boundary, Pixel::from_f64(*fill), out);
        }),
        Prim::Flip { axis } => {
            to_same!(sources[0], target(), a, out => moves::flip(a, usize::from(*axis), out));
        }
        Prim::Transpose { axes } => {
            let axes = (usize::from(axes[0]), usize::from(axes[1]));
            to_same!(sources[0], target(), a, out => moves::swap_axes(a, axes, out));
        }
        Prim::Affine { matrix } => {
            let affine = Affine {
                matrix: matrix.map(|[z, y, x, _]| [z, y, x]),
                offset: matrix.map(|row| row[3]),
            };
            to_real!(sources[0], target(), a, out => resample::affine_linear(a, &affine, out));
        }
        Prim::Resize { linear: true } => {
            to_real!(sources[0], target(), a, out => resample::resize_linear(a, out));
        }
        Prim::Resize { linear: false } => {
            to_same!(sources[0], target(), a, out => resample::resize_nearest(a, out));
        }
        _ => return false,
    }
    true
}

fn projection(what: Project, source: Image<'_>, target: ImageMut<'_>) {
    match what {
        Project::Max => to_same!(source, target, a, out => project::max_z(a, out)),
        Project::Min => to_same!(source, target, a, out => project::min_z(a, out)),
        Project::Sum => to_real!(source, target, a, out => project::sum_z(a, out)),
        Project::Mean => to_real!(source, target, a, out => project::mean_z(a, out)),
        Project::Std => to_real!(source, target, a, out => project::std_z(a, out)),
        Project::Median => to_real!(source, target, a, out => project::median_z(a, out)),
        Project::ArgMax => match target {
            ImageMut::U32(out) => with_image!(source, a => project::argmax_z(a, out)),
            other => unfit(source.dtype(), other.dtype()),
        },
    }
}
