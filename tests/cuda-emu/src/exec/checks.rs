//! Whether an access is allowed: the slow answers, behind the quick checks in compiled code.

use super::context::ThreadContext;
use super::worker::{Stop, Worker};
use crate::engine::{Access, FaultKind, Region, Space, Why};

/// An access, packed into one argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) bytes: u32,
    pub(crate) access: Access,
    pub(crate) space: Space,
}

impl Kind {
    pub(crate) fn code(self) -> u32 {
        self.bytes | u32::from(self.access as u8) << 8 | u32::from(self.space as u8) << 16
    }

    fn from_code(code: u32) -> Self {
        let [bytes, access, space, _] = code.to_le_bytes();
        Self {
            bytes: u32::from(bytes),
            access: match access {
                0 => Access::Read,
                1 => Access::Write,
                _ => Access::Atomic,
            },
            space: match space {
                0 => Space::Global,
                1 => Space::Shared,
                2 => Space::Local,
                3 => Space::Const,
                4 => Space::Param,
                _ => Space::Generic,
            },
        }
    }

    fn misaligned(self, address: u64) -> Result<(), FaultKind> {
        if address.is_multiple_of(u64::from(self.bytes)) {
            return Ok(());
        }
        Err(FaultKind::Misaligned {
            space: self.space,
            address,
            bytes: self.bytes,
            access: self.access,
        })
    }

    fn illegal(self, address: u64, why: Why) -> FaultKind {
        FaultKind::IllegalAddress {
            space: self.space,
            address,
            bytes: self.bytes,
            access: self.access,
            why,
        }
    }

    /// Whether the access lies in `region`.
    fn is_inside(self, address: u64, region: Region) -> bool {
        let end = address.checked_add(u64::from(self.bytes));
        address >= region.base && end.is_some_and(|end| end <= region.end)
    }

    fn bounded(self, address: u64, region: Region) -> Result<(), FaultKind> {
        if self.is_inside(address, region) {
            return Ok(());
        }
        Err(self.illegal(address, Why::OutOfBounds { allocation: region }))
    }
}

/// Turns an answer into what compiled code understands: zero to go on.
pub(super) fn status(answer: Result<(), Stop>) -> u32 {
    u32::from(answer.is_err())
}

/// Checks an access through a global, constant or generic address that no slot vouches for.
pub(crate) unsafe extern "C" fn resolve(
    context: *const ThreadContext,
    address: u64,
    code: u32,
    slot: u32,
    line: u32,
) -> u32 {
    // SAFETY: compiled code passes on the context it was called with, which outlives the call.
    let context = unsafe { &*context };
    let worker = context.worker();
    let kind = Kind::from_code(code);
    let answer = check(worker, context, address, kind).map(|region| {
        if let Some(region) = region {
            worker.slots.remember(slot, region);
        }
    });
    status(answer.map_err(|fault| worker.fault(context, line, fault)))
}

/// Says what is wrong with an access that compiled code has found to be wrong.
pub(crate) unsafe extern "C" fn refuse(
    context: *const ThreadContext,
    address: u64,
    code: u32,
    line: u32,
) -> u32 {
    // SAFETY: as in `resolve`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let kind = Kind::from_code(code);
    let answer = match kind.space {
        Space::Shared => shared(worker, address, kind),
        Space::Local => window(address, context.local_top.get(), kind),
        Space::Param => {
            let length = worker.grid.launch.kernel.entry().params_size;
            window(address, u64::from(length), kind)
        }
        Space::Global | Space::Const | Space::Generic => {
            check(worker, context, address, kind).map(|_| ())
        }
    };
    debug_assert!(answer.is_err(), "compiled code and this agree");
    status(answer.map_err(|fault| worker.fault(context, line, fault)))
}

/// An access relative to the start of its memory, of which `length` bytes are in use.
fn window(address: u64, length: u64, kind: Kind) -> Result<(), FaultKind> {
    kind.misaligned(address)?;
    let region = Region {
        base: 0,
        end: length,
    };
    kind.bounded(address, region)
}

/// An access to shared memory by its offset; bytes that are written count as written from now on.
fn shared(worker: &Worker<'_>, offset: u64, kind: Kind) -> Result<(), FaultKind> {
    window(offset, u64::from(worker.grid.shared_bytes), kind)?;
    let place = usize::try_from(offset).unwrap_or(usize::MAX);
    let length = kind.bytes as usize;
    if kind.access != Access::Write {
        let written = worker.shadow.read(place, length);
        if written.contains(&0) {
            return Err(FaultKind::UninitialisedShared {
                address: offset,
                bytes: kind.bytes,
            });
        }
    }
    if kind.access != Access::Read {
        worker.shadow.fill(place, length, 1);
    }
    Ok(())
}

