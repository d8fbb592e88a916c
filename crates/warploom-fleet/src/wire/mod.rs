//! What coordinator and worker say to each other, and through what.
//!
//! A pair of sockets carries frames: a length and a message. Each side begins with a preamble that says
//! which protocol it speaks, so that programs of two versions part before they misunderstand each other;
//! with the coordinator's come the descriptors of two stretches of shared memory, one per direction. Bytes
//! that are too many for a frame lie there, and a message says where.
//!
//! Nothing that a worker sends is believed: lengths are capped and memory grows with what has really come,
//! places in shared memory are checked, and a message that makes no sense ends the worker.

mod arena;
mod frame;
mod link;
mod message;

pub(crate) use arena::{Arena, Shelf};
pub(crate) use frame::{Inbox, push};
pub(crate) use link::{Came, Link, connect, receive};
pub(crate) use message::{Assignment, Body, FromWorker, Limits, Start, ToWorker};

/// The protocol's name and version. Changes with every change of a message.
pub(crate) const PREAMBLE: [u8; 12] = *b"WLFLEET\0\0\0\0\x03";

/// Bytes beyond which a body goes through shared memory.
pub(crate) const INLINE: usize = 4096;

/// The longest message. Longer bodies need room in shared memory.
pub(crate) const MAX_FRAME: usize = 64 << 20;

/// What was wrong with what the other side said.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error("it speaks another protocol or version: its first bytes are {0:02x?}")]
    Preamble(Vec<u8>),
    #[error("it announced a message of {0} bytes; {MAX_FRAME} are the most")]
    Length(usize),
    #[error("it sent a message of {0} bytes that says nothing")]
    Message(usize),
    #[error("it named bytes {at} to {at} + {bytes} of {room} that are shared")]
    Place { at: u64, bytes: u64, room: u64 },
}
