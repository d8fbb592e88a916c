//! Which card: every one that can is tried with real bytes and seconds, then the policy chooses.

use std::collections::BTreeSet;

use warploom_core::{BackendId, DeviceId, Status};

use crate::candidate::nowhere;
use crate::diagnostic::{Diagnostic, merge};
use crate::draft::{Draft, Rules, draft, info};
use crate::options::Options;
use crate::pipeline::{Pipeline, Policy};
use crate::plan::Reason;
use crate::segment::{FaceAt, Segment, cut};
use crate::shortage::Refusal;
use crate::target::Ask;
use crate::typed::Typed;
use crate::world::{World, order, speed};

/// A pipeline that knows its types, and the machine it is for.
pub(crate) struct Placing<'a, 'p> {
    pub(crate) pipeline: &'p Pipeline,
    pub(crate) graphs: &'a [Typed<'p>],
    pub(crate) asks: &'a [Vec<Ask>],
    pub(crate) world: &'a World,
    pub(crate) status: Option<&'a Status>,
    pub(crate) options: &'a Options,
}

/// A card that was tried.
pub(crate) struct Tried {
    pub(crate) card: usize,
    pub(crate) backend: BackendId,
    pub(crate) draft: Draft,
    pub(crate) depth: u32,
    /// What whole records lack there, where they go in tiles.
    pub(crate) lacks: Option<String>,
}

impl Placing<'_, '_> {
    pub(crate) fn policy(&self) -> Policy {
        let wish = self.options.placement.or(self.pipeline.placement);
        wish.unwrap_or_default()
    }

    /// Backends that steps insist on, beside the processor's.
    fn required(&self) -> BTreeSet<BackendId> {
        let asks = self.asks.iter().flatten();
        let backends = asks.filter_map(|ask| ask.backend);
        backends
            .filter(|backend| *backend != BackendId::CPU)
            .collect()
    }

    pub(crate) fn pins(&self) -> BTreeSet<&str> {
        let asks = self.asks.iter().flatten();
        asks.filter_map(|ask| ask.card.as_deref()).collect()
    }

    /// Does everything ask for the processor?
    pub(crate) fn all_cpu(&self) -> bool {
        let mut asks = self.asks.iter().flatten();
        asks.all(|ask| ask.backend == Some(BackendId::CPU))
    }

    /// May this face of a card be used? All may, or those that were named, as cards or as faces.
    fn allowed(&self, card: usize, backend: BackendId) -> bool {
        let names = &self.options.devices;
        let card = &self.world.cards[card];
        let face = card.face(backend).map(|face| face.id);
        let named = |name: &String| {
            *name == card.name || (face.is_some() && name.parse::<DeviceId>().ok() == face)
        };
        names.is_empty() || names.iter().any(named)
    }

    /// The faces of a card that may be used, best first.
    fn open(&self, card: usize) -> Vec<BackendId> {
        let faces = self.world.best_faces(card, self.pipeline.math);
        let open = faces.into_iter();
        open.filter(|backend| self.allowed(card, *backend))
            .collect()
    }

    /// Cards with all these faces, of those that may be used.
    fn with_faces(&self, backends: &BTreeSet<BackendId>) -> Vec<usize> {
        let cards = self.world.with_faces(backends).into_iter();
        let open = |at: &usize| backends.iter().all(|backend| self.allowed(*at, *backend));
        cards.filter(open).collect()
    }

