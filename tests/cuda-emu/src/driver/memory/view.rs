//! Memory as the kernels of one context see it.

use std::sync::Arc;

use super::{Block, Home, Memory, Origin, State, Where};
use crate::driver::context::Context;
use crate::engine::{Access, DeviceMemory, Region, Why};

/// What one launch may touch.
#[derive(Debug)]
pub(crate) struct View<'a> {
    memory: &'a Memory,
    context: &'a Arc<Context>,
}

impl<'a> View<'a> {
    pub(crate) fn new(memory: &'a Memory, context: &'a Arc<Context>) -> Self {
        Self { memory, context }
    }

    /// Whether kernels of the context reach a block at all.
    fn reaches(&self, block: &Block) -> bool {
        let Home::Device {
            device,
            context,
            origin,
        } = &block.home
        else {
            // Page-locked memory is mapped into every context, at the same address.
            return true;
        };
        let here = self.context.device().index();
        match origin {
            Origin::Pool(pool) if *device != here => pool.access(here) != 0,
            Origin::Pool(_) => true,
            _ => *context == self.context.handle() || self.context.has_peer(*context),
        }
    }
}

impl DeviceMemory for View<'_> {
    fn check(&self, address: u64, bytes: u32, access: Access) -> Result<Region, Why> {
        let space = self.memory.read();
        let block = space.map.covering(address, u64::from(bytes))?;
        if !self.reaches(block) {
            return Err(Why::Foreign);
        }
        let constant = matches!(
            block.home,
            Home::Device {
                origin: Origin::Variable { constant: true },
                ..
            }
        );
        if constant && access != Access::Read {
            return Err(Why::ReadOnly);
        }
        Ok(block.region())
    }

    fn allocate(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 || !self.context.heap().take(bytes) {
            return None;
        }
        let device = self.context.device().index();
        let home = Home::Device {
            device,
            context: self.context.handle(),
            origin: Origin::Heap,
        };
        let base = self
            .memory
            .allocate(Where::Device(device), bytes, home, State::Live);
        if base.is_none() {
            self.context.heap().give(bytes);
        }
        base
    }

    fn release(&self, address: u64) -> Result<(), Why> {
        let block = self.memory.covering(address, 1)?;
        let ours = matches!(
            &block.home,
            Home::Device { context, origin: Origin::Heap, .. } if *context == self.context.handle()
        );
        if !ours {
            return Err(Why::Foreign);
        }
        if block.base != address {
            return Err(Why::OutOfBounds {
                allocation: block.region(),
            });
        }
        // Two threads may free the same block at once; one of them is told.
        let Some(block) = self.memory.free(address) else {
            return Err(Why::Freed {
                allocation: block.region(),
            });
        };
        self.context.heap().give(block.bytes);
        Ok(())
    }
}
