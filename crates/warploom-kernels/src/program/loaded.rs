//! A program on a device, ready to run.

use std::sync::Arc;

use warploom_core::{
    Arg, CheckedDevice, CheckedQueue, DType, DeviceError, Grid, Kernel, MemoryKind, Queue as _,
    QueueDesc, Result, Slice,
};

use super::compile::{Program, Step, room};
use super::pairs;
use crate::cpu::{self, Pass};
use crate::flow::{Number, ValueId};
use crate::gpu::LaunchArg;
use crate::kernel::Target;

/// What a step needs to run.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A kernel.
    Launch(Arc<dyn Kernel>),
    /// The host, with copies there and back.
    Detour,
}

/// A program with its kernels and constants on one opened device.
#[derive(Debug)]
pub struct Loaded {
    program: Arc<Program>,
    actions: Vec<Action>,
    constants: Constants,
}

/// What was uploaded when the program was loaded.
#[derive(Debug, Default)]
pub(super) struct Constants {
    /// For every value of the flow that is known.
    pub(super) values: Vec<Option<Slice>>,
    /// For every list of the program's own.
    pub(super) own: Vec<Slice>,
}

/// Where a program's values are during one run.
struct Bindings<'a> {
    inputs: &'a [Slice],
    outputs: &'a [Slice],
    workspace: Option<&'a Slice>,
}

/// The memory kind a device's kernels work in.
pub(super) fn own_kind(device: &CheckedDevice) -> Result<MemoryKind> {
    let info = device.info();
    info.local_kind()
        .ok_or_else(|| DeviceError::unsupported(info.id, "memory that kernels can use"))
}

impl Loaded {
    pub(super) fn new(program: Arc<Program>, actions: Vec<Action>, constants: Constants) -> Self {
        Self {
            program,
            actions,
            constants,
        }
    }

    /// What it runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Queues everything. `inputs` and `outputs` are in the flow's order, each at least
    /// [`room`] long; `workspace` holds [`Program::workspace`] bytes, if that is not 0. Inputs that
    /// are [replaced](Program::replaced) are where their outputs are.
    ///
    /// # Panics
    /// When they are not.
    pub fn enqueue(
        &self,
        queue: &mut CheckedQueue,
        inputs: &[Slice],
        outputs: &[Slice],
        workspace: Option<&Slice>,
    ) -> Result<()> {
        for (input, output) in self.program.replaced() {
            let (input, output) = (&inputs[*input], &outputs[*output]);
            let same = input.start() == output.start() && input.overlaps(output);
            assert!(same, "what is written over an input lies where it lies");
        }
        let bindings = Bindings {
            inputs,
            outputs,
            workspace,
        };
        for (step, action) in self.program.steps().iter().zip(&self.actions) {
            match (step, action) {
                (Step::Launch(launch), Action::Launch(kernel)) => {
                    let mut args = Vec::with_capacity(launch.args.len());
                    for arg in &launch.args {
                        args.push(self.arg(arg, &bindings)?);
                    }
                    queue.launch(kernel, Grid::groups(launch.groups), &args)?;
                }
                (Step::Host(pass), Action::Launch(kernel)) => {
                    let mut args = Vec::with_capacity(pass.inputs.len() + pass.outputs.len());
                    let over = self.program.over(pass);
                    let replaced = |at: usize| over.iter().any(|(input, _)| *input == at);
                    let reads = pass.inputs.iter().enumerate();
                    let reads = reads.filter(|(at, _)| !replaced(*at)).map(|(_, id)| id);
                    for id in reads.chain(&pass.outputs) {
                        args.push(Arg::Slice(self.slice(*id, &bindings)?));
                    }
                    queue.launch(kernel, Grid::groups([1; 3]), &args)?;
                }
                (Step::Host(pass), Action::Detour) => self.detour(queue, pass, &bindings)?,
                (Step::Launch(_), Action::Detour) => {
                    unreachable!("a launch is loaded as a kernel")
                }
            }
        }
        Ok(())
    }

    fn arg(&self, arg: &LaunchArg, bindings: &Bindings<'_>) -> Result<Arg> {
        Ok(match arg {
            LaunchArg::Value(id) => Arg::Slice(self.slice(*id, bindings)?),
            LaunchArg::Scratch(number) => {
                let (start, bytes) = self.program.temp_of_scratch(*number);
                Arg::Slice(bindings.temp(start, bytes)?)
            }
            LaunchArg::Constant(number) => Arg::Slice(self.constants.own[*number as usize].clone()),
            LaunchArg::Number(number) => match *number {
                Number::I32(value) => Arg::I32(value),
                Number::U32(value) => Arg::U32(value),
                Number::F32(value) => Arg::F32(value),
                Number::F64(value) => Arg::F64(value),
            },
        })
    }

