//! Stages for plans whose steps go back and forth.

use std::sync::Arc;

use warploom_core::Space;
use warploom_sched::{Options, Payloads, Resource, Slots, Stage, StageError, StageGraph, plan};

use super::{AT_ONCE, Parts, Schedule, Seats, times};
use crate::errand::{ALIGN, Errand, bytes_of, in_a_row};
use crate::error::RunFailure;
use crate::reading::Arrival;
use crate::rooms::Faces;
use crate::writing::Leaving;

impl Parts<'_> {
    /// A thread of its own goes through all steps of a unit.
    pub(super) fn by_errand(&self, faces: &Faces) -> Result<Schedule, RunFailure> {
        let agenda = self.agenda;
        let plan_of = &agenda.plan;
        let host = faces.host(self.registry)?;
        let own = plan_of
            .sources
            .iter()
            .filter(|source| source.file.is_none());
        let (mut from, mut arrivals) = (0, Vec::new());
        for source in own.clone() {
            let bytes = usize::try_from(source.bytes).unwrap_or(usize::MAX);
            arrivals.push(Arrival {
                channel: source.channel.clone(),
                range: from..from + bytes,
                pairs: false,
            });
            from = (from + bytes).next_multiple_of(ALIGN);
        }
        let up = in_a_row(own.map(|source| source.bytes)).max(256);
        let (mut down, mut leavings) = (256, Vec::new());
        for variant in &plan_of.variants {
            let (mut to, mut list) = (0, Vec::new());
            for output in &variant.outputs {
                let bytes = usize::try_from(bytes_of(variant, &output.value)?);
                let bytes = bytes.unwrap_or(usize::MAX);
                list.push(Leaving {
                    range: to..to + bytes,
                    pairs: false,
                });
                to = (to + bytes).next_multiple_of(ALIGN);
            }
            down = down.max(to as u64);
            leavings.push(list);
        }
        let mut graph = StageGraph::new();
        let slots = Slots::Exactly(self.wishes.depth.unwrap_or(AT_ONCE));
        let images = graph.resource(Resource::new("images", Space::Host, up).with_slots(slots));
        let results = graph.resource(Resource::new("results", Space::Host, down).with_slots(slots));
        let [read_time, write_time] = self.disk_times(1);
        let read = graph.stage(Stage::host("read").writes(images).taking(read_time));
        let work = Stage::host("work").reads(images).writes(results);
        let units = plan_of.estimate.units.max(1) as f64;
        let work = graph.stage(work.taking(times(plan_of.estimate.seconds / units, 1)));
        let write = graph.stage(Stage::host("write").reads(results).taking(write_time));
        let mut errand = Errand::new(plan_of, faces, self.constants, self.registry)?;
        let of = Arc::clone(agenda);
        let variants = plan_of.variants.len();
        let arrivals = vec![arrivals; variants];
        let payloads = self.reading(
            Payloads::new(),
            (read, Seats::new(vec![images], up), arrivals),
        );
        let out = Seats::new(vec![results], down);
        let payloads = self.writing(payloads, (write, out, leavings), &host);
        let payloads = payloads.host(work, move |turn| {
            // One unit at a time.
            let round = of.round(turn.batch())?;
            let Some((_, number)) = round.numbers().next() else {
                return Ok(());
            };
            let item = round.course.item(number);
            if round.course.is_lost(item) {
                return Ok(());
            }
            let mut done = Ok(());
            let recorder = Arc::clone(&of.recorder);
            recorder.host("work", turn.batch(), || {
                turn.read(images, |images| {
                    let lent = turn.write(results, |results| {
                        done = errand.run(item.unit.variant, images, results);
                    });
                    if let (Err(error), Ok(())) = (lent, &done) {
                        done = Err(RunFailure::Foreign {
                            what: error.to_string(),
                        });
                    }
                })
            })?;
            done.map_err(|error| match error {
                RunFailure::Device(error) => StageError::Device(error),
                other => StageError::failed(other),
            })
        });
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: host,
            batch: 1,
        })
    }
}
