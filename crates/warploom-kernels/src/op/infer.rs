//! What comes out, from the rules in the catalogue.

use warploom_core::DType;

use super::call::{OpCall, ValueType};
use super::error::OpError;
use super::info::{DTypeRule, Gives, OpInfo, Role, ScalarRule, ShapeRule, TableRule};
use super::param::listed;
use crate::Boundary;
use crate::image::{Dims, ImageType};

/// The one result of a call whose inputs are checked.
pub(super) fn output(call: &OpCall) -> Result<ValueType, OpError> {
    let rank = call.image().rank;
    Ok(match call.op.gives {
        Gives::Image { dtype, shape } => {
            let (dims, rank) = extents(call, shape)?;
            let dtype = element(call, dtype);
            ValueType::Image(ImageType { dtype, dims, rank })
        }
        Gives::Scalars(rule) => scalars(call, rule, rank),
        Gives::Table(TableRule::Objects) => ValueType::Table {
            columns: object_columns(rank),
        },
    })
}

fn scalars(call: &OpCall, rule: ScalarRule, rank: u8) -> ValueType {
    let listed = |names: &[&'static str]| ValueType::Scalars {
        count: names.len() as u64,
        names: names.to_vec(),
    };
    let numbered = |count: u64| ValueType::Scalars {
        count,
        names: Vec::new(),
    };
    match rule {
        ScalarRule::Named(names) => listed(names),
        ScalarRule::Count(name) => numbered(call.params.integer(name).unsigned_abs()),
        ScalarRule::Each(name) => numbered(call.params.numbers(name).len() as u64),
        ScalarRule::Shift => listed(&["dz", "dy", "dx"][usize::from(3 - rank)..]),
    }
}

/// The columns of a table of objects in an image of this many axes.
fn object_columns(rank: u8) -> Vec<&'static str> {
    let seen = usize::from(3 - rank)..;
    let mut columns = vec!["label", "area", "sum", "mean", "minimum", "maximum", "std"];
    for group in [
        ["centroid_z", "centroid_y", "centroid_x"],
        ["start_z", "start_y", "start_x"],
        ["stop_z", "stop_y", "stop_x"],
    ] {
        columns.extend(&group[seen.clone()]);
    }
    columns
}

/// The images among the inputs, or the first input of an operation on masks or labels: what decides
/// the type of real results.
fn pictures(call: &OpCall) -> impl Iterator<Item = DType> {
    let roles = call.op.inputs.iter().map(|info| info.role);
    let none = !roles.clone().any(|role| role == Role::Image);
    roles
        .zip(&call.inputs)
        .enumerate()
        .filter(move |(at, (role, _))| *role == Role::Image || (none && *at == 0))
        .map(|(_, (_, image))| image.dtype)
}

/// f64 if an image is f64, else f32.
pub(super) fn real(call: &OpCall) -> DType {
    let double = pictures(call).any(|dtype| dtype == DType::F64);
    if double { DType::F64 } else { DType::F32 }
}

fn element(call: &OpCall, rule: DTypeRule) -> DType {
    let first = pictures(call).next().unwrap_or(call.image().dtype);
    match rule {
        DTypeRule::Same => first,
        DTypeRule::Common if pictures(call).all(|dtype| dtype == first) => first,
        DTypeRule::Common | DTypeRule::Real => real(call),
        DTypeRule::Mask => DType::U8,
        DTypeRule::Labels | DTypeRule::Index => DType::U32,
        DTypeRule::Param(name) => call.params.dtype(name),
    }
}

/// Do the extents of two inputs go together?
pub(super) fn agree(op: &OpInfo, first: &ImageType, other: &ImageType) -> bool {
    let free = match op.gives {
        Gives::Image {
            shape: ShapeRule::Beside,
            ..
        } => 1,
        _ => 0,
    };
    let held = 3 - free;
    first.rank == other.rank && first.dims[..held] == other.dims[..held]
}

