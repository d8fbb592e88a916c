//! What can go wrong below the registry: on a device, or in how a device was used.
//!
//! Messages are one clause: what was asked, of whom, with the numbers. What to do about it is
//! [`Coded::help`]; the code is stable.

use std::fmt;
use std::time::Duration;

use crate::backend::BackendId;
use crate::bytes::Bytes;
use crate::device::DeviceId;
use crate::dtype::DType;
use crate::kernel::{Language, Param};
use crate::memory::MemoryKind;

/// What device calls return.
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// A stable error code, printed as `WL0401`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WL{:04}", self.0)
    }
}

/// An error with a stable code and a way out.
pub trait Coded: std::error::Error {
    /// The stable code.
    fn code(&self) -> Code;

    /// What to do about it, if there is anything to do.
    fn help(&self) -> Option<String>;
}

/// What a backend reports: only what its caller could not foresee.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device has no room. (WL0401)
    #[error("{device} has no room for {} {kind}{}", room_text(*asked), free_text(*free))]
    OutOfMemory {
        /// Who was asked.
        device: DeviceId,
        /// For what.
        kind: MemoryKind,
        /// How much, in bytes; 0 when the driver ran out on its own account.
        asked: u64,
        /// What the driver called free at that moment.
        free: Option<u64>,
    },
    /// The device is gone and stays gone for this process. (WL0402)
    #[error("{device} was lost in {call}: {message}")]
    Lost {
        /// Which device.
        device: DeviceId,
        /// The driver call that told.
        call: String,
        /// What it told.
        message: String,
    },
    /// The device cannot do this. (WL0403)
    #[error("{device} does not support {what}")]
    Unsupported {
        /// Which device.
        device: DeviceId,
        /// What was asked for.
        what: String,
    },
    /// The driver answered with an error that is none of the others. (WL0404)
    #[error("{call} failed on {device}: {message}")]
    Driver {
        /// Which device.
        device: DeviceId,
        /// The driver call.
        call: String,
        /// The driver's code and text.
        message: String,
    },
    /// A kernel did not compile. (WL0405)
    #[error("kernel `{kernel}` did not compile on {device}\n{log}")]
    Build {
        /// Which device.
        device: DeviceId,
        /// Which kernel.
        kernel: String,
        /// The compiler's words.
        log: String,
    },
    /// A wait was given up. (WL0406)
    #[error("{device} did not reach the event within {waited:?}")]
    Timeout {
        /// Which device.
        device: DeviceId,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A driver could not even be asked for its devices. (WL0407)
    #[error("{backend} cannot list its devices: {call}: {message}")]
    Probe {
        /// Which backend.
        backend: BackendId,
        /// The driver call.
        call: String,
        /// The driver's code and text.
        message: String,
    },
    /// The call was wrong, and the backend never saw it.
    #[error(transparent)]
    Usage(#[from] UsageError),
}

fn room_text(asked: u64) -> String {
    match asked {
        0 => "more".into(),
        bytes => format!("{} of", Bytes(bytes)),
    }
}

fn free_text(free: Option<u64>) -> String {
    free.map(|free| format!(", {} free", Bytes(free)))
        .unwrap_or_default()
}

impl DeviceError {
    /// `device` cannot do `what`.
    pub fn unsupported(device: DeviceId, what: impl Into<String>) -> Self {
        Self::Unsupported {
            device,
            what: what.into(),
        }
    }

    /// A driver call failed.
    pub fn driver(device: DeviceId, call: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Driver {
            device,
            call: call.into(),
            message: message.to_string(),
        }
    }

    /// The device is gone.
    pub fn lost(device: DeviceId, call: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Lost {
            device,
            call: call.into(),
            message: message.to_string(),
        }
    }

    /// Listing devices failed.
    pub fn probe(backend: BackendId, call: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Probe {
            backend,
            call: call.into(),
            message: message.to_string(),
        }
    }
}

impl Coded for DeviceError {
    fn code(&self) -> Code {
        match self {
            Self::OutOfMemory { .. } => Code(401),
            Self::Lost { .. } => Code(402),
            Self::Unsupported { .. } => Code(403),
            Self::Driver { .. } => Code(404),
            Self::Build { .. } => Code(405),
            Self::Timeout { .. } => Code(406),
            Self::Probe { .. } => Code(407),
            Self::Usage(error) => error.code(),
        }
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::OutOfMemory { device, .. } => format!(
                "take a lease before allocating, so that {device} is never promised twice; or ask for less"
            ),
            Self::Lost { .. } => {
                "reset or restart the device; work on it must run elsewhere or again".into()
            }
            Self::Unsupported { .. } => {
                "`warploom detect --json` lists what each device can do".into()
            }
            Self::Driver { call, .. } => format!(
                "the device goes on after some of these and not after others; if `{call}` keeps \
                 failing, check the driver with `warploom detect`"
            ),
            Self::Probe { .. } => {
                "check the driver installation; `warploom detect` shows what each backend says"
                    .into()
            }
            Self::Build { .. } => {
                "the log says where; correct the kernel, or give this device one in another language"
                    .into()
            }
            Self::Timeout { .. } => {
                "the work goes on and the event stays usable; wait longer or give the device up"
                    .into()
            }
            Self::Usage(error) => return error.help(),
        };
        Some(text)
    }
}

