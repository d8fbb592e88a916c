//! Why a plan is as it is.

use warploom_core::Bytes;
use warploom_core::memory::HOST;
use warploom_kernels::op::Backends;

use crate::diagnostic::Diagnostic;
use crate::draft::Draft;
use crate::pipeline::Policy;
use crate::place::{Placing, Tried};
use crate::plan::{PlanStep, Reason, is_straight};

/// How a card was chosen.
fn policy_text(policy: Policy) -> &'static str {
    match policy {
        Policy::First => "the first card that can run it",
        Policy::Spread => "the card with the smallest share of its capacity taken",
        Policy::Fit => "the card with the most bytes left",
        Policy::Cost => "the card that is done first",
    }
}

/// A refusal with its facts, without what to do about it.
fn in_a_line(refusal: &Diagnostic) -> String {
    let Diagnostic { message, notes, .. } = refusal;
    if notes.is_empty() {
        message.clone()
    } else {
        format!("{message} ({})", notes.join("; "))
    }
}

impl Placing<'_, '_> {
    /// Every decision that led to what was chosen, and why.
    /// `against` is what all cards have against it, where the processor does what none of them can.
    pub(crate) fn reasons(
        &self,
        tried: &[Tried],
        at: usize,
        candidates: usize,
        against: &[Diagnostic],
    ) -> Vec<Reason> {
        let chosen = &tried[at];
        let card = &self.world.cards[chosen.card];
        let mut why = vec![format!(
            "`{}`: {}",
            self.policy(),
            policy_text(self.policy())
        )];
        if !against.is_empty() {
            why = vec!["no card can do it, so the processor does".to_owned()];
            why.extend(against.iter().map(in_a_line));
        } else if !self.pins().is_empty() {
            why = vec!["the pipeline names it".to_owned()];
        } else if self.all_cpu() {
            why = vec!["every step asks for the processor or needs it".to_owned()];
        } else if candidates == 1 {
            why = vec!["no other card can run these steps".to_owned()];
        }
        for other in tried {
            let name = &self.world.cards[other.card].name;
            let pool = other
                .draft
                .pools
                .iter()
                .map(|pool| pool.slot)
                .max()
                .unwrap_or(0);
            why.push(format!(
                "{name}: {} a record in flight, {:.3} ms a unit{}, limited by {}",
                Bytes(pool),
                other.draft.paced.0 * 1e3,
                if other.draft.measured {
                    " as measured"
                } else {
                    ""
                },
                other.draft.paced.1
            ));
        }
        let mut reasons = vec![Reason {
            about: format!("{} through {}", card.name, chosen.backend),
            why: why.join("; "),
        }];
        for (graph, asks) in self.graphs.iter().zip(self.asks) {
            for (op, ask) in graph.ops.iter().zip(asks) {
                if ask.cpu_only && !self.all_cpu() {
                    let reason = Reason {
                        about: format!("`{}` on the processor", op.name),
                        why: match op.call.op.backends {
                            Backends::CpuOnly { why } => why.to_owned(),
                            Backends::All => String::new(),
                        },
                    };
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
            }
        }
        for (about, why) in &chosen.draft.copies {
            let reason = Reason {
                about: about.clone(),
                why: why.clone(),
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let mut steps = chosen
            .draft
            .variants
            .iter()
            .flat_map(|variant| &variant.steps);
        let tiled = steps.any(|step| matches!(step, PlanStep::Tiled { .. }));
        if tiled {
            reasons.extend(self.of_tiles(chosen));
        }
        reasons.push(Reason {
            about: format!(
                "{} {}{} in flight",
                chosen.depth,
                if tiled { "tile" } else { "record" },
                if chosen.depth == 1 { "" } else { "s" }
            ),
            why: self.why_so_many(&chosen.draft, chosen.depth).to_owned(),
        });
        reasons
    }

    fn why_so_many(&self, draft: &Draft, depth: u32) -> &'static str {
        let copies = draft.pools.iter().any(|pool| pool.memory != HOST.name());
        let straight = is_straight(draft.faces.len(), &draft.pools, &draft.variants);
        match (self.options.depth, depth) {
            (Some(_), _) => "asked for",
            (None, _) if !straight => "one after the other: they go back and forth",
            (None, 1) => "one at a time: no more pay, or no more fit",
            (None, _) if copies => "copies of one overlap with work on the other",
            (None, _) => "one is read while another is worked on and a third is written",
        }
    }

    /// Why there are tiles, what that means for bits, and what it moves to the processor.
    fn of_tiles(&self, tried: &Tried) -> Vec<Reason> {
        let draft = &tried.draft;
        let bits = if self.is_strict(draft) {
            "the bits are those of whole images"
        } else {
            "not everything here is strict, so bits may differ from those of whole images, within each operation's bound"
        };
        let lacks = tried.lacks.as_deref().unwrap_or("whole records do not fit");
        let tiles = Reason {
            about: "tiles".to_owned(),
            why: format!("{lacks}; {bits}"),
        };
        let moved = draft.moved.iter().map(|moved| Reason {
            about: format!("`{}` on the processor", moved.name),
            why: "it looks at whole images, which are in host memory between passes over tiles"
                .to_owned(),
        });
        std::iter::once(tiles).chain(moved).collect()
    }
}
