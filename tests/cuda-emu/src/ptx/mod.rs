//! The front end: PTX text to a tree whose names are resolved and whose operands are typed.
//!
//! It knows the grammar and the scopes, not what instructions mean: that an opcode exists, that its
//! modifiers are understood and its operands fit is decided where code is made for it, in
//! [`jit`](crate::jit), so that nothing can be parsed, forgotten, and silently left out.

mod directive;
mod error;
mod function;
mod initialiser;
mod instruction;
mod lexer;
mod modifiers;
mod operand;
mod parser;
mod scope;
mod special;
mod tree;
mod types;
mod variable;

pub use self::error::PtxError;
pub(crate) use self::modifiers::Modifiers;
pub(crate) use self::special::{Axis, Special};
pub(crate) use self::tree::{
    Address, Base, Body, Function, Global, Instruction, ModuleTree, Name, Operand, Param, Reg,
    Signature, Statement, Symbol, Variable,
};
pub(crate) use self::types::{StateSpace, Type};

use crate::engine::Header;

/// Parses a whole module.
pub(crate) fn parse(text: &str) -> Result<ModuleTree<'_>, PtxError> {
    let tokens = lexer::tokens(text)?;
    parser::Parser::new(&tokens).module()
}

/// Parses `.version` and `.target` only.
pub(crate) fn header(text: &str) -> Result<Header, PtxError> {
    // Later text may hold what this lexer does not know; the header comes first, so it is lexed
    // line by line until both directives are complete.
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut found = lexer::tokens(line).map_err(|error| error.at(number))?;
        for token in &mut found {
            token.line = number;
        }
        tokens.append(&mut found);
        let mut parser = parser::Parser::new(&tokens);
        if let Ok(header) = parser.header() {
            return Ok(header);
        }
        if tokens.len() > 16 {
            break;
        }
    }
    parser::Parser::new(&tokens).header()
}
