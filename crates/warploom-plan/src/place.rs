//! Which card: every one that can is tried with real bytes and seconds, then the policy chooses.

use std::collections::BTreeSet;

use warploom_core::{BackendId, Status};

use crate::diagnostic::{Diagnostic, Problem};
use crate::draft::{Draft, Rules, draft};
use crate::options::Options;
use crate::pipeline::{Pipeline, Policy};
use crate::plan::Reason;
use crate::segment::FaceAt;
use crate::target::Ask;
use crate::tile::{NoTiles, told};
use crate::typed::Typed;
use crate::world::World;

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

    fn allowed(&self, card: usize) -> bool {
        let card = &self.world.cards[card];
        let named = |name: &String| {
            *name == card.name || card.faces.iter().any(|face| face.id.to_string() == *name)
        };
        self.options.devices.is_empty() || self.options.devices.iter().any(named)
    }

    fn candidates(&self) -> Result<Vec<usize>, Vec<Diagnostic>> {
        let (required, pins) = (self.required(), self.pins());
        for name in &self.options.devices {
            if self
                .status
                .is_some_and(|status| status.survey.find(name).is_none())
            {
                let known: Vec<&str> = self.world.cards.iter().map(|c| c.name.as_str()).collect();
                let message = format!("there is no device `{name}`");
                let finding = Diagnostic::error(Problem::UnknownDevice, message);
                return Err(vec![
                    finding.help(format!("there are: {}", known.join(", "))),
                ]);
            }
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
            self.world.with_faces(&required)
        } else if !self.options.devices.is_empty() {
            (0..self.world.cards.len()).collect()
        } else {
            self.world.willing(self.policy() == Policy::Cost)
        };
        let cards: Vec<usize> = cards.into_iter().filter(|at| self.allowed(*at)).collect();
        let able = |at: &usize| {
            let faces = |backend: &BackendId| self.world.face(*at, *backend).is_some();
            self.pipeline.spread_steps || required.iter().all(faces)
        };
        let able: Vec<usize> = cards.into_iter().filter(able).collect();
        if !able.is_empty() {
            return Ok(able);
        }
        if self.pipeline.spread_steps && self.options.devices.is_empty() {
            let first = required.iter().next();
            let card = first.and_then(|b| {
                self.world
                    .with_faces(&BTreeSet::from([*b]))
                    .first()
                    .copied()
            });
            if let Some(card) = card {
                return Ok(vec![card]);
            }
        }
        Err(vec![self.apart(&required)])
    }

    fn apart(&self, required: &BTreeSet<BackendId>) -> Diagnostic {
        let names: Vec<String> = required.iter().map(ToString::to_string).collect();
        let pins: Vec<&str> = self.pins().into_iter().collect();
        let message = match (names.is_empty(), pins.is_empty()) {
            (_, false) => format!(
                "steps are pinned to {}, and no one card is all of it",
                pins.join(" and ")
            ),
            (false, _) => format!("no one card has the faces {}", names.join(" and ")),
            _ => "no card may be used".to_owned(),
        };
        let mut finding = Diagnostic::error(Problem::NoCommonDevice, message);
        for card in &self.world.cards {
            let faces: Vec<String> = card.faces.iter().map(|face| face.id.to_string()).collect();
            finding = finding.note(format!("{} is {}", card.name, faces.join(", ")));
        }
        finding
            .help("put all steps on one backend, or allow several cards with `spread_steps = true`")
    }

    /// The face of every operation, with this card as home.
    fn faces(&self, card: usize, home: BackendId) -> Option<Vec<Vec<FaceAt>>> {
        let place = |card: usize, backend: BackendId| {
            let faces = &self.world.cards[card].faces;
            let face = faces.iter().position(|face| face.id.backend == backend)?;
            Some(FaceAt { card, face })
        };
        let one = |ask: &Ask| {
            let pinned = ask
                .card
                .as_deref()
                .and_then(|name| self.world.cards.iter().position(|card| card.name == name));
            let on = pinned.unwrap_or(card);
            match ask.backend {
                Some(BackendId::CPU) => place(self.world.cpu()?, BackendId::CPU),
                Some(backend) => place(on, backend).or_else(|| {
                    let other = self.world.with_faces(&BTreeSet::from([backend]));
                    place(*other.first()?, backend)
                }),
                None if pinned.is_some_and(|pinned| pinned != card) => {
                    let best = self.world.best_faces(on, self.pipeline.math);
                    place(on, *best.first()?)
                }
                None => place(on, home),
            }
        };
        let graphs = self.asks.iter();
        graphs
            .map(|asks| asks.iter().map(one).collect::<Option<Vec<_>>>())
            .collect()
    }

    /// The card, the draft on it, and why.
    pub(crate) fn best(&self) -> Result<(usize, Draft, Vec<Reason>), Vec<Diagnostic>> {
        let candidates = self.candidates()?;
        let required = self.required();
        let mut tried: Vec<Tried> = Vec::new();
        let mut refusals: Vec<Diagnostic> = Vec::new();
        for card in &candidates {
            let best = self.world.best_faces(*card, self.pipeline.math);
            let asked = best.iter().find(|backend| required.contains(backend));
            let Some(home) = asked.or(best.first()).copied() else {
                continue;
            };
            let Some(faces) = self.faces(*card, home) else {
                let message =
                    "a step needs the processor, and the cpu backend is not in this build";
                let finding = Diagnostic::error(Problem::MissingBackend, message);
                refusals.push(finding.help("build with the feature `cpu`"));
                continue;
            };
            let made = draft(
                self.world,
                self.options,
                self.graphs,
                &faces,
                Rules {
                    no_host_copy: self.pipeline.no_host_copy,
                    tiles: None,
                    moved: &[],
                },
            );
            match made.map(|draft| self.fitted(*card, draft)) {
                Ok(Ok((draft, depth))) => tried.push(Tried {
                    card: *card,
                    backend: home,
                    draft,
                    depth,
                }),
                Ok(Err(refusal)) => refusals.push(*refusal),
                Err(list) => refusals.extend(list),
            }
        }
        if tried.is_empty() {
            for card in &candidates {
                match self.tiled(*card, &required) {
                    Ok(fits) => tried.push(fits),
                    Err(NoTiles::Refused(refusal)) => refusals = refusal,
                    Err(NoTiles::NoWay(why)) => told(&mut refusals, &why),
                }
            }
        }
        let Some(at) = self.choose(&tried) else {
            refusals.dedup();
            return Err(refusals);
        };
        let reasons = self.reasons(&tried, at, candidates.len());
        let chosen = tried.swap_remove(at);
        let mut draft = chosen.draft;
        draft.depth = chosen.depth;
        for pool in &mut draft.pools {
            pool.total = pool.slot * u64::from(chosen.depth) + pool.shared + pool.loaded;
        }
        Ok((chosen.card, draft, reasons))
    }

    /// The same pipeline on tiles, if that can be: what looks at whole images then runs on the
    /// processor, unless its step says that it must not.
    fn tiled(&self, card: usize, required: &BTreeSet<BackendId>) -> Result<Tried, NoTiles> {
        let best = self.world.best_faces(card, self.pipeline.math);
        let asked = best.iter().find(|backend| required.contains(backend));
        let home = asked.or(best.first()).copied();
        let home = home.ok_or_else(|| NoTiles::NoWay("the card has no face".to_owned()))?;
        if let Some(why) = self.hindrance(home) {
            return Err(NoTiles::NoWay(why.to_owned()));
        }
        let no_processor = || NoTiles::NoWay("tiles need the processor beside the card".to_owned());
        let mut faces = self.faces(card, home).ok_or_else(no_processor)?;
        let host = self.processor().ok_or_else(no_processor)?;
        let moved = self.make_room(&mut faces, host)?;
        let face = faces.iter().flatten().find(|face| **face != host);
        let budget = face.and_then(|face| self.budget(card, *face));
        let Some(budget) = budget else {
            let why = "tiles cannot help: every operation looks at whole images";
            return Err(NoTiles::NoWay(why.to_owned()));
        };
        // Two tiles in flight, so that copies of one overlap with work on the other.
        let rules = |room| Rules {
            no_host_copy: false,
            tiles: Some(room),
            moved: &moved,
        };
        let made = [budget / 2, budget]
            .map(|room| draft(self.world, self.options, self.graphs, &faces, rules(room)));
        let mut last = Vec::new();
        for made in made {
            match made.map(|draft| self.fitted(card, draft)) {
                Ok(Ok((draft, depth))) => {
                    return Ok(Tried {
                        card,
                        backend: home,
                        draft,
                        depth,
                    });
                }
                Ok(Err(refusal)) => last = vec![*refusal],
                Err(list) => last = list,
            }
        }
        Err(NoTiles::Refused(last))
    }

    fn choose(&self, tried: &[Tried]) -> Option<usize> {
        let name = |at: usize| &self.world.cards[tried[at].card].name;
        let all = 0..tried.len();
        match self.policy() {
            Policy::First => (!tried.is_empty()).then_some(0),
            Policy::Spread => all.min_by(|a, b| {
                let share = |at: usize| {
                    let load = self.options.loads.get(name(at)).copied().unwrap_or(0);
                    let card = &self.world.cards[tried[at].card];
                    let slots = self.status.map_or(1, |status| status.max_pipelines(card));
                    (u64::from(load) + 1, u64::from(slots.max(1)))
                };
                let ((a, of_a), (b, of_b)) = (share(*a), share(*b));
                (a * of_b).cmp(&(b * of_a))
            }),
            Policy::Fit => all.min_by_key(|at| {
                let left = |at: usize| {
                    let pools = tried[at].draft.pools.iter();
                    let left = pools.filter_map(|pool| {
                        let slots = pool.slot * u64::from(tried[at].depth);
                        let used = slots + pool.shared + pool.loaded;
                        Some(pool.budget?.saturating_sub(used))
                    });
                    left.min().unwrap_or(0)
                };
                (std::cmp::Reverse(left(*at)), name(*at).clone())
            }),
            Policy::Cost => all.min_by(|a, b| {
                let paced = |at: usize| tried[at].draft.paced.0;
                paced(*a)
                    .total_cmp(&paced(*b))
                    .then_with(|| name(*a).cmp(name(*b)))
            }),
        }
    }
}
