//! Kernels compiled once for a device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warploom_core::{CheckedDevice, Kernel, KernelSource, Math, Param, QueueDesc, Result, Slice};

use super::compile::{Program, Step, room};
use super::loaded::{Action, Loaded};
use super::vouch;
use crate::cpu;
use crate::gpu::{Launch, Tuning};
use crate::kernel::Target;

/// Loads programs on one device; equal kernels are compiled once.
#[derive(Debug)]
pub struct Loader {
    device: CheckedDevice,
    math: Math,
    kernels: Mutex<HashMap<String, Arc<dyn Kernel>>>,
}

impl Loader {
    /// For a device, under these floating-point rules.
    pub fn new(device: CheckedDevice, math: Math) -> Self {
        Self {
            device,
            math,
            kernels: Mutex::default(),
        }
    }

    /// The device.
    pub fn device(&self) -> &CheckedDevice {
        &self.device
    }

    /// How many different kernels were compiled so far.
    pub fn compiled(&self) -> usize {
        self.kernels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Compiles what is new in `program`, and uploads its constants.
    pub fn load(&self, program: Program) -> Result<Loaded> {
        let program = Arc::new(program);
        let mut actions = Vec::with_capacity(program.steps().len());
        for step in program.steps() {
            actions.push(match (step, program.tuning()) {
                (Step::Launch(launch), Some(tuning)) => {
                    Action::Launch(self.kernel(launch, tuning)?)
                }
                (Step::Host(node), None) => Action::Launch(self.host_kernel(&program, *node)?),
                _ => Action::Detour,
            });
        }
        let constants = self.constants(&program)?;
        Ok(Loaded::new(program, actions, constants))
    }

    fn kernel(&self, launch: &Launch, tuning: Tuning) -> Result<Arc<dyn Kernel>> {
        let text = launch.def.text(tuning.target);
        let known = self
            .kernels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&text)
            .map(Arc::clone);
        if let Some(kernel) = known {
            return Ok(kernel);
        }
        let params = launch.def.params();
        let source = vouch::source(&launch.def, &text, &params, tuning.target);
        let kernel = self.device.kernel(&source.with_math(self.math))?;
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.insert(text, Arc::clone(&kernel));
        Ok(kernel)
    }

    fn host_kernel(&self, program: &Arc<Program>, at: usize) -> Result<Arc<dyn Kernel>> {
        let node = &program.flow().nodes()[at];
        let reads = node.inputs.iter().map(|_| Param::Read);
        let params: Vec<Param> = reads
            .chain(node.outputs.iter().map(|_| Param::Write))
            .collect();
        let flow = Arc::clone(program.flow());
        let engine = cpu::Engine::new(&flow, at);
        let source = KernelSource::host(node.prim.name(), &params, move |call| {
            let node = &flow.nodes()[at];
            let inputs: Vec<&[u8]> = (0..node.inputs.len())
                .map(|index| call.read::<u8>(index))
                .collect();
            let mut outputs: Vec<&mut [u8]> = (0..node.outputs.len())
                .map(|index| call.write::<u8>(node.inputs.len() + index))
                .collect();
            engine.run(&flow, &inputs, &mut outputs);
        });
        self.device.kernel(&source)
    }

    /// A slice for every value that is known now.
    fn constants(&self, program: &Program) -> Result<Vec<Option<Slice>>> {
        let values = program.flow().values();
        let mut slices = vec![None; values.len()];
        if values.iter().all(|value| value.constant.is_none()) {
            return Ok(slices);
        }
        let kind = super::loaded::own_kind(&self.device)?;
        let mut queue = self.device.queue(&QueueDesc::named("constants"))?;
        let pairs = program.tuning().is_some_and(|t| t.target == Target::Wgsl);
        for (slice, value) in slices.iter_mut().zip(values) {
            let Some(bytes) = &value.constant else {
                continue;
            };
            let buffer = self.device.alloc(kind, room(&value.kind))?;
            let whole = Slice::whole(&buffer);
            let mut bytes = bytes.to_vec();
            if pairs && value.kind.dtype() == warploom_core::DType::F64 {
                super::pairs::to_pairs(&mut bytes);
            }
            if !bytes.is_empty() {
                use warploom_core::Queue as _;
                queue.upload(&bytes, &whole.part(0..bytes.len() as u64)?)?;
            }
            *slice = Some(whole);
        }
        Ok(slices)
    }
}
