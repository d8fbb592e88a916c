//! Kernels: CUDA C through NVRTC, or PTX as it is.

use std::sync::Arc;

use cudarc::driver::sys;
use warploom_core::{DeviceError, DeviceId, Kernel, KernelCode, KernelSource, Param, Result};

use crate::context::Context;
use crate::device::Opened;
use crate::handle::Foreign;
use crate::module::{Module, ModuleError};
use crate::nvrtc::{Nvrtc, NvrtcError, Target};

/// A compiled kernel and the module it lives in.
#[derive(Debug)]
pub(crate) struct CudaKernel {
    name: Arc<str>,
    params: Vec<Param>,
    group: [u32; 3],
    device: DeviceId,
    function: Foreign<sys::CUfunc_st>,
    _module: Module,
}

impl CudaKernel {
    pub(crate) fn build(opened: &Opened, source: &KernelSource<'_>) -> Result<Self> {
        let context = opened.context();
        let (device, name) = (context.id(), source.name());
        let module = match source.code() {
            KernelCode::CudaC(code) => compile(opened, source, code)?,
            KernelCode::Ptx(code) => Module::load(context, code.as_bytes())
                .map_err(|error| error.about(context, name))?,
            _ => {
                let what = format!("{} kernels", source.language());
                return Err(DeviceError::unsupported(device, what));
            }
        };
        let function = module.function(name)?;
        let (group, limit) = (source.group(), module.group_limit(function)?);
        let items: u64 = group.iter().map(|n| u64::from(*n)).product();
        if items > limit {
            let what = format!(
                "work groups of {items} items for kernel `{name}`, whose registers allow {limit}"
            );
            return Err(DeviceError::unsupported(device, what));
        }
        Ok(Self {
            name: name.into(),
            params: source.params().to_vec(),
            group,
            device,
            function,
            _module: module,
        })
    }

    /// Its name, to be remembered.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// What the driver launches.
    pub(crate) fn function(&self) -> sys::CUfunction {
        self.function.raw()
    }
}

/// CUDA C → PTX → module; where the driver is older than NVRTC and does not take its PTX, CUDA C
/// → machine code → module.
fn compile(opened: &Opened, source: &KernelSource<'_>, code: &str) -> Result<Module> {
    let (context, name) = (opened.context(), source.name());
    let nvrtc = opened.nvrtc().get().map_err(|error| {
        DeviceError::unsupported(context.id(), format!("CUDA C kernels: {error}"))
    })?;
    let capability = opened.capability();
    let build = |error: NvrtcError| build_error(context, name, &error);
    let target = nvrtc.ptx_target(capability).map_err(build)?;
    let ptx = compiled(opened, nvrtc, source, code, target).map_err(build)?;
    let refused = match Module::load(context, &ptx) {
        Err(error) if error.asks_for_machine_code() => error,
        other => return other.map_err(|error| error.about(context, name)),
    };
    tracing::debug!(kernel = name, ?refused, "the driver does not take the PTX");
    let target = nvrtc.cubin_target(capability);
    target
        .map(|target| compiled(opened, nvrtc, source, code, target))
        .transpose()
        .map_err(build)?
        .map_or(Err(refused), |cubin| Module::load(context, &cubin))
        .map_err(|error: ModuleError| error.about(context, name))
}

/// What NVRTC makes of a source for a target: kept from an earlier run, or made now. It depends on
/// nothing else, so a card or a driver that changes has no say.
fn compiled(
    opened: &Opened,
    nvrtc: &Nvrtc,
    source: &KernelSource<'_>,
    code: &str,
    target: Target,
) -> Result<Vec<u8>, NvrtcError> {
    let key = nvrtc.key(code, source.name(), target, source.math());
    if let Some(kept) = opened.cache().and_then(|cache| cache.load(&key)) {
        return Ok(kept);
    }
    let made = nvrtc.compile(code, source.name(), target, source.math())?;
    if let Some(cache) = opened.cache() {
        cache.store(&key, &made);
    }
    Ok(made)
}

fn build_error(context: &Context, kernel: &str, error: &NvrtcError) -> DeviceError {
    DeviceError::Build {
        device: context.id(),
        kernel: kernel.to_owned(),
        log: error.to_string(),
    }
}

impl Kernel for CudaKernel {
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
        self.device
    }
}
