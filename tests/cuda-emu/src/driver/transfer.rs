//! Copies: what moves where, and when the caller may go on.
//!
//! The rules are those of the driver manual's chapter on synchronisation. What lies in page-locked
//! or device memory is read and written when the copy runs, not when it is asked for, and is looked
//! up again at that time: memory that was freed or changed too early shows.

use super::health::Trouble;
use super::lane::Job;
use super::machine::Machine;
use super::memory::{Block, address};
use super::status::{Result, Status};
use super::stream::Stream;
use crate::engine::Why;

/// What a caller says a pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    Host,
    Device,
    /// Whatever it turns out to be.
    Any,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Host memory we know nothing about.
    Pageable,
    Pinned,
    Device,
}

/// Bytes in rows and slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

impl Extent {
    pub(crate) fn line(bytes: u64) -> Self {
        Self {
            width: bytes,
            height: 1,
            depth: 1,
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }
}

/// One end of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) at: u64,
    /// Bytes from row to row.
    pub(crate) pitch: u64,
    /// Bytes from slice to slice.
    pub(crate) slice: u64,
    sort: Sort,
}

impl End {
    /// One end, which is looked up.
    ///
    /// # Errors
    /// When memory that is ours does not hold the extent, or is not what the caller claims.
    pub(crate) fn find(
        machine: &Machine,
        claim: Claim,
        at: u64,
        extent: Extent,
        (pitch, slice): (u64, u64),
    ) -> std::result::Result<Self, (Status, String)> {
        let invalid = |text: String| Err((Status::INVALID_VALUE, text));
        let Some(span) = span(extent, pitch, slice) else {
            return invalid("an extent beyond all memory".to_owned());
        };
        let end = |sort| {
            Ok(Self {
                at,
                pitch,
                slice,
                sort,
            })
        };
        let Some(block) = machine.memory.find(at) else {
            // Ordinary memory, unless it is beside a block, or where blocks were once.
            let why = machine.memory.covering(at, span).err();
            let ordinary = claim != Claim::Device && at != 0 && why == Some(Why::Unmapped);
            if ordinary && !machine.memory.is_reserved(at) {
                return end(Sort::Pageable);
            }
            let why = why.unwrap_or(Why::Unmapped);
            return invalid(format!("{span} bytes at {at:#x}: {why}"));
        };
        check_block(&block, claim, at, span)?;
        end(if block.device().is_some() {
            Sort::Device
        } else {
            Sort::Pinned
        })
    }

    fn row(&self, y: u64, z: u64) -> u64 {
        self.at + z * self.slice + y * self.pitch
    }
}

fn check_block(
    block: &Block,
    claim: Claim,
    at: u64,
    span: u64,
) -> std::result::Result<(), (Status, String)> {
    let invalid = |text: String| Err((Status::INVALID_VALUE, text));
    let allocation = format!(
        "the allocation of {} bytes at {:#x}",
        block.bytes, block.base
    );
    if block.state == super::memory::State::Freed {
        return invalid(format!("{at:#x} is in {allocation}, which has been freed"));
    }
    if span > block.end() - at {
        return invalid(format!("{span} bytes at {at:#x} leave {allocation}"));
    }
    if claim == Claim::Host && block.device().is_some() {
        return invalid(format!(
            "{at:#x} is given as host memory and is device memory"
        ));
    }
    Ok(())
}

/// Bytes from the first to behind the last that an extent touches.
fn span(extent: Extent, pitch: u64, slice: u64) -> Option<u64> {
    let rows = pitch.checked_mul(extent.height - 1)?;
    let slices = slice.checked_mul(extent.depth - 1)?;
    extent.width.checked_add(rows)?.checked_add(slices)
}

/// A copy that makes sense.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    /// The call, for reports.
    pub(crate) call: &'static str,
    pub(crate) dst: End,
    pub(crate) src: End,
    pub(crate) extent: Extent,
}

/// Whether the call is one of those with `Async` in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Sync,
    Async,
}

/// When the caller goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Return {
    /// The source has been read, the rest comes later.
    Staged,
    /// At once.
    AtOnce,
    /// When all is done.
    Done,
}

impl Transfer {
    /// Whether the ends have bytes in common; only told for one row, in which it is certain.
    pub(crate) fn overlaps(&self) -> bool {
        let (a, b, bytes) = (self.dst.at, self.src.at, self.extent.width);
        self.extent.height == 1 && self.extent.depth == 1 && a < b + bytes && b < a + bytes
    }

    fn returns(&self, mode: Mode) -> Return {
        match (self.src.sort, self.dst.sort, mode) {
            (Sort::Pageable, Sort::Device, _) => Return::Staged,
            (Sort::Device, Sort::Device, _)
            | (Sort::Pinned, Sort::Device, Mode::Async)
            | (Sort::Device, Sort::Pinned, Mode::Async) => Return::AtOnce,
            _ => Return::Done,
        }
    }

