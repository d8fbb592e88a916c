//! The types that cross the C boundary.
//!
//! Pointers arrive in wrappers that can do one thing each: be written once, be read, be a text. A
//! wrapper is made by the C caller, who vouches for what it points to, as the driver's manual asks
//! of each call; the one thing every wrapper checks is null. So the calls themselves need no unsafe
//! code, and the argument is made here, once.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::status::{Result, Status};

/// A device, by its ordinal.
pub type CUdevice = c_int;

/// An address in device memory.
pub type CUdeviceptr = u64;

/// An object of the driver: context, stream, event, module, function or pool. The number is not an
/// address, and is never used again for another object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Handle(pub usize);

impl Handle {
    /// No object.
    pub const NULL: Self = Self(0);
}

/// Where an answer goes.
#[derive(Debug)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// The place behind a pointer: null, or valid for a write.
    pub const fn new(place: *mut T) -> Self {
        Self(place)
    }

    /// Nowhere.
    pub const fn null() -> Self {
        Self(std::ptr::null_mut())
    }

    /// Writes the answer, which the caller insists on.
    pub(crate) fn put(self, value: T) -> Result {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: it is not null, and whoever called the driver vouches that a pointer for an answer
        // is valid for writing one (see the module).
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the answer if the caller wants it.
    pub(crate) fn put_if_wanted(self, value: T) {
        let _ = self.put(value);
    }

    /// Refuses null before the work is done.
    pub(crate) fn wanted(self) -> Result {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
}

impl<T> From<&mut T> for Out<T> {
    fn from(place: &mut T) -> Self {
        Self(place)
    }
}

/// Something to be read: a value, or the first of several.
#[derive(Debug)]
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// The value behind a pointer: null, or valid for reads.
    pub const fn new(place: *const T) -> Self {
        Self(place)
    }

    /// Nothing.
    pub const fn null() -> Self {
        Self(std::ptr::null())
    }

    /// Whether there is none.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The value, which the caller must give.
    pub(crate) fn read(self) -> Result<T> {
        self.at(0)
    }

    /// Value number `index`, which the caller must give.
    pub(crate) fn at(self, index: usize) -> Result<T> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let place = self.0.wrapping_add(index);
        // SAFETY: it is not null, and whoever called the driver vouches that there are as many
        // values as the manual says (see the module); their alignment is not relied upon.
        Ok(unsafe { place.read_unaligned() })
    }
}

impl<T> From<&T> for In<T> {
    fn from(place: &T) -> Self {
        Self(place)
    }
}

/// A text that ends in a zero byte.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The text.
    pub const fn new(text: &CStr) -> Self {
        Self(text.as_ptr())
    }

    /// The text that begins with some byte.
    pub(crate) const fn at(first: In<u8>) -> Self {
        Self(first.0.cast())
    }

    /// It, unless it is missing or no UTF-8.
    pub(crate) fn read(self) -> Result<String> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: it is not null, and the caller vouches that it ends in a zero byte.
        let text = unsafe { CStr::from_ptr(self.0) };
        let text = text.to_str().map_err(|_| Status::INVALID_VALUE)?;
        Ok(text.to_owned())
    }
}

/// Room for a text.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct TextRoom(*mut c_char);

impl TextRoom {
    /// The room at a place.
    pub const fn new(place: *mut c_char) -> Self {
        Self(place)
    }

    /// Writes as much of `text` as `room` bytes hold with the zero byte behind it; returns how many
    /// bytes were written, the zero included.
    pub(crate) fn put(self, room: usize, text: &str) -> Result<usize> {
        if self.0.is_null() || room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let length = text.len().min(room - 1);
        let place = self.0.cast::<u8>();
        // SAFETY: `length` is below the room the caller vouches for, and the texts are apart: one
        // is ours.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), place, length) };
        let end = place.wrapping_add(length);
        // SAFETY: as above; `length` is at most `room - 1`.
        unsafe { end.write(0) };
        Ok(length + 1)
    }
}

/// `CUuuid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct CUuuid {
    /// In the order they are written.
    pub bytes: [u8; 16],
}

/// `CUDA_MEMCPY2D`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields are the driver manual's")]
pub struct Memcpy2D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: c_uint,
    pub src_host: u64,
    pub src_device: u64,
    pub src_array: usize,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: c_uint,
    pub dst_host: u64,
    pub dst_device: u64,
    pub dst_array: usize,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, in which the contexts take the place of what the
/// former reserves.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields are the driver manual's")]
pub struct Memcpy3D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: c_uint,
    pub src_host: u64,
    pub src_device: u64,
    pub src_array: usize,
    pub src_context: Handle,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: c_uint,
    pub dst_host: u64,
    pub dst_device: u64,
    pub dst_array: usize,
    pub dst_context: Handle,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `CUmemLocation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MemLocation {
    /// One is a device.
    pub kind: c_uint,
    /// Which.
    pub id: c_int,
}

/// `CUmemAccessDesc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MemAccess {
    /// Who.
    pub location: MemLocation,
    /// May do what: 0 nothing, 1 read, 3 read and write.
    pub flags: c_uint,
}

/// `CUmemPoolProps`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MemPoolProps {
    /// One is pinned memory, the only sort there is.
    pub kind: c_uint,
    /// How it can be shared with other processes.
    pub handle_types: c_uint,
    /// Where it is.
    pub location: MemLocation,
    /// Of another system.
    pub security: *mut c_void,
    /// Most bytes of the pool, zero for no limit.
    pub max_size: usize,
    /// Zero.
    pub reserved: [u8; 56],
}

/// `CUlaunchConfig`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: [c_uint; 3],
    /// Threads.
    pub block: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub shared: c_uint,
    /// Where.
    pub stream: Handle,
    /// How.
    pub attributes: In<LaunchAttribute>,
    /// How many of them.
    pub attribute_count: c_uint,
}

/// `CUlaunchAttribute`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LaunchAttribute {
    /// Which.
    pub id: c_uint,
    pad: [u8; 4],
    value: [u64; 8],
}

/// A function of the host, to be called in the order of a stream.
pub type HostFn = unsafe extern "C" fn(*mut c_void);

/// A function of the host that is told how the stream fares.
pub type StreamCallback = unsafe extern "C" fn(Handle, c_int, *mut c_void);
