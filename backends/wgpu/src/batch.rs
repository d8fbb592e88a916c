//! Commands that are recorded and not yet submitted.

use std::collections::HashSet;
use std::sync::Arc;

use crate::buffer::Memory;
use crate::chunk::Chunk;
use crate::gate::Cargo;
use crate::program::Program;
use crate::stamp::Stamp;

/// A command list, and what must live until it is done.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    // Launches in a row share a pass; wgpu puts barriers between them. It ends before anything
    // else is recorded, and before the encoder does.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    commands: u32,
    seen: HashSet<u64>,
    cargo: Cargo,
    pinned: Vec<Arc<Memory>>,
}

/// A batch that takes no more commands.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) commands: Option<wgpu::CommandBuffer>,
    pub(crate) cargo: Cargo,
    pub(crate) pinned: Vec<Arc<Memory>>,
}

impl Batch {
    /// A batch of one command.
    pub(crate) fn clearing(device: &wgpu::Device, buffer: &wgpu::Buffer) -> Self {
        let mut batch = Self::default();
        batch.encoder(device).clear_buffer(buffer, 0, None);
        batch
    }

    pub(crate) fn commands(&self) -> u32 {
        self.commands
    }

    pub(crate) fn pinned(&self) -> impl Iterator<Item = u64> {
        self.pinned.iter().map(|memory| memory.id)
    }

    /// Keeps `memory` until the batch is done; is it pinned memory that the batch did not know?
    pub(crate) fn keep(&mut self, memory: &Arc<Memory>) -> bool {
        if !self.seen.insert(memory.id) {
            return false;
        }
        self.cargo.charges.push(Arc::clone(&memory.charge));
        if memory.is_pinned() {
            self.pinned.push(Arc::clone(memory));
        }
        memory.is_pinned()
    }

    /// Keeps staging until the batch is done.
    pub(crate) fn keep_chunk(&mut self, chunk: &Arc<Chunk>) {
        if self.seen.insert(chunk.id) {
            self.cargo.chunks.push(Arc::clone(chunk));
        }
    }

    /// For a command that is not a launch.
    pub(crate) fn encoder(&mut self, device: &wgpu::Device) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.commands += 1;
        Self::begun(&mut self.encoder, device)
    }

    fn begun<'a>(
        encoder: &'a mut Option<wgpu::CommandEncoder>,
        device: &wgpu::Device,
    ) -> &'a mut wgpu::CommandEncoder {
        encoder.get_or_insert_with(|| {
            device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
        })
    }

    /// `offset` is where the program's scalars are in the feed.
    pub(crate) fn launch(
        &mut self,
        device: &wgpu::Device,
        program: &Program,
        group: &wgpu::BindGroup,
        offset: Option<u32>,
        groups: [u32; 3],
    ) {
        self.commands += 1;
        let pass = self.pass.get_or_insert_with(|| {
            Self::begun(&mut self.encoder, device)
                .begin_compute_pass(&wgpu::ComputePassDescriptor::default())
                .forget_lifetime()
        });
        pass.set_pipeline(&program.pipeline);
        pass.set_bind_group(0, group, offset.as_slice());
        pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
    }

    /// Takes the device's time at the end of the batch.
    pub(crate) fn stamp(&mut self, device: &wgpu::Device, stamp: &Arc<Stamp>) {
        stamp.record(self.encoder(device));
        self.cargo.stamps.push(Arc::clone(stamp));
    }

    pub(crate) fn seal(mut self) -> Sealed {
        self.pass = None;
        Sealed {
            commands: self.encoder.take().map(wgpu::CommandEncoder::finish),
            cargo: self.cargo,
            pinned: self.pinned,
        }
    }
}
