//! Which stages share a queue.

use warploom_core::QueueClass;

use super::graph::{Place, StageGraph, StageId};

/// A queue that a plan needs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PlannedQueue {
    /// Its name.
    pub name: String,
    /// The sort of work it carries.
    pub class: QueueClass,
    /// Its stages, in the order it takes them.
    pub stages: Vec<StageId>,
}

fn class_name(class: QueueClass) -> &'static str {
    match class {
        QueueClass::Upload => "upload",
        QueueClass::Download => "download",
        _ => "compute",
    }
}

/// Stages that name a queue get it; others share one with their class, but never with stages that
/// are enqueued before the host has looked at something: behind the next generation of those they
/// would wait for what they need not.
pub(crate) fn derive(graph: &StageGraph, levels: &[u32]) -> Vec<PlannedQueue> {
    let mut queues: Vec<PlannedQueue> = Vec::new();
    let mut unnamed: Vec<(QueueClass, u32, usize)> = Vec::new();
    for stage in graph.ids() {
        let Place::Device { class, queue } = &graph.stage_at(stage).place else {
            continue;
        };
        let level = levels[stage.0];
        let known = match queue {
            Some(name) => queues.iter().position(|known| known.name == *name),
            None => unnamed
                .iter()
                .find(|(of, at, _)| (of, *at) == (class, level))
                .map(|(_, _, known)| *known),
        };
        if let Some(known) = known {
            queues[known].stages.push(stage);
            continue;
        }
        let name = queue.clone().unwrap_or_else(|| {
            unnamed.push((*class, level, queues.len()));
            free_name(graph, &queues, class_name(*class))
        });
        queues.push(PlannedQueue {
            name,
            class: *class,
            stages: vec![stage],
        });
    }
    queues
}

fn free_name(graph: &StageGraph, queues: &[PlannedQueue], base: &str) -> String {
    let named = |name: &str| {
        let by_stage = graph.stages.iter().any(|stage| {
            matches!(&stage.place, Place::Device { queue: Some(queue), .. } if queue == name)
        });
        by_stage || queues.iter().any(|queue| queue.name == name)
    };
    let numbered = (2..).map(|number: u32| format!("{base} {number}"));
    std::iter::once(base.to_owned())
        .chain(numbered)
        .find(|name| !named(name))
        .unwrap_or_default()
}
