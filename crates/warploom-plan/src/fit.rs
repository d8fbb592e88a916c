//! Does a draft fit, and how many records at once?

use std::collections::{BTreeMap, BTreeSet};

use warploom_core::Bytes;
use warploom_core::memory::HOST;

use crate::diagnostic::{Diagnostic, Place, Problem};
use crate::draft::{Draft, info};
use crate::place::Placing;
use crate::plan::{PlanStep, Pool, Variant, is_straight, slots_that_pay, stage_seconds};
use crate::segment::FaceAt;

/// Why a draft cannot be kept.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// A device gives less in one piece than is needed.
    Piece(Box<Diagnostic>),
    /// A card has too few bytes.
    Bytes(Box<Lacking>),
}

impl Unfit {
    /// What whole records lack, in a clause.
    pub(crate) fn clause(&self) -> String {
        match self {
            Self::Piece(finding) => finding.message.clone(),
            Self::Bytes(lacking) => format!(
                "a whole record takes {} of {}, and {} may be used",
                Bytes(lacking.needed),
                lacking.memory,
                Bytes(lacking.budget)
            ),
        }
    }
}

/// The bytes of a card that are lacking.
#[derive(Debug)]
pub(crate) struct Lacking {
    /// Whose memory it is.
    pub(crate) card: usize,
    /// The kinds of memory that are on it.
    pub(crate) memory: String,
    /// For all records in flight that were asked for, or for one.
    pub(crate) needed: u64,
    pub(crate) budget: u64,
    /// Bytes of one record in flight.
    pub(crate) slot: u64,
    /// The most records in flight that would fit.
    pub(crate) most: u32,
    /// Where memory is fullest: a step, of how many.
    pub(crate) step: Option<(u32, usize)>,
    pub(crate) place: Option<Place>,
    pub(crate) largest: Option<(String, u64)>,
}

impl Placing<'_, '_> {
    /// Bytes of a card that may be used at all.
    pub(crate) fn there(&self, card: usize) -> Option<u64> {
        let card = &self.world.cards[card];
        let total = (card.total_memory > 0).then(|| card.total_memory / 10 * 9);
        match (card.free_memory, total) {
            (Some(free), Some(total)) => Some(free.min(total)),
            (free, total) => free.or(total),
        }
    }

    /// Bytes of a card that a plan whose home is `home` may use.
    pub(crate) fn budget(&self, home: usize, card: usize) -> Option<u64> {
        // The budget is the caller's word on the plan's own card; what the host has is the host's.
        let asked = self.options.budget.filter(|_| card == home);
        match (asked, self.there(card)) {
            (Some(asked), Some(there)) => Some(asked.min(there)),
            (asked, there) => asked.or(there),
        }
    }

    /// The card whose memory a pool takes. Records come and go through the host's, and what is pinned
    /// for copies to a card is the host's too.
    pub(crate) fn card_of(&self, pool: &Pool) -> Option<usize> {
        let mut cards = self.world.cards.iter().enumerate();
        let (card, face) = cards.find_map(|(at, card)| {
            let mut faces = card.faces.iter();
            let face = faces.find(|face| face.id.to_string() == pool.device)?;
            Some((at, face))
        })?;
        let own = face.local_kind();
        if own.is_some_and(|kind| kind.name() == pool.memory) {
            Some(card)
        } else {
            self.world.cpu()
        }
    }

    /// Refuses what is more than a device gives in one piece.
    fn in_pieces(
        &self,
        pool: &Pool,
        face: FaceAt,
        variants: &[Variant],
    ) -> Result<(), Box<Diagnostic>> {
        let info = info(self.world, face);
        let refuse = |what: &str, bytes: u64, limit: u64, help: String| {
            let message = format!(
                "{} gives at most {} {what}, and {} are needed",
                info.id,
                Bytes(limit),
                Bytes(bytes)
            );
            let finding = Diagnostic::error(Problem::Unable, message);
            let (_, place) = self.fullest(pool, variants);
            Err(Box::new(finding.at(place).help(help)))
        };
        let most = info.limits.max_alloc;
        let piece = pool.slot.max(pool.shared);
        if piece > most {
            let help = "run it on another device, or use smaller images";
            return refuse("in one piece", piece, most, help.to_owned());
        }
        let limit = info.limits.max_binding;
        let items = pool.layout.iter().flatten().chain(&pool.constants);
        match items.max_by_key(|lodging| lodging.bytes) {
            Some(item) if item.bytes > limit => {
                let help = format!(
                    "`{}` is that large: run it on another device, or use smaller images",
                    item.value
                );
                refuse("to one argument of a kernel", item.bytes, limit, help)
            }
            _ => Ok(()),
        }
    }

