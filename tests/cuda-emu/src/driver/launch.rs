//! Kernels on their way to the engine.

use std::io::Write as _;
use std::sync::Arc;

use super::attributes::{MAX_BLOCK, MAX_GRID};
use super::chance;
use super::device::PROCESSORS;
use super::ffi::In;
use super::function::Function;
use super::health::Trouble;
use super::lane::Job;
use super::machine::Machine;
use super::memory::View;
use super::status::{Result, Status};
use super::stream::Stream;
use crate::engine::{self, FaultKind, Launch, Rules};

/// Shape of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
}

/// Why a launch is refused, in words.
pub(crate) type Refusal = (Status, String);

/// Checks a shape against device and kernel.
pub(crate) fn check(function: &Function, shape: Shape) -> std::result::Result<(), Refusal> {
    let Shape {
        grid,
        block,
        shared,
    } = shape;
    let within = |size: [u32; 3], most: [u32; 3]| {
        size.iter()
            .zip(most)
            .all(|(size, most)| (1..=most).contains(size))
    };
    let invalid = |text: String| Err((Status::INVALID_VALUE, text));
    if !within(grid, MAX_GRID) {
        return invalid(format!("a grid of {grid:?} blocks, at most {MAX_GRID:?}"));
    }
    if !within(block, MAX_BLOCK) {
        return invalid(format!(
            "a block of {block:?} threads, at most {MAX_BLOCK:?}"
        ));
    }
    if let Some(required) = function.entry().required_threads
        && required != block
    {
        return invalid(format!(
            "a block of {block:?} threads, the kernel needs {required:?}"
        ));
    }
    let threads: u32 = block.iter().product();
    if threads > super::attributes::MAX_THREADS {
        return invalid(format!(
            "a block of {block:?} is {threads} threads, at most 1024"
        ));
    }
    let most = function.max_threads();
    if threads > most {
        let text = format!("a block of {threads} threads, the kernel allows {most}");
        return Err((Status::LAUNCH_OUT_OF_RESOURCES, text));
    }
    let most = function.max_dynamic_shared();
    if shared > most {
        return invalid(format!(
            "{shared} bytes of dynamic shared memory, at most {most}"
        ));
    }
    Ok(())
}

/// Ends the list of `extra`.
const EXTRA_END: usize = 0;
/// What follows is where the parameters are.
const EXTRA_POINTER: usize = 1;
/// What follows is where their size is.
const EXTRA_SIZE: usize = 2;

/// Reads the parameters: one pointer for each, or a block of all of them behind `extra`.
pub(crate) fn params(
    function: &Function,
    each: In<In<u8>>,
    extra: In<usize>,
) -> std::result::Result<Vec<u8>, Refusal> {
    let entry = function.entry();
    let size = entry.params_size as usize;
    let invalid = |text: &str| (Status::INVALID_VALUE, text.to_owned());
    let missing = |_| invalid("a parameter is a null pointer");
    if !each.is_null() && !extra.is_null() {
        return Err(invalid("parameters and extra parameters together"));
    }
    let mut packed = vec![0; size];
    if entry.params.is_empty() {
        return Ok(packed);
    }
    if !extra.is_null() {
        return read_extra(size, extra);
    }
    if each.is_null() {
        return Err(invalid("no parameters for a kernel that has some"));
    }
    for (i, param) in entry.params.iter().enumerate() {
        let value = each.at(i).map_err(missing)?;
        let bytes = (0..param.size as usize).map(|at| value.at(at));
        let bytes: Vec<u8> = bytes.collect::<Result<_>>().map_err(missing)?;
        let offset = param.offset as usize;
        packed[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(packed)
}

fn read_extra(size: usize, extra: In<usize>) -> std::result::Result<Vec<u8>, Refusal> {
    let invalid = |text: &str| (Status::INVALID_VALUE, text.to_owned());
    let bad = |_| invalid("the list of extra parameters is not readable");
    let (mut place, mut given) = (0, None);
    let mut at = 0;
    loop {
        let value = || extra.at(at + 1).map_err(bad);
        match extra.at(at).map_err(bad)? {
            EXTRA_END => break,
            EXTRA_POINTER => place = value()?,
            EXTRA_SIZE => {
                let size = In::<usize>::new(std::ptr::with_exposed_provenance(value()?));
                given = Some(size.read().map_err(bad)?);
            }
            _ => return Err(invalid("an unknown key in the list of extra parameters")),
        }
        at += 2;
    }
    if given != Some(size) {
        return Err(invalid(
            "the block of parameters has another size than the kernel's",
        ));
    }
    let block = In::<u8>::new(std::ptr::with_exposed_provenance(place));
    let bytes = (0..size).map(|at| block.at(at));
    bytes.collect::<Result<_>>().map_err(bad)
}

/// Hands a launch that was checked to a stream of the same context.
pub(crate) fn submit(
    machine: &'static Machine,
    function: &Arc<Function>,
    stream: &Stream,
    shape: Shape,
    params: Vec<u8>,
) {
    let function = Arc::clone(function);
    let number = machine.next_launch();
    stream.submit(Job::Work(Box::new(move || {
        let outcome = run(machine, &function, number, shape, &params);
        function.module().context().device().launched();
        outcome
    })));
}

fn run(
    machine: &Machine,
    function: &Function,
    number: u64,
    shape: Shape,
    params: &[u8],
) -> std::result::Result<(), Trouble> {
    let module = function.module();
    let context = module.context();
    if module.is_unloaded() {
        let kernel = function.kernel().name();
        return Err(Trouble {
            status: Status::LAUNCH_FAILED,
            text: format!("kernel `{kernel}` was to run when its module had been unloaded"),
        });
    }
    let usual = Rules::default();
    let stack = context
        .limit(0)
        .ok()
        .and_then(|bytes| u32::try_from(bytes).ok());
    let launch = Launch {
        kernel: function.kernel(),
        grid: shape.grid,
        block: shape.block,
        dynamic_shared: shape.shared,
        params,
        globals: module.bases(),
        memory: &View::new(&machine.memory, context),
        print: &print,
        cancel: None,
        rules: Rules {
            seed: chance::number(&[machine.plan.seed, number]),
            workers: machine.plan.workers,
            stack_bytes: usual.stack_bytes.max(stack.unwrap_or(0)),
            processors: PROCESSORS,
            ..usual
        },
    };
    engine::launch(&launch).map_err(|fault| Trouble {
        status: status_of(&fault.kind),
        text: fault.to_string(),
    })
}

/// What a kernel prints goes to standard output, as CUDA's does.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// What a driver would answer, as far as it would notice.
fn status_of(kind: &FaultKind) -> Status {
    match kind {
        FaultKind::IllegalAddress { .. } => Status::ILLEGAL_ADDRESS,
        FaultKind::Misaligned { .. } => Status::MISALIGNED_ADDRESS,
        FaultKind::InvalidWarpOperation { .. } => Status::ILLEGAL_INSTRUCTION,
        FaultKind::Assert { .. } => Status::ASSERT,
        FaultKind::StackOverflow { .. } => Status::HARDWARE_STACK_ERROR,
        FaultKind::IllegalCall { .. } => Status::INVALID_PC,
        FaultKind::Deadlock { .. } | FaultKind::Runaway { .. } => Status::LAUNCH_TIMEOUT,
        _ => Status::LAUNCH_FAILED,
    }
}
