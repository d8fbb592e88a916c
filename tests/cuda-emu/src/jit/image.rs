//! A compiled module.

use std::mem::ManuallyDrop;

use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage as Link, Module as _, default_libcall_names};

use super::layout::{Frame, SharedLayout, SharedVariables};
use super::routine::Routine;
use super::survey::Surveys;
use super::translate::{self, Unit};
use crate::engine::{Entry, GlobalVar, Header, Options, ParamLayout, Relocation, Target};
use crate::exec::{ThreadContext, numbers};
use crate::ptx::{self, Function, ModuleTree, PtxError, Signature, StateSpace, Symbol};

/// A compiled function: context, parameters, results; zero, or one if the thread ends.
pub(crate) type NativeFunction = unsafe extern "C" fn(*const ThreadContext, u64, u64) -> u32;

/// What stands for the address of function `n` is `FIRST + n * STRIDE`. No memory is there.
const FIRST: u64 = 0x00fc_0000_0000_0000;
const STRIDE: u64 = 16;

/// The value that stands for the address of a function.
pub(super) fn handle(function: usize) -> u64 {
    FIRST + function as u64 * STRIDE
}

/// What it takes to run a kernel.
#[derive(Debug)]
pub(crate) struct EntryCode {
    pub(crate) function: NativeFunction,
    /// Threads may wait for each other, so each needs a stack.
    pub(crate) needs_fibers: bool,
    pub(crate) has_calls: bool,
    /// By number of the shared variable.
    pub(crate) shared_offsets: Vec<u32>,
    pub(crate) dynamic_shared_offset: u32,
}

/// A function that pointers may lead to.
#[derive(Debug)]
struct Callee {
    name: String,
    signature: Signature,
    /// Absent for kernels and functions that are only declared.
    code: Option<*const u8>,
}

pub(crate) struct Image {
    header: Header,
    entries: Vec<Entry>,
    codes: Vec<EntryCode>,
    globals: Vec<GlobalVar>,
    callees: Vec<Callee>,
    prototypes: Vec<Signature>,
    jit: ManuallyDrop<JITModule>,
}

// SAFETY: code is complete and never written again once `build` returns; what points to it is only
// read. `JITModule` is not touched until it is dropped, with no other reference left.
unsafe impl Send for Image {}
// SAFETY: as for `Send`: nothing is changed through a shared reference.
unsafe impl Sync for Image {}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("header", &self.header)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: it is taken here only, and `self` is gone afterwards.
        let jit = unsafe { ManuallyDrop::take(&mut self.jit) };
        // SAFETY: nobody runs this code any more: launches borrow the kernel, which keeps the image.
        unsafe { jit.free_memory() };
    }
}

