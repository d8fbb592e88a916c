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
    /// How many threads it may use, where kernels are threads'; 0 is all of them.
    pub threads: u32,
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
        let threads = graph.stage_at(stage).threads;
        if let Some(known) = known {
            let queue = &mut queues[known];
            queue.stages.push(stage);
            // Whoever wants all of them is not held up by the others.
            queue.threads = match (queue.threads, threads) {
                (0, _) | (_, 0) => 0,
                (one, other) => one.max(other),
            };
            continue;
        }
        let name = queue.clone().unwrap_or_else(|| {
            unnamed.push((*class, level, queues.len()));
            free_name(graph, &queues, class_name(*class))
        });
        queues.push(PlannedQueue {
            name,
            class: *class,
            threads,
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::model::Stage;

    #[rstest]
    #[case([2, 3], 3)]
    #[case([1, 0], 0)]
    #[case([0, 1], 0)]
    fn a_queue_has_the_threads_that_its_stages_want(
        #[case] wanted: [u32; 2],
        #[case] threads: u32,
    ) {
        let mut graph = StageGraph::new();
        for (name, wanted) in ["one", "two"].iter().zip(wanted) {
            let stage = Stage::device(*name, QueueClass::Compute);
            graph.stage(stage.on("both").on_threads(wanted));
        }
        let queues = derive(&graph, &[0, 0]);
        assert_eq!((queues.len(), queues[0].threads), (1, threads));
        let mut graph = StageGraph::new();
        graph.stage(Stage::device("alone", QueueClass::Compute));
        assert_eq!(derive(&graph, &[0])[0].threads, 0);
    }
}
