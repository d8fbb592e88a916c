//! All memory that a caller can hold an address of.
//!
//! Device addresses are addresses of the host, in ranges set aside for each device and for
//! page-locked memory. What is freed keeps its addresses for as long as the range has others, so
//! that its later use is noticed; only its pages go back to the system.

mod arena;
mod block;
mod budget;
mod map;
mod pool;
mod reserve;
mod view;

use std::io;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use self::arena::Arena;
pub(crate) use self::block::{Block, Home, Origin, State};
pub(crate) use self::budget::{Budget, charge};
use self::map::Map;
pub(crate) use self::pool::{Pool, PoolAttribute};
use self::reserve::Reserve;
pub(crate) use self::view::View;
use crate::engine::Why;
use crate::plan::Plan;

/// What fresh memory is filled with: no plausible number in any type, and no address.
const FRESH: u8 = 0xcb;

/// Addresses set aside are so many times as many as there is memory.
const ROOM: u64 = 8;

/// Added to that, for small devices.
const SPARE_ROOM: u64 = 1 << 30;

/// The memory of the machine.
#[derive(Debug)]
pub(crate) struct Memory(RwLock<Space>);

#[derive(Debug)]
struct Space {
    map: Map,
    /// One for each device of the machine.
    devices: Vec<Arena>,
    /// Page-locked memory of the host.
    host: Arena,
    /// How much of that is in use, and may be.
    pinned: u64,
    pinned_limit: u64,
}

/// Where a block is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Where {
    /// Device, by its place in the machine.
    Device(usize),
    /// Page-locked host memory.
    Host,
}

impl Memory {
    /// Sets addresses aside.
    pub(crate) fn new(plan: &Plan) -> io::Result<Self> {
        let room = |bytes: u64| bytes.saturating_mul(ROOM).saturating_add(SPARE_ROOM);
        let devices = plan
            .machine
            .iter()
            .map(|device| Ok(Arena::new(Reserve::new(room(device.memory))?)))
            .collect::<io::Result<_>>()?;
        Ok(Self(RwLock::new(Space {
            map: Map::default(),
            devices,
            host: Arena::new(Reserve::new(room(plan.pinned))?),
            pinned: 0,
            pinned_limit: plan.pinned,
        })))
    }

    fn read(&self) -> RwLockReadGuard<'_, Space> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Space> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a block of at least one byte; `None` when the range or the host has no room. The
    /// device's budget is the caller's business.
    pub(crate) fn allocate(
        &self,
        place: Where,
        bytes: u64,
        home: Home,
        state: State,
    ) -> Option<u64> {
        let mut space = self.write();
        let Space {
            map,
            devices,
            host,
            pinned,
            pinned_limit,
        } = &mut *space;
        let base = match place {
            Where::Device(index) => devices.get_mut(index)?.place(map, bytes)?,
            Where::Host => {
                let after = pinned.checked_add(charge(bytes))?;
                if after > *pinned_limit {
                    return None;
                }
                let base = host.place(map, bytes)?;
                *pinned = after;
                base
            }
        };
        map.insert(Block {
            base,
            bytes,
            home,
            state,
        });
        drop(space);
        if state == State::Live {
            poison(base, bytes);
        }
        Some(base)
    }

    /// Makes a block that was reserved in stream order usable.
    pub(crate) fn arrive(&self, base: u64) {
        let mut space = self.write();
        let Some(block) = space.map.live_mut(base) else {
            return;
        };
        block.state = State::Live;
        let bytes = block.bytes;
        drop(space);
        poison(base, bytes);
    }

    /// Adds host memory that belongs to the caller; `None` when a part of it is known already.
    pub(crate) fn register(&self, base: u64, bytes: u64, home: Home) -> Option<()> {
        let mut space = self.write();
        if space.map.overlaps(base, bytes) {
            return None;
        }
        space.map.insert(Block {
            base,
            bytes,
            home,
            state: State::Live,
        });
        Some(())
    }

    /// Ends a block. Its addresses stay known as freed.
    pub(crate) fn free(&self, base: u64) -> Option<Block> {
        let mut space = self.write();
        let Space {
            map,
            devices,
            host,
            pinned,
            ..
        } = &mut *space;
        let block = map.bury(base)?;
        match &block.home {
            Home::Device { device, .. } => {
                if let Some(arena) = devices.get(*device) {
                    arena.forget(&block);
                }
            }
            Home::Pinned { .. } => {
                *pinned -= charge(block.bytes);
                host.forget(&block);
            }
            // The caller's memory; whether it still exists is unknown, and so is its next use.
            Home::Registered { .. } => map.exhume(base),
        }
        Some(block)
    }

    /// The block at or around an address, whether it lives or not.
    pub(crate) fn find(&self, address: u64) -> Option<Block> {
        self.read().map.around(address).cloned()
    }

    /// The living block that holds all `bytes` bytes at `address`.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn covering(&self, address: u64, bytes: u64) -> Result<Block, Why> {
        self.read().map.covering(address, bytes).cloned()
    }

    /// Whether an address is one of those set aside, in a block or not.
    pub(crate) fn is_reserved(&self, address: u64) -> bool {
        let space = self.read();
        let mut arenas = space.devices.iter().chain([&space.host]);
        arenas.any(|arena| arena.holds(address))
    }

    /// All living blocks for which `which` holds.
    pub(crate) fn living(&self, which: impl Fn(&Block) -> bool) -> Vec<Block> {
        let space = self.read();
        space
            .map
            .living()
            .filter(|block| which(block))
            .cloned()
            .collect()
    }
}

/// Fills a block that nobody else uses yet.
fn poison(base: u64, bytes: u64) {
    let length = usize::try_from(bytes).expect("a block fits the address space");
    let place = std::ptr::with_exposed_provenance_mut::<u8>(address(base));
    // SAFETY: the block was made by an arena, whose pages can be written, and no caller has been
    // told of it, or may use it, yet.
    unsafe { std::ptr::write_bytes(place, FRESH, length) };
}

/// A device address as a number of the host.
pub(crate) fn address(device: u64) -> usize {
    usize::try_from(device).expect("host and device addresses have 64 bits")
}
