//! The engine against references that know nothing of it.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    clippy::many_single_char_names,
    reason = "references cut numbers to the size of registers, compare bit by bit, and use the names \
              of the manual"
)]

mod rig;

mod faults;
mod fuzz;
mod kernels;
mod ops;