impl Image {
    pub(crate) fn build(text: &str, options: &Options) -> Result<Self, PtxError> {
        let tree = ptx::parse(text)?;
        let globals = tree.globals.iter().map(global).collect::<Result<_, _>>()?;
        let mut jit = new_jit(options)?;
        let surveys = Surveys::of(&tree);
        let shared = SharedVariables::of(&tree);
        let mut layouts = Vec::new();
        for (number, function) in tree.functions.iter().enumerate() {
            layouts.push(if function.is_entry {
                let reach = surveys.reach(number);
                let layout = SharedLayout::new(&tree, &shared, &reach)?;
                Some((layout, reach))
            } else {
                None
            });
        }
        let ids = declare(&mut jit, &tree)?;
        let mut prototypes = Vec::new();
        let mut context = FunctionBuilderContext::new();
        let mut frames = Vec::new();
        for (number, function) in tree.functions.iter().enumerate() {
            let Some(body) = &function.body else {
                frames.push(None);
                continue;
            };
            let frame = Frame::new(body)?;
            let unit = Unit {
                tree: &tree,
                ids: &ids,
                shared: &shared,
                number,
                function,
                body,
                frame: &frame,
                layout: layouts[number].as_ref().map(|(layout, _)| layout),
            };
            translate::define(&mut jit, &mut context, &unit, &mut prototypes)?;
            frames.push(Some(frame));
        }
        jit.finalize_definitions()
            .map_err(|error| PtxError::new(1, format!("code could not be placed: {error}")))?;

        let mut entries = Vec::new();
        let mut codes = Vec::new();
        for (number, layout) in layouts.into_iter().enumerate() {
            let (Some((layout, reach)), Some(frame)) = (layout, &frames[number]) else {
                continue;
            };
            let code = jit.get_finalized_function(ids[number]);
            // SAFETY: `define` has compiled the function for exactly this signature.
            let function = unsafe { std::mem::transmute::<*const u8, NativeFunction>(code) };
            entries.push(entry(&tree.functions[number], &layout, frame));
            codes.push(EntryCode {
                function,
                needs_fibers: reach.needs_fibers,
                has_calls: reach.functions.len() > 1,
                shared_offsets: layout.offsets,
                dynamic_shared_offset: layout.dynamic_offset,
            });
        }
        let callee = |(number, function): (usize, &Function<'_>)| {
            let is_callable = function.body.is_some() && !function.is_entry;
            Callee {
                name: function.name.to_owned(),
                signature: function.signature.clone(),
                code: is_callable.then(|| jit.get_finalized_function(ids[number])),
            }
        };
        let callees = tree.functions.iter().enumerate().map(callee).collect();
        Ok(Self {
            header: tree.header,
            entries,
            codes,
            globals,
            callees,
            prototypes,
            jit: ManuallyDrop::new(jit),
        })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn code(&self, index: usize) -> &EntryCode {
        &self.codes[index]
    }

    pub(crate) fn globals(&self) -> &[GlobalVar] {
        &self.globals
    }

    /// The code a pointer leads to, if it is a function that fits the prototype.
    pub(crate) fn callee(&self, address: u64, prototype: usize) -> Result<*const u8, String> {
        let distance = address.wrapping_sub(FIRST);
        let number = usize::try_from(distance / STRIDE).unwrap_or(usize::MAX);
        let callee = self.callees.get(number);
        let callee = callee
            .filter(|_| distance.is_multiple_of(STRIDE))
            .ok_or("this is not the address of a function of the module")?;
        if !self.prototypes[prototype].fits(&callee.signature) {
            return Err(format!("`{}` has another signature", callee.name));
        }
        callee
            .code
            .ok_or_else(|| format!("`{}` cannot be called", callee.name))
    }
}

fn new_jit(options: &Options) -> Result<JITModule, PtxError> {
    let failed = |what: String| PtxError::new(1, format!("no code can be made: {what}"));
    let mut flags = settings::builder();
    let level = if options.quick { "none" } else { "speed" };
    let checks = if cfg!(debug_assertions) {
        "true"
    } else {
        "false"
    };
    let values = [
        ("opt_level", level),
        ("enable_verifier", checks),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        // Large frames touch each page of the stack, so that its guard page is never jumped over.
        ("probestack_strategy", "inline"),
    ];
    for (name, value) in values {
        let set = flags.set(name, value);
        set.map_err(|error| failed(error.to_string()))?;
    }
    let isa = cranelift_native::builder_with_options(!options.baseline);
    let isa = isa.map_err(|error| failed(error.to_owned()))?;
    let isa = isa.finish(settings::Flags::new(flags));
    let isa = isa.map_err(|error| failed(error.to_string()))?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for routine in Routine::ALL {
        let spec = routine.spec();
        builder.symbol(spec.name, spec.address);
    }
    // Processors without an instruction for these call them, wherever they come from.
    for (name, address) in numbers::library() {
        builder.symbol(name, address);
    }
    Ok(JITModule::new(builder))
}

/// Declares all functions, so that they can call each other; names of PTX need not be those of a
/// linker, so they are numbered.
fn declare(jit: &mut JITModule, tree: &ModuleTree<'_>) -> Result<Vec<FuncId>, PtxError> {
    let signature = translate::signature(jit);
    let functions = tree.functions.iter().enumerate();
    functions
        .map(|(number, function)| {
            jit.declare_function(&format!("ptx::{number}"), Link::Local, &signature)
                .map_err(|error| PtxError::new(function.line, error.to_string()))
        })
        .collect()
}

fn entry(function: &Function<'_>, layout: &SharedLayout, frame: &Frame) -> Entry {
    let params = &function.signature.params;
    let layouts = params.iter().map(|param| ParamLayout {
        offset: param.offset,
        size: param.size,
        align: param.align,
    });
    // Compilers write a new register for every value; a GPU keeps few of them at a time.
    let declared = function
        .body
        .as_ref()
        .map_or(0, |body| body.registers.len());
    let registers = u32::try_from(16 + declared / 8).unwrap_or(255).min(255);
    Entry {
        name: function.name.to_owned(),
        params: layouts.collect(),
        params_size: Signature::bytes(params),
        static_shared: layout.static_bytes,
        max_threads: function.limits.max_threads,
        required_threads: function.limits.required,
        registers,
        local_bytes: frame.local_bytes,
    }
}

fn global(global: &ptx::Global<'_>) -> Result<GlobalVar, PtxError> {
    let variable = &global.variable;
    let relocations = global.init.pointers.iter().map(|pointer| {
        let target = match pointer.symbol {
            Symbol::Global(number) => Target::Variable(number),
            Symbol::Function(number) => Target::Function(handle(number)),
            Symbol::ModuleShared(_) | Symbol::Variable(_) => {
                let message = format!(
                    "`{}` begins with the address of shared memory",
                    variable.name
                );
                return Err(PtxError::new(variable.line, message));
            }
        };
        Ok(Relocation {
            offset: pointer.offset,
            bytes: pointer.bytes,
            target,
            addend: pointer.addend,
        })
    });
    Ok(GlobalVar {
        name: variable.name.to_owned(),
        constant: variable.space == StateSpace::Const,
        size: variable.size,
        align: u64::from(variable.align.max(1)),
        init: global.init.bytes.clone(),
        relocations: relocations.collect::<Result<_, _>>()?,
    })
}
