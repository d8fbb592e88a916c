//! Which name means what, inside of a function.

use std::collections::HashMap;

use super::tree::{Name, Reg};

/// Blocks in braces, each inside of another.
#[derive(Debug)]
pub(super) struct Scopes<'a> {
    all: Vec<Scope<'a>>,
    current: usize,
}

#[derive(Debug, Default)]
struct Scope<'a> {
    parent: Option<usize>,
    registers: HashMap<&'a str, Registers>,
    variables: HashMap<&'a str, usize>,
    names: HashMap<&'a str, Name>,
}

/// `%r` alone, or `%r<count>`, which declares `%r0` and so on.
#[derive(Debug, Clone, Copy)]
struct Registers {
    first: usize,
    count: Option<usize>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new() -> Self {
        Self {
            all: vec![Scope::default()],
            current: 0,
        }
    }

    pub(super) fn enter(&mut self) {
        self.all.push(Scope {
            parent: Some(self.current),
            ..Scope::default()
        });
        self.current = self.all.len() - 1;
    }

    /// False when there is no block to leave.
    pub(super) fn leave(&mut self) -> bool {
        match self.all[self.current].parent {
            Some(parent) => {
                self.current = parent;
                true
            }
            None => false,
        }
    }

    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// False when the name is taken in this block.
    pub(super) fn declare_registers(
        &mut self,
        name: &'a str,
        first: usize,
        count: Option<usize>,
    ) -> bool {
        let registers = Registers { first, count };
        let scope = &mut self.all[self.current];
        scope.registers.insert(name, registers).is_none()
    }

    /// False when the name is taken in this block.
    pub(super) fn declare_variable(&mut self, name: &'a str, number: usize) -> bool {
        let scope = &mut self.all[self.current];
        scope.variables.insert(name, number).is_none()
    }

    /// False when the name is taken in this block.
    pub(super) fn declare_name(&mut self, name: &'a str, meaning: Name) -> bool {
        let scope = &mut self.all[self.current];
        scope.names.insert(name, meaning).is_none()
    }

    fn outwards(&self, from: usize) -> impl Iterator<Item = &Scope<'a>> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let scope = &self.all[next?];
            next = scope.parent;
            Some(scope)
        })
    }

    pub(super) fn register(&self, name: &str) -> Option<Reg> {
        self.outwards(self.current)
            .find_map(|scope| scope.register(name))
    }

    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        self.outwards(self.current)
            .find_map(|scope| scope.variables.get(name).copied())
    }

    /// Labels may be declared behind their use, so this is asked at the end, for the block of the use.
    pub(super) fn name(&self, from: usize, name: &str) -> Option<&Name> {
        self.outwards(from).find_map(|scope| scope.names.get(name))
    }
}

impl Scope<'_> {
    fn register(&self, name: &str) -> Option<Reg> {
        if let Some(single) = self.registers.get(name)
            && single.count.is_none()
        {
            return Some(Reg(single.first));
        }
        // The prefix of `%r<9>` may itself end in digits, so every split is tried.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        (name.len() - digits..name.len()).find_map(|split| {
            let (prefix, number) = name.split_at(split);
            let registers = self.registers.get(prefix)?;
            let is_plain = number == "0" || !number.starts_with('0');
            let number: usize = number.parse().ok()?;
            (is_plain && number < registers.count?).then_some(Reg(registers.first + number))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_registers_are_found_by_prefix() {
        let mut scopes = Scopes::new();
        assert!(scopes.declare_registers("%r", 0, Some(10)));
        assert!(scopes.declare_registers("%r1x2", 10, Some(3)));
        assert!(scopes.declare_registers("%SP", 13, None));
        assert_eq!(scopes.register("%r9"), Some(Reg(9)));
        assert_eq!(scopes.register("%r10"), None);
        assert_eq!(scopes.register("%r01"), None);
        assert_eq!(scopes.register("%r1x21"), Some(Reg(11)));
        assert_eq!(scopes.register("%SP"), Some(Reg(13)));
        assert_eq!(scopes.register("%r"), None);
    }

    #[test]
    fn inner_names_hide_outer_ones_until_the_block_ends() {
        let mut scopes = Scopes::new();
        scopes.declare_registers("t", 0, None);
        scopes.declare_name("L", Name::Label(0));
        scopes.enter();
        scopes.declare_registers("t", 1, None);
        scopes.declare_name("L", Name::Label(1));
        let inner = scopes.current();
        assert_eq!(scopes.register("t"), Some(Reg(1)));
        assert!(scopes.leave());
        assert_eq!(scopes.register("t"), Some(Reg(0)));
        assert_eq!(scopes.name(inner, "L"), Some(&Name::Label(1)));
        assert_eq!(scopes.name(0, "L"), Some(&Name::Label(0)));
        assert!(!scopes.leave());
    }
}
