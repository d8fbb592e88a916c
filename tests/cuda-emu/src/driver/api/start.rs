//! Start, versions, errors, and finding the other functions.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{exact, versions};
use crate::driver::call::calls;
use crate::driver::ffi::{Out, Text, TextRoom};
use crate::driver::journal;
use crate::driver::machine::{self, Machine};
use crate::driver::status::{Result, Status};

/// `cuGetProcAddress` found the symbol.
const FOUND: c_int = 0;
/// There is no such symbol.
const MISSING: c_int = 1;
/// Null handles shall mean the default stream of the thread.
const PER_THREAD: u64 = 2;

calls! {
    /// Switches the emulated machine on, or refuses a plan that cannot be understood.
    fn cuInit(flags: c_uint) |_| {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        Machine::start().map(|_| ())
    }

    /// The CUDA version that is claimed.
    fn cuDriverGetVersion(version: Out<c_int>) |_| {
        let (major, minor) = machine::plan().map_err(|_| Status::INVALID_VALUE)?.driver;
        let number = major * 1000 + minor * 10;
        version.put(c_int::try_from(number).unwrap_or(c_int::MAX))
    }

    /// The name of an error.
    fn cuGetErrorName(error: c_int, text: Out<*const c_char>) |_| {
        put_text(text, Status(error).name())
    }

    /// The words for an error.
    fn cuGetErrorString(error: c_int, text: Out<*const c_char>) |_| {
        put_text(text, Status(error).words())
    }

    /// Tables of private functions, of which there are none. NVRTC 13 asks for one, and needs this
    /// function to be there.
    fn cuGetExportTable(table: Out<*const c_void>, _id: *const c_void) |_| {
        table.put_if_wanted(std::ptr::null());
        Err(Status::INVALID_VALUE)
    }

    /// Finds a function by the name without suffix.
    fn cuGetProcAddress(symbol: Text, address: Out<*const ()>, version: c_int, flags: u64) |_| {
        find(symbol, address, version, flags)
    }

    /// The same, saying why there is none.
    fn cuGetProcAddress_v2(
        symbol: Text,
        address: Out<*const ()>,
        version: c_int,
        flags: u64,
        status: Out<c_int>,
    ) |_| {
        let found = find(symbol, address, version, flags);
        status.put_if_wanted(if found.is_ok() { FOUND } else { MISSING });
        found
    }
}

fn put_text(place: Out<*const c_char>, text: Option<&'static CStr>) -> Result {
    place.put(text.map_or(std::ptr::null(), CStr::as_ptr))?;
    text.map(|_| ()).ok_or(Status::INVALID_VALUE)
}

fn find(symbol: Text, address: Out<*const ()>, version: c_int, flags: u64) -> Result {
    let name = symbol.read()?;
    let newest = versions(&name, version);
    let twin = newest.and_then(|symbol| {
        let twins = [
            format!("{}_ptsz", symbol.name),
            format!("{}_ptds", symbol.name),
        ];
        twins.iter().find_map(|name| exact(name))
    });
    let found = twin.filter(|_| flags & PER_THREAD != 0).or(newest);
    address.put(found.map_or(std::ptr::null(), |symbol| symbol.address))?;
    found.map(|_| ()).ok_or(Status::NOT_FOUND)
}

/// The last fault of a kernel or copy: writes as much of its description as `bytes` bytes hold, and
/// returns the length of all of it; zero when there was none.
///
/// # Safety
/// `room` is null or has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warploomEmuLastFault(room: TextRoom, bytes: usize) -> usize {
    let Some(text) = journal::last_fault() else {
        return 0;
    };
    // Without room, only the length is told.
    let _ = room.put(bytes, &text);
    text.len()
}
