//! Kernels that must not get through.

use warploom_core::{KernelSource, Language, Param};

use super::{N4, cuda, opencl};
use crate::kernels::Program;

/// What no compiler accepts.
const BROKEN: &Program = &Program {
    name: "broken",
    params: &[Param::Write, N4],
    group: [64, 1, 1],
    element: 4,
    opencl: opencl!("KERNEL void broken(GLOBAL uint* v, uint n) { v[0] = undeclared_thing; }"),
    cuda: cuda!("KERNEL void broken(GLOBAL uint* v, uint n) { v[0] = undeclared_thing; }"),
    wgsl: Some(
        "@group(0) @binding(0) var<storage, read_write> v: array<u32>;
         @compute @workgroup_size(64, 1, 1) fn broken() { v[0] = undeclared_thing; }",
    ),
    host: |_| {},
};

/// A work group larger than any; refused before anyone compiles it.
pub(crate) const HUGE: &Program = &Program {
    name: "huge",
    group: [u32::MAX, 1, 1],
    ..*BROKEN
};

/// More slices than any device binds; refused before anyone compiles it.
pub(crate) const CROWDED: &Program = &Program {
    name: "crowded",
    params: &[Param::Read; 5000],
    ..*BROKEN
};

/// A text that no compiler of `language` accepts.
pub(crate) fn broken(language: Language) -> Option<KernelSource<'static>> {
    // Host code that does not compile does not get here.
    BROKEN
        .source(language)
        .filter(|_| language != Language::Host)
}
