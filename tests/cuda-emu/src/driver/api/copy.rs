//! Copies of one row.

use crate::driver::call::{Call, calls};
use crate::driver::ffi::{CUdeviceptr, Handle};
use crate::driver::status::{Result, Status};
use crate::driver::transfer::{Claim, End, Extent, Mode, Transfer};

calls! {
    /// From anywhere to anywhere.
    fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, bytes: usize) also cuMemcpy_ptds |call| {
        line(call, (Claim::Any, dst), (Claim::Any, src), bytes, Handle::NULL, Mode::Sync)
    }

    /// The same in a stream.
    fn cuMemcpyAsync(
        dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, stream: Handle
    ) also cuMemcpyAsync_ptsz |call| {
        line(call, (Claim::Any, dst), (Claim::Any, src), bytes, stream, Mode::Async)
    }

    /// From the host to a device.
    fn cuMemcpyHtoD_v2(dst: CUdeviceptr, src: u64, bytes: usize) also cuMemcpyHtoD_v2_ptds |call| {
        line(call, (Claim::Device, dst), (Claim::Host, src), bytes, Handle::NULL, Mode::Sync)
    }

    /// The same in a stream.
    fn cuMemcpyHtoDAsync_v2(
        dst: CUdeviceptr, src: u64, bytes: usize, stream: Handle
    ) also cuMemcpyHtoDAsync_v2_ptsz |call| {
        line(call, (Claim::Device, dst), (Claim::Host, src), bytes, stream, Mode::Async)
    }

    /// From a device to the host.
    fn cuMemcpyDtoH_v2(dst: u64, src: CUdeviceptr, bytes: usize) also cuMemcpyDtoH_v2_ptds |call| {
        line(call, (Claim::Host, dst), (Claim::Device, src), bytes, Handle::NULL, Mode::Sync)
    }

    /// The same in a stream.
    fn cuMemcpyDtoHAsync_v2(
        dst: u64, src: CUdeviceptr, bytes: usize, stream: Handle
    ) also cuMemcpyDtoHAsync_v2_ptsz |call| {
        line(call, (Claim::Host, dst), (Claim::Device, src), bytes, stream, Mode::Async)
    }

    /// From device to device, or within one.
    fn cuMemcpyDtoD_v2(
        dst: CUdeviceptr, src: CUdeviceptr, bytes: usize
    ) also cuMemcpyDtoD_v2_ptds |call| {
        line(call, (Claim::Device, dst), (Claim::Device, src), bytes, Handle::NULL, Mode::Sync)
    }

    /// The same in a stream.
    fn cuMemcpyDtoDAsync_v2(
        dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, stream: Handle
    ) also cuMemcpyDtoDAsync_v2_ptsz |call| {
        line(call, (Claim::Device, dst), (Claim::Device, src), bytes, stream, Mode::Async)
    }

    /// From the memory of a context to that of another, behind all work of both.
    fn cuMemcpyPeer(
        dst: CUdeviceptr, dst_context: Handle, src: CUdeviceptr, src_context: Handle, bytes: usize
    ) also cuMemcpyPeer_ptds |call| {
        call.context()?;
        for (context, address) in [(dst_context, dst), (src_context, src)] {
            check_context(call, context, address)?;
            call.machine()?.contexts.get(context)?.synchronise()?;
        }
        call.context()?.synchronise()?;
        line(call, (Claim::Device, dst), (Claim::Device, src), bytes, Handle::NULL, Mode::Sync)?;
        call.stream(Handle::NULL)?.synchronise()
    }

    /// The same in a stream.
    fn cuMemcpyPeerAsync(
        dst: CUdeviceptr, dst_context: Handle, src: CUdeviceptr, src_context: Handle,
        bytes: usize, stream: Handle
    ) also cuMemcpyPeerAsync_ptsz |call| {
        call.stream(stream)?;
        check_context(call, dst_context, dst)?;
        check_context(call, src_context, src)?;
        line(call, (Claim::Device, dst), (Claim::Device, src), bytes, stream, Mode::Async)
    }
}

/// A copy of one row.
fn line(
    call: Call,
    dst: (Claim, u64),
    src: (Claim, u64),
    bytes: usize,
    stream: Handle,
    mode: Mode,
) -> Result {
    let stream = call.stream(stream)?;
    if bytes == 0 {
        return Ok(());
    }
    let machine = call.machine()?;
    let extent = Extent::line(bytes as u64);
    let end = |(claim, at)| {
        End::find(machine, claim, at, extent, (0, 0)).map_err(|why| call.refused(why))
    };
    let transfer = Transfer {
        call: call.name,
        dst: end(dst)?,
        src: end(src)?,
        extent,
    };
    if transfer.overlaps() {
        let (to, from) = (dst.1, src.1);
        let text = format_args!("{bytes} bytes from {from:#x} to {to:#x} overlap");
        return Err(call.refuse(Status::INVALID_VALUE, text));
    }
    transfer.submit(machine, &stream, mode)
}

/// An address must be in memory of the device of the context that is named with it.
pub(super) fn check_context(call: Call, context: Handle, address: u64) -> Result {
    let machine = call.machine()?;
    let context = machine
        .contexts
        .get(context)
        .map_err(|_| Status::INVALID_CONTEXT)?;
    let block = machine.memory.find(address);
    let device = block.and_then(|block| block.device());
    if device.is_some_and(|device| device != context.device().index()) {
        let text = format_args!("{address:#x} is on another device than its context");
        return Err(call.refuse(Status::INVALID_VALUE, text));
    }
    Ok(())
}
