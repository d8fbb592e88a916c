//! The only place that links a backend. Naming the crate is what makes it register: a dependency
//! that no source file mentions is dropped before the linker sees it.

#[cfg(feature = "cpu")]
extern crate warploom_cpu as _;
#[cfg(feature = "cuda")]
extern crate warploom_cuda as _;
#[cfg(feature = "opencl")]
extern crate warploom_opencl as _;
#[cfg(feature = "wgpu")]
extern crate warploom_wgpu as _;
