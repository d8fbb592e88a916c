//! Where variables lie.

use std::collections::HashMap;

use super::survey::Reach;
use crate::ptx::{Body, ModuleTree, PtxError, StateSpace, Variable};

/// Shared variables of a module, numbered: first those of the module, then those of its functions.
#[derive(Debug)]
pub(super) struct SharedVariables {
    of_module: usize,
    of_functions: HashMap<(usize, usize), usize>,
}

impl SharedVariables {
    pub(super) fn of(tree: &ModuleTree<'_>) -> Self {
        let of_module = tree.shared.len();
        let mut of_functions = HashMap::new();
        for (function, body) in bodies(tree) {
            for (number, variable) in body.variables.iter().enumerate() {
                if variable.space == StateSpace::Shared {
                    let next = of_module + of_functions.len();
                    of_functions.insert((function, number), next);
                }
            }
        }
        Self {
            of_module,
            of_functions,
        }
    }

    pub(super) fn of_function(&self, function: usize, variable: usize) -> usize {
        self.of_functions[&(function, variable)]
    }

    fn count(&self) -> usize {
        self.of_module + self.of_functions.len()
    }
}

fn bodies<'t, 'a>(tree: &'t ModuleTree<'a>) -> impl Iterator<Item = (usize, &'t Body<'a>)> {
    let functions = tree.functions.iter().enumerate();
    functions.filter_map(|(number, function)| Some((number, function.body.as_ref()?)))
}

/// Shared memory of one kernel.
#[derive(Debug)]
pub(super) struct SharedLayout {
    /// Offset of each shared variable of the module; those of others kernels have none.
    pub(super) offsets: Vec<u32>,
    pub(super) static_bytes: u32,
    /// Where arrays without a length begin.
    pub(super) dynamic_offset: u32,
}

impl SharedLayout {
    pub(super) fn new(
        tree: &ModuleTree<'_>,
        variables: &SharedVariables,
        reach: &Reach,
    ) -> Result<Self, PtxError> {
        let mut offsets = vec![u32::MAX; variables.count()];
        let mut end = 0;
        let mut dynamic = Vec::new();
        let mut dynamic_align = 16;
        let mut place = |number: usize, variable: &Variable<'_>| {
            if variable.size == 0 {
                dynamic.push(number);
                dynamic_align = dynamic_align.max(variable.align);
                return Ok(());
            }
            offsets[number] = append(&mut end, variable)?;
            Ok(())
        };
        for number in &reach.shared {
            place(*number, &tree.shared[*number])?;
        }
        for function in &reach.functions {
            let Some(body) = &tree.functions[*function].body else {
                continue;
            };
            for (number, variable) in body.variables.iter().enumerate() {
                if variable.space == StateSpace::Shared {
                    place(variables.of_function(*function, number), variable)?;
                }
            }
        }
        let dynamic_offset = end.next_multiple_of(dynamic_align);
        for number in dynamic {
            offsets[number] = dynamic_offset;
        }
        Ok(Self {
            offsets,
            static_bytes: end,
            dynamic_offset,
        })
    }
}

/// Places a variable behind the others.
fn append(end: &mut u32, variable: &Variable<'_>) -> Result<u32, PtxError> {
    let start = end.checked_next_multiple_of(variable.align.max(1));
    let size = u32::try_from(variable.size).ok();
    let placed = start.zip(size).and_then(|(start, size)| {
        *end = start.checked_add(size).filter(|end| *end <= 1 << 28)?;
        Some(start)
    });
    placed.ok_or_else(|| {
        let message = format!("`{}` is larger than any memory of its sort", variable.name);
        PtxError::new(variable.line, message)
    })
}

/// Local variables and outgoing parameters of one function.
#[derive(Debug)]
pub(super) struct Frame {
    /// Offset of each local variable and each outgoing parameter in its own area, by number.
    pub(super) offsets: Vec<u32>,
    pub(super) local_bytes: u32,
    pub(super) param_bytes: u32,
}

impl Frame {
    pub(super) fn new(body: &Body<'_>) -> Result<Self, PtxError> {
        let mut offsets = Vec::new();
        let (mut local, mut param) = (0, 0);
        for (number, variable) in body.variables.iter().enumerate() {
            let is_formal = body.params.contains(&number) || body.returns.contains(&number);
            offsets.push(match variable.space {
                StateSpace::Local => append(&mut local, variable)?,
                StateSpace::Param if !is_formal => append(&mut param, variable)?,
                _ => 0,
            });
        }
        Ok(Self {
            offsets,
            local_bytes: local,
            param_bytes: param,
        })
    }
}