    /// The draft with budgets, and as many records in flight as pay and fit; with `asked`, so many.
    pub(crate) fn fitted(
        &self,
        home: usize,
        mut draft: Draft,
        asked: Option<u32>,
    ) -> Result<(Draft, u32), Unfit> {
        let device = draft
            .faces
            .iter()
            .any(|face| info(self.world, *face).local_kind() != Some(HOST));
        let straight = is_straight(draft.faces.len(), &draft.pools, &draft.variants);
        let paying = if straight {
            slots_that_pay(!device, stage_seconds(&draft.variants))
        } else {
            // One unit after the other goes back and forth.
            1
        };
        let mut depth = asked.unwrap_or(paying);
        // Faces of one card share its memory.
        let mut cards: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let beside = draft.pools.iter().any(|pool| pool.tiles);
        for (at, pool) in draft.pools.iter_mut().enumerate() {
            let face = draft.faces.iter().find(|face| {
                let info = info(self.world, **face);
                info.id.to_string() == pool.device
                    && info
                        .local_kind()
                        .is_some_and(|kind| kind.name() == pool.memory)
            });
            if let Some(face) = face {
                let whole = self.in_pieces(pool, *face, &draft.variants);
                whole.map_err(Unfit::Piece)?;
            }
            let Some(card) = self.card_of(pool) else {
                continue;
            };
            // Whole images on the host are not what a budget for tiles is about.
            pool.budget = if beside && !pool.tiles {
                self.there(card)
            } else {
                self.budget(home, card)
            };
            cards.entry(card).or_default().push(at);
        }
        let mut lacking = Vec::new();
        for (card, pools) in &cards {
            let pools: Vec<&Pool> = pools.iter().map(|at| &draft.pools[*at]).collect();
            let tiles: Vec<&Pool> = pools.iter().copied().filter(|pool| pool.tiles).collect();
            // Tiles have their budget, and all that is on the card has what is there: of which no budget
            // makes more, so that it is told first.
            let limits = if tiles.is_empty() {
                vec![(pools.clone(), pools[0].budget)]
            } else {
                vec![
                    (pools.clone(), self.there(*card)),
                    (tiles, self.budget(home, *card)),
                ]
            };
            for (pools, budget) in limits {
                let Some(budget) = budget else {
                    continue;
                };
                let slot: u64 = pools.iter().map(|pool| pool.slot).sum();
                let shared: u64 = pools.iter().map(|pool| pool.shared + pool.loaded).sum();
                let most = match budget.checked_sub(shared) {
                    Some(left) => u32::try_from(left / slot.max(1)).unwrap_or(u32::MAX),
                    None => 0,
                };
                depth = depth.min(most);
                if most >= asked.unwrap_or(1) {
                    continue;
                }
                let needed = slot.saturating_mul(u64::from(asked.unwrap_or(1)));
                let pool = pools.iter().max_by_key(|pool| pool.slot + pool.shared);
                let pool = pool.copied().unwrap_or(pools[0]);
                let (step, place) = self.fullest(pool, &draft.variants);
                let kinds: BTreeSet<&str> = pools.iter().map(|pool| pool.memory.as_str()).collect();
                let kinds: Vec<&str> = kinds.into_iter().collect();
                let items = pool.layout.iter().flatten();
                let largest = items.max_by_key(|lodging| lodging.bytes);
                lacking.push(Lacking {
                    card: *card,
                    memory: kinds.join(" and "),
                    needed: needed.saturating_add(shared),
                    budget,
                    slot,
                    most,
                    step,
                    place,
                    largest: largest.map(|item| (item.value.clone(), item.bytes)),
                });
            }
        }
        // What no budget can mend is told first, and of the rest what allows the fewest records.
        let worst = lacking
            .into_iter()
            .min_by_key(|lack| (lack.most, lack.card == home));
        match worst {
            Some(lacking) => Err(Unfit::Bytes(Box::new(lacking))),
            None => Ok((draft, depth)),
        }
    }

    /// Where a pool is fullest: the step, of how many, and its place in the file.
    fn fullest(&self, pool: &Pool, variants: &[Variant]) -> (Option<(u32, usize)>, Option<Place>) {
        let Some(peak) = &pool.fullest else {
            return (None, None);
        };
        let Some(variant) = variants.get(peak.variant as usize) else {
            return (None, None);
        };
        let at = (peak.step as usize)
            .saturating_sub(1)
            .min(variant.steps.len());
        let (before, after) = variant.steps.split_at(at);
        // A copy is of a step, most often of the one that it is made for.
        let mut near = after.iter().chain(before.iter().rev());
        let place = near.find_map(|step| self.place_of(step));
        (Some((peak.step, variant.steps.len())), place)
    }

    /// Where the first operation of a step was written.
    pub(crate) fn place_of(&self, step: &PlanStep) -> Option<Place> {
        let name = &step.ops().first()?.name;
        let mut ops = self.graphs.iter().flat_map(|graph| &graph.ops);
        ops.find(|op| op.name == *name)?.step.place()
    }

    /// Tells that a draft of whole records does not fit; without a way out yet.
    pub(crate) fn too_large(&self, home: usize, lacking: &Lacking) -> Diagnostic {
        let name = &self.world.cards[lacking.card].name;
        let what = if lacking.card == home {
            "this plan".to_owned()
        } else {
            format!("its part of a plan on {}", self.world.cards[home].name)
        };
        let at = lacking.step.map_or_else(String::new, |(step, steps)| {
            format!(" at step {step} of {steps}")
        });
        let message = format!(
            "{name} cannot hold {what}: {} needed of {}{at}, {} may be used",
            Bytes(lacking.needed),
            lacking.memory,
            Bytes(lacking.budget)
        );
        let mut finding = Diagnostic::error(Problem::DoesNotFit, message).at(lacking.place);
        if let Some(depth) = self.options.depth.filter(|depth| *depth > 1) {
            let each = Bytes(lacking.slot);
            finding = finding.note(format!("{depth} records in flight at {each} each"));
        }
        if let Some((value, bytes)) = &lacking.largest {
            let bytes = Bytes(*bytes);
            finding = finding.note(format!("the largest item is `{value}`, {bytes}"));
        }
        finding
    }
}
