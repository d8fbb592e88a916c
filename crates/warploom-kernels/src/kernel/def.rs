//! A kernel as plain data.

use serde::{Deserialize, Serialize};
use warploom_core::{DType, Language, Param};

use crate::expr::{Id, Node, Ty};

/// What a kernel does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Reads and writes it.
    ReadWrite,
}

/// A buffer of a kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BufferDecl {
    /// Its name in the text.
    pub name: String,
    /// Its elements.
    pub dtype: DType,
    /// What is done with it.
    pub access: Access,
    /// Whether some access to it is atomic.
    pub atomic: bool,
}

/// A number of a kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ScalarDecl {
    /// Its name in the text.
    pub name: String,
    /// Its type: `i32`, `u32` or `f32` (`f64` where the language has it).
    pub ty: Ty,
}

/// Where an array of a kernel lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Space {
    /// One for each work item.
    Private,
    /// One for each work group.
    Shared,
}

/// An array of a kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ArrayDecl {
    /// What its elements are loaded as.
    pub ty: Ty,
    /// The elements' own type, where it is narrower than what they are loaded as: languages that
    /// have such arrays keep more of them in a vector.
    pub narrow: Option<DType>,
    /// How many.
    pub length: u32,
    /// Where it lives.
    pub space: Space,
    /// Whether some access to it is atomic.
    pub atomic: bool,
    /// Whether it is dealt out, so that whole vectors of it are moved.
    pub dealt: bool,
}

/// A place in the launch: an `i32` that differs between work items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Work {
    /// The item among all, along x, y, z (0, 1, 2).
    Global(u8),
    /// The item in its group.
    Local(u8),
    /// The group.
    Group(u8),
    /// How many groups there are.
    Groups(u8),
}

/// An atomic operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Atomic {
    /// Adds.
    Add,
    /// Keeps the smaller.
    Min,
    /// Keeps the larger.
    Max,
    /// Sets bits.
    Or,
    /// Stores.
    Exchange,
    /// Stores if it was equal to the second value.
    CompareExchange(Id),
}

/// Memory that is indexed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Place {
    /// A buffer, by its number.
    Buffer(u32),
    /// An array, by its number.
    Array(u32),
}

/// A statement. Expressions are evaluated where they stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Stmt {
    /// Names a value; local variables are numbered.
    Let(u32, Id),
    /// Names an element of memory.
    Load(u32, Place, Id),
    /// Names a place in the launch.
    Work(u32, Work),
    /// Makes a variable.
    Var(u32, Id),
    /// Names a variable's value now.
    Get(u32, u32),
    /// Changes a variable.
    Set(u32, Id),
    /// Writes an element of memory.
    Store(Place, Id, Id),
    /// Copies so many elements that lie side by side in a buffer, from a number on, into an array of the same
    /// elements, from the last number on.
    Copy(Place, Id, u32, Place, u32),
    /// Deals an array out onto the halves of another of the same length: elements of even numbers, then
    /// those of odd ones.
    Deal(Place, Place),
    /// Puts the halves of an array together on another of the same length: elements of the first half have
    /// even numbers then, those of the second odd ones. Undoes what dealing does.
    Riffle(Place, Place),
    /// An element of memory and those around it will be read soon, or written: a hint.
    Soon(Place, Id, Access),
    /// Changes an element of memory as one step, and names what it was.
    Atomic(u32, Atomic, Place, Id, Id),
    /// Runs the first block if the condition holds, else the second.
    If(Id, Vec<Stmt>, Vec<Stmt>),
    /// Runs a block with a local variable going from the first up to, not including, the second.
    For(u32, Id, Id, Id, Vec<Stmt>),
    /// Runs the first block and, if the condition holds then, the second, again and again.
    While(Vec<Stmt>, Id, Vec<Stmt>),
    /// Waits for all items of the group. Never under a condition that differs between items.
    Barrier,
    /// Leaves the innermost loop.
    Break,
}

/// What a kernel's text is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C.
    Cuda,
    /// WGSL.
    Wgsl,
}

impl Target {
    /// The language it is called in the contract.
    pub const fn language(self) -> Language {
        match self {
            Self::OpenCl => Language::OpenClC,
            Self::Cuda => Language::CudaC,
            Self::Wgsl => Language::Wgsl,
        }
    }
}

/// A kernel as plain data.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KernelDef {
    /// Its name.
    pub name: String,
    /// Buffers, in the order of the arguments.
    pub buffers: Vec<BufferDecl>,
    /// Numbers, in the order of the arguments, after the buffers.
    pub scalars: Vec<ScalarDecl>,
    /// Arrays.
    pub arrays: Vec<ArrayDecl>,
    /// Items of a work group in x, y, z.
    pub group: [u32; 3],
    /// Every expression.
    pub nodes: Vec<(Node, Ty)>,
    /// What it does.
    pub body: Vec<Stmt>,
    /// Its text in the one language it is for, where somebody else wrote it; there is no body then.
    pub written: Option<String>,
}

impl KernelDef {
    /// Its text for a target.
    pub fn text(&self, target: Target) -> String {
        if let Some(written) = &self.written {
            return written.clone();
        }
        match target {
            Target::OpenCl | Target::Cuda => super::c::text(self, target),
            Target::Wgsl => super::wgsl::text(self),
        }
    }

    /// Its parameters as the contract knows them: buffers, then numbers.
    pub fn params(&self) -> Vec<Param> {
        let buffers = self.buffers.iter().map(|buffer| match buffer.access {
            Access::Read => Param::Read,
            Access::Write => Param::Write,
            Access::ReadWrite => Param::ReadWrite,
        });
        let scalars = self.scalars.iter().map(|scalar| {
            Param::Scalar(match scalar.ty {
                Ty::U32 => DType::U32,
                Ty::F32 => DType::F32,
                Ty::F64 => DType::F64,
                Ty::I32 | Ty::Bool => DType::I32,
            })
        });
        buffers.chain(scalars).collect()
    }

    /// Does it compute with `f64` anywhere?
    pub fn is_wide(&self) -> bool {
        let values = self.nodes.iter().any(|(_, ty)| *ty == Ty::F64);
        values || self.buffers.iter().any(|b| b.dtype == DType::F64)
    }
}
