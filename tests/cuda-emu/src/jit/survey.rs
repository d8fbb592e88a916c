//! What a function uses, found before any code is made.

use std::collections::BTreeSet;

use crate::ptx::{Base, Body, Function, Instruction, ModuleTree, Operand, Statement, Symbol};

/// What one function mentions.
#[derive(Debug, Default, Clone)]
pub(super) struct Survey {
    /// Shared variables of the module.
    pub(super) shared: BTreeSet<usize>,
    /// Functions it calls by name.
    callees: BTreeSet<usize>,
    /// Functions whose address it takes.
    taken: BTreeSet<usize>,
    calls_pointers: bool,
    /// Threads meet in it.
    meets: bool,
    /// It may spin until another thread has done something.
    spins: bool,
}

impl Survey {
    fn of(body: &Body<'_>) -> Self {
        let mut found = Self::default();
        let mut seen_labels = BTreeSet::new();
        let mut has_loop = false;
        let mut watches = false;
        for statement in &body.statements {
            match statement {
                Statement::Label(label) => {
                    seen_labels.insert(*label);
                }
                Statement::Instruction(instruction) => {
                    found.instruction(instruction);
                    watches |= is_watching(instruction);
                    has_loop |=
                        targets(instruction, body).any(|label| seen_labels.contains(&label));
                }
            }
        }
        found.spins = has_loop && watches;
        found
    }

    fn instruction(&mut self, instruction: &Instruction<'_>) {
        let is_call = instruction.opcode == "call";
        match instruction.opcode {
            "bar" | "barrier" | "shfl" | "vote" | "match" | "activemask" | "redux" | "elect" => {
                self.meets = true;
            }
            _ => {}
        }
        for operand in &instruction.operands {
            match operand {
                Operand::Symbol(Symbol::Function(callee), _) if is_call => {
                    self.callees.insert(*callee);
                }
                Operand::Reg(_) if is_call => self.calls_pointers = true,
                other => self.operand(other),
            }
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Symbol(symbol, _) => self.symbol(*symbol),
            Operand::Address(address) => {
                if let Base::Symbol(symbol) = address.base {
                    self.symbol(symbol);
                }
            }
            Operand::Vector(parts) | Operand::List(parts) => {
                for part in parts {
                    self.operand(part);
                }
            }
            _ => {}
        }
    }

    fn symbol(&mut self, symbol: Symbol) {
        match symbol {
            Symbol::ModuleShared(number) => {
                self.shared.insert(number);
            }
            Symbol::Function(number) => {
                self.taken.insert(number);
            }
            Symbol::Global(_) | Symbol::Variable(_) => {}
        }
    }
}

/// Loads that another thread's store is expected to change, and exchanges as locks use them.
fn is_watching(instruction: &Instruction<'_>) -> bool {
    let has = |word: &str| instruction.modifiers.contains(&word);
    match instruction.opcode {
        "ld" => has("volatile") || has("relaxed") || has("acquire") || has("mmio"),
        "atom" => has("cas") || has("exch"),
        "nanosleep" => true,
        _ => false,
    }
}

/// Labels that an instruction may jump to.
pub(super) fn targets<'a>(
    instruction: &'a Instruction<'_>,
    body: &'a Body<'_>,
) -> impl Iterator<Item = usize> + 'a {
    use crate::ptx::Name;
    let names = instruction
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Name(place) => Some(&body.names[*place]),
            _ => None,
        });
    names.flat_map(|name| match name {
        Name::Label(label) => vec![*label],
        Name::Targets(labels) => labels.clone(),
        Name::Prototype(_) => Vec::new(),
    })
}

/// What a kernel uses, through all the functions it may call.
#[derive(Debug)]
pub(super) struct Reach {
    /// Functions that may run, the kernel first.
    pub(super) functions: Vec<usize>,
    pub(super) shared: BTreeSet<usize>,
    pub(super) needs_fibers: bool,
}

/// Surveys of all functions of a module.
#[derive(Debug)]
pub(super) struct Surveys {
    all: Vec<Survey>,
    /// Functions that a pointer may lead to.
    taken: BTreeSet<usize>,
}

impl Surveys {
    pub(super) fn of(tree: &ModuleTree<'_>) -> Self {
        let survey =
            |function: &Function<'_>| function.body.as_ref().map(Survey::of).unwrap_or_default();
        let all: Vec<Survey> = tree.functions.iter().map(survey).collect();
        let mut taken: BTreeSet<usize> = all.iter().flat_map(|one| one.taken.clone()).collect();
        for global in &tree.globals {
            for pointer in &global.init.pointers {
                if let Symbol::Function(number) = pointer.symbol {
                    taken.insert(number);
                }
            }
        }
        Self { all, taken }
    }

    pub(super) fn reach(&self, entry: usize) -> Reach {
        let mut functions = vec![entry];
        let mut shared = BTreeSet::new();
        let mut needs_fibers = false;
        let mut next = 0;
        while let Some(&number) = functions.get(next) {
            next += 1;
            let survey = &self.all[number];
            shared.extend(&survey.shared);
            needs_fibers |= survey.meets || survey.spins;
            let pointed = survey.calls_pointers.then_some(&self.taken);
            for callee in survey.callees.iter().chain(pointed.into_iter().flatten()) {
                if !functions.contains(callee) {
                    functions.push(*callee);
                }
            }
        }
        Reach {
            functions,
            shared,
            needs_fibers,
        }
    }
}
