//! Records that do not fit: in tiles if that can be, or else what would help.

use warploom_core::{BackendId, Bytes};

use crate::diagnostic::{Diagnostic, Problem};
use crate::draft::{Draft, Rules, draft};
use crate::fit::{Lacking, Unfit};
use crate::place::{Placing, Tried};
use crate::plan::PlanStep;
use crate::target::listed;
use crate::tile::Tiling;

/// Why a card does not run whole records.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It is not about room.
    Findings(Vec<Diagnostic>),
    /// It is.
    Unfit(Unfit),
}

/// Why a card does not run tiles either.
enum NoTiles {
    /// They are no way out, for this reason.
    Never(String),
    /// A draft of the smallest tiles that there are does not fit.
    Unfit(Box<Draft>, Unfit),
}

/// A budget that would do.
struct Enough {
    bytes: u64,
    /// Would no smaller one?
    least: bool,
}

impl Placing<'_, '_> {
    /// The same pipeline on tiles, where whole records do not fit; what looks at whole images then
    /// runs on the processor.
    ///
    /// # Errors
    /// Why neither can be, and what would help.
    pub(crate) fn tiled(
        &self,
        card: usize,
        home: BackendId,
        whole: Refusal,
    ) -> Result<Tried, Vec<Diagnostic>> {
        let unfit = match whole {
            Refusal::Findings(findings) => return Err(findings),
            Refusal::Unfit(unfit) => unfit,
        };
        if let Unfit::Bytes(lacking) = &unfit
            && lacking.most > 0
        {
            // Whole records fit, only not so many.
            let help = self.help(card, lacking, None);
            return Err(vec![self.too_large(card, lacking).help(help)]);
        }
        let hindrance = self.hindrance(home);
        let (note, instead) = match (hindrance, self.on_tiles(card, home)) {
            (None, Ok(fits)) => {
                let lacks = Some(unfit.clause());
                return Ok(Tried { lacks, ..fits });
            }
            (None, Err(NoTiles::Unfit(draft, small))) => {
                let refusal = self.tiles_too_large(card, &unfit, &draft, small);
                return Err(vec![refusal]);
            }
            (None, Err(NoTiles::Never(why))) => (why, None),
            (Some(why), Ok(_)) => {
                let forbidden = self.against_tiles(home).join(" and without ");
                let instead = format!("without {forbidden} it runs in tiles");
                (why.to_owned(), Some(instead))
            }
            (Some(why), Err(_)) => (why.to_owned(), None),
        };
        let refusal = match unfit {
            Unfit::Piece(finding) => match instead {
                Some(help) => finding.note(note).help(help),
                None => finding.note(note),
            },
            Unfit::Bytes(lacking) => {
                let enough = (lacking.card == card).then_some(Enough {
                    bytes: lacking.needed,
                    least: true,
                });
                let help = self.help(card, &lacking, enough);
                let help = match instead {
                    Some(instead) => format!("{instead}; or else {help}"),
                    None => help,
                };
                self.too_large(card, &lacking).note(note).help(help)
            }
        };
        Err(vec![refusal])
    }

