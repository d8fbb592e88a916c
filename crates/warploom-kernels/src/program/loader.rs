//! Kernels compiled once for a device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warploom_core::{
    CheckedDevice, CheckedQueue, DType, Kernel, KernelSource, Math, Param, Queue as _, QueueDesc,
    Result, Slice,
};

use super::compile::{Program, Step};
use super::loaded::{Action, Constants, Loaded};
use super::vouch;
use crate::cpu::{self, Pass};
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
                (Step::Host(pass), None) => Action::Launch(self.host_kernel(&program, pass)?),
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

    fn host_kernel(&self, program: &Arc<Program>, pass: &Pass) -> Result<Arc<dyn Kernel>> {
        let over = program.over(pass);
        let replaced = |at: usize| over.iter().any(|(input, _)| *input == at);
        // What is written over an input is one argument with it.
        let reads: Vec<bool> = (0..pass.inputs.len()).map(|at| !replaced(at)).collect();
        let writes = (0..pass.outputs.len()).map(|at| {
            let reads = over.iter().any(|(_, output)| *output == at);
            if reads {
                Param::ReadWrite
            } else {
                Param::Write
            }
        });
        let params = reads.iter().filter(|reads| **reads).map(|_| Param::Read);
        let params: Vec<Param> = params.chain(writes).collect();
        let flow = Arc::clone(program.flow());
        let names: Vec<&str> = pass
            .nodes
            .iter()
            .map(|at| flow.nodes()[*at].prim.name())
            .collect();
        let name = names.join("+");
        let engine = cpu::Engine::new(&flow, pass);
        let writes = pass.outputs.len();
        let source = KernelSource::host(&name, &params, move |call| {
            let mut inputs: Vec<&[u8]> = Vec::with_capacity(reads.len());
            let mut first = 0;
            for is_read in &reads {
                inputs.push(if *is_read {
                    call.read::<u8>(first)
                } else {
                    &[]
                });
                first += usize::from(*is_read);
            }
            let mut outputs: Vec<&mut [u8]> = (first..first + writes)
                .map(|index| call.write::<u8>(index))
                .collect();
            engine.run_over(&flow, &inputs, &mut outputs, &over);
        });
        self.device.kernel(&source)
    }

    /// Uploads everything that is known now.
    fn constants(&self, program: &Program) -> Result<Constants> {
        let values = program.flow().values();
        let mut uploaded = Constants {
            values: vec![None; values.len()],
            own: Vec::new(),
        };
        let known = values.iter().any(|value| value.constant.is_some());
        if !known && program.constants().is_empty() {
            return Ok(uploaded);
        }
        let mut queue = self.device.queue(&QueueDesc::named("constants"))?;
        let pairs = program.tuning().is_some_and(|t| t.target == Target::Wgsl);
        for (slice, value) in uploaded.values.iter_mut().zip(values) {
            if let Some(bytes) = &value.constant {
                *slice = Some(self.upload(&mut queue, value.kind.dtype(), bytes, pairs)?);
            }
        }
        for constant in program.constants() {
            let slice = self.upload(&mut queue, constant.dtype, &constant.bytes, pairs)?;
            uploaded.own.push(slice);
        }
        // Other queues use them, and nothing orders those after this one.
        queue.record()?.wait(None)?;
        Ok(uploaded)
    }

    fn upload(
        &self,
        queue: &mut CheckedQueue,
        dtype: DType,
        bytes: &[u8],
        pairs: bool,
    ) -> Result<Slice> {
        let kind = super::loaded::own_kind(&self.device)?;
        let room = (bytes.len() as u64).next_multiple_of(4).max(4);
        let slice = Slice::whole(&self.device.alloc(kind, room)?);
        let mut bytes = bytes.to_vec();
        if pairs && dtype == DType::F64 {
            super::pairs::to_pairs(&mut bytes);
        }
        if !bytes.is_empty() {
            queue.upload(&bytes, &slice.part(0..bytes.len() as u64)?)?;
        }
        Ok(slice)
    }
}
