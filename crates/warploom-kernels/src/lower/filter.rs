//! Weighted sums of neighbourhoods.

use warploom_core::DType;

use super::blur::{TRUNCATE, bell, bell_bend, cut_gaussian, gaussian};
use super::lowering::Lowering;
use crate::Boundary;
use crate::expr::{Ex, Graph, Ty};
use crate::flow::{Combine, Number, Prim, ValueId, Weights};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let (image, boundary) = (at.inputs[0], at.boundary());
    match at.name() {
        "gaussian" => {
            let (sigma, truncate) = (at.call.per_axis("sigma", 0.0), at.number("truncate"));
            let blurred = cut_gaussian(at.flow, image, sigma, truncate, boundary);
            if blurred == image {
                return at.map([image], [], |[a], []| a);
            }
            blurred
        }
        "mean_box" => {
            let (sums, count) = at.box_sums(image, at.real);
            at.map([sums], [count], |[sum], [count]| sum / count)
        }
        "mean_sphere" => {
            let footprint = at.footprint();
            let count = footprint.count() as f64;
            let prim = Prim::Around {
                footprint,
                combine: Combine::Sum,
                boundary,
            };
            let sums = at.give(prim, &[image]);
            at.map([sums], [count], |[sum], [count]| sum / count)
        }
        "variance_box" => variance(at, image, false),
        "std_box" => variance(at, image, true),
        "sobel" => stencil(at, image, |near| {
            let axes = near.axes.iter();
            let squares = axes.fold(None, |sum: Option<Ex<'_>>, axis| {
                let slope = near.sobel(near.axes, *axis, [0; 3]);
                Some(sum.map_or(slope * slope, |sum| slope.fma(slope, sum)))
            });
            squares.map_or(near.zero(), |squares| near.touched(squares).sqrt())
        }),
        "gradient_z" => gradient(at, image, 0),
        "gradient_y" => gradient(at, image, 1),
        "gradient_x" => gradient(at, image, 2),
        "laplace_diamond" => stencil(at, image, |near| {
            let axes = near.axes.iter();
            let sums = axes.map(|axis| near.beside(*axis, [0; 3]));
            let around = sums.reduce(|sum, next| sum + next);
            let weight = 2.0 * near.axes.len() as f64;
            around.map_or(near.zero(), |around| {
                near.pixel([0; 3]).fma(weight, -around)
            })
        }),
        "laplace_box" => stencil(at, image, |near| {
            let weight = f64::from(3_i32.pow(near.axes.len().try_into().unwrap_or(3))) - 1.0;
            let around = near.ring(near.axes, [0; 3]);
            around.map_or(near.zero(), |around| {
                near.pixel([0; 3]).fma(weight, -around)
            })
        }),
        "difference_of_gaussian" => {
            let [one, two] = ["sigma1", "sigma2"].map(|name| {
                let sigma = at.call.per_axis(name, 0.0);
                gaussian(at.flow, image, sigma, boundary)
            });
            at.map([one, two], [], |[one, two], []| one - two)
        }
        "laplacian_of_gaussian" => laplacian(at, image, boundary),
        "convolve" => {
            let prim = Prim::Convolve {
                mirrored: false,
                boundary,
            };
            let kernel = at.as_real(at.inputs[1]);
            at.give(prim, &[image, kernel])
        }
        _ => at.unknown(),
    }
}

/// `E(a^2) - E(a)^2` of the window in `f64`, or its root.
fn variance(at: &mut Lowering<'_>, image: ValueId, root: bool) -> ValueId {
    if matches!(at.flow.image(image).dtype, DType::I32 | DType::U32) {
        return whole_variance(at, image, root);
    }
    let squares = at.native(DType::F64, [image], |[a]| {
        let a = a.cast(Ty::F64);
        a * a
    });
    let (sums, count) = at.box_sums(image, DType::F64);
    let (squares, _) = at.box_sums(squares, DType::F64);
    let count = [Number::F64(count)];
    at.terms(
        at.real,
        [sums, squares],
        [],
        &count,
        |[sum, square], [], n| {
            let mean = sum / n[0];
            rooted((-mean).fma(mean, square / n[0]), root)
        },
    )
}

