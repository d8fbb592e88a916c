//! Stacks of coroutines, kept for the next launch: mapping a thousand of them takes longer than most
//! kernels.

use std::sync::{Mutex, PoisonError};

use corosensei::stack::{DefaultStack, Stack};

/// Bytes of each stack. Only pages that are touched take memory.
const SIZE: usize = 256 << 10;
/// What calls into this crate may need below the frames of compiled code.
const RESERVE: u64 = 96 << 10;
/// Stacks that are kept.
const KEPT: usize = 4096;

static SPARE: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

/// Some stacks, which go back to the others when dropped.
#[derive(Debug, Default)]
pub(super) struct Stacks(Vec<Spare>);

struct Spare(DefaultStack);

impl std::fmt::Debug for Spare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stack below {:#x}", self.0.base())
    }
}

impl Stacks {
    /// At least `count` stacks.
    pub(super) fn take(count: usize) -> std::io::Result<Self> {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = spare.len().saturating_sub(count);
        let mut stacks: Vec<Spare> = spare.drain(rest..).map(Spare).collect();
        drop(spare);
        while stacks.len() < count {
            stacks.push(Spare(DefaultStack::new(SIZE)?));
        }
        Ok(Self(stacks))
    }

    pub(super) fn pop(&mut self) -> DefaultStack {
        let spare = self.0.pop();
        spare.expect("as many stacks were taken as threads run").0
    }

    pub(super) fn push(&mut self, stack: DefaultStack) {
        self.0.push(Spare(stack));
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT.saturating_sub(spare.len());
        let stacks = self.0.drain(..).take(room);
        spare.extend(stacks.map(|stack| stack.0));
    }
}

/// The lowest address that compiled code may use of a stack.
pub(super) fn limit(stack: &impl Stack) -> u64 {
    stack.limit().get() as u64 + RESERVE
}
