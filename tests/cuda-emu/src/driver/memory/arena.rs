//! Gives out the addresses of one range.

use super::block::Block;
use super::map::Map;
use super::reserve::Reserve;

/// Addresses of blocks are multiples of this, as CUDA promises.
pub(crate) const ALIGN: u64 = 256;

/// Bytes before and behind each block that belong to nobody.
pub(crate) const GAP: u64 = 256;

/// Blocks from this size on begin at a multiple of it, so that their pages can be given back.
const LARGE: u64 = 64 << 10;

/// What small blocks are filled with when they are freed; the pages of large ones are given back.
const STALE: u8 = 0xdf;

/// One range. Addresses are given out in a circle: what was freed last is used again last.
#[derive(Debug)]
pub(crate) struct Arena {
    reserve: Reserve,
    next: u64,
}

impl Arena {
    pub(crate) fn new(reserve: Reserve) -> Self {
        let next = reserve.base();
        Self { reserve, next }
    }

    /// Whether an address is in the range.
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.reserve.base()..self.reserve.end()).contains(&address)
    }

    /// An address for `bytes` bytes with nothing living near.
    pub(crate) fn place(&mut self, map: &mut Map, bytes: u64) -> Option<u64> {
        let to = self.reserve.end();
        let base =
            gap(map, bytes, self.next, to).or_else(|| gap(map, bytes, self.reserve.base(), to))?;
        let end = base + bytes;
        map.exhume_range(base - GAP, end + GAP);
        self.next = end + GAP;
        Some(base)
    }

    /// Empties a freed block.
    pub(crate) fn forget(&self, block: &Block) {
        if block.bytes >= LARGE {
            self.reserve.forget(block.base, block.end());
            return;
        }
        let place = std::ptr::with_exposed_provenance_mut::<u8>(super::address(block.base));
        let length = super::address(block.bytes);
        // SAFETY: the block lies in our own mapping, can be written, and nobody keeps Rust
        // references into it; a kernel or copy that still uses it is at fault and reads nonsense.
        unsafe { std::ptr::write_bytes(place, STALE, length) };
    }
}

/// The first place between two addresses.
fn gap(map: &Map, bytes: u64, from: u64, to: u64) -> Option<u64> {
    let align = if bytes >= LARGE { LARGE } else { ALIGN };
    let mut base = (from + GAP).checked_next_multiple_of(align)?;
    loop {
        let end = base.checked_add(bytes)?.checked_add(GAP)?;
        if end > to {
            return None;
        }
        match map.last_before(end) {
            Some(block) if block.end() + GAP > base => {
                base = (block.end() + GAP).checked_next_multiple_of(align)?;
            }
            _ => return Some(base),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::ffi::Handle;
    use crate::driver::memory::{Home, Origin, State};
    use crate::engine::Why;

    fn block(base: u64, bytes: u64) -> Block {
        Block {
            base,
            bytes,
            home: Home::Device {
                device: 0,
                context: Handle::NULL,
                origin: Origin::Call,
            },
            state: State::Live,
        }
    }

    fn take(arena: &mut Arena, map: &mut Map, bytes: u64) -> Option<u64> {
        let base = arena.place(map, bytes)?;
        map.insert(block(base, bytes));
        Some(base)
    }

    fn arena(bytes: u64) -> (Arena, Map) {
        let reserve = Reserve::new(bytes).expect("some addresses are free");
        (Arena::new(reserve), Map::default())
    }

    #[test]
    fn blocks_are_aligned_and_apart() {
        let (mut arena, mut map) = arena(1 << 20);
        let sizes = [1, 255, 256, 257, 70_000, 3];
        let bases: Vec<u64> = sizes
            .iter()
            .map(|size| take(&mut arena, &mut map, *size).expect("there is room"))
            .collect();
        for (base, next) in bases
            .iter()
            .zip(&bases[1..])
            .zip(sizes)
            .map(|((a, b), size)| (a + size, b))
        {
            assert!(base + GAP <= *next, "{base:#x} {next:#x}");
        }
        assert!(bases.iter().all(|base| base % ALIGN == 0));
        assert_eq!(bases[4] % LARGE, 0);
    }

    #[test]
    fn what_was_freed_is_used_again_last() {
        let (mut arena, mut map) = arena(64 << 10);
        let first = take(&mut arena, &mut map, 4096).expect("there is room");
        map.bury(first);
        let mut before_reuse = 0;
        loop {
            let base = take(&mut arena, &mut map, 4096).expect("freed space is used again");
            if base == first {
                break;
            }
            assert_eq!(
                map.covering(first, 1).err(),
                Some(Why::Freed {
                    allocation: block(first, 4096).region()
                })
            );
            before_reuse += 1;
        }
        assert!(before_reuse > 10, "{before_reuse}");
        assert!(map.covering(first, 4096).is_ok(), "the new block is found");
    }

    #[test]
    fn a_full_range_has_no_place() {
        let (mut arena, mut map) = arena(1 << 20);
        while take(&mut arena, &mut map, 100_000).is_some() {}
        assert_eq!(take(&mut arena, &mut map, 100_000), None);
        assert_eq!(take(&mut arena, &mut map, u64::MAX - 5), None);
        assert!(take(&mut arena, &mut map, 100).is_some());
    }

    #[test]
    fn accesses_beside_a_block_are_told_from_wild_ones() {
        let (mut arena, mut map) = arena(1 << 20);
        let base = take(&mut arena, &mut map, 1000).expect("there is room");
        let allocation = block(base, 1000).region();
        let out = Some(Why::OutOfBounds { allocation });
        assert!(map.covering(base, 1000).is_ok());
        assert_eq!(map.covering(base, 1001).err(), out);
        assert_eq!(map.covering(base + 1000, 1).err(), out);
        assert_eq!(map.covering(base - 1, 1).err(), out);
        assert_eq!(map.covering(base + 100_000, 1).err(), Some(Why::Unmapped));
        assert_eq!(map.covering(8, 1).err(), Some(Why::Unmapped));
    }
}
