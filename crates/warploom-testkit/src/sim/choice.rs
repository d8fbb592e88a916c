//! Who goes first: by time, or by a script.

use crate::noise::Noise;

/// A list of decisions, each one of so many; after its end always the first.
#[derive(Clone, Debug, Default)]
pub struct Script {
    decisions: Vec<usize>,
    /// What was taken, of how many.
    taken: Vec<(usize, usize)>,
}

impl Script {
    /// A script of these decisions.
    pub fn new(decisions: Vec<usize>) -> Self {
        Self {
            decisions,
            taken: Vec::new(),
        }
    }

    fn choose(&mut self, of: usize) -> usize {
        let wanted = self.decisions.get(self.taken.len()).copied().unwrap_or(0);
        let chosen = wanted.min(of.saturating_sub(1));
        self.taken.push((chosen, of));
        chosen
    }

    /// The next script in order, which differs in the last decision that can differ; `None` after
    /// the last.
    pub fn next(&self) -> Option<Self> {
        let last = self
            .taken
            .iter()
            .rposition(|(chosen, of)| chosen + 1 < *of)?;
        let mut decisions: Vec<usize> = self.taken[..last].iter().map(|(at, _)| *at).collect();
        decisions.push(self.taken[last].0 + 1);
        Some(Self::new(decisions))
    }
}

/// Runs `trial` under every script, at most `limit` of them. The trial gives back the script it was
/// run with. Answers how many there were, and whether that was all.
pub fn explore(limit: usize, mut trial: impl FnMut(Script) -> Script) -> (usize, bool) {
    let mut script = Script::default();
    for count in 1..=limit {
        match trial(script).next() {
            Some(next) => script = next,
            None => return (count, true),
        }
    }
    (limit, false)
}

#[derive(Debug)]
pub(super) enum Chooser {
    /// What ends first goes first; the noise says how long things take.
    Timed(Noise),
    Scripted(Script),
}

impl Chooser {
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        match self {
            Self::Timed(noise) => noise.between(low, high),
            Self::Scripted(_) => low,
        }
    }

    pub(super) fn choose(&mut self, of: usize) -> usize {
        match self {
            Self::Timed(noise) => {
                usize::try_from(noise.between(0, of.saturating_sub(1) as u64)).unwrap_or(0)
            }
            Self::Scripted(script) => script.choose(of),
        }
    }

    pub(super) fn is_scripted(&self) -> bool {
        matches!(self, Self::Scripted(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scripts_are_run_once() {
        let mut seen = Vec::new();
        // Three ways, of which the second forks once more.
        let (count, all) = explore(100, |mut script| {
            let first = script.choose(3);
            let second = if first == 1 { script.choose(2) } else { 9 };
            seen.push((first, second));
            script
        });
        assert_eq!((count, all), (4, true));
        assert_eq!(seen, [(0, 9), (1, 0), (1, 1), (2, 9)]);
    }
}
