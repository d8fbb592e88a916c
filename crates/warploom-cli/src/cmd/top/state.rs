//! What whoever looks at the screen has chosen: an order, a place, a list.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use warploom::watch::Machine;
use warploom::watch::board::Notice;

use super::rows::percent;

/// What runs are ordered by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Order {
    #[default]
    Started,
    Pipeline,
    Done,
    Failed,
    Rate,
    Memory,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Self::Started => Self::Pipeline,
            Self::Pipeline => Self::Done,
            Self::Done => Self::Failed,
            Self::Failed => Self::Rate,
            Self::Rate => Self::Memory,
            Self::Memory => Self::Started,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Started => "start",
            Self::Pipeline => "pipeline",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Rate => "rate",
            Self::Memory => "memory",
        }
    }
}

/// The list that arrows move in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Focus {
    #[default]
    Runs,
    Leases,
}

/// What a key asks for beyond the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Nothing,
    Quit,
    /// Ctrl-C: the same, with the exit code of an interrupt.
    Interrupt,
    /// Ask the drivers again.
    Rescan,
}

/// All that was chosen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct State {
    pub(super) order: Order,
    pub(super) reversed: bool,
    pub(super) focus: Focus,
    /// The run that is looked at: its process and when it started, so that it stays when the order
    /// changes around it.
    pub(super) picked: Option<(u32, u64)>,
    /// The first lease that is shown.
    pub(super) lease: usize,
}

impl State {
    /// The runs in the chosen order.
    pub(super) fn ordered<'m>(&self, machine: &'m Machine) -> Vec<&'m Notice> {
        let mut runs: Vec<&Notice> = machine.runs.iter().collect();
        let largest_first =
            |key: fn(&Notice) -> f64| move |a: &&Notice, b: &&Notice| key(b).total_cmp(&key(a));
        // Stable: equals stay in the order in which they started.
        match self.order {
            Order::Started => runs.sort_by_key(|run| (run.started, run.pid)),
            Order::Pipeline => runs.sort_by(|a, b| a.pipeline.cmp(&b.pipeline)),
            Order::Done => runs.sort_by(largest_first(|run| percent(run) as f64)),
            Order::Failed => runs.sort_by(largest_first(|run| run.failed as f64)),
            Order::Rate => runs.sort_by(largest_first(|run| run.rate.unwrap_or(-1.0))),
            Order::Memory => {
                runs.sort_by(largest_first(|run| {
                    run.memory().map_or(-1.0, |bytes| bytes as f64)
                }));
            }
        }
        if self.reversed {
            runs.reverse();
        }
        runs
    }

    /// Where the picked run is among the ordered ones; the first if it has gone.
    pub(super) fn place(&self, runs: &[&Notice]) -> usize {
        let is_picked = |run: &&Notice| self.picked == Some((run.pid, run.started));
        runs.iter().position(is_picked).unwrap_or(0)
    }

    pub(super) fn press(&mut self, key: KeyEvent, machine: &Machine) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::Interrupt,
                _ => Wish::Nothing,
            };
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char('d') => return Wish::Rescan,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = match self.focus {
                    Focus::Runs => Focus::Leases,
                    Focus::Leases => Focus::Runs,
                };
            }
            KeyCode::Up | KeyCode::Char('k') => self.go(machine, -1),
            KeyCode::Down | KeyCode::Char('j') => self.go(machine, 1),
            KeyCode::PageUp => self.go(machine, -10),
            KeyCode::PageDown => self.go(machine, 10),
            KeyCode::Home => self.go(machine, isize::MIN),
            KeyCode::End => self.go(machine, isize::MAX),
            _ => {}
        }
        Wish::Nothing
    }

    fn go(&mut self, machine: &Machine, by: isize) {
        match self.focus {
            Focus::Runs => {
                let runs = self.ordered(machine);
                let last = runs.len().saturating_sub(1);
                let place = self.place(&runs).saturating_add_signed(by).min(last);
                self.picked = runs.get(place).map(|run| (run.pid, run.started));
            }
            Focus::Leases => {
                let leases = machine.devices.iter();
                let leases: usize = leases.map(|of| of.held.len() + of.waiting.len()).sum();
                let last = leases.saturating_sub(1);
                self.lease = self.lease.saturating_add_signed(by).min(last);
            }
        }
    }
}