    fn slice(&self, id: ValueId, bindings: &Bindings<'_>) -> Result<Slice> {
        let flow = self.program.flow();
        let id = self.program.place_of(id);
        let bytes = room(&flow.kind(id));
        // A value may be an input and an output at once; then the output is written by nobody.
        if let Some(at) = flow.outputs().iter().position(|o| *o == id)
            && flow.writer(id).is_some()
        {
            return bindings.outputs[at].part(0..bytes);
        }
        if let Some(at) = flow.inputs().iter().position(|i| *i == id) {
            return bindings.inputs[at].part(0..bytes);
        }
        if let Some(constant) = &self.constants.values[id as usize] {
            return Ok(constant.clone());
        }
        let (start, bytes) = self
            .program
            .temp_of_value(id)
            .expect("a value that nobody gives or takes is a temporary one");
        bindings.temp(start, bytes)
    }

    /// Down to the host, through the CPU engine, and up again.
    fn detour(&self, queue: &mut CheckedQueue, pass: &Pass, bindings: &Bindings<'_>) -> Result<()> {
        let flow = self.program.flow();
        let is_pairs = self
            .program
            .tuning()
            .is_some_and(|t| t.target == Target::Wgsl);
        let wide = |id: ValueId| is_pairs && flow.kind(id).dtype() == DType::F64;
        let mut inputs: Vec<Vec<u64>> = Vec::new();
        for id in &pass.inputs {
            let slice = self.slice(*id, bindings)?;
            let mut words = blank(slice.len());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            let length = usize::try_from(slice.len()).expect("fits the host");
            queue.download(&slice, &mut bytes[..length])?;
            if wide(*id) {
                pairs::to_wide(bytes);
            }
            inputs.push(words);
        }
        let mut outputs: Vec<Vec<u64>> = pass
            .outputs
            .iter()
            .map(|id| blank(room(&flow.kind(*id))))
            .collect();
        let reads: Vec<&[u8]> = inputs.iter().map(|w| bytemuck::cast_slice(w)).collect();
        let mut writes: Vec<&mut [u8]> = outputs
            .iter_mut()
            .map(|w| bytemuck::cast_slice_mut(w))
            .collect();
        cpu::Engine::new(flow, pass).run(flow, &reads, &mut writes);
        for (id, words) in pass.outputs.iter().zip(&mut outputs) {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
            if wide(*id) {
                pairs::to_pairs(bytes);
            }
            let slice = self.slice(*id, bindings)?;
            let length = usize::try_from(slice.len()).expect("fits the host");
            queue.upload(&bytes[..length], &slice)?;
        }
        Ok(())
    }

    /// Runs it once: allocates, uploads `inputs`, runs, and gives the outputs' bytes.
    ///
    /// # Panics
    /// When the number or the lengths of `inputs` are not the flow's.
    pub fn run(&self, device: &CheckedDevice, inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
        let flow = self.program.flow();
        assert_eq!(
            inputs.len(),
            flow.inputs().len(),
            "one slice for each input"
        );
        let kind = own_kind(device)?;
        let is_pairs = self
            .program
            .tuning()
            .is_some_and(|t| t.target == Target::Wgsl);
        let mut queue = device.queue(&QueueDesc::named("run"))?;
        let mut given = Vec::new();
        for (id, bytes) in flow.inputs().iter().zip(inputs) {
            let buffer = device.alloc(kind, room(&flow.kind(*id)))?;
            let slice = Slice::whole(&buffer);
            if !bytes.is_empty() {
                let part = slice.part(0..bytes.len() as u64)?;
                if is_pairs && flow.kind(*id).dtype() == DType::F64 {
                    let mut pairs = bytes.to_vec();
                    pairs::to_pairs(&mut pairs);
                    queue.upload(&pairs, &part)?;
                } else {
                    queue.upload(bytes, &part)?;
                }
            }
            given.push(slice);
        }
        let mut taken = Vec::new();
        for (at, id) in flow.outputs().iter().enumerate() {
            let mut replaced = self.program.replaced().iter();
            if let Some((input, _)) = replaced.find(|(_, output)| *output == at) {
                taken.push(given[*input].clone());
                continue;
            }
            taken.push(Slice::whole(&device.alloc(kind, room(&flow.kind(*id)))?));
        }
        let workspace = match self.program.workspace() {
            0 => None,
            bytes => Some(Slice::whole(&device.alloc(kind, bytes)?)),
        };
        self.enqueue(&mut queue, &given, &taken, workspace.as_ref())?;
        let mut results = Vec::new();
        for (id, slice) in flow.outputs().iter().zip(&taken) {
            let length = flow.kind(*id).bytes();
            let mut bytes = vec![0; usize::try_from(length).expect("fits the host")];
            if length > 0 {
                queue.download(&slice.part(0..length)?, &mut bytes)?;
            }
            if is_pairs && flow.kind(*id).dtype() == DType::F64 {
                pairs::to_wide(&mut bytes);
            }
            results.push(bytes);
        }
        Ok(results)
    }
}

/// Zeros, aligned for every element type.
fn blank(bytes: u64) -> Vec<u64> {
    vec![0; usize::try_from(bytes.div_ceil(8)).expect("fits the host")]
}

impl Bindings<'_> {
    fn temp(&self, start: u64, bytes: u64) -> Result<Slice> {
        let workspace = self
            .workspace
            .expect("a program with temporary values has a workspace");
        workspace.part(start..start + bytes)
    }
}
