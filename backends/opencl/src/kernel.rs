//! Kernels compiled for one opened device.

use std::any::Any;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl3::error_codes::CL_INVALID_KERNEL_NAME;
use warploom_core::{DeviceError, DeviceId, Kernel, KernelSource, Param, Result};

use crate::cl;
use crate::device::Opened;
use crate::error::Driven;

/// A function of a program.
#[derive(Debug)]
pub(crate) struct OpenClKernel {
    opened: Arc<Opened>,
    name: String,
    params: Vec<Param>,
    group: [u32; 3],
    /// Arguments belong to the kernel object, not to a launch, so setting them and launching is
    /// one step that only one thread takes at a time.
    kernel: Mutex<Bound>,
    /// Kept so that loading the kernel again finds the program built.
    _program: Arc<cl::Program>,
}

/// A kernel object and the numbers that it has. Most are the same in every launch, and each call of the
/// driver that is left out is a tenth of a launch. Buffers are always set: the address of one that is gone
/// may be another's.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) kernel: cl::Kernel,
    numbers: Vec<Option<Number>>,
}

/// A number as arguments carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    Four([u8; 4]),
    Eight([u8; 8]),
}

impl Bound {
    fn new(kernel: cl::Kernel, params: usize) -> Self {
        Self {
            kernel,
            numbers: vec![None; params],
        }
    }

    /// Makes argument `index` a number.
    pub(crate) fn set_number(&mut self, index: u32, number: Number) -> Driven<()> {
        let known = self.numbers.get_mut(index as usize);
        if known.as_deref() == Some(&Some(number)) {
            return Ok(());
        }
        match number {
            Number::Four(bytes) => self.kernel.set_number(index, bytes)?,
            Number::Eight(bytes) => self.kernel.set_number(index, bytes)?,
        }
        if let Some(known) = known {
            *known = Some(number);
        }
        Ok(())
    }
}

impl OpenClKernel {
    pub(crate) fn create(
        opened: Arc<Opened>,
        program: Arc<cl::Program>,
        source: &KernelSource<'_>,
    ) -> Result<Self> {
        let kernel = find(&opened, &program, source)?;
        let on = |failure: crate::error::Failure| failure.on(opened.id);
        let (takes, declared) = (kernel.arg_count().map_err(on)?, source.params().len());
        if takes as usize != declared {
            let log = format!("the code takes {takes} arguments, its declaration has {declared}");
            return Err(build_error(opened.id, source, log));
        }
        let items = source
            .group()
            .iter()
            .fold(1, |all: usize, axis| all.saturating_mul(*axis as usize));
        let most = kernel.max_group(opened.device).map_err(on)?;
        if items > most {
            let name = source.name();
            let what = format!("work groups of {items} items for kernel `{name}`, only of {most}");
            return Err(DeviceError::unsupported(opened.id, what));
        }
        Ok(Self {
            name: source.name().to_owned(),
            params: source.params().to_vec(),
            group: source.group(),
            kernel: Mutex::new(Bound::new(kernel, declared)),
            _program: program,
            opened,
        })
    }

    /// A kernel of `opened`, or an error: objects of other contexts must not reach the driver.
    pub(crate) fn of<'k>(kernel: &'k dyn Kernel, opened: &Arc<Opened>) -> Result<&'k Self> {
        let own = (kernel as &dyn Any).downcast_ref::<Self>();
        own.filter(|own| Arc::ptr_eq(&own.opened, opened))
            .ok_or_else(|| {
                let what = format!("kernel `{}` of another opened device", kernel.name());
                DeviceError::unsupported(opened.id, what)
            })
    }

    /// The kernel object, for setting arguments and launching.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Bound> {
        // A panic between two arguments leaves no trace: every launch sets all that differ.
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kernel for OpenClKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn params(&self) -> &[Param] {
        &self.params
    }

    fn group(&self) -> [u32; 3] {
        self.group
    }

    fn device(&self) -> DeviceId {
        self.opened.id
    }
}

fn find(opened: &Opened, program: &cl::Program, source: &KernelSource<'_>) -> Result<cl::Kernel> {
    let missing = || {
        let log = format!(
            "the code has no such kernel; it has: {}",
            program.kernel_names()
        );
        build_error(opened.id, source, log)
    };
    let name = CString::new(source.name()).map_err(|_| missing())?;
    cl::Kernel::create(program, &name).map_err(|failure| match failure.code {
        CL_INVALID_KERNEL_NAME => missing(),
        _ => failure.on(opened.id),
    })
}

pub(crate) fn build_error(device: DeviceId, source: &KernelSource<'_>, log: String) -> DeviceError {
    DeviceError::Build {
        device,
        kernel: source.name().to_owned(),
        log,
    }
}