    fn candidates(&self) -> Result<Vec<usize>, Vec<Diagnostic>> {
        let (required, pins) = (self.required(), self.pins());
        if let Some(finding) = self.unknown_device() {
            return Err(vec![finding]);
        }
        let cards: Vec<usize> = if self.all_cpu() {
            self.world.cpu().into_iter().collect()
        } else if !pins.is_empty() {
            let pinned = |at: &usize| pins.contains(self.world.cards[*at].name.as_str());
            let cards: Vec<usize> = (0..self.world.cards.len()).filter(pinned).collect();
            if cards.len() > 1 && !self.pipeline.spread_steps {
                return Err(vec![self.apart(&required)]);
            }
            cards.into_iter().take(1).collect()
        } else if !required.is_empty() {
            self.with_faces(&required)
        } else if !self.options.devices.is_empty() {
            (0..self.world.cards.len()).collect()
        } else {
            self.world.willing(self.policy() == Policy::Cost)
        };
        let able = |at: &usize| {
            let has = |backend: &BackendId| {
                self.world.face(*at, *backend).is_some() && self.allowed(*at, *backend)
            };
            let all = self.pipeline.spread_steps || required.iter().all(has);
            all && !self.open(*at).is_empty()
        };
        let able: Vec<usize> = cards.into_iter().filter(able).collect();
        if !able.is_empty() {
            return Ok(able);
        }
        if self.pipeline.spread_steps {
            let mut first = required.iter();
            let card = first.find_map(|backend| {
                let cards = self.with_faces(&BTreeSet::from([*backend]));
                cards.first().copied()
            });
            if let Some(card) = card {
                return Ok(vec![card]);
            }
        }
        Err(vec![self.apart(&required)])
    }

    /// The face of every operation, with this card as home.
    pub(crate) fn faces(
        &self,
        card: usize,
        home: BackendId,
    ) -> Result<Vec<Vec<FaceAt>>, Box<Diagnostic>> {
        let place = |card: usize, backend: BackendId| {
            let faces = &self.world.cards[card].faces;
            let face = faces.iter().position(|face| face.id.backend == backend)?;
            Some(FaceAt::new(card, face))
        };
        let one = |ask: &Ask| {
            let pinned = ask
                .card
                .as_deref()
                .and_then(|name| self.world.cards.iter().position(|card| card.name == name));
            let on = pinned.unwrap_or(card);
            match ask.backend {
                Some(BackendId::CPU) => place(self.world.cpu()?, BackendId::CPU),
                Some(backend) => {
                    let here = place(on, backend).filter(|_| self.allowed(on, backend));
                    here.or_else(|| {
                        let other = self.with_faces(&BTreeSet::from([backend]));
                        place(*other.first()?, backend)
                    })
                }
                None if pinned.is_some_and(|pinned| pinned != card) => {
                    place(on, *self.open(on).first()?)
                }
                None => place(on, home),
            }
        };
        let mut all = Vec::new();
        for (graph, asks) in self.graphs.iter().zip(self.asks) {
            let mut faces = Vec::new();
            for (op, ask) in graph.ops.iter().zip(asks) {
                let face = one(ask).ok_or_else(|| Box::new(nowhere(op.step, ask)))?;
                faces.push(face);
            }
            all.push(faces);
        }
        Ok(all)
    }

    /// The card, the draft on it, and why.
    pub(crate) fn best(&self) -> Result<(usize, Draft, Vec<Reason>), Vec<Diagnostic>> {
        let candidates = self.candidates()?;
        let required = self.required();
        let mut tried: Vec<Tried> = Vec::new();
        let mut refused = Vec::new();
        for card in &candidates {
            let open = self.open(*card);
            let asked = open.iter().find(|backend| required.contains(backend));
            let Some(home) = asked.or(open.first()).copied() else {
                continue;
            };
            match self.whole(*card, home) {
                Ok(fits) => tried.push(fits),
                Err(refusal) => refused.push((*card, home, refusal)),
            }
        }
        let mut refusals: Vec<Diagnostic> = Vec::new();
        // What is done first may be tiles on a fast card, where the processor has room for all.
        if tried.is_empty() || self.policy() == Policy::Cost {
            for (card, home, refusal) in refused {
                match self.tiled(card, home, refusal) {
                    Ok(fits) => tried.push(fits),
                    Err(findings) => merge(&mut refusals, findings),
                }
            }
        }
        let mut against = Vec::new();
        if tried.is_empty()
            && let Some(processor) = self.on_processor(&candidates)
        {
            if self.may_fall_back() {
                tried.push(processor);
                against = std::mem::take(&mut refusals);
            } else {
                refusals = self.with_processor(refusals);
            }
        }
        let Some(at) = self.choose(&tried) else {
            if refusals.is_empty() {
                refusals.push(self.apart(&required));
            }
            return Err(refusals);
        };
        let reasons = self.reasons(&tried, at, candidates.len(), &against);
        let chosen = tried.swap_remove(at);
        let mut draft = chosen.draft;
        draft.depth = chosen.depth;
        for pool in &mut draft.pools {
            pool.total = pool.slot * u64::from(chosen.depth) + pool.shared + pool.loaded;
        }
        Ok((chosen.card, draft, reasons))
    }

