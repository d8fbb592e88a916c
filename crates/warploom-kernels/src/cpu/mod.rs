//! The CPU engine: every primitive in Rust, on the threads of the pool it is called in.
#![expect(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "pixels change type by `as`, whose saturation is the rule; extents and indices are below 2^31"
)]
#![expect(
    clippy::inline_always,
    reason = "single instructions must be compiled for the vector set of the loop they are in"
)]
#![expect(
    clippy::too_many_arguments,
    reason = "a kernel is told its rows, its weights, its extents and its memory; a struct for each would hide which"
)]
#![cfg_attr(
    test,
    expect(clippy::float_cmp, reason = "results are compared bit for bit")
)]

mod block;
pub mod depth;
mod dispatch;
mod engine;
pub mod image;
pub mod lanes;
pub mod pixel;
mod pixelwise;
pub mod rows;
pub mod taps;
mod turn;
pub mod view;
pub mod window;

pub use engine::Engine;
pub use image::{Image, ImageMut};
pub use pixel::{Pixel, Real};
pub use view::{View, ViewMut};
