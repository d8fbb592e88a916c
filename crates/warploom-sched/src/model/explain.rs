//! A plan in words.

use std::fmt::Write as _;

use warploom_core::Bytes;

use super::edge::{Carry, Link, Node};
use super::graph::ResourceId;
use super::plan::Plan;

impl Plan {
    /// The plan in words: queues, slots, what each edge guards and how it is kept, and what limits
    /// the rate.
    pub fn explanation(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) -> std::fmt::Result {
        writeln!(to, "shape: {}", self.shape)?;
        for queue in &self.queues {
            let stages: Vec<&str> = queue.stages.iter().map(|id| self.stage_name(*id)).collect();
            writeln!(to, "queue {}: {}", queue.name, stages.join(", "))?;
        }
        for (at, resource) in self.graph.resources().iter().enumerate() {
            let slots = self.slots(ResourceId(at));
            let bytes = Bytes(resource.bytes);
            writeln!(to, "{}: {slots} slots of {bytes}", resource.name)?;
        }
        for (id, edge) in self.edge_ids() {
            writeln!(to, "edge {}: guards {}", edge.name(), edge.guards())?;
            if let Some(alias) = self.alias_of(id) {
                writeln!(to, "  shares the event of {}", self.edges[alias.0].name)?;
            }
            for link in edge.links() {
                writeln!(to, "  {}", self.link_text(link))?;
            }
        }
        if let Some((period, cycle)) = &self.limit {
            let (every, slots) = (period.nanos() / 1e3, cycle.tokens);
            writeln!(
                to,
                "limit: {every:.1} us per generation, {slots} at once in {cycle}"
            )?;
        }
        Ok(())
    }

    fn stage_name(&self, id: super::graph::StageId) -> &str {
        &self.graph.stage_at(id).name
    }

    fn link_text(&self, link: &Link) -> String {
        let name = |node: Node| match node {
            Node::Enqueue(id) => format!("enqueueing {}", self.stage_name(id)),
            Node::Run(id) => self.stage_name(id).to_owned(),
        };
        let lag = match link.lag {
            0 => String::new(),
            lag => format!(" {lag} later"),
        };
        let how = match &link.carry {
            Carry::Fifo => "needs no wait: they share a queue, which runs in order".to_owned(),
            Carry::Event => "waits for an event".to_owned(),
            Carry::Lease => "the host waits".to_owned(),
            Carry::Gate => "the device waits for the host".to_owned(),
            Carry::Covered(by) => {
                let by: Vec<&str> = by.iter().map(|id| self.edges[id.0].name()).collect();
                format!("needs no wait: covered by {}", by.join(", "))
            }
        };
        format!("{} -> {}{lag}: {how}", name(link.from), name(link.to))
    }
}
