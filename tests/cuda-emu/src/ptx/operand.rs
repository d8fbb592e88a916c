//! Operands.

use super::PtxError;
use super::instruction::Inside;
use super::lexer::Kind;
use super::parser::Parser;
use super::special::{Axis, Special};
use super::tree::{Address, Base, Operand, Symbol};

impl<'a> Parser<'_, 'a> {
    pub(super) fn operand(&mut self, inside: &mut Inside<'a>) -> Result<Operand, PtxError> {
        let first = self.single(inside)?;
        if self.accept('|') {
            let second = self.single(inside)?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn single(&mut self, inside: &mut Inside<'a>) -> Result<Operand, PtxError> {
        match self.peek() {
            Some(Kind::Mark('[')) => {
                self.advance();
                let address = self.address(inside)?;
                self.expect(']')?;
                Ok(Operand::Address(address))
            }
            Some(Kind::Mark('{')) => {
                self.advance();
                Ok(Operand::Vector(self.list('}', inside)?))
            }
            Some(Kind::Mark('(')) => {
                self.advance();
                Ok(Operand::List(self.list(')', inside)?))
            }
            Some(Kind::Mark('!')) => {
                self.advance();
                let name = self.word()?;
                let register = inside.scopes.register(name);
                register
                    .map(Operand::Not)
                    .ok_or_else(|| self.error_before(format!("`{name}` is no register")))
            }
            Some(Kind::Mark('-')) => {
                self.advance();
                match self.next()? {
                    Kind::Integer(value) => Ok(Operand::Integer(value.wrapping_neg())),
                    Kind::Double(bits) => Ok(Operand::Double(bits ^ 1 << 63)),
                    _ => Err(self.error_before("a number is expected behind `-`")),
                }
            }
            Some(Kind::Integer(value)) => {
                self.advance();
                Ok(Operand::Integer(value))
            }
            Some(Kind::Single(bits)) => {
                self.advance();
                Ok(Operand::Single(bits))
            }
            Some(Kind::Double(bits)) => {
                self.advance();
                Ok(Operand::Double(bits))
            }
            Some(Kind::Word(name)) => {
                self.advance();
                self.named(name, inside)
            }
            _ => Err(self.unexpected("an operand")),
        }
    }

    fn list(&mut self, end: char, inside: &mut Inside<'a>) -> Result<Vec<Operand>, PtxError> {
        let mut operands = Vec::new();
        while !self.accept(end) {
            operands.push(self.single(inside)?);
            if !self.accept(',') {
                self.expect(end)?;
                break;
            }
        }
        Ok(operands)
    }

    fn named(&mut self, name: &'a str, inside: &mut Inside<'a>) -> Result<Operand, PtxError> {
        if name == "_" {
            return Ok(Operand::Sink);
        }
        if let Some(register) = inside.scopes.register(name) {
            return Ok(Operand::Reg(register));
        }
        if let Some(symbol) = self.symbol(name, inside) {
            return Ok(Operand::Symbol(symbol, self.addend()?));
        }
        if name.starts_with('%') || name == "WARP_SZ" {
            return self.special(name).map(Operand::Special);
        }
        Ok(inside.use_name(name, self.line()))
    }

    fn symbol(&self, name: &str, inside: &Inside<'a>) -> Option<Symbol> {
        let inner = inside.scopes.variable(name).map(Symbol::Variable);
        inner.or_else(|| self.symbols.get(name).copied())
    }

    fn special(&mut self, name: &'a str) -> Result<Special, PtxError> {
        let axis = match self.peek() {
            Some(Kind::Dot(word)) => Axis::named(word),
            _ => None,
        };
        if axis.is_some() {
            self.advance();
        }
        Special::named(name, axis)
            .ok_or_else(|| self.error_before(format!("register `{name}` is not known")))
    }

    fn address(&mut self, inside: &Inside<'a>) -> Result<Address, PtxError> {
        let base = match self.peek() {
            Some(Kind::Word(name)) => {
                self.advance();
                if let Some(register) = inside.scopes.register(name) {
                    Base::Reg(register)
                } else if let Some(symbol) = self.symbol(name, inside) {
                    Base::Symbol(symbol)
                } else {
                    return Err(self.error_before(format!("`{name}` is not declared")));
                }
            }
            Some(Kind::Integer(value)) => {
                self.advance();
                let offset = value.cast_signed().wrapping_add(self.addend()?);
                return Ok(Address {
                    base: Base::Absolute,
                    offset,
                });
            }
            _ => return Err(self.unexpected("an address")),
        };
        Ok(Address {
            base,
            offset: self.addend()?,
        })
    }
}
