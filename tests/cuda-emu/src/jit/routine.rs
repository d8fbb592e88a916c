//! Functions of this crate that compiled code may call.

use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::{F64, I32, I64};

use crate::exec::{atomics, checks, control, numbers, system};

/// What is known about a function: its name for the linker, where it is, and its signature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) address: *const u8,
    pub(super) params: &'static [Type],
    pub(super) result: Type,
}

macro_rules! routines {
    ($($name:ident $path:path as ($($param:expr),*) -> $result:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(super) enum Routine {
            $($name,)*
        }

        impl Routine {
            pub(super) const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub(super) fn spec(self) -> Spec {
                match self {
                    $(Self::$name => Spec {
                        name: concat!("emu::", stringify!($name)),
                        address: $path as *const () as *const u8,
                        params: &[$($param),*],
                        result: $result,
                    },)*
                }
            }
        }
    };
}

// Integers narrower than 32 bits are never passed: who extends them is not agreed upon everywhere.
routines! {
    Resolve checks::resolve as (I64, I64, I32, I32, I32) -> I32;
    Refuse checks::refuse as (I64, I64, I32, I32) -> I32;
    IsInSpace checks::is_in_space as (I64, I64, I32) -> I32;
    Refuel control::refuel as (I64, I32) -> I32;
    Pause control::pause as (I64, I32) -> I32;
    Enter control::enter as (I64, I64, I32, I32) -> I32;
    Overflow control::overflow as (I64, I32) -> I32;
    Trap control::trap as (I64, I32) -> I32;
    BadTarget control::bad_target as (I64, I32, I32) -> I32;
    Barrier control::barrier as (I64, I32, I32, I32, I32, I32) -> I64;
    Warp control::warp as (I64, I32, I32, I64, I32, I32, I32) -> I64;
    Function control::function as (I64, I64, I32, I32) -> I64;
    Clock control::clock as (I64, I32) -> I64;
    Arithmetic numbers::arithmetic as (I32, I64, I64, I64) -> I64;
    Convert numbers::convert as (I32, I64) -> I64;
    Approximate numbers::approximate as (I32, F64) -> F64;
    Lanes numbers::lanes as (I32, I32, I32, I32) -> I32;
    Dot numbers::dot as (I32, I32, I32, I32) -> I32;
    Permute numbers::permute as (I32, I32, I32, I32) -> I32;
    FindSet numbers::find_set as (I32, I32, I32) -> I32;
    Update atomics::update as (I64, I32, I64) -> I64;
    Vprintf system::vprintf as (I64, I64, I64) -> I32;
    Assertfail system::assertfail as (I64, I64, I64) -> I32;
    Malloc system::malloc as (I64, I64, I64) -> I32;
    Free system::free as (I64, I64, I64) -> I32;
}

impl Routine {
    /// A function that CUDA provides, with the sizes of its parameters and results.
    pub(super) fn system(name: &str) -> Option<(Self, &'static [u32], &'static [u32])> {
        Some(match name {
            "vprintf" => (Self::Vprintf, &[8, 8], &[4]),
            "__assertfail" => (Self::Assertfail, &[8, 8, 4, 8, 8], &[]),
            "malloc" => (Self::Malloc, &[8], &[8]),
            "free" => (Self::Free, &[8], &[]),
            _ => return None,
        })
    }
}
