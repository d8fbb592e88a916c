//! Which block is where.

use std::collections::{BTreeMap, VecDeque};

use super::arena::GAP;
use super::block::{Block, State};
use crate::engine::Why;

/// Freed blocks that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Blocks by address: those that live, and those that lived.
#[derive(Debug, Default)]
pub(crate) struct Map {
    live: BTreeMap<u64, Block>,
    dead: BTreeMap<u64, Block>,
    /// The dead in the order of their deaths.
    burials: VecDeque<u64>,
}

impl Map {
    pub(crate) fn insert(&mut self, block: Block) {
        self.live.insert(block.base, block);
    }

    pub(crate) fn live_mut(&mut self, base: u64) -> Option<&mut Block> {
        self.live.get_mut(&base)
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = &Block> {
        self.live.values()
    }

    /// The last living block that begins before `end`.
    pub(crate) fn last_before(&self, end: u64) -> Option<&Block> {
        self.live.range(..end).next_back().map(|(_, block)| block)
    }

    pub(crate) fn overlaps(&self, base: u64, bytes: u64) -> bool {
        let last = self.last_before(base.saturating_add(bytes));
        last.is_some_and(|block| block.end() > base)
    }

    /// From the living to the dead.
    pub(crate) fn bury(&mut self, base: u64) -> Option<Block> {
        let mut block = self.live.remove(&base)?;
        block.state = State::Freed;
        self.dead.insert(base, block.clone());
        self.burials.push_back(base);
        if self.burials.len() > REMEMBERED
            && let Some(oldest) = self.burials.pop_front()
        {
            self.dead.remove(&oldest);
        }
        Some(block)
    }

    /// Forgets the dead at one address.
    pub(crate) fn exhume(&mut self, base: u64) {
        self.dead.remove(&base);
    }

    /// Forgets the dead in a range that is used again.
    pub(crate) fn exhume_range(&mut self, from: u64, to: u64) {
        // The one before may reach into the range.
        let before = self.dead.range(..from).next_back();
        let first = before
            .filter(|(_, block)| block.end() > from)
            .map_or(from, |(base, _)| *base);
        let bases: Vec<u64> = self.dead.range(first..to).map(|(base, _)| *base).collect();
        for base in bases {
            self.dead.remove(&base);
        }
    }

    /// The block that holds the byte at `address`; the living go before the dead.
    pub(crate) fn around(&self, address: u64) -> Option<&Block> {
        let holds = |blocks: &'_ BTreeMap<u64, Block>| {
            let last = blocks.range(..=address).next_back();
            last.filter(|(_, block)| address < block.end())
                .map(|(base, _)| *base)
        };
        if let Some(base) = holds(&self.live) {
            return self.live.get(&base);
        }
        holds(&self.dead).and_then(|base| self.dead.get(&base))
    }

    pub(crate) fn covering(&self, address: u64, bytes: u64) -> Result<&Block, Why> {
        let Some(block) = self.around(address) else {
            return Err(self.beside(address));
        };
        let allocation = block.region();
        match block.state {
            State::Freed => return Err(Why::Freed { allocation }),
            // In the order of its stream it is not there yet.
            State::Pending => return Err(Why::Unmapped),
            State::Live => {}
        }
        if bytes > block.end() - address {
            return Err(Why::OutOfBounds { allocation });
        }
        Ok(block)
    }

    /// What is near an address that is in no block.
    fn beside(&self, address: u64) -> Why {
        let before = self.live.range(..=address).next_back();
        let after = self.live.range(address..).next();
        let near = before
            .filter(|(_, block)| address - block.end() < GAP)
            .or(after.filter(|(base, _)| **base - address < GAP));
        near.map_or(Why::Unmapped, |(_, block)| Why::OutOfBounds {
            allocation: block.region(),
        })
    }
}