    /// What runs without leaving its face, graph by graph.
    pub(crate) fn segments(&self, faces: &[Vec<FaceAt>]) -> Vec<Vec<Segment>> {
        let graphs = self.graphs.iter().zip(faces);
        let cut = |(graph, faces): (&Typed<'_>, &Vec<FaceAt>)| {
            cut(graph, faces, |face| {
                let info = info(self.world, face);
                (info.clone(), speed(info, self.options).0.machine)
            })
        };
        graphs.map(cut).collect()
    }

    /// The pipeline on whole records, with this face as home.
    pub(crate) fn whole(&self, card: usize, home: BackendId) -> Result<Tried, Refusal> {
        let faces = self.faces(card, home);
        let faces = faces.map_err(|finding| Refusal::Findings(vec![*finding]))?;
        let rules = Rules {
            no_host_copy: self.pipeline.no_host_copy,
            tiles: &[],
            moved: &[],
        };
        let segments = self.segments(&faces);
        let made = draft(self.world, self.options, self.graphs, &segments, rules);
        let made = made.map_err(Refusal::Findings)?;
        let fitted = self.fitted(card, made, self.options.depth);
        let (draft, depth) = fitted.map_err(Refusal::Unfit)?;
        Ok(Tried {
            card,
            backend: home,
            draft,
            depth,
            lacks: None,
        })
    }

    fn choose(&self, tried: &[Tried]) -> Option<usize> {
        let name = |at: usize| &self.world.cards[tried[at].card].name;
        let all = 0..tried.len();
        match self.policy() {
            // Whatever else is there: that is what it is for.
            Policy::First => (!tried.is_empty()).then_some(0),
            Policy::Spread => all.min_by(|a, b| {
                let share = |at: usize| (self.load(tried[at].card) + 1, self.slots(tried[at].card));
                let ((a, of_a), (b, of_b)) = (share(*a), share(*b));
                (a * of_b).cmp(&(b * of_a))
            }),
            Policy::Fit => all.min_by_key(|at| {
                let tried = &tried[*at];
                let full = self.load(tried.card) >= self.slots(tried.card);
                (full, std::cmp::Reverse(self.left(tried)), order(name(*at)))
            }),
            Policy::Cost => all.min_by(|a, b| {
                // Pipelines that share a card share its time.
                let paced = |at: usize| {
                    let all = self.load(tried[at].card) + 1;
                    tried[at].draft.paced.0 * all as f64
                };
                paced(*a)
                    .total_cmp(&paced(*b))
                    .then_with(|| order(name(*a)).cmp(&order(name(*b))))
            }),
        }
    }

    /// Pipelines that are on a card already.
    fn load(&self, card: usize) -> u64 {
        let load = self.options.loads.get(&self.world.cards[card].name);
        u64::from(load.copied().unwrap_or(0))
    }

    /// Pipelines that a card takes at a time.
    fn slots(&self, card: usize) -> u64 {
        let card = &self.world.cards[card];
        let slots = self.status.map_or(1, |status| status.max_pipelines(card));
        u64::from(slots.max(1))
    }

    /// Bytes that a plan leaves of its own card; what the host has left is the same for all cards.
    fn left(&self, tried: &Tried) -> u64 {
        let pools = tried.draft.pools.iter();
        let own = pools.filter(|pool| self.card_of(pool) == Some(tried.card));
        let used = own.map(|pool| {
            let slots = pool.slot * u64::from(tried.depth);
            slots + pool.shared + pool.loaded
        });
        let budget = self.budget(tried.card, tried.card).unwrap_or(0);
        budget.saturating_sub(used.sum())
    }
}
