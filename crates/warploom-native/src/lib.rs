//! Expressions over rows of pixels as machine code, made while the program runs.
//!
//! An interpreter pays for every operation that it finds out which one it is, and that values rest in
//! memory between operations. A [`Routine`] pays for neither: it is one loop over the pixels of a row
//! with its values in vector registers. It knows the processors of the x86-64 family from AVX2 on;
//! on others, and where a system forbids programs to make code, [`Routine::new`] gives `None` and the
//! caller interprets.
//!
//! Every operation is one that IEEE 754 defines exactly, so that the results are those of any other
//! way to compute the expression, bit for bit.
//!
//! ```
//! use warploom_native::{Bin, Element, Ins, Routine, Width};
//!
//! // 2 * a + a, for all pixels of a row.
//! let code = [
//!     Ins::Row { row: 0, element: Element::Word },
//!     Ins::Number(0),
//!     Ins::Fma(0, 1, 0),
//!     Ins::Put { out: 0, element: Element::Word, value: 2 },
//! ];
//! let made = Width::best().and_then(|width| Routine::new(&code, width));
//! if let Some(routine) = made {
//!     let mut memory = vec![0.0; routine.memory()];
//!     routine.start(&mut memory);
//!     routine.set_number(&mut memory, 0, 2.0_f32.to_bits());
//!     let row: Vec<u8> = (0..32).flat_map(|v| (v as f32).to_ne_bytes()).collect();
//!     let mut out = vec![0; 32 * 4];
//!     routine.run(&mut memory, &[&row], &mut [&mut out], 0, 32);
//!     assert_eq!(out[4..8], 3.0_f32.to_ne_bytes());
//! }
//! ```
#![deny(unsafe_code)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "registers, lanes and slots are few, as `Routine::new` sees to"
)]

mod bytewise;
mod codes;
mod doubles;
mod emit;
mod encode;
mod fused;
mod merge;
mod program;
mod registers;
mod routine;
#[cfg(test)]
mod tests;

pub use program::{Bin, BinB, BinD, Element, Half, Ins, Kind, Un, UnD, Value};
pub use routine::{Routine, Width};
