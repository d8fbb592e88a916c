//! One instruction, and the function it is in while that is being read.

use super::PtxError;
use super::lexer::Kind;
use super::parser::Parser;
use super::scope::Scopes;
use super::tree::{Body, Instruction, Name, Operand, Reg, Variable};

/// A function whose end has not been reached.
#[derive(Debug)]
pub(super) struct Inside<'a> {
    pub(super) body: Body<'a>,
    pub(super) scopes: Scopes<'a>,
    /// Names used so far that may be declared later: block, name and line of the use.
    uses: Vec<(usize, &'a str, u32)>,
}

impl<'a> Inside<'a> {
    pub(super) fn new() -> Self {
        Self {
            body: Body::default(),
            scopes: Scopes::new(),
            uses: Vec::new(),
        }
    }

    pub(super) fn declare_formals(&mut self, variables: Vec<Variable<'a>>) -> Vec<usize> {
        let mut numbers = Vec::new();
        for variable in variables {
            numbers.push(self.body.variables.len());
            self.declare_variable(variable);
        }
        numbers
    }

    /// False when the name is taken in this block.
    pub(super) fn declare_variable(&mut self, variable: Variable<'a>) -> bool {
        let number = self.body.variables.len();
        let name = variable.name;
        self.body.variables.push(variable);
        self.scopes.declare_variable(name, number)
    }

    pub(super) fn use_name(&mut self, name: &'a str, line: u32) -> Operand {
        self.uses.push((self.scopes.current(), name, line));
        Operand::Name(self.uses.len() - 1)
    }

    /// Finds out what names that were used before their declaration mean.
    pub(super) fn finish(mut self) -> Result<Body<'a>, PtxError> {
        let find = |(scope, name, line): &(usize, &str, u32)| {
            let unknown = || PtxError::new(*line, format!("`{name}` is not declared"));
            self.scopes.name(*scope, name).cloned().ok_or_else(unknown)
        };
        let mut names = self.uses.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let labels: Vec<Option<usize>> = names
            .iter()
            .map(|name| match name {
                Name::Label(label) => Some(*label),
                _ => None,
            })
            .collect();
        for (name, (_, text, line)) in names.iter_mut().zip(&self.uses) {
            if let Name::Targets(uses) = name {
                for place in uses {
                    let wrong = || PtxError::new(*line, format!("`{text}` lists no labels"));
                    *place = labels[*place].ok_or_else(wrong)?;
                }
            }
        }
        self.body.names = names;
        Ok(self.body)
    }
}

impl<'a> Parser<'_, 'a> {
    /// `@p opcode.modifiers operands;`
    pub(super) fn instruction(
        &mut self,
        inside: &mut Inside<'a>,
    ) -> Result<Instruction<'a>, PtxError> {
        let line = self.line();
        let guard = self.guard(inside)?;
        let opcode = self.word()?;
        let mut modifiers = Vec::new();
        while let Some(Kind::Dot(word)) = self.peek() {
            self.advance();
            modifiers.push(word);
        }
        if modifiers.len() > 64 {
            return Err(PtxError::new(line, "more than 64 modifiers"));
        }
        let mut operands = Vec::new();
        if !self.accept(';') {
            loop {
                operands.push(self.operand(inside)?);
                if !self.accept(',') {
                    break;
                }
            }
            self.expect(';')?;
        }
        Ok(Instruction {
            line,
            guard,
            opcode,
            modifiers,
            operands,
        })
    }

    fn guard(&mut self, inside: &Inside<'a>) -> Result<Option<(Reg, bool)>, PtxError> {
        if !self.accept('@') {
            return Ok(None);
        }
        let negated = self.accept('!');
        let name = self.word()?;
        match inside.scopes.register(name) {
            Some(register) => Ok(Some((register, negated))),
            None => Err(self.error_before(format!("`{name}` is no register"))),
        }
    }
}
