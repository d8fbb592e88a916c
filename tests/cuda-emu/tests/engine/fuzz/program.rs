//! What a random program consists of.

use super::rules::{RULES, Rule};
use crate::rig::Noise;

/// Sorts of registers. Each program has six of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// 16 bits.
    H,
    /// 32 bits.
    R,
    /// 64 bits.
    D,
    /// Singles.
    F,
    /// Doubles.
    G,
    /// Predicates.
    P,
}

pub(super) const SORTS: [Sort; 6] = [Sort::H, Sort::R, Sort::D, Sort::F, Sort::G, Sort::P];
pub(super) const REGISTERS: usize = 6;

impl Sort {
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::P => 1,
            Self::H => 16,
            Self::R | Self::F => 32,
            Self::D | Self::G => 64,
        }
    }

    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::H => "%h",
            Self::R => "%r",
            Self::D => "%d",
            Self::F => "%f",
            Self::G => "%g",
            Self::P => "%p",
        }
    }
}

/// Memory that a program may use, 64 bytes of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    Global,
    Shared,
    Local,
    /// Local memory through its generic address.
    Generic,
}

pub(super) const SCRATCH: usize = 64;
/// Global, shared and local.
pub(super) const SCRATCHES: usize = 3;

/// All registers as words of eight bytes, then the scratch memories.
pub(super) const STATE_BYTES: usize = SORTS.len() * REGISTERS * 8 + SCRATCHES * SCRATCH;

impl Space {
    pub(super) fn scratch(self) -> usize {
        match self {
            Self::Global => 0,
            Self::Shared => 1,
            Self::Local | Self::Generic => 2,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Register(usize),
    /// Bits of a constant.
    Constant(u64),
}

/// A predicate register, and whether it is negated.
pub(super) type Guard = Option<(usize, bool)>;

#[derive(Debug)]
pub(super) enum Statement {
    Compute {
        rule: &'static Rule,
        target: usize,
        sources: Vec<Source>,
        guard: Guard,
    },
    /// Loads or stores `lanes` registers of a sort from `target` on, at a place that a register
    /// decides.
    Access {
        is_load: bool,
        space: Space,
        /// Type, by its name, and its bytes in memory.
        ty: &'static str,
        bytes: usize,
        sort: Sort,
        lanes: usize,
        target: usize,
        place: usize,
        guard: Guard,
    },
    If {
        predicate: usize,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Loop {
        times: u32,
        body: Vec<Statement>,
    },
    Barrier,
}

/// One kernel.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) body: Vec<Statement>,
}

/// Types of memory accesses, with the sort of register they go with.
const TYPES: [(&str, usize, Sort); 15] = [
    ("u8", 1, Sort::H),
    ("s8", 1, Sort::H),
    ("u8", 1, Sort::R),
    ("s8", 1, Sort::R),
    ("u16", 2, Sort::H),
    ("s16", 2, Sort::R),
    ("b16", 2, Sort::H),
    ("u32", 4, Sort::R),
    ("s32", 4, Sort::D),
    ("b32", 4, Sort::R),
    ("u64", 8, Sort::D),
    ("b64", 8, Sort::D),
    ("f32", 4, Sort::F),
    ("f64", 8, Sort::G),
    ("b32", 4, Sort::F),
];

impl Program {
    pub(super) fn random(seed: u64) -> Self {
        let mut noise = Noise::new(seed);
        let length = 8 + noise.below(40);
        Self {
            name: format!("program_{seed}"),
            body: statements(&mut noise, length, 0),
        }
    }
}

fn statements(noise: &mut Noise, length: u64, depth: u32) -> Vec<Statement> {
    (0..length).map(|_| statement(noise, depth)).collect()
}

fn statement(noise: &mut Noise, depth: u32) -> Statement {
    match noise.below(24) {
        0 if depth < 3 => Statement::If {
            predicate: register(noise),
            then: {
                let length = 1 + noise.below(5);
                statements(noise, length, depth + 1)
            },
            otherwise: {
                let length = noise.below(4);
                statements(noise, length, depth + 1)
            },
        },
        1 if depth < 2 => Statement::Loop {
            times: 1 + noise.below(5) as u32,
            body: {
                let length = 1 + noise.below(5);
                statements(noise, length, depth + 1)
            },
        },
        2 if depth == 0 && noise.below(4) == 0 => Statement::Barrier,
        3..=7 => access(noise),
        _ => compute(noise),
    }
}

fn register(noise: &mut Noise) -> usize {
    noise.below(REGISTERS as u64) as usize
}

fn guard(noise: &mut Noise) -> Guard {
    (noise.below(5) == 0).then(|| (register(noise), noise.below(2) == 1))
}

fn compute(noise: &mut Noise) -> Statement {
    let rule: &'static Rule = noise.pick(RULES);
    let sources = rule
        .from
        .iter()
        .map(|sort| {
            if *sort == Sort::P || noise.below(4) > 0 {
                Source::Register(register(noise))
            } else {
                Source::Constant(constant(noise, *sort))
            }
        })
        .collect();
    Statement::Compute {
        rule,
        target: register(noise),
        sources,
        guard: guard(noise),
    }
}

fn constant(noise: &mut Noise, sort: Sort) -> u64 {
    let mask = u64::MAX >> (64 - sort.bits());
    match sort {
        Sort::F => u64::from((noise.below(4000) as f32 / 16.0 - 100.0).to_bits()),
        Sort::G => (noise.below(4000) as f64 / 16.0 - 100.0).to_bits(),
        _ => match noise.below(4) {
            0 => noise.below(70),
            1 => noise.below(5).wrapping_neg() & mask,
            2 => 1 << noise.below(u64::from(sort.bits())),
            _ => noise.next() & mask,
        },
    }
}

fn access(noise: &mut Noise) -> Statement {
    let (ty, bytes, sort) = *noise.pick(&TYPES);
    let space = *noise.pick(&[Space::Global, Space::Shared, Space::Local, Space::Generic]);
    let lanes = match noise.below(5) {
        0 if bytes >= 4 => 2,
        1 if bytes == 4 => 4,
        _ => 1,
    };
    Statement::Access {
        is_load: noise.below(2) == 0,
        space,
        ty,
        bytes,
        sort,
        lanes,
        target: noise.below((REGISTERS + 1 - lanes) as u64) as usize,
        place: register(noise),
        guard: guard(noise),
    }
}
