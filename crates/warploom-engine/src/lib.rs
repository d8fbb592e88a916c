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
#![expect(
    clippy::float_cmp,
    reason = "equal means equal: values are counted, ordered and compared bit for bit"
)]
#![expect(
    clippy::similar_names,
    reason = "`nx` beside `ny`, `least` beside `last`: the names of the trade"
)]

mod arms;
mod around;
mod block;
pub mod chain;
pub mod convolve;
mod cut;
pub mod depth;
mod dispatch;
pub mod distance;
mod engine;
mod footprint;
pub mod fourier;
mod gather;
pub mod histogram;
pub mod image;
pub mod label;
pub mod lanes;
pub mod moves;
pub mod objects;
mod pages;
pub mod pass;
mod past;
pub mod percentile;
pub mod pixel;
mod pixelwise;
mod places;
pub mod project;
pub mod resample;
pub mod rows;
mod share;
pub mod tape;
pub mod taps;
mod things;
pub mod threshold;
pub mod tiles;
pub mod totals;
mod turn;
pub mod view;
pub mod watershed;
mod way;
mod whole;
pub mod window;

pub use chain::Chain;
pub use cut::partition;
pub use engine::Engine;
pub use image::{Image, ImageMut};
pub use pass::Pass;
pub use pixel::{Pixel, Real};
pub use view::{View, ViewMut};
