//! Declarations of variables, in all the places where they may stand.

use super::PtxError;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::{Global, Init, Symbol, Variable};
use super::types::{StateSpace, Type};

/// No variable is larger; sums and products of sizes cannot overflow.
const LARGEST: u64 = 1 << 40;

/// What a declaration says before the first name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) space: StateSpace,
    ty: Type,
    align: u32,
    /// Elements of one vector.
    lanes: u32,
}

/// One name with its dimensions.
#[derive(Debug)]
pub(super) struct Declarator<'a> {
    pub(super) name: &'a str,
    /// `None` for `[]`.
    pub(super) dimensions: Vec<Option<u64>>,
    line: u32,
}

/// The variable a head and a declarator make; `elements` stands in for a length left out.
pub(super) fn variable<'a>(
    head: Head,
    declarator: &Declarator<'a>,
    elements: u64,
) -> Result<Variable<'a>, PtxError> {
    let too_large = || PtxError::new(declarator.line, "a variable of more than 2^40 bytes");
    let mut size = u64::from(head.ty.bytes() * head.lanes);
    for dimension in &declarator.dimensions {
        let length = dimension.unwrap_or(elements);
        size = size.checked_mul(length).ok_or_else(too_large)?;
    }
    if size > LARGEST {
        return Err(too_large());
    }
    Ok(Variable {
        name: declarator.name,
        space: head.space,
        ty: head.ty,
        size,
        align: head.align,
        line: declarator.line,
    })
}

impl<'a> Parser<'_, 'a> {
    /// From behind the state space to the type.
    pub(super) fn variable_head(&mut self, space: StateSpace) -> Result<Head, PtxError> {
        let mut align = None;
        let mut lanes = 1;
        let ty = loop {
            match self.peek() {
                Some(Kind::Dot("align")) => {
                    self.advance();
                    align = Some(self.alignment()?);
                }
                Some(Kind::Dot("v2")) => {
                    self.advance();
                    lanes = 2;
                }
                Some(Kind::Dot("v4")) => {
                    self.advance();
                    lanes = 4;
                }
                Some(Kind::Dot("attribute")) => {
                    self.advance();
                    self.expect('(')?;
                    while !self.accept(')') {
                        self.next()?;
                    }
                }
                Some(Kind::Dot(word)) => match Type::named(word) {
                    Some(ty) if ty != Type::Pred => {
                        self.advance();
                        break ty;
                    }
                    _ => return Err(self.error(format!("`.{word}` in a declaration"))),
                },
                _ => return Err(self.unexpected("a type")),
            }
        };
        self.pointer_attributes()?;
        let natural = ty.bytes() * lanes;
        Ok(Head {
            space,
            ty,
            align: align.unwrap_or(natural),
            lanes,
        })
    }

    fn alignment(&mut self) -> Result<u32, PtxError> {
        let align = self.small_integer()?;
        if align.is_power_of_two() && align <= 4096 {
            return Ok(align);
        }
        Err(self.error_before(format!("an alignment of {align}")))
    }

    /// `.ptr .global .align 4`: what a parameter points to, of which nothing follows here.
    fn pointer_attributes(&mut self) -> Result<(), PtxError> {
        if !self.accept_dot("ptr") {
            return Ok(());
        }
        while let Some(Kind::Dot(word)) = self.peek() {
            self.advance();
            if word == "align" {
                self.alignment()?;
            } else if StateSpace::named(word).is_none() {
                return Err(self.error_before(format!("`.{word}` behind `.ptr`")));
            }
        }
        Ok(())
    }

    pub(super) fn declarator(&mut self) -> Result<Declarator<'a>, PtxError> {
        let line = self.line();
        let name = self.word()?;
        let mut dimensions = Vec::new();
        while self.accept('[') {
            if self.accept(']') {
                dimensions.push(None);
                continue;
            }
            dimensions.push(Some(self.integer()?));
            self.expect(']')?;
        }
        Ok(Declarator {
            name,
            dimensions,
            line,
        })
    }

    /// `.global`, `.const` and `.shared` outside of functions.
    pub(super) fn module_variables(
        &mut self,
        space: StateSpace,
        is_external: bool,
    ) -> Result<(), PtxError> {
        let head = self.variable_head(space)?;
        loop {
            let declarator = self.declarator()?;
            let init = self
                .accept('=')
                .then(|| self.initialiser(head.ty, &declarator));
            let init = init.transpose()?;
            let elements = match &init {
                Some(init) => init.bytes.len() as u64 / u64::from(head.ty.bytes()),
                None => 0,
            };
            let variable = variable(head, &declarator, elements)?;
            self.declare(variable, init, is_external)?;
            if !self.accept(',') {
                return self.expect(';');
            }
        }
    }

    fn declare(
        &mut self,
        variable: Variable<'a>,
        init: Option<Init>,
        is_external: bool,
    ) -> Result<(), PtxError> {
        let name = variable.name;
        let line = variable.line;
        if init
            .as_ref()
            .is_some_and(|init| init.bytes.len() as u64 > variable.size)
        {
            let message = format!("the initial value of `{name}` is longer than the variable");
            return Err(PtxError::new(line, message));
        }
        let symbol = if variable.space == StateSpace::Shared {
            if init.is_some() {
                return Err(PtxError::new(line, "shared memory with an initial value"));
            }
            self.shared.push(variable);
            Symbol::ModuleShared(self.shared.len() - 1)
        } else {
            if is_external {
                let message = format!("`{name}` is defined in another module; nothing is linked");
                return Err(PtxError::new(line, message));
            }
            self.globals.push(Global {
                variable,
                init: init.unwrap_or_default(),
            });
            Symbol::Global(self.globals.len() - 1)
        };
        if self.symbols.insert(name, symbol).is_some() {
            return Err(PtxError::new(line, format!("`{name}` is declared twice")));
        }
        Ok(())
    }
}
