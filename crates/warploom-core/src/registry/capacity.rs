//! How many pipelines a card takes at once.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::survey::{PhysicalDevice, Survey};

/// The rule behind a card's capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CapacityPolicy {
    /// `ceil(cpu threads / cards)`, at least 1, the same for every card.
    Threads,
    /// As many as the card's memory holds, at most one per CPU thread.
    Memory(MemoryNeed),
}

/// What one pipeline needs of a card under [`CapacityPolicy::Memory`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemoryNeed {
    /// Bytes of one pipeline. A compiled plan knows its own; the default is a guess for people
    /// who ask before they have one: a few 2048 x 2048 x 40 stacks as f32.
    pub footprint: u64,
    /// Bytes a process costs before it does anything: its driver context.
    pub context: u64,
    /// Share of the memory that may be promised, in percent. The rest is for the desktop and for
    /// what drivers keep for themselves.
    pub percent: u32,
}

impl MemoryNeed {
    /// How many bytes of `total` may be promised.
    pub fn promised(&self, total: u64) -> u64 {
        // In 128 bits: any total times any percentage fits.
        let share = u128::from(total) * u128::from(self.percent.min(100)) / 100;
        u64::try_from(share).unwrap_or(total)
    }
}

impl Default for MemoryNeed {
    fn default() -> Self {
        Self {
            footprint: 4 << 30,
            context: 512 << 20,
            percent: 90,
        }
    }
}

impl Default for CapacityPolicy {
    fn default() -> Self {
        Self::Memory(MemoryNeed::default())
    }
}

impl CapacityPolicy {
    /// The policy's name, as in settings and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Memory(_) => "memory",
        }
    }

    /// Pipelines at once on `device`, one of `cards` of its sort.
    pub fn slots(&self, threads: NonZeroU32, cards: usize, device: &PhysicalDevice) -> u32 {
        let cards = u32::try_from(cards).unwrap_or(u32::MAX).max(1);
        let by_threads = threads.get().div_ceil(cards);
        match self {
            Self::Memory(need) if device.total_memory > 0 => {
                let each = need.footprint.saturating_add(need.context).max(1);
                let fit =
                    u32::try_from(need.promised(device.total_memory) / each).unwrap_or(u32::MAX);
                // One at least: whether it fits is the compiler's question, asked with real bytes.
                fit.clamp(1, threads.get())
            }
            _ => by_threads,
        }
    }
}

/// How many pipelines run at once, card by card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Capacity {
    /// The rule.
    pub policy: CapacityPolicy,
    /// CPU threads it counted with.
    pub cpu_threads: NonZeroU32,
    /// Pipelines at once by the card's name.
    pub max_pipelines: BTreeMap<String, u32>,
}

impl Capacity {
    /// Works the rule out for every card. GPUs share the threads among themselves; what the
    /// processor plays shares them again, since it is used only when there is no GPU.
    pub fn of(survey: &Survey, policy: CapacityPolicy, cpu_threads: NonZeroU32) -> Self {
        let software = survey.devices.iter().filter(|d| d.software).count();
        let hardware = survey.devices.len() - software;
        let max_pipelines = survey.devices.iter().map(|device| {
            let cards = if device.software { software } else { hardware };
            let slots = policy.slots(cpu_threads, cards, device);
            (device.name.clone(), slots)
        });
        Self {
            policy,
            cpu_threads,
            max_pipelines: max_pipelines.collect(),
        }
    }
}