/// A call that could never have worked, refused before a backend saw it. These are bugs of the
/// caller, found early; a compiled plan never meets one.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// A range that is empty, reversed or too long. (WL0501)
    #[error("bytes {start}..{end} are not a part of a buffer of {bytes} bytes on {device}")]
    Range {
        /// Whose buffer.
        device: DeviceId,
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
        /// What the buffer has.
        bytes: u64,
    },
    /// Two lengths that must be equal are not. (WL0502)
    #[error("{call} on {device} got {given} bytes for a slice of {slice} bytes")]
    Length {
        /// The call.
        call: &'static str,
        /// Of whom.
        device: DeviceId,
        /// Bytes on the other side.
        given: u64,
        /// Bytes of the slice.
        slice: u64,
    },
    /// A buffer, kernel or event of another device. (WL0503)
    #[error("{call} on {device} got a {thing} of {owner}")]
    Foreign {
        /// The call.
        call: &'static str,
        /// Of whom.
        device: DeviceId,
        /// What was foreign.
        thing: &'static str,
        /// Whose it is.
        owner: DeviceId,
    },
    /// A copy onto itself. (WL0504)
    #[error("copy on {device} got overlapping slices {src:?} and {dst:?} of one buffer")]
    Overlap {
        /// Of whom.
        device: DeviceId,
        /// Source bytes.
        src: std::ops::Range<u64>,
        /// Destination bytes.
        dst: std::ops::Range<u64>,
    },
    /// A wrong number of kernel arguments. (WL0505)
    #[error("kernel `{kernel}` takes {wanted} arguments, not {given}")]
    ArgCount {
        /// Which kernel.
        kernel: String,
        /// What it takes.
        wanted: usize,
        /// What it got.
        given: usize,
    },
    /// A kernel argument of the wrong sort. (WL0506)
    #[error("argument {index} of kernel `{kernel}` is {}, not {given}", param_text(*wanted))]
    ArgType {
        /// Which kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// What it takes.
        wanted: Param,
        /// What it got.
        given: String,
    },
    /// A slice that starts where kernels of this device cannot. (WL0507)
    #[error(
        "argument {index} of kernel `{kernel}` starts at byte {start}, but {device} needs multiples of {align}"
    )]
    ArgAlign {
        /// Which kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// Where it starts.
        start: u64,
        /// What the device needs.
        align: u32,
        /// Which device.
        device: DeviceId,
    },
    /// A slice longer than kernels of this device can span. (WL0508)
    #[error(
        "argument {index} of kernel `{kernel}` spans {}, but {device} binds at most {}",
        Bytes(*bytes),
        Bytes(*limit)
    )]
    ArgSize {
        /// Which kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// Its length.
        bytes: u64,
        /// What the device takes.
        limit: u64,
        /// Which device.
        device: DeviceId,
    },
    /// A slice the kernel writes overlaps another argument. (WL0509)
    #[error("argument {written} of kernel `{kernel}` is written but overlaps argument {other}")]
    ArgAlias {
        /// Which kernel.
        kernel: String,
        /// The written argument.
        written: usize,
        /// The other one.
        other: usize,
    },
    /// Memory that kernels cannot see. (WL0510)
    #[error(
        "argument {index} of kernel `{kernel}` is {kind}, which kernels of {device} cannot see"
    )]
    ArgMemory {
        /// Which kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// What it got.
        kind: MemoryKind,
        /// Which device.
        device: DeviceId,
    },
    /// A launch with no groups, or more than the device takes. (WL0511)
    #[error("kernel `{kernel}` was launched with {groups:?} groups; {device} takes 1 to {limit:?}")]
    Grid {
        /// Which kernel.
        kernel: String,
        /// What was asked.
        groups: [u32; 3],
        /// What the device takes.
        limit: [u32; 3],
        /// Which device.
        device: DeviceId,
    },
    /// A work group that the device cannot hold. (WL0512)
    #[error(
        "kernel `{kernel}` has work groups of {group:?} items; {device} takes {limit:?} and {items} in all"
    )]
    Group {
        /// Which kernel.
        kernel: String,
        /// Its group.
        group: [u32; 3],
        /// What the device takes per dimension.
        limit: [u32; 3],
        /// What the device takes in all.
        items: u32,
        /// Which device.
        device: DeviceId,
    },
    /// A kernel in a language the device does not take. (WL0513)
    #[error("kernel `{kernel}` is {language}; {device} takes {}", list(takes))]
    Language {
        /// Which kernel.
        kernel: String,
        /// What it is written in.
        language: Language,
        /// What the device takes.
        takes: Vec<Language>,
        /// Which device.
        device: DeviceId,
    },
    /// More slices than one launch takes. (WL0514)
    #[error("kernel `{kernel}` has {slices} slices; {device} binds at most {limit}")]
    Slices {
        /// Which kernel.
        kernel: String,
        /// What it has.
        slices: usize,
        /// What the device takes.
        limit: u32,
        /// Which device.
        device: DeviceId,
    },
    /// A count that some slice of the launch does not cover. (WL0517)
    #[error(
        "argument {index} of kernel `{kernel}` counts {count} elements, but the shortest slice holds {holds}"
    )]
    ArgCounted {
        /// Which kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// What it says.
        count: u64,
        /// What is there.
        holds: u64,
    },
    /// A number of a type that no argument has. (WL0518)
    #[error(
        "kernel `{kernel}` has a parameter of type {dtype}; numbers are passed as u32, i32, f32 or f64"
    )]
    Scalar {
        /// Which kernel.
        kernel: String,
        /// What it asks for.
        dtype: DType,
    },
    /// Memory of a kind the device does not have. (WL0515)
    #[error("{device} has no {kind} memory; it has {}", list(has))]
    Kind {
        /// Which device.
        device: DeviceId,
        /// What was asked.
        kind: MemoryKind,
        /// What it has.
        has: Vec<MemoryKind>,
    },
    /// An allocation of nothing, or of more than one allocation can be. (WL0516)
    #[error(
        "{device} was asked for {bytes} bytes of {kind} in one allocation; it gives 1 to {limit}"
    )]
    Size {
        /// Which device.
        device: DeviceId,
        /// What was asked.
        kind: MemoryKind,
        /// How much.
        bytes: u64,
        /// The largest single allocation.
        limit: u64,
    },
}

