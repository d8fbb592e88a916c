//! Bytes, and what operations do to them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warploom_core::host::{FnKernel, HostBuffer};
use warploom_core::{Arg, Buffer, DeviceId, Grid, Kernel, Param, Result, Slice};

use super::buffer::SimBuffer;

/// What fresh memory holds, and memory that is being written.
pub(super) const RUBBISH: u8 = 0xdb;

/// The bytes of a buffer.
#[derive(Debug)]
pub(super) struct Content(Mutex<Vec<u8>>);

impl Content {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Mutex::new(vec![RUBBISH; bytes]))
    }

    pub(super) fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a buffer's bytes.
#[derive(Debug)]
struct Part {
    content: Arc<Content>,
    slice: Slice,
}

impl Part {
    fn of(slice: &Slice) -> Result<Self> {
        Ok(Self {
            content: SimBuffer::content(slice.buffer())?,
            slice: slice.clone(),
        })
    }

    fn read(&self) -> Vec<u8> {
        self.content.bytes()[self.slice.host_range()].to_vec()
    }

    /// What was read when the operation began, and now, half of each.
    fn torn(&self, early: &[u8]) -> Vec<u8> {
        let mut bytes = self.read();
        let half = bytes.len() / 2;
        let early = early.get(..half).unwrap_or_default();
        bytes[..early.len()].copy_from_slice(early);
        bytes
    }

    fn write(&self, bytes: &[u8]) {
        self.content.bytes()[self.slice.host_range()].copy_from_slice(bytes);
    }

    fn spoil(&self) {
        self.content.bytes()[self.slice.host_range()].fill(RUBBISH);
    }
}

/// What an operation reads and writes.
#[derive(Debug)]
pub(super) enum Effect {
    Write {
        bytes: Vec<u8>,
        dst: Held,
    },
    Copy {
        src: Held,
        dst: Held,
    },
    Launch {
        kernel: Arc<dyn Kernel>,
        grid: Grid,
        args: Vec<Use>,
    },
}

/// A part, and what it held when the operation began.
#[derive(Debug)]
pub(super) struct Held {
    part: Part,
    early: Vec<u8>,
}

impl Held {
    fn of(slice: &Slice) -> Result<Self> {
        Ok(Self {
            part: Part::of(slice)?,
            early: Vec::new(),
        })
    }
}

#[derive(Debug)]
pub(super) enum Use {
    Memory(Held, Param),
    Number(Arg),
}

impl Effect {
    pub(super) fn write(bytes: &[u8], dst: &Slice) -> Result<Self> {
        Ok(Self::Write {
            bytes: bytes.to_vec(),
            dst: Held::of(dst)?,
        })
    }

    pub(super) fn copy(src: &Slice, dst: &Slice) -> Result<Self> {
        Ok(Self::Copy {
            src: Held::of(src)?,
            dst: Held::of(dst)?,
        })
    }

    pub(super) fn launch(kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<Self> {
        let mut uses = Vec::new();
        for (arg, param) in args.iter().zip(kernel.params()) {
            uses.push(match arg {
                Arg::Slice(slice) => Use::Memory(Held::of(slice)?, *param),
                number => Use::Number(number.clone()),
            });
        }
        Ok(Self::Launch {
            kernel: Arc::clone(kernel),
            grid,
            args: uses,
        })
    }

    pub(super) fn kernel(&self) -> Option<&str> {
        match self {
            Self::Launch { kernel, .. } => Some(kernel.name()),
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.parts().map(|part| part.part.slice.len()).sum()
    }

    fn parts(&self) -> Box<dyn Iterator<Item = &Held> + '_> {
        match self {
            Self::Write { dst, .. } => Box::new(std::iter::once(dst)),
            Self::Copy { src, dst } => Box::new([src, dst].into_iter()),
            Self::Launch { args, .. } => Box::new(args.iter().filter_map(|one| match one {
                Use::Memory(part, _) => Some(part),
                Use::Number(_) => None,
            })),
        }
    }

    pub(super) fn touches(&self, content: &Arc<Content>) -> bool {
        self.parts()
            .any(|part| Arc::ptr_eq(&part.part.content, content))
    }

    /// Reads the first halves, and spoils what will be written.
    pub(super) fn begin(&mut self) {
        match self {
            Self::Write { dst, .. } => dst.part.spoil(),
            Self::Copy { src, dst } => {
                src.early = src.part.read();
                dst.part.spoil();
            }
            Self::Launch { args, .. } => {
                for one in &mut *args {
                    if let Use::Memory(part, _) = one {
                        part.early = part.part.read();
                    }
                }
                for one in args {
                    if let Use::Memory(part, param) = one
                        && *param == Param::Write
                    {
                        part.part.spoil();
                    }
                }
            }
        }
    }

    /// Reads the second halves, and writes.
    pub(super) fn end(self) -> Result<()> {
        match self {
            Self::Write { bytes, dst } => dst.part.write(&bytes),
            Self::Copy { src, dst } => {
                let bytes = src.part.torn(&src.early);
                dst.part.write(&bytes);
            }
            Self::Launch { kernel, grid, args } => return launch(&kernel, grid, &args),
        }
        Ok(())
    }
}

fn launch(kernel: &Arc<dyn Kernel>, grid: Grid, uses: &[Use]) -> Result<()> {
    let mut copies: Vec<Option<Arc<dyn Buffer>>> = Vec::new();
    let mut args = Vec::new();
    for one in uses {
        let (part, param) = match one {
            Use::Number(number) => {
                args.push(number.clone());
                copies.push(None);
                continue;
            }
            Use::Memory(part, param) => (part, *param),
        };
        let bytes = match param {
            // What a kernel does not write stays as it was.
            Param::Write => part.early.clone(),
            _ => part.part.torn(&part.early),
        };
        let copy = buffer_of(kernel.device(), &part.part.slice, &bytes)?;
        args.push(Slice::new(Arc::clone(&copy), 0..part.part.slice.len())?.into());
        copies.push(Some(copy));
    }
    FnKernel::run(kernel, grid, &args)?;
    for (one, copy) in uses.iter().zip(copies) {
        if let (Use::Memory(part, param), Some(copy)) = (one, copy)
            && param.is_written()
        {
            copy.with_host(&mut |bytes| part.part.write(bytes))?;
        }
    }
    Ok(())
}

fn buffer_of(device: DeviceId, slice: &Slice, bytes: &[u8]) -> Result<Arc<dyn Buffer>> {
    let buffer = HostBuffer::zeroed(device, slice.buffer().kind(), slice.len())?;
    buffer.with_host(&mut |content| content.copy_from_slice(bytes))?;
    Ok(Arc::new(buffer))
}
