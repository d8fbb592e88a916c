//! Where values lie in memory: none that live at the same time overlap.

use std::collections::BTreeMap;

use warploom_core::MemoryKind;
use warploom_kernels::program::{Lifetime, lay_out};

use crate::draft::info;
use crate::plan::{Lodging, Peak, Pool, Role};
use crate::segment::FaceAt;
use crate::world::World;

/// Values start at multiples of this, which suits every device known.
pub(crate) const ALIGN: u64 = 256;

/// Where a value is: a kind of memory of a face.
pub(crate) type Spot = (FaceAt, MemoryKind);

/// How long something is in a pool, in moments: a step that has several passes takes several.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) bytes: u64,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Everything that stays at one spot in one variant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stays {
    pub(crate) list: Vec<Stay>,
    /// The moment at which each step begins.
    pub(crate) begins: Vec<usize>,
}

impl Stays {
    /// The step of a moment, and the pass of that step.
    fn step(&self, moment: usize) -> (usize, usize) {
        let after = self.begins.partition_point(|begin| *begin <= moment);
        let step = after.saturating_sub(1);
        let begin = self.begins.get(step).copied().unwrap_or(0);
        (step, moment - begin)
    }
}

/// What all records share at a spot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) constants: BTreeMap<String, u64>,
    /// Bytes that loading programs takes.
    pub(crate) loaded: u64,
}

/// Lays out everything that stays at a spot, variant by variant.
pub(crate) fn pool(world: &World, (face, kind): Spot, lists: &[Stays], shared: &Shared) -> Pool {
    let mut pool = Pool {
        memory: kind.to_string(),
        device: info(world, face).id.to_string(),
        budget: None,
        slot: 0,
        bound: 0,
        shared: 0,
        constants: Vec::new(),
        loaded: shared.loaded,
        total: 0,
        fullest: None,
        live: Vec::new(),
        layout: Vec::new(),
    };
    for (name, bytes) in &shared.constants {
        pool.constants.push(Lodging {
            value: name.clone(),
            role: Role::Value,
            offset: pool.shared,
            bytes: *bytes,
            first: 1,
            last: u32::MAX,
            first_pass: 1,
            last_pass: u32::MAX,
        });
        pool.shared += bytes.next_multiple_of(ALIGN);
    }
    for (variant, stays) in lists.iter().enumerate() {
        let lives: Vec<Lifetime> = stays
            .list
            .iter()
            .map(|stay| Lifetime {
                bytes: stay.bytes,
                first: stay.first,
                last: stay.last,
            })
            .collect();
        let layout = lay_out(&lives, ALIGN);
        // Slots are as long as their last value's room, which is whole words.
        pool.slot = pool.slot.max(layout.bytes.next_multiple_of(ALIGN));
        count(&mut pool, variant, stays);
        let lodgings = stays.list.iter().zip(&layout.offsets);
        let lodgings = lodgings.map(|(stay, offset)| {
            let (first, first_pass) = stays.step(stay.first);
            let (last, last_pass) = stays.step(stay.last);
            Lodging {
                value: stay.name.clone(),
                role: stay.role,
                offset: *offset,
                bytes: stay.bytes,
                first: number(first + 1),
                last: number(last + 1),
                first_pass: number(first_pass + 1),
                last_pass: number(last_pass + 1),
            }
        });
        pool.layout.push(lodgings.collect());
    }
    pool
}

/// Notes how much lives when, and when it is most.
fn count(pool: &mut Pool, variant: usize, stays: &Stays) {
    let end = stays.list.iter().map(|stay| stay.last).max().unwrap_or(0);
    // Bytes come and go; the sum in between is what lives.
    let mut change = vec![0_i128; end + 2];
    for stay in &stays.list {
        change[stay.first] += i128::from(stay.bytes);
        change[stay.last + 1] -= i128::from(stay.bytes);
    }
    let mut most = vec![0; stays.begins.len()];
    let mut live = 0_i128;
    for (moment, by) in change.iter().take(end + 1).enumerate() {
        live += by;
        let bytes = u64::try_from(live).unwrap_or(0);
        let (step, _) = stays.step(moment);
        if let Some(most) = most.get_mut(step) {
            *most = bytes.max(*most);
        }
        if bytes > pool.bound {
            pool.bound = bytes;
            pool.fullest = Some(Peak {
                variant: number(variant),
                step: number(step + 1),
                bytes,
            });
        }
    }
    pool.live.push(most);
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
