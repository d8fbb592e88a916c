//! The processor where no card will do: in place of one if nothing asks for it, else as advice.

use warploom_core::BackendId;

use crate::diagnostic::{Diagnostic, Problem};
use crate::place::{Placing, Tried};
use crate::target::Ask;

impl Placing<'_, '_> {
    /// Does nothing that was asked for keep a pipeline from the processor, or rule out what its cards
    /// would need?
    pub(crate) fn may_fall_back(&self) -> bool {
        let mut asks = self.asks.iter().flatten();
        let free = |ask: &Ask| !ask.needs_gpu();
        let tiles = !self.pipeline.no_host_copy && self.options.depth.is_none();
        tiles && self.options.devices.is_empty() && asks.all(free)
    }

    /// All of the pipeline on the processor, whatever was asked for; `None` where it is among the
    /// candidates, which were tried, or does not do it either.
    pub(crate) fn on_processor(&self, candidates: &[usize]) -> Option<Tried> {
        let card = self.world.cpu().filter(|cpu| !candidates.contains(cpu))?;
        let here = |ask: &Ask| Ask {
            backend: Some(BackendId::CPU),
            card: None,
            ..ask.clone()
        };
        let asks = self.asks.iter();
        let asks: Vec<Vec<Ask>> = asks.map(|asks| asks.iter().map(here).collect()).collect();
        let mut options = self.options.clone();
        options.devices.clear();
        let moved = Placing {
            asks: &asks,
            options: &options,
            ..*self
        };
        match moved.whole(card, BackendId::CPU) {
            Ok(fits) => Some(fits),
            Err(refusal) => moved.tiled(card, BackendId::CPU, refusal).ok(),
        }
    }

    /// Refusals for want of room, with the processor as a way out.
    pub(crate) fn with_processor(&self, refusals: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut asks = self.asks.iter().flatten();
        let says = asks.any(Ask::needs_gpu) || self.options.devices.is_empty();
        let mut settings = Vec::new();
        if says {
            settings.push("`backend = \"cpu\"`");
        }
        if !self.options.devices.is_empty() {
            settings.push("`--devices cpu`");
        }
        let settings = settings.join(" and ");
        let room = [Problem::DoesNotFit.code(), Problem::Unable.code()];
        let one = |refusal: Diagnostic| match &refusal.help {
            Some(help) if room.contains(&refusal.code) => {
                let help = format!("{help}; or the processor does it, with {settings}");
                refusal.help(help)
            }
            _ => refusal,
        };
        refusals.into_iter().map(one).collect()
    }
}
