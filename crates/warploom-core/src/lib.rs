//! The contract between Warploom and whatever runs its pipelines.
//!
//! # Who does what
//! * A [`GpuBackend`] talks to one driver API. It lists devices, opens them, and from then on
//!   [`Device`], [`Queue`], [`Event`], [`Buffer`] and [`Kernel`] do the work.
//! * A [`Registry`] holds the backends that are linked in, loads them, and unites what they report
//!   into a [`Survey`]: every card once, with all the ways to reach it.
//! * A lease is the right to use slots and bytes of a device, agreed between processes.
//!
//! # Who validates
//! [`CheckedDevice`] and [`CheckedQueue`], once. A backend trusts its arguments and reports only
//! what nobody could foresee: out of memory, lost, unsupported, driver failure.
//!
//! # What is asynchronous
//! Calls with plain slices are synchronous: when [`Queue::upload`] returns, the source is free;
//! when [`Queue::download`] returns, the destination is full. Calls with buffers are asynchronous,
//! and the backend keeps every handle alive until the work is done. So no lifetime ever crosses
//! into a driver.
//!
//! # What is sound
//! Nothing in the traits is `unsafe`. Foreign code enters through [`KernelSource::vouch`], where
//! whoever wrote it vouches for it once. Accesses that no event orders may see stale bytes, never
//! undefined behaviour.
#![deny(unsafe_code)]

mod account;
mod backend;
mod buffer;
mod bytes;
mod checked;
mod code_cache;
mod device;
mod dtype;
mod error;
mod event;
pub mod host;
mod kernel;
mod lease;
pub mod memory;
mod name;
mod physical;
mod queue;
mod registry;
mod shape;
mod survey;

#[doc(hidden)]
pub use inventory;

pub use account::{Account, Booking};
pub use backend::{BackendId, GpuBackend};
pub use buffer::{Buffer, Slice};
pub use bytes::{Bytes, BytesError};
pub use checked::{CheckedDevice, CheckedQueue};
pub use code_cache::{CodeCache, CodeKey};
pub use device::{Caps, Device, DeviceId, DeviceIdError, DeviceInfo, DeviceKind, Limits};
pub use dtype::{DType, DTypeError, Element};
pub use error::{Code, Coded, DeviceError, Result, UsageError};
pub use event::Event;
pub use host::{HostArg, HostCall, HostFn};
pub use kernel::{Kernel, KernelCode, KernelSource, Language, Math, Param};
pub use lease::{
    CancelToken, DeskDevice, DeviceLeases, Holder, Lease, LeaseCapacity, LeaseDesk, LeaseError,
    LeaseRequest, default_ledger_dir, shared_folder,
};
pub use memory::{MemoryKind, MemoryType, MemoryUse, Space};
pub use name::{MAX_NAME, Name, NameError, nearest};
pub use physical::{IdentityError, Luid, PciAddress, PhysicalKey, Uuid};
pub use queue::{Arg, Grid, Queue, QueueClass, QueueDesc};
pub use registry::{
    BackendEntry, Bindings, Capacity, CapacityPolicy, LeaseScope, Load, LoadError, MemoryNeed,
    Options, Placement, Registry, RegistryError, Status,
};
pub use shape::{Axis, MAX_RANK, Shape, ShapeError};
pub use survey::{BackendReport, BackendState, PhysicalDevice, Survey};
