//! Kernels and functions, up to the brace and what is declared inside.

use super::PtxError;
use super::instruction::Inside;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::{
    Body, Function, Name, Operand, Param, Signature, Statement, Symbol, ThreadLimits, Variable,
};
use super::types::{StateSpace, Type};
use super::variable::variable;

/// Registers of one function, more than any compiler uses.
const MOST_REGISTERS: usize = 1 << 20;

impl<'a> Parser<'_, 'a> {
    pub(super) fn function(&mut self) -> Result<(), PtxError> {
        let line = self.line();
        let is_entry = self.accept_dot("entry");
        if !is_entry {
            self.expect_dot("func")?;
        }
        let mut inside = Inside::new();
        let mut signature = Signature::default();
        self.accept_dot("noreturn");
        if !is_entry && self.peek() == Some(Kind::Mark('(')) {
            let returns = self.formals()?;
            signature.returns = place(&returns)?;
            inside.body.returns = inside.declare_formals(returns);
        }
        let name = self.word()?;
        if self.peek() == Some(Kind::Mark('(')) {
            let params = self.formals()?;
            signature.params = place(&params)?;
            inside.body.params = inside.declare_formals(params);
        }
        let limits = self.limits(&mut signature)?;
        let index = self.declare_function(Function {
            name,
            line,
            is_entry,
            signature,
            limits,
            body: None,
        })?;
        if self.accept(';') {
            return Ok(());
        }
        if self.functions[index].body.is_some() {
            return Err(PtxError::new(line, format!("`{name}` is defined twice")));
        }
        self.expect('{')?;
        self.functions[index].body = Some(self.body(inside)?);
        Ok(())
    }

    /// A second declaration must agree with the first.
    fn declare_function(&mut self, function: Function<'a>) -> Result<usize, PtxError> {
        let next = self.functions.len();
        match self.symbols.get(function.name) {
            None => {
                self.symbols.insert(function.name, Symbol::Function(next));
                self.functions.push(function);
                Ok(next)
            }
            Some(&Symbol::Function(index)) => {
                let known = &mut self.functions[index];
                if known.is_entry != function.is_entry || !known.signature.fits(&function.signature)
                {
                    let message = format!("`{}` was declared differently", function.name);
                    return Err(PtxError::new(function.line, message));
                }
                if known.body.is_none() {
                    *known = function;
                }
                Ok(index)
            }
            Some(_) => {
                let message = format!("`{}` is declared twice", function.name);
                Err(PtxError::new(function.line, message))
            }
        }
    }

    /// `( .param … , .param … )`.
    fn formals(&mut self) -> Result<Vec<Variable<'a>>, PtxError> {
        self.expect('(')?;
        let mut variables = Vec::new();
        while !self.accept(')') {
            if self.peek() == Some(Kind::Dot("reg")) {
                return Err(self.error("parameters in registers are not supported"));
            }
            self.expect_dot("param")?;
            let head = self.variable_head(StateSpace::Param)?;
            let declarator = self.declarator()?;
            variables.push(variable(head, &declarator, 0)?);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(variables)
    }

    /// What may stand between the parameters and the brace.
    fn limits(&mut self, signature: &mut Signature) -> Result<ThreadLimits, PtxError> {
        let mut limits = ThreadLimits::default();
        while let Some(Kind::Dot(word)) = self.peek() {
            self.advance();
            match word {
                "maxntid" | "reqntid" => {
                    let mut sides = self.integers()?;
                    sides.resize(3, 1);
                    let threads = sides.iter().try_fold(1u32, |sum, n| sum.checked_mul(*n));
                    let threads =
                        threads.ok_or_else(|| self.error_before("more than 2^32 threads"))?;
                    limits.max_threads = Some(threads);
                    if word == "reqntid" {
                        limits.required = Some([sides[0], sides[1], sides[2]]);
                    }
                }
                // Advice to the register allocator of a GPU.
                "minnctapersm" | "maxnctapersm" | "maxnreg" | "maxclusterrank" => {
                    self.integer()?;
                }
                "pragma" => self.pragma()?,
                "noreturn" => signature.no_return = true,
                _ => return Err(self.error_before(format!("`.{word}` of a function"))),
            }
        }
        Ok(limits)
    }

    /// `prototype : .callprototype (results) _ (parameters);`
    pub(super) fn prototype(&mut self) -> Result<Signature, PtxError> {
        let mut signature = Signature::default();
        if self.peek() == Some(Kind::Mark('(')) {
            let returns = self.formals()?;
            signature.returns = place(&returns)?;
        }
        self.word()?;
        if self.peek() == Some(Kind::Mark('(')) {
            let params = self.formals()?;
            signature.params = place(&params)?;
        }
        signature.no_return = self.accept_dot("noreturn");
        self.expect(';')?;
        Ok(signature)
    }

    /// From behind the opening brace to the closing one.
    fn body(&mut self, mut inside: Inside<'a>) -> Result<Body<'a>, PtxError> {
        loop {
            match self.peek() {
                Some(Kind::Mark('}')) => {
                    self.advance();
                    if !inside.scopes.leave() {
                        break;
                    }
                }
                Some(Kind::Mark('{')) => {
                    self.advance();
                    inside.scopes.enter();
                }
                // An empty statement is what inline assembly often ends with.
                Some(Kind::Mark(';')) => self.advance(),
                Some(Kind::Dot(word)) => {
                    self.advance();
                    self.declaration(word, &mut inside)?;
                }
                Some(Kind::Word(name)) if self.peek_after() == Some(Kind::Mark(':')) => {
                    self.advance();
                    self.advance();
                    self.label(name, &mut inside)?;
                }
                Some(_) => {
                    let instruction = self.instruction(&mut inside)?;
                    let statements = &mut inside.body.statements;
                    statements.push(Statement::Instruction(instruction));
                }
                None => return Err(self.error("the text ends inside of a function")),
            }
        }
        inside.finish()
    }

    fn declaration(&mut self, word: &str, inside: &mut Inside<'a>) -> Result<(), PtxError> {
        match word {
            "reg" => self.registers(inside),
            "pragma" => self.pragma(),
            "loc" | "file" => {
                self.skip_line();
                Ok(())
            }
            "shared" | "local" | "param" => {
                let space = StateSpace::named(word).unwrap_or(StateSpace::Local);
                let head = self.variable_head(space)?;
                loop {
                    let declarator = self.declarator()?;
                    let variable = variable(head, &declarator, 0)?;
                    let taken = !inside.declare_variable(variable);
                    if taken {
                        let message = format!("`{}` is declared twice", declarator.name);
                        return Err(self.error_before(message));
                    }
                    if !self.accept(',') {
                        return self.expect(';');
                    }
                }
            }
            _ => Err(self.error_before(format!("directive `.{word}` in a function"))),
        }
    }

    fn registers(&mut self, inside: &mut Inside<'a>) -> Result<(), PtxError> {
        let Some(ty) = (match self.peek() {
            Some(Kind::Dot(word)) => Type::named(word),
            _ => None,
        }) else {
            return Err(self.unexpected("a type of registers that is known here"));
        };
        self.advance();
        loop {
            let name = self.word()?;
            let count = if self.accept('<') {
                let count = self.small_integer()? as usize;
                self.expect('>')?;
                Some(count)
            } else {
                None
            };
            let first = inside.body.registers.len();
            let end = first + count.unwrap_or(1);
            if end > MOST_REGISTERS {
                return Err(self.error_before(format!("{end} registers in one function")));
            }
            inside.body.registers.resize(end, ty);
            if !inside.scopes.declare_registers(name, first, count) {
                return Err(self.error_before(format!("`{name}` is declared twice")));
            }
            if !self.accept(',') {
                return self.expect(';');
            }
        }
    }

    /// A label, or one of the lists that look like one.
    fn label(&mut self, name: &'a str, inside: &mut Inside<'a>) -> Result<(), PtxError> {
        let meaning = if self.accept_dot("callprototype") {
            Name::Prototype(self.prototype()?)
        } else if self.accept_dot("branchtargets") {
            let mut uses = Vec::new();
            loop {
                let label = self.word()?;
                uses.push(inside.use_name(label, self.line()));
                if !self.accept(',') {
                    break;
                }
            }
            self.expect(';')?;
            Name::Targets(uses.iter().map(label_use).collect())
        } else if self.peek() == Some(Kind::Dot("calltargets")) {
            return Err(self.error("`.calltargets` is not supported"));
        } else {
            let number = inside.body.labels;
            inside.body.labels += 1;
            inside.body.statements.push(Statement::Label(number));
            Name::Label(number)
        };
        if !inside.scopes.declare_name(name, meaning) {
            return Err(self.error_before(format!("`{name}` is declared twice")));
        }
        Ok(())
    }
}

/// The block that parameters make.
fn place(variables: &[Variable<'_>]) -> Result<Vec<Param>, PtxError> {
    let mut block = Vec::new();
    for variable in variables {
        Signature::place(&mut block, variable)
            .ok_or_else(|| PtxError::new(variable.line, "parameters of more than 4 GiB"))?;
    }
    Ok(block)
}

/// Until the function ends, a target is the place of a use; see [`Inside::finish`].
fn label_use(operand: &Operand) -> usize {
    match operand {
        Operand::Name(place) => *place,
        _ => unreachable!("a use of a name is a name"),
    }
}