/// Checks an access by its host address. A region is returned when it may be remembered.
fn check(
    worker: &Worker<'_>,
    context: &ThreadContext,
    address: u64,
    kind: Kind,
) -> Result<Option<Region>, FaultKind> {
    kind.misaligned(address)?;
    if kind.space == Space::Const {
        return constant(worker, address, kind).map(Some);
    }
    if kind.space == Space::Generic {
        if worker.shared.is_near(address) {
            let offset = address.wrapping_sub(worker.shared.base());
            return shared(worker, offset, kind).map(|()| None);
        }
        if worker.local.is_near(address) {
            let base = context.local_base;
            let end = base + context.local_top.get();
            return kind.bounded(address, Region { base, end }).map(|()| None);
        }
        if worker.params.is_near(address) {
            let base = worker.params.base();
            let end = base + worker.grid.launch.params.len() as u64;
            if kind.access != Access::Read {
                return Err(kind.illegal(address, Why::ReadOnly));
            }
            let region = Region { base, end };
            return kind.bounded(address, region).map(|()| Some(region));
        }
    }
    if kind.access != Access::Read && find_constant(worker, address).is_some() {
        return Err(kind.illegal(address, Why::ReadOnly));
    }
    let memory = worker.grid.launch.memory;
    match memory.check(address, kind.bytes, kind.access) {
        Ok(region) => kind.bounded(address, region).map(|()| Some(region)),
        Err(why) => Err(kind.illegal(address, why)),
    }
}

/// The constant variable of this module that `address` lies in.
fn find_constant(worker: &Worker<'_>, address: u64) -> Option<Region> {
    let launch = worker.grid.launch;
    let variables = launch.kernel.image().globals();
    let regions = variables.iter().zip(launch.globals);
    let mut regions = regions
        .filter(|(variable, _)| variable.constant)
        .map(|(variable, base)| Region {
            base: *base,
            end: base + variable.size,
        });
    regions.find(|region| (region.base..region.end).contains(&address))
}

fn constant(worker: &Worker<'_>, address: u64, kind: Kind) -> Result<Region, FaultKind> {
    let region = find_constant(worker, address);
    let region = region.ok_or_else(|| kind.illegal(address, Why::Unmapped))?;
    kind.bounded(address, region).map(|()| region)
}

/// `isspacep`: one if the generic address lies in the space.
pub(crate) unsafe extern "C" fn is_in_space(
    context: *const ThreadContext,
    address: u64,
    space: u32,
) -> u32 {
    // SAFETY: as in `resolve`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let is_shared = worker.shared.is_near(address);
    let is_local = worker.local.is_near(address);
    let is_param = worker.params.is_near(address);
    let is_constant = find_constant(worker, address).is_some();
    let code = space << 16;
    u32::from(match Kind::from_code(code).space {
        Space::Shared => is_shared,
        Space::Local => is_local,
        Space::Param => is_param,
        Space::Const => is_constant,
        Space::Global | Space::Generic => !(is_shared || is_local || is_param || is_constant),
    })
}

/// Reads bytes for a call that takes a pointer.
pub(super) fn read(
    worker: &Worker<'_>,
    context: &ThreadContext,
    address: u64,
    length: u64,
) -> Result<Vec<u8>, FaultKind> {
    let byte = Kind {
        bytes: 1,
        access: Access::Read,
        space: Space::Generic,
    };
    let mut bytes = Vec::new();
    for at in 0..length {
        let address = address.wrapping_add(at);
        check(worker, context, address, byte)?;
        // SAFETY: the check has found that the thread may read this byte.
        bytes.push(unsafe { (address as *const u8).read() });
    }
    Ok(bytes)
}

/// Reads a text up to its zero, or the first `limit` bytes.
pub(super) fn read_text(
    worker: &Worker<'_>,
    context: &ThreadContext,
    address: u64,
    limit: u64,
) -> Result<String, FaultKind> {
    let mut text = Vec::new();
    for at in 0..limit {
        let byte = read(worker, context, address.wrapping_add(at), 1)?[0];
        if byte == 0 {
            break;
        }
        text.push(byte);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
