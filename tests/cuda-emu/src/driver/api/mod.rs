//! The functions, under the names that programs look for.
//!
//! What each does is in the CUDA driver manual. Where the manual leaves something open, the strictest
//! reading is taken; where hardware lets a mistake pass, it is refused or reported.

mod absent;
mod context;
mod copy;
mod device;
mod event;
mod fill;
mod function;
mod library;
mod memory;
mod module;
mod pointer;
mod pool;
mod start;
mod stream;
mod table;
mod volume;

pub use self::absent::*;
pub use self::context::*;
pub use self::copy::*;
pub use self::device::*;
pub use self::event::*;
pub use self::fill::*;
pub use self::function::*;
pub use self::library::*;
pub use self::memory::*;
pub use self::module::*;
pub use self::pointer::*;
pub use self::pool::*;
pub use self::start::*;
pub use self::stream::*;
pub use self::volume::*;

pub use self::table::symbols;
pub(crate) use self::table::{exact, is_known, versions};