fn param_text(param: Param) -> String {
    arg_text(param.scalar())
}

fn scalar_text(dtype: DType) -> &'static str {
    match dtype {
        DType::U32 => "a u32",
        DType::I32 => "an i32",
        DType::F32 => "an f32",
        DType::F64 => "an f64",
        _ => "a number no argument can hold",
    }
}

/// How an argument of this type is called in messages.
pub(crate) fn arg_text(dtype: Option<DType>) -> String {
    dtype.map_or("a slice", scalar_text).into()
}

/// `a, b, c`, or `nothing`.
pub(crate) fn list<T: fmt::Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "nothing".into();
    }
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

impl Coded for UsageError {
    fn code(&self) -> Code {
        Code(match self {
            Self::Range { .. } => 501,
            Self::Length { .. } => 502,
            Self::Foreign { .. } => 503,
            Self::Overlap { .. } => 504,
            Self::ArgCount { .. } => 505,
            Self::ArgType { .. } => 506,
            Self::ArgAlign { .. } => 507,
            Self::ArgSize { .. } => 508,
            Self::ArgAlias { .. } => 509,
            Self::ArgMemory { .. } => 510,
            Self::Grid { .. } => 511,
            Self::Group { .. } => 512,
            Self::Language { .. } => 513,
            Self::Slices { .. } => 514,
            Self::Kind { .. } => 515,
            Self::Size { .. } => 516,
            Self::ArgCounted { .. } => 517,
            Self::Scalar { .. } => 518,
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Foreign {
                thing: "kernel", ..
            } => "compile it on the device that runs it",
            Self::Foreign { .. } => {
                "bytes cross devices through the host: download from one, upload to the other"
            }
            Self::ArgAlign { .. } => {
                "start the slice at an aligned byte and pass the rest as an offset argument"
            }
            Self::ArgSize { .. } => {
                "split the image into tiles, or use a device with a larger limit"
            }
            Self::ArgAlias { .. } => "declare one `ReadWrite` parameter for work in place",
            Self::ArgMemory { .. } => "copy to the device's own memory kind first",
            Self::Overlap { .. } => "copy through a second buffer",
            _ => return None,
        };
        Some(text.into())
    }
}
