//! What a parsed module consists of.

use super::special::Special;
use super::types::{StateSpace, Type};
use crate::engine::Header;

/// A whole text.
#[derive(Debug)]
pub(crate) struct ModuleTree<'a> {
    pub(crate) header: Header,
    /// Variables in global and constant memory.
    pub(crate) globals: Vec<Global<'a>>,
    /// Shared variables declared outside of any function.
    pub(crate) shared: Vec<Variable<'a>>,
    pub(crate) functions: Vec<Function<'a>>,
}

/// A variable in global or constant memory.
#[derive(Debug)]
pub(crate) struct Global<'a> {
    pub(crate) variable: Variable<'a>,
    pub(crate) init: Init,
}

/// The value a variable begins with.
#[derive(Debug, Default)]
pub(crate) struct Init {
    pub(crate) bytes: Vec<u8>,
    pub(crate) pointers: Vec<Pointer>,
}

/// An address inside of an initial value.
#[derive(Debug)]
pub(crate) struct Pointer {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) symbol: Symbol,
    pub(crate) addend: i64,
}

/// Something with a name, a size and an alignment.
#[derive(Debug, Clone)]
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a str,
    pub(crate) space: StateSpace,
    /// Type of one element.
    pub(crate) ty: Type,
    /// Bytes; zero for an array without a length.
    pub(crate) size: u64,
    pub(crate) align: u32,
    pub(crate) line: u32,
}

/// A kernel or a function.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) is_entry: bool,
    pub(crate) signature: Signature,
    pub(crate) limits: ThreadLimits,
    /// Absent for a function that is declared only.
    pub(crate) body: Option<Body<'a>>,
}

/// What `.maxntid` and `.reqntid` say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadLimits {
    pub(crate) max_threads: Option<u32>,
    pub(crate) required: Option<[u32; 3]>,
}

/// Parameters and results, by size and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) params: Vec<Param>,
    pub(crate) returns: Vec<Param>,
    /// `.noreturn`.
    pub(crate) no_return: bool,
}

/// One parameter in the block of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) align: u32,
    /// Type of one element, for arguments that are passed as registers or numbers.
    pub(crate) ty: Type,
}

impl Signature {
    /// Places one more parameter behind the others.
    pub(crate) fn place(block: &mut Vec<Param>, variable: &Variable<'_>) -> Option<()> {
        let end = Self::bytes(block);
        let offset = end.checked_next_multiple_of(variable.align.max(1))?;
        let size = u32::try_from(variable.size).ok()?;
        offset.checked_add(size)?;
        block.push(Param {
            offset,
            size,
            align: variable.align,
            ty: variable.ty,
        });
        Some(())
    }

    /// Length of a block of parameters.
    pub(crate) fn bytes(block: &[Param]) -> u32 {
        block.last().map_or(0, |last| last.offset + last.size)
    }

    /// Whether a call that expects `self` may end up in a function of signature `other`.
    pub(crate) fn fits(&self, other: &Self) -> bool {
        let same = |ours: &[Param], theirs: &[Param]| {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.size == b.size)
        };
        same(&self.params, &other.params) && same(&self.returns, &other.returns)
    }
}

/// The inside of a function.
#[derive(Debug, Default)]
pub(crate) struct Body<'a> {
    /// Type of each register, by its number.
    pub(crate) registers: Vec<Type>,
    /// Shared, local and parameter variables declared inside, and the formal parameters.
    pub(crate) variables: Vec<Variable<'a>>,
    /// Formal parameters: numbers in `variables`, in order.
    pub(crate) params: Vec<usize>,
    /// Formal results, likewise.
    pub(crate) returns: Vec<usize>,
    pub(crate) statements: Vec<Statement<'a>>,
    /// How many labels there are.
    pub(crate) labels: usize,
    /// What each [`Operand::Name`] turned out to mean.
    pub(crate) names: Vec<Name>,
}

/// A register, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reg(pub(crate) usize);

#[derive(Debug)]
pub(crate) enum Statement<'a> {
    Label(usize),
    Instruction(Instruction<'a>),
}

#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) line: u32,
    /// The predicate it depends on, and whether that is negated.
    pub(crate) guard: Option<(Reg, bool)>,
    pub(crate) opcode: &'a str,
    pub(crate) modifiers: Vec<&'a str>,
    pub(crate) operands: Vec<Operand>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Reg(Reg),
    /// `!p`.
    Not(Reg),
    Special(Special),
    /// An integer, as its 64 bits.
    Integer(u64),
    Single(u32),
    Double(u64),
    /// The address of something, and a number added to it.
    Symbol(Symbol, i64),
    /// `[...]`.
    Address(Address),
    /// `{...}`.
    Vector(Vec<Operand>),
    /// `(...)`, in calls.
    List(Vec<Operand>),
    /// `a|b`.
    Pair(Box<Operand>, Box<Operand>),
    /// `_`.
    Sink,
    /// A label, a prototype or a list of targets: its place in [`Body::names`].
    Name(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) offset: i64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Base {
    Reg(Reg),
    Symbol(Symbol),
    /// A number alone.
    Absolute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// In [`ModuleTree::globals`].
    Global(usize),
    /// In [`ModuleTree::shared`].
    ModuleShared(usize),
    /// In [`Body::variables`] of the function it occurs in.
    Variable(usize),
    /// In [`ModuleTree::functions`].
    Function(usize),
}

/// What a name that may be used before it is declared stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Label(usize),
    /// `.branchtargets`: labels.
    Targets(Vec<usize>),
    /// `.callprototype`.
    Prototype(Signature),
}
