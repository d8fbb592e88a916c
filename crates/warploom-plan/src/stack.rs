//! Planes and stacks: how `foreach = "plane"` takes records apart and puts results together.

use std::ops::Range;

use warploom_kernels::ImageType;

use crate::diagnostic::{Diagnostic, Problem};

fn refuse(message: String, help: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Problem::RecordMismatch, message).help(help))
}

/// The planes of a stack: their type, and where each one's bytes are.
///
/// # Errors
/// When it is no stack, has no planes, or not as many as `expected`.
pub fn unstack(
    stack: ImageType,
    expected: Option<u64>,
) -> Result<(ImageType, Vec<Range<u64>>), Box<Diagnostic>> {
    let [planes, y, x] = stack.dims;
    if stack.rank != 3 {
        let message = format!("{stack} is no stack: it has {} axes", stack.rank);
        return Err(refuse(message, "give images of three axes"));
    }
    if planes == 0 {
        let message = format!("{stack} has no planes");
        return Err(refuse(message, "leave such records out"));
    }
    if let Some(expected) = expected.filter(|expected| *expected != planes) {
        let message = format!("{stack} has {planes} planes, and {expected} are expected");
        return Err(refuse(message, "records of one run look alike"));
    }
    let plane = ImageType::plane(stack.dtype, y, x);
    let bytes = plane.bytes();
    let places = (0..planes).map(|at| at * bytes..(at + 1) * bytes);
    Ok((plane, places.collect()))
}

/// The stack of planes: their bytes one after the other.
///
/// # Errors
/// When there is none, one is no plane, or they are not all alike. Nothing is promoted: cast them
/// where that is meant.
pub fn stack(planes: &[ImageType]) -> Result<ImageType, Box<Diagnostic>> {
    let Some(first) = planes.first() else {
        let message = "a stack of no planes has no type".to_owned();
        return Err(refuse(message, "give one plane at least"));
    };
    for plane in planes {
        if plane.rank != 2 {
            let message = format!("{plane} is no plane: it has {} axes", plane.rank);
            return Err(refuse(message, "stacks are made of planes"));
        }
        if plane != first {
            let message = format!("a stack cannot have {first} and {plane}");
            let help = "crop or pad to one extent, cast to one type";
            return Err(refuse(message, help));
        }
    }
    let [_, y, x] = first.dims;
    Ok(ImageType::stack(first.dtype, planes.len() as u64, y, x))
}
