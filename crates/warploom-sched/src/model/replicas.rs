//! The same stages several times over, side by side: for when one stage is most of the work.

use super::graph::{Access, Place, Resource, ResourceId, Stage, StageGraph, StageId};
use crate::exec::Batch;

/// A graph several times over. In each generation every replica does one record.
///
/// Stages in a row overlap, but the longest of them sets the pace, whatever else is idle. Where it
/// keeps one thread busy and there are more, replicas of the whole row use them:
/// [`Replicas::choose`] says how many are worth it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replicas {
    graph: StageGraph,
    count: usize,
}

impl Replicas {
    /// How many replicas of a graph keep `threads` threads of the host busy, if stages take what
    /// they say: the fewest with which no stage is slower than all threads together.
    ///
    /// One is a plain pipeline. Times of stages on a device are the device's, and no matter of
    /// threads.
    pub fn choose(graph: &StageGraph, threads: usize) -> usize {
        let threads = threads.max(1);
        let hosts = graph.stages.iter().filter(|stage| stage.is_host());
        let times = hosts.map(|stage| (stage.time, stage.threads));
        let (mut longest, mut all) = (0.0_f64, 0.0);
        for (time, own) in times {
            longest = longest.max(time.as_secs_f64());
            all += time.as_secs_f64() * f64::from(own);
        }
        let share = all / threads as f64;
        let enough = |count: &usize| longest / (*count as f64) <= share * 1.001;
        (1..=threads).find(enough).unwrap_or(threads)
    }

    /// A graph so many times over, at least once.
    ///
    /// Threads and queues that have a name are each replica's own; queues without one are shared.
    pub fn new(graph: &StageGraph, count: usize) -> Self {
        let count = count.max(1);
        let name = |name: &str, replica: usize| match replica {
            0 => name.to_owned(),
            _ => format!("{name} ({})", replica + 1),
        };
        let mut own = StageGraph::new();
        for resource in &graph.resources {
            for replica in 0..count {
                own.resource(Resource {
                    name: name(&resource.name, replica),
                    ..resource.clone()
                });
            }
        }
        for stage in &graph.stages {
            for replica in 0..count {
                let mut place = stage.place.clone();
                let (Place::Host { thread: on } | Place::Device { queue: on, .. }) = &mut place;
                *on = on.as_deref().map(|on| name(on, replica));
                let accesses = stage.accesses.iter().map(|access| Access {
                    resource: ResourceId(access.resource.0 * count + replica),
                    ..*access
                });
                own.stage(Stage {
                    name: name(&stage.name, replica),
                    place,
                    accesses: accesses.collect(),
                    ..stage.clone()
                });
            }
        }
        Self { graph: own, count }
    }

    /// The whole graph, to be planned.
    pub fn graph(&self) -> &StageGraph {
        &self.graph
    }

    /// How many there are: records of a full batch.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A replica's stage, by the stage of the graph that was given.
    pub fn stage(&self, replica: usize, stage: StageId) -> StageId {
        StageId(stage.0 * self.count + replica)
    }

    /// A replica's resource, by the resource of the graph that was given.
    pub fn resource(&self, replica: usize, resource: ResourceId) -> ResourceId {
        ResourceId(resource.0 * self.count + replica)
    }

    /// The record that a replica has in a batch; `None` in a last batch with fewer records.
    pub fn record(&self, replica: usize, batch: Batch) -> Option<u64> {
        let replica = replica as u64;
        (replica < batch.records).then(|| batch.first + replica)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use warploom_core::Space;

    use super::*;
    use crate::{Options, Period, plan};

    fn row(times: &[(u64, u32)]) -> StageGraph {
        let mut graph = StageGraph::new();
        let mut before = None;
        for (at, (time, threads)) in times.iter().enumerate() {
            let after = graph.resource(Resource::new(format!("r{at}"), Space::Pinned, 64));
            let stage = Stage::host(format!("s{at}"))
                .on_threads(*threads)
                .writes(after);
            let stage = stage.taking(Duration::from_millis(*time));
            graph.stage(match before {
                Some(before) => stage.reads(before),
                None => stage,
            });
            before = Some(after);
        }
        graph
    }

    #[rstest]
    // Three alike: two threads are busy with three stages.
    #[case(&[(10, 1), (10, 1), (10, 1)], 2, 1)]
    // One that is nearly all of it leaves the second thread idle.
    #[case(&[(1, 1), (34, 1), (6, 1)], 2, 2)]
    #[case(&[(1, 1), (34, 1), (6, 1)], 4, 4)]
    // It uses both threads itself.
    #[case(&[(1, 1), (17, 2), (6, 1)], 2, 1)]
    // One thread is always busy.
    #[case(&[(1, 1), (34, 1)], 1, 1)]
    #[case(&[], 3, 1)]
    fn as_many_as_keep_all_threads_busy(
        #[case] times: &[(u64, u32)],
        #[case] threads: usize,
        #[case] count: usize,
    ) {
        assert_eq!(Replicas::choose(&row(times), threads), count);
    }

    #[test]
    fn replicas_share_nothing_and_each_is_as_fast_as_one() {
        let graph = row(&[(3, 1), (5, 1), (2, 1)]);
        let one = plan(&graph, &Options::default()).unwrap();
        let replicas = Replicas::new(&graph, 3);
        let all = plan(replicas.graph(), &Options::default()).unwrap();
        assert_eq!(
            all.period().map(Period::nanos),
            one.period().map(Period::nanos)
        );
        assert_eq!(all.memory().total(), 3 * one.memory().total());
        let stages = replicas.graph().stages();
        let mut used = vec![None; replicas.graph().resources().len()];
        for (at, stage) in stages.iter().enumerate() {
            for access in &stage.accesses {
                let owner = used[access.resource.index()].get_or_insert(at % 3);
                assert_eq!(*owner, at % 3, "{}", stage.name);
            }
        }
    }

    #[test]
    fn a_last_batch_leaves_replicas_idle() {
        let replicas = Replicas::new(&row(&[(1, 1)]), 3);
        let batch = Batch {
            generation: 4,
            first: 12,
            records: 2,
        };
        let records = [0, 1, 2].map(|replica| replicas.record(replica, batch));
        assert_eq!(records, [Some(12), Some(13), None]);
    }
}
