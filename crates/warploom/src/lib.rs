//! Image-processing pipelines on whatever GPUs are there.
//!
//! This crate is the front door: it links the backends its features name and re-exports the
//! contract, [`warploom_core`], and the catalogue of image operations, [`kernels::op`].
//!
//! | feature | links | needs at run time |
//! | --- | --- | --- |
//! | `cpu` (default) | the processor | nothing |
//! | `cuda` | NVIDIA devices | the NVIDIA driver; NVRTC for kernels in CUDA C |
//! | `opencl` | OpenCL devices of any vendor | an OpenCL loader and driver |
//! | `wgpu` | Vulkan, Metal, DX12 devices | a Vulkan driver on Linux |
//! | `all-backends` | all four | |
//! | `io` | images in files, and pipelines over folders of them | nothing |
//!
//! Every feature builds on a machine without any GPU software: drivers are looked for at run time,
//! and a missing one is reported, never a crash.
//!
//! ```
//! use warploom::{Options, registry};
//!
//! let status = registry().setup(&Options::default())?;
//! for device in &status.survey.devices {
//!     println!("{}: {} through {} backends", device.name, device.label, device.faces.len());
//! }
//! # Ok::<(), warploom::RegistryError>(())
//! ```
//!
//! # Image operations
//! Every operation is described by data, and a call is checked before a pixel is touched:
//! ```
//! use warploom::kernels::ImageType;
//! use warploom::kernels::op::{Given, OpCall};
//! use warploom::DType;
//!
//! let frame = ImageType::plane(DType::U16, 2048, 2048);
//! let blur = OpCall::new("gaussian", &Given::new().with("sigma", [2.0, 2.0]), &[frame])?;
//! assert_eq!(blur.output().to_string(), "2048x2048 f32");
//!
//! let refused = OpCall::new("gausian", &Given::new(), &[frame]).unwrap_err();
//! assert_eq!(
//!     refused.to_string(),
//!     "there is no operation `gausian`; did you mean `gaussian`?"
//! );
//! # Ok::<(), warploom::kernels::op::OpError>(())
//! ```
//! Operations that follow each other are compiled as one, so that they share passes over memory;
//! the program says which do, and can run again and again:
//! ```
//! use warploom::kernels::ImageType;
//! use warploom::kernels::lower::Recipe;
//! use warploom::kernels::op::Given;
//! use warploom::kernels::program::{Loader, Program};
//! use warploom::{DType, Math, Options, registry};
//!
//! let mut recipe = Recipe::new();
//! let frame = recipe.image(ImageType::plane(DType::U16, 64, 48));
//! let blurred = recipe.apply("gaussian", &Given::new().with("sigma", 2.0), &[frame])?;
//! let details = recipe.apply("subtract_images", &Given::new(), &[frame, blurred])?;
//! recipe.give(details);
//!
//! registry().setup(&Options::default())?;
//! let loader = Loader::new(registry().open("cpu:0".parse()?)?, Math::Strict);
//! let program = Program::new(recipe.flow(), loader.device().info());
//! assert_eq!(program.explanation().passes.len(), 1);
//! let loaded = loader.load(program)?;
//! let flat = vec![7; 64 * 48 * 2];
//! let details = loaded.run(loader.device(), &[&flat])?;
//! // A flat image has none, but for the rounding of the weights.
//! for detail in details[0].chunks_exact(4) {
//!     assert!(f32::from_ne_bytes(detail.try_into()?).abs() < 0.01);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Adding a backend
//! A crate that implements [`GpuBackend`] and calls [`register_backend!`] joins every program that
//! depends on it *and names it*: `use my_backend as _;`. A dependency that is only listed in
//! `Cargo.toml` is not linked, and so registers nothing.
//!
//! # `staticlib`
//! A static library linked by a C linker loses these registrations (unless with fat LTO or
//! `--whole-archive`), because nothing refers to them. List the backends by hand instead:
//! `Registry::from_entries([warploom_cpu::ENTRY, my_backend::ENTRY])`.
#![forbid(unsafe_code)]

mod backends;

use std::sync::OnceLock;

pub use warploom_core::*;
#[cfg(feature = "cuda")]
pub use warploom_cuda as cuda;
#[cfg(all(feature = "fleet", target_os = "linux"))]
pub use warploom_fleet as fleet;
#[cfg(feature = "io")]
pub use warploom_io as io;
pub use warploom_kernels as kernels;
pub use warploom_plan as plan;
#[cfg(feature = "io")]
pub use warploom_run as run;
pub use warploom_sched as sched;
pub use warploom_watch as watch;

/// The registry of this program: every backend that is linked in. A convenience for programs;
/// libraries take a `&Registry`.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(Registry::linked)
}
