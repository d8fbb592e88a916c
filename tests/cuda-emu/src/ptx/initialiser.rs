//! Initial values of variables.

use super::PtxError;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::{Init, Pointer};
use super::types::Type;
use super::variable::Declarator;

impl<'a> Parser<'_, 'a> {
    /// A value, or values in braces, in the order of memory.
    pub(super) fn initialiser(
        &mut self,
        ty: Type,
        declarator: &Declarator<'a>,
    ) -> Result<Init, PtxError> {
        let mut init = Init::default();
        let inner = declarator.dimensions.get(1..).unwrap_or(&[]);
        if self.peek() == Some(Kind::Mark('{')) {
            self.braced(ty, inner, &mut init)?;
        } else {
            self.element(ty, &mut init)?;
        }
        Ok(init)
    }

    /// One brace per dimension; a row that is too short ends in zeros.
    fn braced(&mut self, ty: Type, inner: &[Option<u64>], init: &mut Init) -> Result<(), PtxError> {
        self.expect('{')?;
        while !self.accept('}') {
            if self.peek() == Some(Kind::Mark('{')) {
                let row: u64 = inner.iter().map(|length| length.unwrap_or(0)).product();
                let row = row.saturating_mul(u64::from(ty.bytes()));
                let end = init.bytes.len() as u64 + row;
                let end = usize::try_from(end).unwrap_or(usize::MAX);
                self.braced(ty, inner.get(1..).unwrap_or(&[]), init)?;
                if init.bytes.len() > end || end > 1 << 30 {
                    return Err(self.error_before("a row of the initial value is too long"));
                }
                init.bytes.resize(end, 0);
            } else {
                self.element(ty, init)?;
            }
            if !self.accept(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(())
    }

    fn element(&mut self, ty: Type, init: &mut Init) -> Result<(), PtxError> {
        let bytes = ty.bytes() as usize;
        let negative = self.accept('-');
        let value = match self.next()? {
            Kind::Integer(value) if negative => u128::from(value.wrapping_neg()),
            Kind::Integer(value) => u128::from(value),
            Kind::Single(bits) if bytes == 4 && !negative => u128::from(bits),
            Kind::Double(bits) if bytes == 8 && !negative => u128::from(bits),
            Kind::Word(name) if bytes == 8 && !negative => {
                self.pointer(name, init)?;
                0
            }
            _ => {
                let message = format!("an initial value that does not fit `.{}`", ty.name());
                return Err(self.error_before(message));
            }
        };
        init.bytes.extend_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    /// `name`, `generic(name)`, each with a number behind. The generic address of a variable is its
    /// address.
    fn pointer(&mut self, word: &'a str, init: &mut Init) -> Result<(), PtxError> {
        let is_generic = word == "generic" && self.accept('(');
        let name = if is_generic { self.word()? } else { word };
        let Some(&symbol) = self.symbols.get(name) else {
            return Err(self.error_before(format!("`{name}` in an initial value is not declared")));
        };
        if is_generic {
            self.expect(')')?;
        }
        init.pointers.push(Pointer {
            offset: init.bytes.len() as u64,
            bytes: 8,
            symbol,
            addend: self.addend()?,
        });
        Ok(())
    }

    /// Any number of `+ 4`, `- 4`, `+ -4`.
    pub(super) fn addend(&mut self) -> Result<i64, PtxError> {
        let mut sum = 0i64;
        loop {
            let negative = if self.accept('+') {
                self.accept('-')
            } else if self.accept('-') {
                true
            } else {
                return Ok(sum);
            };
            let value = self.integer()?.cast_signed();
            sum = sum.wrapping_add(if negative {
                value.wrapping_neg()
            } else {
                value
            });
        }
    }
}