    /// Hands the copy to a stream, and returns when the caller may go on.
    pub(crate) fn submit(self, machine: &'static Machine, stream: &Stream, mode: Mode) -> Result {
        match self.returns(mode) {
            Return::AtOnce => {
                stream.submit(self.job(machine, None));
                Ok(())
            }
            Return::Staged => {
                if mode == Mode::Sync {
                    stream.synchronise()?;
                }
                let staged = self.stage();
                stream.submit(self.job(machine, Some(staged)));
                Ok(())
            }
            Return::Done => stream.submit_and_wait(self.job(machine, None)),
        }
    }

    fn job(self, machine: &'static Machine, staged: Option<Vec<u8>>) -> Job {
        Job::Work(Box::new(move || self.run(machine, staged.as_deref())))
    }

    /// Gathers the source, row by row.
    fn stage(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for z in 0..self.extent.depth {
            for y in 0..self.extent.height {
                let row = std::ptr::with_exposed_provenance(address(self.src.row(y, z)));
                // SAFETY: the caller of the copy vouches for its source until the call returns,
                // and nothing of ours writes there.
                let row = unsafe { std::slice::from_raw_parts(row, address(self.extent.width)) };
                bytes.extend_from_slice(row);
            }
        }
        bytes
    }

    fn run(&self, machine: &Machine, staged: Option<&[u8]>) -> std::result::Result<(), Trouble> {
        self.look_again(machine, &self.dst)?;
        self.look_again(machine, &self.src)?;
        let width = address(self.extent.width);
        let mut staged = staged.map(|bytes| bytes.chunks(width));
        for z in 0..self.extent.depth {
            for y in 0..self.extent.height {
                let src = match &mut staged {
                    Some(rows) => rows.next().map_or(std::ptr::null(), <[u8]>::as_ptr),
                    None => std::ptr::with_exposed_provenance(address(self.src.row(y, z))),
                };
                let dst = address(self.dst.row(y, z));
                let dst = std::ptr::with_exposed_provenance_mut::<u8>(dst);
                // SAFETY: memory of ours was just found to hold the extent, and stays mapped even
                // if it is freed meanwhile; the caller vouches for its own until the call returns,
                // which waits for this; staged rows are as many as the extent has. Nobody has Rust
                // references to any of it. Races with kernels and other copies are those of the
                // program that is tested.
                unsafe { std::ptr::copy(src, dst, width) };
            }
        }
        Ok(())
    }

    /// Memory of ours must still be there.
    fn look_again(&self, machine: &Machine, end: &End) -> std::result::Result<(), Trouble> {
        if end.sort == Sort::Pageable {
            return Ok(());
        }
        look_again(machine, self.call, end, self.extent)
    }
}

/// Checks when work begins what was checked when it was asked for.
fn look_again(
    machine: &Machine,
    call: &str,
    end: &End,
    extent: Extent,
) -> std::result::Result<(), Trouble> {
    let span = span(extent, end.pitch, end.slice).unwrap_or(u64::MAX);
    match machine.memory.covering(end.at, span) {
        Ok(_) => Ok(()),
        Err(why) => Err(Trouble {
            status: Status::ILLEGAL_ADDRESS,
            text: format!("{call}, when it ran: {span} bytes at {:#x}: {why}", end.at),
        }),
    }
}

/// A value of one, two or four bytes, written over and over.
#[derive(Debug, Clone)]
pub(crate) struct Fill {
    pub(crate) call: &'static str,
    pub(crate) dst: End,
    /// The value, repeated to four bytes.
    pub(crate) pattern: [u8; 4],
    pub(crate) extent: Extent,
}

impl Fill {
    /// Hands it to a stream. Only the synchronous call on host memory is waited for.
    pub(crate) fn submit(self, machine: &'static Machine, stream: &Stream, mode: Mode) -> Result {
        let wait = mode == Mode::Sync && self.dst.sort == Sort::Pinned;
        let ticket = stream.submit(Job::Work(Box::new(move || self.run(machine))));
        if wait {
            ticket.wait();
            return stream.context().check();
        }
        Ok(())
    }

    fn run(&self, machine: &Machine) -> std::result::Result<(), Trouble> {
        look_again(machine, self.call, &self.dst, self.extent)?;
        let width = address(self.extent.width);
        let piece = self.pattern.repeat(width.div_ceil(4).min(16 << 10));
        for y in 0..self.extent.height {
            let row = address(self.dst.row(y, 0));
            for at in (0..width).step_by(piece.len()) {
                let length = piece.len().min(width - at);
                let dst = std::ptr::with_exposed_provenance_mut::<u8>(row + at);
                // SAFETY: as for copies: the block was just found to hold the extent, and stays
                // mapped; the piece is ours.
                unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), dst, length) };
            }
        }
        Ok(())
    }
}
