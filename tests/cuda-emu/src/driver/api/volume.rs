//! Copies of rows and slices.

use crate::driver::attributes::MAX_PITCH;
use crate::driver::call::{Call, calls};
use crate::driver::ffi::{Handle, In, Memcpy2D, Memcpy3D};
use crate::driver::status::{Result, Status};
use crate::driver::transfer::{Claim, End, Extent, Mode, Transfer};

calls! {
    /// A rectangle.
    fn cuMemcpy2D_v2(copy: In<Memcpy2D>) also cuMemcpy2D_v2_ptds |call| {
        let copy = flat(call, copy.read()?, Some(MAX_PITCH))?;
        copy.submit(call, Handle::NULL, Mode::Sync)
    }

    /// A rectangle with rows of any length.
    fn cuMemcpy2DUnaligned_v2(copy: In<Memcpy2D>) also cuMemcpy2DUnaligned_v2_ptds |call| {
        let copy = flat(call, copy.read()?, None)?;
        copy.submit(call, Handle::NULL, Mode::Sync)
    }

    /// A rectangle in a stream.
    fn cuMemcpy2DAsync_v2(copy: In<Memcpy2D>, stream: Handle) also cuMemcpy2DAsync_v2_ptsz |call| {
        let copy = flat(call, copy.read()?, Some(MAX_PITCH))?;
        copy.submit(call, stream, Mode::Async)
    }

    /// A cuboid.
    fn cuMemcpy3D_v2(copy: In<Memcpy3D>) also cuMemcpy3D_v2_ptds |call| {
        let copy = solid(call, &copy.read()?)?;
        copy.submit(call, Handle::NULL, Mode::Sync)
    }

    /// A cuboid in a stream.
    fn cuMemcpy3DAsync_v2(copy: In<Memcpy3D>, stream: Handle) also cuMemcpy3DAsync_v2_ptsz |call| {
        let copy = solid(call, &copy.read()?)?;
        copy.submit(call, stream, Mode::Async)
    }

    /// A cuboid between contexts.
    fn cuMemcpy3DPeer(copy: In<Memcpy3D>) also cuMemcpy3DPeer_ptds |call| {
        let description = copy.read()?;
        check_contexts(call, &description)?;
        solid(call, &description)?.submit(call, Handle::NULL, Mode::Sync)
    }

    /// A cuboid between contexts, in a stream.
    fn cuMemcpy3DPeerAsync(copy: In<Memcpy3D>, stream: Handle) also cuMemcpy3DPeerAsync_ptsz |call| {
        let description = copy.read()?;
        check_contexts(call, &description)?;
        solid(call, &description)?.submit(call, stream, Mode::Async)
    }
}

/// One end as it is described: the place of the first byte, and the steps.
#[derive(Debug, Clone, Copy)]
struct Side {
    claim: Claim,
    at: u64,
    pitch: u64,
    slice: u64,
}

/// A description that was understood, not yet checked against memory.
#[derive(Debug, Clone, Copy)]
struct Copy {
    dst: Side,
    src: Side,
    extent: Extent,
}

impl Copy {
    fn submit(self, call: Call, stream: Handle, mode: Mode) -> Result {
        let stream = call.stream(stream)?;
        if self.extent.is_empty() {
            return Ok(());
        }
        let machine = call.machine()?;
        let end = |side: Side| {
            let steps = (side.pitch, side.slice);
            End::find(machine, side.claim, side.at, self.extent, steps)
                .map_err(|why| call.refused(why))
        };
        let transfer = Transfer {
            call: call.name,
            dst: end(self.dst)?,
            src: end(self.src)?,
            extent: self.extent,
        };
        transfer.submit(machine, &stream, mode)
    }
}

/// Fields of one end in both structures.
struct Described {
    sort: u32,
    host: u64,
    device: u64,
    offset: [usize; 3],
    pitch: usize,
    height: usize,
}

