//! Which view goes with which: pairs of images whose types a primitive ties together.

/// Runs an expression with a source's view and a target's of the type it is computed in.
macro_rules! to_real {
    ($source:expr, $target:expr, $a:ident, $out:ident => $body:expr) => {{
        use $crate::{Image, ImageMut};
        match ($source, $target) {
            (Image::U8($a), ImageMut::F32($out)) => $body,
            (Image::U16($a), ImageMut::F32($out)) => $body,
            (Image::I16($a), ImageMut::F32($out)) => $body,
            (Image::I32($a), ImageMut::F32($out)) => $body,
            (Image::U32($a), ImageMut::F32($out)) => $body,
            (Image::F32($a), ImageMut::F32($out)) => $body,
            (Image::F64($a), ImageMut::F64($out)) => $body,
            (source, target) => $crate::arms::unfit(source.dtype(), target.dtype()),
        }
    }};
}
pub(super) use to_real;

/// The same with a second source of the type that is computed in: a kernel.
macro_rules! with_kernel {
    ($source:expr, $kernel:expr, $target:expr, $a:ident, $k:ident, $out:ident => $body:expr) => {{
        use $crate::{Image, ImageMut};
        match ($source, $kernel, $target) {
            (Image::U8($a), Image::F32($k), ImageMut::F32($out)) => $body,
            (Image::U16($a), Image::F32($k), ImageMut::F32($out)) => $body,
            (Image::I16($a), Image::F32($k), ImageMut::F32($out)) => $body,
            (Image::I32($a), Image::F32($k), ImageMut::F32($out)) => $body,
            (Image::U32($a), Image::F32($k), ImageMut::F32($out)) => $body,
            (Image::F32($a), Image::F32($k), ImageMut::F32($out)) => $body,
            (Image::F64($a), Image::F64($k), ImageMut::F64($out)) => $body,
            (source, _, target) => $crate::arms::unfit(source.dtype(), target.dtype()),
        }
    }};
}
pub(super) use with_kernel;

/// Runs an expression with a source's view and a target's of the same type.
macro_rules! to_same {
    ($source:expr, $target:expr, $a:ident, $out:ident => $body:expr) => {{
        use $crate::{Image, ImageMut};
        match ($source, $target) {
            (Image::U8($a), ImageMut::U8($out)) => $body,
            (Image::U16($a), ImageMut::U16($out)) => $body,
            (Image::I16($a), ImageMut::I16($out)) => $body,
            (Image::I32($a), ImageMut::I32($out)) => $body,
            (Image::U32($a), ImageMut::U32($out)) => $body,
            (Image::F32($a), ImageMut::F32($out)) => $body,
            (Image::F64($a), ImageMut::F64($out)) => $body,
            (source, target) => $crate::arms::unfit(source.dtype(), target.dtype()),
        }
    }};
}
pub(super) use to_same;

/// Lowering gives a primitive only types it takes; anything else is a defect there.
pub(super) fn unfit(source: warploom_core::DType, target: warploom_core::DType) -> ! {
    panic!("no primitive makes {target} of {source} here")
}
