//! All functions, to be found by name.

use std::ffi::c_int;

use super::{
    absent, context, copy, device, event, fill, function, library, memory, module, pointer, pool,
    start, stream, volume,
};
use crate::driver::call::{Symbol, is_called};

/// Every function that is exported, implemented or not.
pub fn symbols() -> impl Iterator<Item = &'static Symbol> {
    let tables = [
        context::SYMBOLS,
        copy::SYMBOLS,
        device::SYMBOLS,
        event::SYMBOLS,
        fill::SYMBOLS,
        function::SYMBOLS,
        library::SYMBOLS,
        memory::SYMBOLS,
        module::SYMBOLS,
        pointer::SYMBOLS,
        pool::SYMBOLS,
        start::SYMBOLS,
        stream::SYMBOLS,
        volume::SYMBOLS,
        absent::SYMBOLS,
    ];
    tables.into_iter().flatten()
}

/// Whether a name, with or without suffixes, means a function.
pub(crate) fn is_known(name: &str) -> bool {
    symbols().any(|symbol| is_called(name, symbol.name))
}

/// The function of exactly this name.
pub(crate) fn exact(name: &str) -> Option<&'static Symbol> {
    symbols().find(|symbol| symbol.name == name)
}

/// From which CUDA version on a name means a later version of its function; what is not listed has
/// been so for as long as drivers are of interest here.
const SINCE: &[(&str, c_int)] = &[
    ("cuCtxCreate_v3", 11_040),
    ("cuCtxCreate_v4", 12_050),
    ("cuCtxGetDevice_v2", 13_000),
    ("cuCtxSynchronize_v2", 13_000),
    ("cuDeviceGetUuid_v2", 11_040),
    ("cuEventElapsedTime_v2", 12_080),
    ("cuGetProcAddress_v2", 12_000),
    ("cuMemAdvise_v2", 13_000),
    ("cuMemPrefetchAsync_v2", 13_000),
    ("cuStreamGetCtx_v2", 12_050),
];

/// The function a program of some CUDA version means by a name.
pub(crate) fn versions(name: &str, version: c_int) -> Option<&'static Symbol> {
    ["_v4", "_v3", "_v2", ""].iter().find_map(|suffix| {
        let full = format!("{name}{suffix}");
        let since = SINCE.iter().find(|(name, _)| *name == full);
        exact(&full).filter(|_| since.is_none_or(|(_, since)| version >= *since))
    })
}
