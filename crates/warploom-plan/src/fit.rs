//! Does a draft fit, and how many records at once?

use std::collections::BTreeMap;

use warploom_core::Bytes;
use warploom_core::memory::HOST;

use crate::diagnostic::{Diagnostic, Problem};
use crate::draft::{Draft, info};
use crate::place::Placing;
use crate::plan::{Pool, Variant};
use crate::segment::FaceAt;

/// Why a card is too small.
struct Lacking {
    slot: u64,
    shared: u64,
    budget: u64,
    wish: u32,
    most: u32,
}

impl Placing<'_, '_> {
    /// Bytes that may be used of a face's own memory.
    pub(crate) fn budget(&self, home: usize, face: FaceAt) -> Option<u64> {
        let card = &self.world.cards[face.card];
        let total = (card.total_memory > 0).then(|| card.total_memory / 10 * 9);
        let there = match (card.free_memory, total) {
            (Some(free), Some(total)) => Some(free.min(total)),
            (free, total) => free.or(total),
        };
        // The budget is the caller's word on the plan's own card; what the host has is the host's.
        let asked = self.options.budget.filter(|_| face.card == home);
        match (asked, there) {
            (Some(asked), Some(there)) => Some(asked.min(there)),
            (asked, there) => asked.or(there),
        }
    }

    /// Refuses what is more than a device gives in one piece.
    fn in_pieces(&self, pool: &Pool, face: FaceAt) -> Result<(), Box<Diagnostic>> {
        let info = info(self.world, face);
        let refuse = |what: &str, bytes: u64, limit: u64, help: String| {
            let message = format!(
                "{} gives at most {} {what}, and {} are needed",
                info.id,
                Bytes(limit),
                Bytes(bytes)
            );
            let finding = Diagnostic::error(Problem::Unable, message);
            Err(Box::new(finding.help(help)))
        };
        let most = info.limits.max_alloc;
        let piece = pool.slot.max(pool.shared);
        if piece > most {
            let help = "allow tiles (no `depth`, no `strict`), or run it on another device";
            return refuse("in one piece", piece, most, help.to_owned());
        }
        let limit = info.limits.max_binding;
        let items = pool.layout.iter().flatten().chain(&pool.constants);
        match items.max_by_key(|lodging| lodging.bytes) {
            Some(item) if item.bytes > limit => {
                let help = format!("`{}` is that large: use smaller images", item.value);
                refuse("to one argument of a kernel", item.bytes, limit, help)
            }
            _ => Ok(()),
        }
    }

    /// The draft with budgets, and the most records in flight that pay and fit.
    pub(crate) fn fitted(
        &self,
        card: usize,
        mut draft: Draft,
    ) -> Result<(Draft, u32), Box<Diagnostic>> {
        let device = draft
            .faces
            .iter()
            .any(|face| info(self.world, *face).local_kind() != Some(HOST));
        let wish = self.options.depth.unwrap_or(if device { 2 } else { 1 });
        let mut depth = wish;
        // Faces of one card share its memory.
        let mut cards: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, pool) in draft.pools.iter_mut().enumerate() {
            let face = draft.faces.iter().find(|face| {
                let info = info(self.world, **face);
                info.id.to_string() == pool.device
                    && info
                        .local_kind()
                        .is_some_and(|kind| kind.name() == pool.memory)
            });
            if let Some(face) = face {
                self.in_pieces(pool, *face)?;
                pool.budget = self.budget(card, *face);
                cards.entry(face.card).or_default().push(at);
            }
        }
        for pools in cards.values() {
            let Some(budget) = draft.pools[pools[0]].budget else {
                continue;
            };
            let sum =
                |of: fn(&Pool) -> u64| pools.iter().map(|at| of(&draft.pools[*at])).sum::<u64>();
            let slot = sum(|pool| pool.slot);
            let shared = sum(|pool| pool.shared + pool.loaded);
            let most = budget.saturating_sub(shared) / slot.max(1);
            let most = if shared > budget {
                0
            } else {
                u32::try_from(most).unwrap_or(u32::MAX)
            };
            if most == 0 || (self.options.depth.is_some() && most < wish) {
                let lacking = Lacking {
                    slot,
                    shared,
                    budget,
                    wish,
                    most,
                };
                let largest = pools.iter().map(|at| &draft.pools[*at]);
                let pool = largest.max_by_key(|pool| pool.slot + pool.shared);
                let Some(pool) = pool else {
                    continue;
                };
                let refusal = self.too_large(card, pool, &draft.variants, &lacking);
                return Err(Box::new(refusal));
            }
            depth = depth.min(most);
        }
        Ok((draft, depth))
    }

    fn too_large(
        &self,
        card: usize,
        pool: &Pool,
        variants: &[Variant],
        lacking: &Lacking,
    ) -> Diagnostic {
        let Lacking {
            slot, shared, wish, ..
        } = *lacking;
        let needed = slot * u64::from(wish.max(1)) + shared;
        let name = &self.world.cards[card].name;
        let fullest = pool.fullest.as_ref();
        let at = fullest.map_or_else(String::new, |peak| {
            let variant = variants.get(peak.variant as usize);
            let steps = variant.map_or(0, |variant| variant.steps.len());
            format!(" at step {} of {steps}", peak.step)
        });
        let message = format!(
            "{name} cannot hold this plan: {} needed of {}{at}, {} may be used",
            Bytes(needed),
            pool.memory,
            Bytes(lacking.budget)
        );
        let mut finding = Diagnostic::error(Problem::DoesNotFit, message);
        if wish > 1 {
            finding = finding.note(format!("{wish} records in flight at {} each", Bytes(slot)));
        }
        let items = pool.layout.iter().flatten();
        if let Some(largest) = items.max_by_key(|lodging| lodging.bytes) {
            let (value, bytes) = (&largest.value, Bytes(largest.bytes));
            finding = finding.note(format!("the largest item is `{value}`, {bytes}"));
        }
        finding.help(if lacking.most > 0 {
            format!("`--depth {}` fits", lacking.most)
        } else {
            format!("a budget of {} would do", Bytes(slot + shared))
        })
    }
}
