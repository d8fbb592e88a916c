//! The dotted words behind an opcode, taken one by one.
//!
//! Whoever makes code for an instruction takes the modifiers it understands. One that nobody took is
//! an error: there is no modifier without a meaning.

use std::cell::Cell;

use super::PtxError;
use super::tree::Instruction;
use super::types::{StateSpace, Type};

#[derive(Debug)]
pub(crate) struct Modifiers<'a> {
    instruction: &'a Instruction<'a>,
    /// Bit i is set when modifier i has been taken.
    taken: Cell<u64>,
}

impl<'a> Modifiers<'a> {
    pub(crate) fn new(instruction: &'a Instruction<'a>) -> Self {
        Self {
            instruction,
            taken: Cell::new(0),
        }
    }

    fn left(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let taken = self.taken.get();
        let all = self.instruction.modifiers.iter().copied().enumerate();
        all.filter(move |(index, _)| taken >> index & 1 == 0)
    }

    /// Takes the first modifier that `meaning` knows.
    pub(crate) fn find<T>(&self, meaning: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let (index, value) = self
            .left()
            .find_map(|(index, word)| meaning(word).map(|value| (index, value)))?;
        self.taken.set(self.taken.get() | 1 << index);
        Some(value)
    }

    /// Takes `word` if it is there.
    pub(crate) fn flag(&self, word: &str) -> bool {
        self.find(|found| (found == word).then_some(())).is_some()
    }

    /// Takes every modifier of the list that is there: words that change nothing here.
    pub(crate) fn ignore(&self, words: &[&str]) {
        while self
            .find(|found| words.contains(&found).then_some(()))
            .is_some()
        {}
    }

    /// Takes the next type.
    pub(crate) fn ty(&self) -> Result<Type, PtxError> {
        self.find(Type::named)
            .ok_or_else(|| self.error("has no type that is known here"))
    }

    /// Takes the state space; without one it is generic.
    pub(crate) fn space(&self) -> StateSpace {
        self.find(StateSpace::named).unwrap_or(StateSpace::Generic)
    }

    /// The opcode as it stands in the text.
    pub(crate) fn name(&self) -> String {
        let mut name = self.instruction.opcode.to_owned();
        for word in &self.instruction.modifiers {
            name.push('.');
            name.push_str(word);
        }
        name
    }

    /// A complaint about this instruction.
    pub(crate) fn error(&self, what: &str) -> PtxError {
        let message = format!("`{}` {what}", self.name());
        PtxError::new(self.instruction.line, message)
    }

    /// Complains about what was not taken.
    pub(crate) fn finish(&self) -> Result<(), PtxError> {
        match self.left().next() {
            Some((_, word)) => {
                Err(self.error(&format!("is not supported: `.{word}` is unknown here")))
            }
            None => Ok(()),
        }
    }
}
