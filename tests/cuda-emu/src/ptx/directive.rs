//! What may stand outside of functions.

use super::PtxError;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::Symbol;
use super::types::StateSpace;

impl Parser<'_, '_> {
    pub(super) fn directive(&mut self) -> Result<(), PtxError> {
        let is_external = self.is_external();
        let Some(Kind::Dot(word)) = self.peek() else {
            return Err(self.unexpected("a directive"));
        };
        match word {
            "entry" | "func" => return self.function(),
            "global" | "const" | "shared" => {
                self.advance();
                let space = StateSpace::named(word).unwrap_or(StateSpace::Global);
                return self.module_variables(space, is_external);
            }
            _ => {}
        }
        self.advance();
        match word {
            "address_size" => match self.integer()? {
                64 => Ok(()),
                other => Err(self.error_before(format!("addresses of {other} bits"))),
            },
            // Who wrote which line: of no consequence for what a kernel does.
            "file" | "loc" => {
                self.skip_line();
                Ok(())
            }
            "section" => {
                self.next()?;
                self.skip_braces()
            }
            "pragma" => self.pragma(),
            "alias" => self.alias(),
            _ => Err(self.error_before(format!("directive `.{word}` is not supported"))),
        }
    }

    /// Who may see a name. Nothing is linked, so it only matters what is defined elsewhere.
    fn is_external(&mut self) -> bool {
        let words = ["visible", "weak", "common"];
        let _ = words.into_iter().any(|word| self.accept_dot(word));
        self.accept_dot("extern")
    }

    /// Pragmas are advice.
    pub(super) fn pragma(&mut self) -> Result<(), PtxError> {
        while !self.accept(';') {
            self.next()?;
        }
        Ok(())
    }

    /// `.alias one, other;`: calls of one go to the other.
    fn alias(&mut self) -> Result<(), PtxError> {
        let name = self.word()?;
        self.expect(',')?;
        let target = self.word()?;
        let Some(&symbol @ Symbol::Function(_)) = self.symbols.get(target) else {
            return Err(self.error_before(format!("there is no function `{target}` to be aliased")));
        };
        self.symbols.insert(name, symbol);
        self.expect(';')
    }
}
