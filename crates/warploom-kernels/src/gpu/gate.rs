//! Work that an earlier launch may have made unnecessary.

use warploom_core::DType;

use crate::expr::Ex;
use crate::kernel::{Access, Builder};

use super::launch::{Args, LaunchArg};
use super::line::int;

/// Memory whose first word says, with anything but 0, that there is work to do; there always is without one.
#[derive(Clone, Copy, Default)]
pub(super) struct Gate(Option<LaunchArg>);

/// A gate in a kernel.
pub(super) struct Passage<'k>(&'k Builder, Option<Ex<'k>>);

impl Gate {
    /// What this memory says.
    pub(super) fn of(memory: LaunchArg) -> Self {
        Self(Some(memory))
    }

    /// Declares the memory, if there is any, and looks at it.
    pub(super) fn declare(self, k: &Builder, args: Args) -> (Passage<'_>, Args) {
        let Some(memory) = self.0 else {
            return (Passage(k, None), args);
        };
        let gate = k.buffer("gate", DType::U32, Access::Read);
        let open = k.let_(k.load(gate, int(k, 0)).is_not(0));
        (Passage(k, Some(open)), args.buffer(memory))
    }
}

impl Passage<'_> {
    /// Does the work where there is any.
    pub(super) fn through(&self, work: impl FnOnce()) {
        match self.1 {
            Some(open) => self.0.if_(open, work),
            None => work(),
        }
    }
}
