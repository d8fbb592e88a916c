//! The catalogue's operations as steps of chains. A function for each; parameters by name, as in
//! files and as `warploom ops` lists them.

use std::marker::PhantomData;

use warploom_core::{Element, MemoryType};
use warploom_kernels::op::GivenValue;

use super::{Array, Flowing, Numbers, Pixel, RealWith, Step, Table, Tap, Whole};
use crate::pipeline::{self, OpUse};

/// An operation that takes `In` and gives `Out`.
#[derive(Clone, PartialEq, Debug)]
#[must_use = "it does nothing until a chain has it"]
pub struct Op<In, Out> {
    used: OpUse,
    /// Images beside the first.
    beside: Vec<String>,
    types: PhantomData<fn(In) -> Out>,
}

impl<In, Out> Op<In, Out> {
    fn new(name: &str, beside: &[&str]) -> Self {
        Self {
            used: OpUse::new(name),
            beside: beside.iter().map(|name| (*name).to_owned()).collect(),
            types: PhantomData,
        }
    }

    /// With a parameter.
    pub fn with(mut self, name: &str, value: impl Into<GivenValue>) -> Self {
        self.used = self.used.with(name, value);
        self
    }

    /// With a parameter that an earlier step computes: one of its numbers, by name or position.
    pub fn with_computed<M: MemoryType>(
        mut self,
        name: &str,
        from: &Tap<Numbers<M>>,
        item: &str,
    ) -> Self {
        self.used = self.used.with_computed(name, from.name(), item);
        self
    }
}

impl<In: Flowing, Out: Flowing> Step for Op<In, Out> {
    type In = In;
    type Out = Out;

    fn step(self, name: &str, from: &str) -> pipeline::Step {
        let beside = self.beside.iter().map(String::as_str);
        let reads: Vec<&str> = std::iter::once(from).chain(beside).collect();
        pipeline::Step::new(name, self.used).reads(reads)
    }
}

/// Operations on one image.
macro_rules! one {
    ($bound:ident -> $out:ty: $($name:ident)*) => {
        $(
            #[doc = concat!("The operation `", stringify!($name), "` of the catalogue.")]
            pub fn $name<T: $bound, M: MemoryType>() -> Op<Array<T, M>, $out> {
                Op::new(stringify!($name), &[])
            }
        )*
    };
}

/// Operations on two images, the second of which does not matter for the result's type.
macro_rules! two {
    ($bound:ident, $other:ident -> $out:ty: $($name:ident)*) => {
        $(
            #[doc = concat!("The operation `", stringify!($name), "` of the catalogue, with its second image.")]
            pub fn $name<T: $bound, U: $other, M: MemoryType>(
                second: &Tap<Array<U, M>>,
            ) -> Op<Array<T, M>, $out> {
                Op::new(stringify!($name), &[second.name()])
            }
        )*
    };
}

one! { Pixel -> Array<T, M>:
    median_box median_sphere percentile_box minimum_box maximum_box minimum_sphere maximum_sphere
    opening_box closing_box top_hat_box bottom_hat_box opening_sphere closing_sphere top_hat_sphere
    bottom_hat_sphere flip_x flip_y flip_z bin_max resize_nearest pad max_z min_z crop transpose_xy
    transpose_xz transpose_yz
}
one! { Pixel -> Array<<T as Pixel>::Real, M>:
    affine_intensity power gamma exp log1p sqrt abs invert clip minmax_normalize
    percentile_normalize subtract_gaussian_background divide_gaussian_background
    subtract_rolling_ball unsharp gaussian mean_box mean_sphere variance_box std_box sobel
    gradient_x gradient_y gradient_z laplace_diamond laplace_box difference_of_gaussian
    laplacian_of_gaussian shift_linear rotate_linear affine_linear distance_transform bin_mean
    bin_sum resize_linear sum_z mean_z std_z median_z
}
one! { Pixel -> Array<u8, M>:
    greater greater_equal less less_equal equal between threshold_otsu threshold_triangle
    threshold_li threshold_yen threshold_isodata threshold_mean threshold_local local_maxima
    binary_erode binary_dilate binary_open binary_close binary_not fill_holes
}
one! { Pixel -> Array<u32, M>: label_box label_diamond argmax_z }
one! { Whole -> Array<u32, M>:
    remove_small_labels remove_large_labels clear_border expand_labels relabel_sequential
}
one! { Pixel -> Numbers<M>: histogram totals percentiles }

two! { Pixel, Pixel -> Array<T, M>: mask_image }
two! { Pixel, Pixel -> Array<<T as Pixel>::Real, M>: convolve fft_convolve richardson_lucy }
two! { Pixel, Pixel -> Array<u8, M>: binary_and binary_or binary_xor }
two! { Pixel, Pixel -> Numbers<M>: phase_shift }
two! { Whole, Pixel -> Table<M>: label_statistics }

/// Operations on two images that are computed in the wider of both.
macro_rules! wider {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("The operation `", stringify!($name), "` of the catalogue, with its second image.")]
            pub fn $name<T: RealWith<U>, U: Pixel, M: MemoryType>(
                second: &Tap<Array<U, M>>,
            ) -> Op<Array<T, M>, Array<<T as RealWith<U>>::Real, M>> {
                Op::new(stringify!($name), &[second.name()])
            }
        )*
    };
}

wider! {
    add_images subtract_images multiply_images divide_images absolute_difference flat_field
    blend_two
}

/// Operations on two images of one type.
macro_rules! alike {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("The operation `", stringify!($name), "` of the catalogue, with its second image, of the same type.")]
            pub fn $name<T: Pixel, M: MemoryType>(
                second: &Tap<Array<T, M>>,
            ) -> Op<Array<T, M>, Array<T, M>> {
                Op::new(stringify!($name), &[second.name()])
            }
        )*
    };
}

alike! { maximum_images minimum_images }

/// The operation `cast` of the catalogue: values are rounded and saturated.
pub fn cast<U: Pixel, T: Pixel, M: MemoryType>() -> Op<Array<T, M>, Array<U, M>> {
    Op::new("cast", &[]).with("type", <U as Element>::DTYPE.to_string().as_str())
}

/// The operation `select` of the catalogue: where the mask is set the one image, else the other.
pub fn select<T: Pixel, U: Pixel, M: MemoryType>(
    one: &Tap<Array<U, M>>,
    other: &Tap<Array<U, M>>,
) -> Op<Array<T, M>, Array<U, M>> {
    Op::new("select", &[one.name(), other.name()])
}

/// The operation `watershed` of the catalogue: labels grow along an image, inside a mask.
pub fn watershed<T: Whole, U: Pixel, V: Pixel, M: MemoryType>(
    image: &Tap<Array<U, M>>,
    mask: &Tap<Array<V, M>>,
) -> Op<Array<T, M>, Array<u32, M>> {
    Op::new("watershed", &[image.name(), mask.name()])
}
