//! Compiled kernels.

use std::sync::Arc;

use warploom_core::{DeviceError, DeviceId, Kernel, KernelCode, KernelSource, Param, Result};

use crate::context::Context;
use crate::error::text;
use crate::interface::{Interface, unfit_scalar};
use crate::program::Program;

#[derive(Debug)]
pub(crate) struct WgpuKernel {
    name: String,
    params: Vec<Param>,
    group: [u32; 3],
    pub(crate) program: Program,
    pub(crate) context: Arc<Context>,
}

impl WgpuKernel {
    pub(crate) fn build(context: &Arc<Context>, source: &KernelSource<'_>) -> Result<Self> {
        context.alive()?;
        let device = context.info.id;
        let KernelCode::Wgsl(code) = source.code() else {
            let what = source.language().to_string();
            return Err(DeviceError::unsupported(device, what));
        };
        if let Some(dtype) = unfit_scalar(source.params()) {
            let what = format!("kernel `{}`: a scalar of type {dtype}", source.name());
            return Err(DeviceError::unsupported(device, what));
        }
        let failed = |log: String| DeviceError::Build {
            device,
            kernel: source.name().to_owned(),
            log,
        };
        let (name, params) = (source.name(), source.params());
        let interface = Interface::read(code, name, params, source.group()).map_err(failed)?;
        let program = Program::build(&context.device, name, code, interface);
        let program = program.map_err(|error| match (context.alive(), &error) {
            (Err(lost), _) => lost,
            (Ok(()), wgpu::Error::OutOfMemory { .. }) => {
                context.failed("create_compute_pipeline", &error)
            }
            (Ok(()), error) => failed(text(error)),
        })?;
        // Losing the device gives an unusable kernel without an error.
        context.alive()?;
        Ok(Self {
            name: name.to_owned(),
            params: params.to_vec(),
            group: source.group(),
            program,
            context: Arc::clone(context),
        })
    }
}

impl Kernel for WgpuKernel {
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
        self.context.info.id
    }
}