/// A variance, which rounding does not bring below 0, or its root.
fn rooted(variance: Ex<'_>, root: bool) -> Ex<'_> {
    let variance = variance.max(0.0);
    if root { variance.sqrt() } else { variance }
}

/// `(n*sum(a^2) - sum(a)^2)/n^2` of whole numbers whose squares need more digits than `f64` has. A
/// square is kept as a multiple of 2^32 and a rest below that; sums of those are exact, and so are
/// products as what is rounded and what that lost: nothing is lost to an offset, however large.
fn whole_variance(at: &mut Lowering<'_>, image: ValueId, root: bool) -> ValueId {
    const STEP: f64 = 4_294_967_296.0;
    let (sums, count) = at.box_sums(image, DType::F64);
    let [high, low] = [true, false].map(|is_high| {
        let part = at.native(DType::F64, [image], |[a]| {
            let a = a.cast(Ty::F64);
            let high = (a * a * (1.0 / STEP)).floor() * STEP;
            if is_high { high } else { a.fma(a, -high) }
        });
        at.box_sums(part, DType::F64).0
    });
    let numbers = [Number::F64(count), Number::F64(1.0 / (count * count))];
    at.terms(
        at.real,
        [sums, high, low],
        [],
        &numbers,
        |[sum, high, low], [], n| {
            let (squares, square) = (n[0] * high, sum * sum);
            // What the two products were rounded by.
            let (more, less) = (n[0].fma(high, -squares), sum.fma(sum, -square));
            let rest = (more - less) + n[0] * low;
            rooted(((squares - square) + rest) * n[1], root)
        },
    )
}

/// Half the difference of the neighbours, the whole one-sided difference at the ends.
fn gradient(at: &mut Lowering<'_>, image: ValueId, axis: u8) -> ValueId {
    if !at.flow.axes(image).contains(&axis) {
        return at.map([image], [], |[a], []| a.graph().number(a.ty(), 0.0));
    }
    let (ty, boundary) = (at.ty, at.boundary());
    at.flow
        .map(&[image], image, at.real, &[], |graph, images, _| {
            let near = |by: i32| {
                let offset = moved([0; 3], axis, by);
                graph.near(images[0], offset, boundary).cast(ty)
            };
            let difference = near(1) - near(-1);
            if boundary != Boundary::Clamp {
                return difference * 0.5;
            }
            let position = graph.coords()[usize::from(axis)];
            let end = position.is(0) | position.is(graph.extent(axis) - 1);
            end.select(difference, difference * 0.5)
        })
}

/// For each axis `L = bend(S) + bell(L)`, `S = bell(S)`: S is the blur so far, L its curvature.
fn laplacian(at: &mut Lowering<'_>, image: ValueId, boundary: Boundary) -> ValueId {
    let sigma = at.call.per_axis("sigma", 0.0);
    let axes = at.flow.axes(image);
    let (mut smooth, mut bent) = (image, None);
    for (count, axis) in axes.iter().enumerate() {
        let sigma = sigma[usize::from(*axis)];
        let mut along =
            |value, weights| at.flow.taps(value, *axis, Weights::Even(weights), boundary);
        let curve = along(smooth, bell_bend(sigma));
        let blurred = bent.map(|bent| along(bent, bell(sigma, TRUNCATE)));
        if count + 1 < axes.len() {
            smooth = along(smooth, bell(sigma, TRUNCATE));
        }
        bent = Some(match blurred {
            None => curve,
            Some(blurred) => at.map([blurred, curve], [], |[blurred, curve], []| blurred + curve),
        });
    }
    bent.unwrap_or_else(|| at.map([image], [], |[a], []| a.graph().number(a.ty(), 0.0)))
}

/// Pixels around one, as real numbers. Sums along x are the innermost terms, so that those of the
/// same row are one.
struct Near<'g, 'a> {
    graph: &'g Graph,
    image: u32,
    ty: Ty,
    boundary: Boundary,
    axes: &'a [u8],
    /// Can pixels be NaN?
    real: bool,
}

fn stencil(
    at: &mut Lowering<'_>,
    image: ValueId,
    formula: impl for<'g> FnOnce(&Near<'g, '_>) -> Ex<'g>,
) -> ValueId {
    let (ty, boundary, axes) = (at.ty, at.boundary(), at.flow.axes(image));
    let real = matches!(at.flow.image(image).dtype, DType::F32 | DType::F64);
    at.flow
        .map(&[image], image, at.real, &[], |graph, images, _| {
            formula(&Near {
                graph,
                image: images[0],
                ty,
                boundary,
                axes: &axes,
                real,
            })
        })
}

/// A position moved along an axis.
fn moved(mut offset: [i32; 3], axis: u8, by: i32) -> [i32; 3] {
    offset[usize::from(axis)] += by;
    offset
}

impl<'g> Near<'g, '_> {
    fn zero(&self) -> Ex<'g> {
        self.graph.number(self.ty, 0.0)
    }

    fn pixel(&self, offset: [i32; 3]) -> Ex<'g> {
        let pixel = self.graph.near(self.image, offset, self.boundary);
        pixel.cast(self.ty)
    }

    /// NaN where the pixel itself is: it has a weight too, if one of 0, as in scipy.
    fn touched(&self, value: Ex<'g>) -> Ex<'g> {
        if self.real {
            let pixel = self.pixel([0; 3]);
            pixel.is_nan().select(pixel, value)
        } else {
            value
        }
    }

    /// The sum of the two neighbours along an axis.
    fn beside(&self, axis: u8, offset: [i32; 3]) -> Ex<'g> {
        self.pixel(moved(offset, axis, -1)) + self.pixel(moved(offset, axis, 1))
    }

    /// `[-1 0 1]` along one of the axes and `[1 2 1]` along the others.
    fn sobel(&self, axes: &[u8], along: u8, offset: [i32; 3]) -> Ex<'g> {
        let Some((first, rest)) = axes.split_first() else {
            return self.pixel(offset);
        };
        let part = |by| self.sobel(rest, along, moved(offset, *first, by));
        if *first == along {
            part(1) - part(-1)
        } else {
            part(0).fma(2.0, part(-1) + part(1))
        }
    }

    /// The sum of all pixels at most one away along the axes.
    fn full(&self, axes: &[u8], offset: [i32; 3]) -> Ex<'g> {
        let Some((first, rest)) = axes.split_first() else {
            return self.pixel(offset);
        };
        let part = |by| self.full(rest, moved(offset, *first, by));
        part(-1) + part(0) + part(1)
    }

    /// The same without the pixel itself.
    fn ring(&self, axes: &[u8], offset: [i32; 3]) -> Option<Ex<'g>> {
        let (first, rest) = axes.split_first()?;
        let part = |by| self.full(rest, moved(offset, *first, by));
        let sides = part(-1) + part(1);
        let inner = self.ring(rest, offset);
        Some(inner.map_or(sides, |inner| sides + inner))
    }
}
