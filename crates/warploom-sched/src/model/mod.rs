//! The model: from who reads and writes what to a plan that is proved live. Pure.

mod arbiter;
mod cover;
mod cycle;
mod deal;
mod depth;
mod edge;
mod error;
mod explain;
mod graph;
mod marked;
mod plan;
mod queues;
mod replicas;
mod shape;
#[cfg(test)]
mod trials;

pub(crate) use marked::{index, turn_lag};
pub(crate) use plan::stride;

pub use arbiter::{Arbiter, Passage};
pub use cycle::{Cycle, Period, Step};
pub use deal::{Dealer, Forecast, Rule, Task, Work, forecast};
pub use edge::{Carry, Edge, Keeper, Link, Node, Sort};
pub use error::PlanError;
pub use graph::{
    Access, EdgeId, How, Place, Resource, ResourceId, Slots, Stage, StageGraph, StageId,
};
pub use plan::{Budget, Memory, Options, Plan, plan};
pub use queues::PlannedQueue;
pub use replicas::Replicas;
pub use shape::Shape;
