//! What tests need to run kernels: memory with an owner, and launches in one line.

mod memory;
mod noise;
mod operation;

use std::sync::Mutex;

use warploom_cuda_emu::engine::{Fault, Launch, Module, Options, Rules, launch};

pub(crate) use self::memory::Memory;
pub(crate) use self::noise::Noise;
pub(crate) use self::operation::{Out, check, check_that, pairs, singles, triples};

/// A loaded module with its variables in place.
pub(crate) struct Rig {
    pub(crate) module: Module,
    pub(crate) memory: Memory,
    globals: Vec<u64>,
    pub(crate) rules: Rules,
    pub(crate) printed: Mutex<String>,
}

/// The shape of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
}

impl Shape {
    /// Blocks and threads in one direction.
    pub(crate) fn line(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared: 0,
        }
    }

    pub(crate) fn with_shared(self, shared: u32) -> Self {
        Self { shared, ..self }
    }
}

/// An argument of a kernel, as its bytes.
pub(crate) struct Arg(Vec<u8>);

impl<T: bytemuck::NoUninit> From<T> for Arg {
    fn from(value: T) -> Self {
        Self(bytemuck::bytes_of(&value).to_vec())
    }
}

/// Arguments in parentheses: `args!(a, 3u32)`.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$($crate::rig::Arg::from($value)),*]
    };
}

impl Rig {
    pub(crate) fn new(ptx: &str) -> Self {
        let module = match Module::load(ptx, &Options::default()) {
            Ok(module) => module,
            Err(error) => panic!("{error}\n{ptx}"),
        };
        let memory = Memory::new();
        let variables = module.globals();
        let globals: Vec<u64> = variables
            .iter()
            .map(|variable| memory.reserve(variable.size, variable.align))
            .collect();
        for (index, base) in globals.iter().enumerate() {
            memory.write(*base, &module.initial_bytes(index, &globals));
        }
        Self {
            module,
            memory,
            globals,
            rules: Rules::default(),
            printed: Mutex::default(),
        }
    }

    pub(crate) fn with_seed(mut self, seed: u64) -> Self {
        self.rules.seed = seed;
        self
    }

    /// Where a variable lies.
    pub(crate) fn global(&self, name: &str) -> u64 {
        let variables = self.module.globals();
        let index = variables.iter().position(|variable| variable.name == name);
        self.globals[index.expect("the module has the variable")]
    }

    pub(crate) fn launch(&self, kernel: &str, shape: Shape, args: &[Arg]) -> Result<(), Fault> {
        let kernel = self.module.kernel(kernel).expect("the kernel is there");
        let entry = kernel.entry();
        assert_eq!(entry.params.len(), args.len(), "number of arguments");
        let mut params = vec![0; entry.params_size as usize];
        for (layout, arg) in entry.params.iter().zip(args) {
            assert_eq!(layout.size as usize, arg.0.len(), "size of an argument");
            let start = layout.offset as usize;
            params[start..start + arg.0.len()].copy_from_slice(&arg.0);
        }
        let print = |text: &str| {
            let printed = self.printed.lock();
            printed.expect("printing does not panic").push_str(text);
        };
        launch(&Launch {
            kernel: &kernel,
            grid: shape.grid,
            block: shape.block,
            dynamic_shared: shape.shared,
            params: &params,
            globals: &self.globals,
            memory: &self.memory,
            print: &print,
            cancel: None,
            rules: self.rules,
        })
    }

    pub(crate) fn run(&self, kernel: &str, shape: Shape, args: &[Arg]) {
        if let Err(fault) = self.launch(kernel, shape, args) {
            panic!("{fault}");
        }
    }
}
