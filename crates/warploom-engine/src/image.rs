//! Views whose element type is known when the program runs.

use warploom_core::DType;

use super::{View, ViewMut};

/// Runs an expression with `$T` standing for a dtype's Rust type; the second form for types that
/// no operation takes.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            warploom_core::DType::U8 => {
                type $T = u8;
                $body
            }
            warploom_core::DType::U16 => {
                type $T = u16;
                $body
            }
            warploom_core::DType::I16 => {
                type $T = i16;
                $body
            }
            warploom_core::DType::I32 => {
                type $T = i32;
                $body
            }
            warploom_core::DType::U32 => {
                type $T = u32;
                $body
            }
            warploom_core::DType::F32 => {
                type $T = f32;
                $body
            }
            warploom_core::DType::F64 => {
                type $T = f64;
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use with_type;

/// Runs an expression with the view inside an image.
macro_rules! with_image {
    ($image:expr, $view:ident => $body:expr) => {
        match $image {
            $crate::Image::U8($view) => $body,
            $crate::Image::U16($view) => $body,
            $crate::Image::I16($view) => $body,
            $crate::Image::I32($view) => $body,
            $crate::Image::U32($view) => $body,
            $crate::Image::F32($view) => $body,
            $crate::Image::F64($view) => $body,
        }
    };
}
pub(crate) use with_image;

/// The same for an image to write.
macro_rules! with_image_mut {
    ($image:expr, $view:ident => $body:expr) => {
        match $image {
            $crate::ImageMut::U8($view) => $body,
            $crate::ImageMut::U16($view) => $body,
            $crate::ImageMut::I16($view) => $body,
            $crate::ImageMut::I32($view) => $body,
            $crate::ImageMut::U32($view) => $body,
            $crate::ImageMut::F32($view) => $body,
            $crate::ImageMut::F64($view) => $body,
        }
    };
}
pub(crate) use with_image_mut;

macro_rules! images {
    ($($variant:ident $type:ty;)*) => {
        /// An image to read, of any element type an operation takes.
        #[derive(Clone, Copy, Debug)]
        pub enum Image<'a> {
            $(
                #[doc = concat!("Elements are `", stringify!($type), "`.")]
                $variant(View<'a, $type>),
            )*
        }

        /// An image to write.
        #[derive(Debug)]
        pub enum ImageMut<'a> {
            $(
                #[doc = concat!("Elements are `", stringify!($type), "`.")]
                $variant(ViewMut<'a, $type>),
            )*
        }

        impl<'a> Image<'a> {
            /// The same pixels in other rows and planes, when there are no gaps.
            pub(crate) fn regrouped(&self, dims: [usize; 3]) -> Option<Self> {
                Some(match self {
                    $(Self::$variant(view) => Self::$variant(view.regrouped(dims)?),)*
                })
            }

            /// The element type.
            pub fn dtype(&self) -> DType {
                match self {
                    $(Self::$variant(_) => DType::$variant,)*
                }
            }

            /// Extents in z, y, x.
            pub fn dims(&self) -> [usize; 3] {
                match self {
                    $(Self::$variant(view) => view.dims(),)*
                }
            }
        }

        impl ImageMut<'_> {
            /// The same pixels in other rows and planes, when there are no gaps.
            pub(crate) fn regrouped(&mut self, dims: [usize; 3]) -> Option<ImageMut<'_>> {
                Some(match self {
                    $(Self::$variant(view) => ImageMut::$variant(view.regrouped(dims)?),)*
                })
            }

            /// The element type.
            pub fn dtype(&self) -> DType {
                match self {
                    $(Self::$variant(_) => DType::$variant,)*
                }
            }

            /// Extents in z, y, x.
            pub fn dims(&self) -> [usize; 3] {
                match self {
                    $(Self::$variant(view) => view.dims(),)*
                }
            }

            /// The first `rows` rows, counted through all planes, and the rest.
            pub fn split_rows(self, rows: usize) -> (Self, Self) {
                match self {
                    $(Self::$variant(view) => {
                        let (first, rest) = view.split_rows(rows);
                        (Self::$variant(first), Self::$variant(rest))
                    })*
                }
            }
        }

        $(
            impl<'a> From<View<'a, $type>> for Image<'a> {
                fn from(view: View<'a, $type>) -> Self {
                    Self::$variant(view)
                }
            }
            impl<'a> From<ViewMut<'a, $type>> for ImageMut<'a> {
                fn from(view: ViewMut<'a, $type>) -> Self {
                    Self::$variant(view)
                }
            }
        )*
    };
}

images! {
    U8 u8;
    U16 u16;
    I16 i16;
    I32 i32;
    U32 u32;
    F32 f32;
    F64 f64;
}
