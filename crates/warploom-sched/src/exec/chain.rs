//! Who waits for whom, for people.

use std::fmt::Write as _;
use std::sync::Arc;

use warploom_core::Event;

use super::crew::Crew;
use super::pipeline::Pipeline;
use crate::model::{EdgeId, StageId};

/// No chain is longer than this; a circle would be.
const LONGEST: usize = 24;

impl<C: Crew> Pipeline<C> {
    /// The stage that is furthest behind, the last of them first.
    fn laggard(&self) -> Option<StageId> {
        let behind = |at: &usize| (self.progress[*at].begun, usize::MAX - *at);
        (0..self.wires.len()).min_by_key(behind).map(StageId)
    }

    /// The edge that the laggard waits for.
    pub(super) fn blame(&self) -> Option<EdgeId> {
        let stage = self.laggard()?;
        let generation = self.progress[stage.0].begun;
        let mut needs = self.wires[stage.0].needs.iter();
        needs.find(|need| !self.is_met(need, generation))?.edge
    }

    /// Why nothing happens, from the stage that is furthest behind to what hangs.
    pub(super) fn chain(&self) -> String {
        let name = |stage: StageId| &*self.plan.graph().stages()[stage.0].name;
        let Some(mut stage) = self.laggard() else {
            return "there is nothing to do".into();
        };
        let mut generation = self.progress[stage.0].begun;
        // Writing to a string cannot fail.
        let mut text = format!("{}({generation})", name(stage));
        for _ in 0..LONGEST {
            let wires = &self.wires[stage.0];
            let is_begun = self.progress[stage.0].begun > generation;
            if !is_begun {
                let mut needs = wires.needs.iter();
                let Some(need) = needs.find(|need| !self.is_met(need, generation)) else {
                    text.push_str(", which could begin");
                    return text;
                };
                stage = need.fact.stage();
                let wanted = i128::from(generation) - i128::from(need.lag);
                generation = u64::try_from(wanted).unwrap_or(0);
                let edge = need
                    .edge
                    .map_or("its turn", |edge| self.plan.edges()[edge.0].name());
                let _ = write!(text, " waits for {}({generation}) [{edge}]", name(stage));
                continue;
            }
            let Some(queue) = wires.queue else {
                text.push_str(", which is running on the host");
                return text;
            };
            let is_open = |stage: StageId, of: u64| {
                let ring = self.events[stage.0].len() as u64;
                let at = usize::try_from(of % ring).unwrap_or(0);
                let (when, event) = &self.events[stage.0][at];
                let is_done = |event: &Arc<dyn Event>| event.is_done().unwrap_or(true);
                *when == of + 1 && !event.as_ref().is_none_or(is_done)
            };
            let open = wires.waits.iter().find_map(|wait| {
                let of = generation.checked_sub(u64::from(wait.lag))?;
                is_open(wait.stage, of).then_some((wait, of))
            });
            let mut before = self.plan.queues()[queue].stages.iter();
            let before = before.find(|other| **other < stage && is_open(**other, generation));
            if let (None, Some(before)) = (open, before) {
                stage = *before;
                let _ = write!(text, " behind {}({generation})", name(stage));
                continue;
            }
            let Some((wait, of)) = open else {
                let queue = &self.plan.queues()[queue].name;
                let _ = write!(text, ", which is enqueued on {queue} and not done");
                return text;
            };
            let edge = self.plan.edges()[wait.edge.0].name();
            (stage, generation) = (wait.stage, of);
            let _ = write!(text, " waits for {}({of}) [{edge}]", name(stage));
        }
        text
    }
}