fn side(call: Call, end: &Described, extent: Extent, longest: Option<u64>) -> Result<Side> {
    let (claim, base) = match end.sort {
        1 => (Claim::Host, end.host),
        2 => (Claim::Device, end.device),
        4 => (Claim::Any, end.device),
        3 => {
            let text = format_args!("arrays are not emulated");
            return Err(call.refuse(Status::NOT_SUPPORTED, text));
        }
        sort => {
            let text = format_args!("there is no memory type {sort}");
            return Err(call.refuse(Status::INVALID_VALUE, text));
        }
    };
    let [x, y, z] = end.offset.map(|offset| offset as u64);
    let row = x + extent.width;
    // Zero is allowed where there is one row only.
    let pitch = match end.pitch as u64 {
        0 if extent.height <= 1 && extent.depth <= 1 => row,
        pitch => pitch,
    };
    if pitch < row || longest.is_some_and(|longest| pitch > longest) {
        let text = format_args!("rows of {row} bytes {pitch} bytes apart");
        return Err(call.refuse(Status::INVALID_VALUE, text));
    }
    let height = match end.height as u64 {
        0 if extent.depth <= 1 => y + extent.height,
        height => height,
    };
    if height < y + extent.height {
        let rows = y + extent.height;
        let text = format_args!("slices of {rows} rows {height} rows apart");
        return Err(call.refuse(Status::INVALID_VALUE, text));
    }
    let slice = pitch.checked_mul(height).ok_or(Status::INVALID_VALUE)?;
    let offset = z.checked_mul(slice).zip(y.checked_mul(pitch));
    let at = offset
        .and_then(|(slices, rows)| base.checked_add(slices)?.checked_add(rows)?.checked_add(x))
        .ok_or(Status::INVALID_VALUE)?;
    Ok(Side {
        claim,
        at,
        pitch,
        slice,
    })
}

fn flat(call: Call, copy: Memcpy2D, longest: Option<u64>) -> Result<Copy> {
    let extent = Extent {
        width: copy.width as u64,
        height: copy.height as u64,
        depth: 1,
    };
    let src = Described {
        sort: copy.src_type,
        host: copy.src_host,
        device: copy.src_device,
        offset: [copy.src_x, copy.src_y, 0],
        pitch: copy.src_pitch,
        height: 0,
    };
    let dst = Described {
        sort: copy.dst_type,
        host: copy.dst_host,
        device: copy.dst_device,
        offset: [copy.dst_x, copy.dst_y, 0],
        pitch: copy.dst_pitch,
        height: 0,
    };
    Ok(Copy {
        dst: side(call, &dst, extent, longest)?,
        src: side(call, &src, extent, longest)?,
        extent,
    })
}

fn solid(call: Call, copy: &Memcpy3D) -> Result<Copy> {
    if copy.src_lod != 0 || copy.dst_lod != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let extent = Extent {
        width: copy.width as u64,
        height: copy.height as u64,
        depth: copy.depth as u64,
    };
    let src = Described {
        sort: copy.src_type,
        host: copy.src_host,
        device: copy.src_device,
        offset: [copy.src_x, copy.src_y, copy.src_z],
        pitch: copy.src_pitch,
        height: copy.src_height,
    };
    let dst = Described {
        sort: copy.dst_type,
        host: copy.dst_host,
        device: copy.dst_device,
        offset: [copy.dst_x, copy.dst_y, copy.dst_z],
        pitch: copy.dst_pitch,
        height: copy.dst_height,
    };
    Ok(Copy {
        dst: side(call, &dst, extent, Some(MAX_PITCH))?,
        src: side(call, &src, extent, Some(MAX_PITCH))?,
        extent,
    })
}

fn check_contexts(call: Call, copy: &Memcpy3D) -> Result {
    // Host memory belongs to no context.
    if copy.src_type != 1 {
        super::copy::check_context(call, copy.src_context, copy.src_device)?;
    }
    if copy.dst_type != 1 {
        super::copy::check_context(call, copy.dst_context, copy.dst_device)?;
    }
    Ok(())
}