/// The extents of a result.
fn extents(call: &OpCall, rule: ShapeRule) -> Result<(Dims, u8), OpError> {
    let ImageType { dims, rank, .. } = call.image();
    match rule {
        ShapeRule::Same => Ok((dims, rank)),
        ShapeRule::DropZ => Ok(([1, dims[1], dims[2]], 2)),
        ShapeRule::Crop => {
            let part = crop(call)?;
            Ok((part.map(|(_, length)| length), rank))
        }
        ShapeRule::Pad => {
            let (before, after) = padding(call);
            let grown = [0, 1, 2].map(|axis| dims[axis] + before[axis] + after[axis]);
            Ok((grown, rank))
        }
        ShapeRule::Swap(a, b) => {
            let mut swapped = dims;
            swapped.swap(a, b);
            Ok((swapped, rank))
        }
        ShapeRule::Bin => {
            let factors = bin(call);
            let binned = [0, 1, 2].map(|axis| dims[axis] / factors[axis]);
            nothing_left(call, binned, &format!("a tile is {}", seen(factors, rank)))?;
            Ok((binned, rank))
        }
        ShapeRule::Resize => {
            let factors = call.per_axis("factor", 1.0);
            let resized = [0, 1, 2].map(|axis| resized(dims[axis], factors[axis]));
            nothing_left(
                call,
                resized,
                &format!("it would be {}", seen(resized, rank)),
            )?;
            Ok((resized, rank))
        }
        ShapeRule::Beside => {
            let (left, right) = (dims[2], call.inputs[1].dims[2]);
            let overlap = call.params.integer("overlap").unsigned_abs();
            let extent = left.min(right);
            if overlap > extent {
                return Err(OpError::BadValue {
                    op: call.op,
                    name: "overlap",
                    given: overlap.to_string(),
                    takes: format!("at most {extent} here, the width of the narrower image"),
                });
            }
            Ok(([dims[0], dims[1], left + right - overlap], rank))
        }
    }
}

/// Extents as people write them.
fn seen(dims: Dims, rank: u8) -> String {
    let seen = &dims[usize::from(3 - rank)..];
    seen.iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join("x")
}

fn nothing_left(call: &OpCall, dims: Dims, why: &str) -> Result<(), OpError> {
    let refusal = OpError::NothingLeft {
        op: call.op,
        image: call.image(),
        why: why.to_owned(),
    };
    if dims.contains(&0) {
        return Err(refusal);
    }
    Ok(())
}

/// An axis of `extent` pixels, `factor` times as long; halves round to even.
fn resized(extent: u64, factor: f64) -> u64 {
    let length = (extent as f64 * factor).round_ties_even();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "factors are positive, and `as` saturates; sizes are checked next"
    )]
    let length = length as u64;
    // Three of these must not overflow in a product.
    length.min(1 << 40)
}

/// Start and length along z, y, x of what a crop cuts out.
pub(crate) fn crop(call: &OpCall) -> Result<[(u64, u64); 3], OpError> {
    const AXES: [(&str, &str); 3] = [("z", "depth"), ("y", "height"), ("x", "width")];
    let image = call.image();
    let mut parts = [(0, 0); 3];
    for (at, (start, length)) in AXES.into_iter().enumerate() {
        let extent = image.dims[at];
        let whole = |name| call.params.maybe_integer(name).map(i64::unsigned_abs);
        let first = whole(start).unwrap_or(0);
        let count = whole(length).unwrap_or(extent.saturating_sub(first));
        let end = first + count;
        if first >= extent || end > extent {
            return Err(OpError::Outside {
                op: call.op,
                axis: start,
                start: first,
                end: end.max(first + 1),
                extent,
            });
        }
        parts[at] = (first, count);
    }
    Ok(parts)
}