    /// The settings that rule tiles out: they are not records in flight, and they go to the host.
    fn against_tiles(&self, home: BackendId) -> Vec<&'static str> {
        let depth = self.options.depth.map(|_| "`--depth`");
        let strict = self.pipeline.no_host_copy && home != BackendId::CPU;
        let strict = strict.then_some("`strict = \"no-host-copy\"`");
        depth.into_iter().chain(strict).collect()
    }

    /// The pipeline on tiles, as if nothing that was asked for ruled them out.
    fn on_tiles(&self, card: usize, home: BackendId) -> Result<Tried, NoTiles> {
        let never = |why: &str| NoTiles::Never(why.to_owned());
        let no_processor = || never("no tiles: they need the processor beside the card");
        let host = self.processor().ok_or_else(no_processor)?;
        let mut faces = self.faces(card, home).map_err(|_| no_processor())?;
        let moved = self.make_room(&mut faces, home, host);
        let moved = moved.map_err(NoTiles::Never)?;
        let face = faces.iter().flatten().find(|face| face.tiled);
        let whole = || never("tiles cannot help: every operation looks at whole images");
        let face = face.ok_or_else(whole)?;
        let limits = &self.world.cards[face.card].faces[face.face].limits;
        let room = |on: usize| {
            let budget = self.budget(card, on).unwrap_or(u64::MAX);
            budget.min(limits.max_alloc)
        };
        let segments = self.segments(&faces);
        let draft = |tiles: &[Vec<Tiling>]| {
            let rules = Rules {
                no_host_copy: false,
                tiles,
                moved: &moved,
            };
            draft(self.world, self.options, self.graphs, &segments, rules)
        };
        let tried = |(draft, depth): (Draft, u32)| Tried {
            card,
            backend: home,
            draft,
            depth,
            lacks: None,
        };
        let fitting = |tiles: &Vec<Vec<Tiling>>| {
            let fitted = self.fitted(card, draft(tiles).ok()?, None);
            fitted.ok().map(tried)
        };
        let here = room(face.card);
        let no_tile = || never("no tiles: no tile is small enough for the device");
        let tilers = self.tilers(&segments).ok_or_else(no_tile)?;
        if let Some(fits) = tilers.quick(here).as_ref().and_then(fitting) {
            return Ok(fits);
        }
        let choices = tilers.choices(here).ok_or_else(no_tile)?;
        let least = choices.least().ok_or_else(no_tile)?;
        let least = draft(&least).map_err(|_| no_tile())?;
        let fitted = self.fitted(card, least.clone(), None);
        let fitted = fitted.map_err(|unfit| NoTiles::Unfit(Box::new(least.clone()), unfit))?;
        // Whole images on the processor leave less for tiles.
        let images = least
            .pools
            .iter()
            .filter(|pool| home == BackendId::CPU && !pool.tiles);
        let images: u64 = images
            .map(|pool| pool.slot + pool.shared + pool.loaded)
            .sum();
        let left = |on: usize| {
            let there = self.there(on).unwrap_or(u64::MAX);
            room(on).min(there.saturating_sub(images))
        };
        let largest = choices.largest(left);
        let largest = largest.as_ref().and_then(fitting);
        Ok(largest.unwrap_or_else(|| tried(fitted)))
    }

    /// Tells that neither whole records nor the smallest tiles fit.
    fn tiles_too_large(
        &self,
        card: usize,
        whole: &Unfit,
        draft: &Draft,
        small: Unfit,
    ) -> Diagnostic {
        let lacking = match small {
            Unfit::Piece(finding) => return *finding,
            Unfit::Bytes(lacking) => lacking,
        };
        if lacking.card != card {
            let help = self.help(card, &lacking, None);
            return self.too_large(card, &lacking).help(help);
        }
        let steps = draft.variants.iter().flat_map(|variant| &variant.steps);
        let tiled = steps.filter(|step| matches!(step, PlanStep::Tiled { .. }));
        let tiled: Vec<&PlanStep> = tiled.collect();
        let ops = tiled.iter().flat_map(|step| step.ops());
        let names: Vec<String> = ops.map(|op| format!("`{}`", op.name)).collect();
        let message = format!(
            "not even the smallest tiles of {} fit: {} needed of {}, {} may be used",
            listed(&names),
            Bytes(lacking.needed),
            lacking.memory,
            Bytes(lacking.budget)
        );
        let place = tiled.first().and_then(|step| self.place_of(step));
        let whole = match whole {
            Unfit::Bytes(whole) if whole.card == card => Some(whole.needed),
            _ => None,
        };
        let enough = Enough {
            bytes: whole.map_or(lacking.needed, |whole| whole.min(lacking.needed)),
            least: true,
        };
        let help = self.help(card, &lacking, Some(enough));
        let finding = Diagnostic::error(Problem::DoesNotFit, message);
        finding.at(place).help(help)
    }

    /// What would help where bytes are lacking.
    fn help(&self, home: usize, lacking: &Lacking, enough: Option<Enough>) -> String {
        if lacking.most > 0 {
            return format!("`--depth {}` fits", lacking.most);
        }
        let name = &self.world.cards[lacking.card].name;
        let smaller = "smaller images (`foreach = \"plane\"` where planes will do)";
        let Some(Enough { bytes, least }) = enough.filter(|_| lacking.card == home) else {
            return format!("no budget will do: free memory of {name}, or use {smaller}");
        };
        match self.there(home) {
            Some(there) if there < bytes => format!(
                "no budget will do, as {name} has {} to give: take a card that has {}, or {smaller}",
                Bytes(there),
                at_least(bytes)
            ),
            _ if least && bytes < 1024 => format!("a budget of {bytes} B would do, and no less"),
            _ if least => format!(
                "a budget of {} would do, {bytes} bytes at the least",
                at_least(bytes)
            ),
            _ => format!("a budget of {} would do", at_least(bytes)),
        }
    }
}

/// A number of bytes for people that is never less than it is: shown in tenths of a unit, rounded up.
fn at_least(bytes: u64) -> Bytes {
    let mut unit = 1_u64;
    while bytes / unit >= 1024 {
        unit *= 1024;
    }
    if unit == 1 {
        return Bytes(bytes);
    }
    let (bytes, unit) = (u128::from(bytes), u128::from(unit));
    let tenths = (bytes * 10).div_ceil(unit);
    Bytes(u64::try_from((tenths * unit).div_ceil(10)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_advised_is_enough_when_it_is_read_back() {
        let (mut bytes, mut step) = (1_u64, 1_u64);
        while bytes < 1 << 30 {
            for bytes in [bytes, bytes - 1, bytes + 1, bytes * 1023, (bytes << 10) - 1] {
                let read: Bytes = at_least(bytes).to_string().parse().unwrap();
                assert!(read.0 >= bytes, "{bytes} was told as {}", at_least(bytes));
                assert!(read.0 <= bytes + bytes / 9 + 1, "{bytes}: {}", read.0);
            }
            bytes += step;
            step = bytes / 3 + 1;
        }
    }
}
