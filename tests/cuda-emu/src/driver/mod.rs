//! The driver: what programs that look for `libcuda` find.
//!
//! The functions themselves are in [`api`]; what they work on is in the other files. A call goes
//! through `Call::make`, finds its objects by handle, never by following a pointer it was given, and
//! hands work to the lane of a stream.

pub mod api;
mod attributes;
mod call;
mod chance;
mod context;
mod current;
mod device;
mod event;
pub mod ffi;
mod function;
mod handle;
mod health;
mod image;
mod journal;
mod lane;
mod launch;
mod library;
mod machine;
mod memory;
mod module;
mod status;
mod stream;
mod transfer;

pub use self::call::Symbol;
pub use self::status::Status;