/// Pixels added before and after along z, y, x.
pub(crate) fn padding(call: &OpCall) -> ([u64; 3], [u64; 3]) {
    // Every axis the user sees is padded, also one of a single pixel.
    let before = pixels(call.each_axis("before", 0.0));
    let after = match call.params.value("after") {
        Some(_) => pixels(call.each_axis("after", 0.0)),
        None => before,
    };
    (before, after)
}

/// Pixels to each side that a neighbourhood of this radius sees outside of the image; `None` where
/// they change nothing, because a nearer pixel inside has the same value.
pub(crate) fn margins(call: &OpCall, name: &'static str) -> Option<[u64; 3]> {
    let boundary = call.params.boundary();
    let radius = call.params.number(name).ceil();
    let along = |extent| if extent > 1 { radius } else { 0.0 };
    matches!(boundary, Boundary::Zero | Boundary::Wrap)
        .then(|| pixels(call.image().dims.map(along)))
}

/// Tile edges along z, y, x.
pub(crate) fn bin(call: &OpCall) -> [u64; 3] {
    pixels(call.per_axis("factor", 1.0))
}

/// Whole numbers of pixels, which the catalogue limits far below what could be lost here.
pub(super) fn pixels(axes: [f64; 3]) -> [u64; 3] {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small whole numbers by the catalogue"
    )]
    axes.map(|number| number as u64)
}

/// How long the rows of an affine map of this image are, or why they do not fit.
fn columns(rows: &[Vec<f64>], image: &ImageType) -> Result<usize, String> {
    let d = usize::from(image.rank);
    let e = d + 1;
    let fits = [(d, d), (d, e), (e, e)];
    let columns = rows[0].len();
    if rows.len() == 1 {
        // Nobody said where rows end: the count tells.
        let found = fits.iter().find(|(y, x)| y * x == columns);
        let [least, more, most] = fits.map(|(y, x)| y * x);
        let needs = format!("for {image} it needs {least}, {more} or {most}");
        return found
            .map(|(_, x)| *x)
            .ok_or_else(|| format!("has {columns} numbers; {needs}"));
    }
    let needs = format!("for {image} it has to be {d}x{d}, {d}x{e} or {e}x{e}");
    if rows.iter().any(|row| row.len() != columns) {
        let lengths: Vec<String> = rows.iter().map(|row| row.len().to_string()).collect();
        return Err(format!(
            "has rows of {} numbers; {needs}",
            lengths.join(", ")
        ));
    }
    if !fits.contains(&(rows.len(), columns)) {
        return Err(format!("is {}x{columns}; {needs}", rows.len()));
    }
    Ok(columns)
}

/// An affine map from positions in the result to positions in the image, in z, y, x.
pub(crate) fn affine(
    call: &OpCall,
    name: &'static str,
) -> Result<([[f64; 3]; 3], [f64; 3]), OpError> {
    let image = call.image();
    let axes = usize::from(image.rank);
    let rows = call.params.matrix(name);
    let wrong = |what: String| OpError::Matrix {
        op: call.op,
        name,
        what,
    };
    let (list, columns) = (rows.concat(), columns(rows, &image).map_err(wrong)?);
    let mut matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut offset = [0.0; 3];
    let skip = 3 - axes;
    for (row, numbers) in list.chunks_exact(columns).enumerate() {
        if row == axes {
            let mut plain = [0.0; 4];
            plain[axes] = 1.0;
            if numbers != &plain[..=axes] {
                let (found, wanted) = (listed(numbers), listed(&plain[..=axes]));
                return Err(wrong(format!("ends with row {found}, not {wanted}")));
            }
            continue;
        }
        matrix[skip + row][skip..].copy_from_slice(&numbers[..axes]);
        offset[skip + row] = numbers.get(axes).copied().unwrap_or(0.0);
    }
    let shift = call.each_axis("offset", 0.0);
    for (total, more) in offset.iter_mut().zip(shift) {
        *total += more;
    }
    Ok((matrix, offset))
}
