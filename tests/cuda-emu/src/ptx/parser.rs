//! The cursor over the words, and what every part of the grammar needs.

use std::collections::HashMap;

use super::PtxError;
use super::lexer::{Kind, Token};
use super::tree::{Function, Global, ModuleTree, Symbol, Variable};
use crate::engine::Header;

#[derive(Debug)]
pub(super) struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    pub(super) globals: Vec<Global<'a>>,
    pub(super) shared: Vec<Variable<'a>>,
    pub(super) functions: Vec<Function<'a>>,
    /// Everything with a name outside of functions.
    pub(super) symbols: HashMap<&'a str, Symbol>,
}

impl<'t, 'a> Parser<'t, 'a> {
    pub(super) fn new(tokens: &'t [Token<'a>]) -> Self {
        Self {
            tokens,
            at: 0,
            globals: Vec::new(),
            shared: Vec::new(),
            functions: Vec::new(),
            symbols: HashMap::new(),
        }
    }

    pub(super) fn module(mut self) -> Result<ModuleTree<'a>, PtxError> {
        let header = self.header()?;
        while self.peek().is_some() {
            self.directive()?;
        }
        Ok(ModuleTree {
            header,
            globals: self.globals,
            shared: self.shared,
            functions: self.functions,
        })
    }

    pub(super) fn header(&mut self) -> Result<Header, PtxError> {
        self.expect_dot("version")?;
        let version = match self.next()? {
            Kind::Double(bits) => f64::from_bits(bits),
            Kind::Integer(major) => major as f64,
            _ => return Err(self.error_before("`.version` is followed by a number")),
        };
        self.expect_dot("target")?;
        let target = self.word()?.to_owned();
        while self.accept(',') {
            // `debug`, `texmode_…`: about what else a tool may find, not about meaning.
            self.word()?;
        }
        let tenths = (version * 10.0).round();
        if !(0.0..10_000.0).contains(&tenths) {
            return Err(self.error_before(format!("there is no PTX version {version}")));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to lie between 0 and 10 000"
        )]
        let tenths = tenths as u32;
        Ok(Header {
            version: (tenths / 10, tenths % 10),
            target,
        })
    }

    // --- the cursor ---

    pub(super) fn peek(&self) -> Option<Kind<'a>> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    pub(super) fn peek_after(&self) -> Option<Kind<'a>> {
        self.tokens.get(self.at + 1).map(|token| token.kind)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Line of the next word.
    pub(super) fn line(&self) -> u32 {
        let here = self.tokens.get(self.at).or(self.tokens.last());
        here.map_or(1, |token| token.line)
    }

    pub(super) fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError::new(self.line(), message)
    }

    /// A complaint about the word that was just read.
    pub(super) fn error_before(&self, message: impl Into<String>) -> PtxError {
        let line = self
            .tokens
            .get(self.at.saturating_sub(1))
            .map_or(1, |token| token.line);
        PtxError::new(line, message)
    }

    pub(super) fn next(&mut self) -> Result<Kind<'a>, PtxError> {
        let kind = self
            .peek()
            .ok_or_else(|| self.error("the text ends too early"))?;
        self.at += 1;
        Ok(kind)
    }

    pub(super) fn accept(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, mark: char) -> Result<(), PtxError> {
        if self.accept(mark) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{mark}`")))
    }

    pub(super) fn accept_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(Kind::Dot(word));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_dot(&mut self, word: &str) -> Result<(), PtxError> {
        if self.accept_dot(word) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`.{word}`")))
    }

    pub(super) fn word(&mut self) -> Result<&'a str, PtxError> {
        match self.peek() {
            Some(Kind::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    pub(super) fn integer(&mut self) -> Result<u64, PtxError> {
        match self.peek() {
            Some(Kind::Integer(value)) => {
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.unexpected("a whole number")),
        }
    }

    pub(super) fn small_integer(&mut self) -> Result<u32, PtxError> {
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error_before(format!("{value} is too large")))
    }

    pub(super) fn unexpected(&self, wanted: &str) -> PtxError {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(Kind::Word(word)) => format!("`{word}`"),
            Some(Kind::Dot(word)) => format!("`.{word}`"),
            Some(Kind::Mark(mark)) => format!("`{mark}`"),
            Some(Kind::Integer(value)) => format!("`{value}`"),
            Some(Kind::Single(_) | Kind::Double(_)) => "a number".to_owned(),
            Some(Kind::Text(text)) => format!("\"{text}\""),
        };
        self.error(format!("{wanted} is expected, not {found}"))
    }

    /// Passes over the rest of the line the last word stands on.
    pub(super) fn skip_line(&mut self) {
        let line = self.tokens[self.at - 1].line;
        while self
            .tokens
            .get(self.at)
            .is_some_and(|token| token.line == line)
        {
            self.at += 1;
        }
    }

    /// Passes over `{ … }`, braces inside included.
    pub(super) fn skip_braces(&mut self) -> Result<(), PtxError> {
        self.expect('{')?;
        let mut depth = 1u32;
        while depth > 0 {
            match self.next()? {
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Numbers with commas between them.
    pub(super) fn integers(&mut self) -> Result<Vec<u32>, PtxError> {
        let mut values = vec![self.small_integer()?];
        while self.accept(',') {
            values.push(self.small_integer()?);
        }
        Ok(values)
    }
}
