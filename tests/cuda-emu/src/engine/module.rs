//! A module of PTX, compiled for the host.

use std::sync::Arc;

use crate::jit::Image;
use crate::ptx::PtxError;

/// How to compile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Spend less time on compiling, more on running.
    pub quick: bool,
    /// Use only instructions that every processor of this kind has.
    pub baseline: bool,
}

/// A loaded module. Cheap to clone; kernels keep it alive.
#[derive(Debug, Clone)]
pub struct Module {
    image: Arc<Image>,
}

/// Which PTX a module is written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `.version`, major and minor.
    pub version: (u32, u32),
    /// First word of `.target`, such as `sm_75`.
    pub target: String,
}

impl Header {
    /// Reads the first directives only, so that a text of a later version can be told from a broken
    /// one.
    ///
    /// # Errors
    /// When the text does not begin with `.version` and `.target`.
    pub fn read(ptx: &str) -> Result<Self, PtxError> {
        crate::ptx::header(ptx)
    }
}

/// A variable of a module, to be placed in device memory before the first launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalVar {
    /// Name, as `cuModuleGetGlobal` knows it.
    pub name: String,
    /// Whether it is constant memory, read-only for kernels.
    pub constant: bool,
    /// Bytes.
    pub size: u64,
    /// Its address must be a multiple of this.
    pub align: u64,
    /// Value of the first bytes; the others are zero.
    pub init: Vec<u8>,
    /// Addresses to be written into the value once they are known.
    pub relocations: Vec<Relocation>,
}

/// A place in a variable that holds an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the variable.
    pub offset: u64,
    /// Bytes of the address that are written there.
    pub bytes: u32,
    /// Whose address.
    pub target: Target,
    /// Added to it.
    pub addend: i64,
}

/// What an initialiser points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A variable, by its place in [`Module::globals`].
    Variable(usize),
    /// A function: this value stands for it, wherever the module is loaded.
    Function(u64),
}

/// Where one parameter lies in the parameter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamLayout {
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment.
    pub align: u32,
}

impl Module {
    /// Parses and compiles a module.
    ///
    /// # Errors
    /// Whatever cannot be executed faithfully is refused here, with its line.
    pub fn load(ptx: &str, options: &Options) -> Result<Self, PtxError> {
        let image = Arc::new(Image::build(ptx, options)?);
        Ok(Self { image })
    }

    /// Version and target.
    pub fn header(&self) -> &Header {
        self.image.header()
    }

    /// An entry point.
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        let index = self.image.entries().iter().position(|e| e.name == name)?;
        Some(Kernel {
            image: Arc::clone(&self.image),
            index,
        })
    }

    /// Names of all entry points, in the order of the text.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.image.entries().iter().map(|entry| entry.name.as_str())
    }

    /// Variables in global and constant memory.
    pub fn globals(&self) -> &[GlobalVar] {
        self.image.globals()
    }

    /// All bytes of the variable `index`, given where every variable lies.
    ///
    /// # Panics
    /// When `bases` is not as long as [`globals`](Self::globals).
    pub fn initial_bytes(&self, index: usize, bases: &[u64]) -> Vec<u8> {
        assert_eq!(bases.len(), self.globals().len(), "one base per variable");
        let variable = &self.globals()[index];
        let mut bytes = variable.init.clone();
        let size = usize::try_from(variable.size).expect("sizes are checked when a text is parsed");
        bytes.resize(size, 0);
        for relocation in &variable.relocations {
            let address = match relocation.target {
                Target::Variable(other) => bases[other],
                Target::Function(handle) => handle,
            };
            let value = address.wrapping_add_signed(relocation.addend).to_le_bytes();
            let at =
                usize::try_from(relocation.offset).expect("an offset lies inside its variable");
            let length = relocation.bytes as usize;
            bytes[at..at + length].copy_from_slice(&value[..length]);
        }
        bytes
    }
}

/// An entry point. Cheap to clone; keeps its module alive.
#[derive(Debug, Clone)]
pub struct Kernel {
    image: Arc<Image>,
    index: usize,
}

/// What is known about an entry point.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name in the text.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<ParamLayout>,
    /// Bytes of the whole parameter block.
    pub params_size: u32,
    /// Bytes of shared memory the kernel declares itself.
    pub static_shared: u32,
    /// Most threads of a block, from `.maxntid` or `.reqntid`.
    pub max_threads: Option<u32>,
    /// The only block size allowed, from `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// A guess of what a GPU would use, for occupancy questions.
    pub registers: u32,
    /// Bytes of local memory of a thread, calls excluded.
    pub local_bytes: u32,
}

impl Kernel {
    /// Name in the text.
    pub fn name(&self) -> &str {
        &self.entry().name
    }

    /// Everything known about it.
    pub fn entry(&self) -> &Entry {
        &self.image.entries()[self.index]
    }

    /// The module it belongs to.
    pub fn module(&self) -> Module {
        Module {
            image: Arc::clone(&self.image),
        }
    }

    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }
}
