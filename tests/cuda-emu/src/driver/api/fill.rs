//! Filling memory with a value.

use crate::driver::call::{Call, calls};
use crate::driver::ffi::{CUdeviceptr, Handle};
use crate::driver::status::{Result, Status};
use crate::driver::transfer::{Claim, End, Extent, Fill, Mode};

calls! {
    /// Bytes.
    fn cuMemsetD8_v2(dst: CUdeviceptr, value: u8, count: usize) also cuMemsetD8_v2_ptds |call| {
        fill(call, &Value::byte(value), dst, Shape::line(count), None)
    }

    /// Pairs of bytes.
    fn cuMemsetD16_v2(dst: CUdeviceptr, value: u16, count: usize) also cuMemsetD16_v2_ptds |call| {
        fill(call, &Value::pair(value), dst, Shape::line(count), None)
    }

    /// Words.
    fn cuMemsetD32_v2(dst: CUdeviceptr, value: u32, count: usize) also cuMemsetD32_v2_ptds |call| {
        fill(call, &Value::word(value), dst, Shape::line(count), None)
    }

    /// Bytes, in a stream.
    fn cuMemsetD8Async(
        dst: CUdeviceptr, value: u8, count: usize, stream: Handle
    ) also cuMemsetD8Async_ptsz |call| {
        fill(call, &Value::byte(value), dst, Shape::line(count), Some(stream))
    }

    /// Pairs of bytes, in a stream.
    fn cuMemsetD16Async(
        dst: CUdeviceptr, value: u16, count: usize, stream: Handle
    ) also cuMemsetD16Async_ptsz |call| {
        fill(call, &Value::pair(value), dst, Shape::line(count), Some(stream))
    }

    /// Words, in a stream.
    fn cuMemsetD32Async(
        dst: CUdeviceptr, value: u32, count: usize, stream: Handle
    ) also cuMemsetD32Async_ptsz |call| {
        fill(call, &Value::word(value), dst, Shape::line(count), Some(stream))
    }

    /// A rectangle of bytes.
    fn cuMemsetD2D8_v2(
        dst: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize
    ) also cuMemsetD2D8_v2_ptds |call| {
        fill(call, &Value::byte(value), dst, Shape { pitch, width, height }, None)
    }

    /// A rectangle of pairs of bytes.
    fn cuMemsetD2D16_v2(
        dst: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize
    ) also cuMemsetD2D16_v2_ptds |call| {
        fill(call, &Value::pair(value), dst, Shape { pitch, width, height }, None)
    }

    /// A rectangle of words.
    fn cuMemsetD2D32_v2(
        dst: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize
    ) also cuMemsetD2D32_v2_ptds |call| {
        fill(call, &Value::word(value), dst, Shape { pitch, width, height }, None)
    }

    /// A rectangle of bytes, in a stream.
    fn cuMemsetD2D8Async(
        dst: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: Handle
    ) also cuMemsetD2D8Async_ptsz |call| {
        fill(call, &Value::byte(value), dst, Shape { pitch, width, height }, Some(stream))
    }

    /// A rectangle of pairs of bytes, in a stream.
    fn cuMemsetD2D16Async(
        dst: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize, stream: Handle
    ) also cuMemsetD2D16Async_ptsz |call| {
        fill(call, &Value::pair(value), dst, Shape { pitch, width, height }, Some(stream))
    }

    /// A rectangle of words, in a stream.
    fn cuMemsetD2D32Async(
        dst: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize, stream: Handle
    ) also cuMemsetD2D32Async_ptsz |call| {
        fill(call, &Value::word(value), dst, Shape { pitch, width, height }, Some(stream))
    }
}

/// What is written.
struct Value {
    pattern: [u8; 4],
    bytes: u64,
}

impl Value {
    fn byte(value: u8) -> Self {
        Self {
            pattern: [value; 4],
            bytes: 1,
        }
    }

    fn pair(value: u16) -> Self {
        let [a, b] = value.to_le_bytes();
        Self {
            pattern: [a, b, a, b],
            bytes: 2,
        }
    }

    fn word(value: u32) -> Self {
        Self {
            pattern: value.to_le_bytes(),
            bytes: 4,
        }
    }
}

/// Where it is written: rows of `width` values that begin `pitch` bytes apart.
#[derive(Clone, Copy)]
struct Shape {
    pitch: usize,
    width: usize,
    height: usize,
}

impl Shape {
    fn line(width: usize) -> Self {
        Self {
            pitch: 0,
            width,
            height: 1,
        }
    }
}

fn fill(call: Call, value: &Value, at: u64, shape: Shape, stream: Option<Handle>) -> Result {
    let mode = stream.map_or(Mode::Sync, |_| Mode::Async);
    let stream = call.stream(stream.unwrap_or(Handle::NULL))?;
    let width = (shape.width as u64).checked_mul(value.bytes);
    let extent = Extent {
        width: width.ok_or(Status::INVALID_VALUE)?,
        height: shape.height as u64,
        depth: 1,
    };
    let pitch = shape.pitch as u64;
    if extent.height > 1 && pitch < extent.width {
        let text = format_args!("rows of {} bytes {pitch} bytes apart", extent.width);
        return Err(call.refuse(Status::INVALID_VALUE, text));
    }
    if !at.is_multiple_of(value.bytes) || !pitch.is_multiple_of(value.bytes) {
        let text = format_args!("{at:#x} or {pitch} is no multiple of {}", value.bytes);
        return Err(call.refuse(Status::INVALID_VALUE, text));
    }
    if extent.is_empty() {
        return Ok(());
    }
    let machine = call.machine()?;
    let dst = End::find(machine, Claim::Device, at, extent, (pitch, 0));
    let fill = Fill {
        call: call.name,
        dst: dst.map_err(|why| call.refused(why))?,
        pattern: value.pattern,
        extent,
    };
    fill.submit(machine, &stream, mode)
}
