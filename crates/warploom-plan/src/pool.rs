//! Where values lie in memory: none that live at the same time overlap.

use std::collections::BTreeMap;

use warploom_core::MemoryKind;
use warploom_core::memory::HOST;
use warploom_kernels::program::{Layout, Lifetime, lay_out};

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
    /// What may lie where something else lies until then.
    pub(crate) replacing: Vec<Replacing>,
}

/// A result that a step may write over what it is made of, if nobody needs that later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Replacing {
    /// The step, from 0.
    pub(crate) step: usize,
    /// The moment at which the one is read and the other written.
    pub(crate) moment: usize,
    /// Both, by their places in the list.
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Stays {
    /// What can be replaced, now that it is known how long everything stays.
    fn replaceable(&self) -> Vec<Replacing> {
        let fits = |one: &&Replacing| {
            let (from, to) = (&self.list[one.from], &self.list[one.to]);
            from.last == one.moment && to.first == one.moment && from.bytes == to.bytes
        };
        self.replacing.iter().filter(fits).copied().collect()
    }

    /// Offsets, where these lie in the same place.
    fn lay_out(&self, replaced: &[Replacing]) -> Layout {
        // What is written over something stands in for it, until its own end.
        let mut stands: Vec<usize> = (0..self.list.len()).collect();
        for one in replaced {
            stands[one.to] = stands[one.from];
        }
        let mut lives: Vec<Lifetime> = Vec::with_capacity(self.list.len());
        let mut at: Vec<usize> = Vec::with_capacity(self.list.len());
        for (number, stay) in self.list.iter().enumerate() {
            if stands[number] == number {
                at.push(lives.len());
                lives.push(Lifetime {
                    bytes: stay.bytes,
                    first: stay.first,
                    last: stay.last,
                });
            } else {
                // Steps come in order, so what it is written over was looked at before.
                let place = at[stands[number]];
                lives[place].last = lives[place].last.max(stay.last);
                at.push(place);
            }
        }
        let layout = lay_out(&lives, ALIGN);
        Layout {
            offsets: at.iter().map(|place| layout.offsets[*place]).collect(),
            bytes: layout.bytes,
        }
    }

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

/// Lays out everything that stays at a spot, variant by variant; and tells what is written over
/// something else, where that takes less memory.
pub(crate) fn pool(
    world: &World,
    (face, kind): Spot,
    lists: &[Stays],
    shared: &Shared,
) -> (Pool, Vec<Vec<Replacing>>) {
    let mut all = Vec::new();
    let mut pool = Pool {
        memory: kind.to_string(),
        device: info(world, face).id.to_string(),
        tiles: face.tiled && kind == HOST,
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
        let mut layout = stays.lay_out(&[]);
        let mut replaced = stays.replaceable();
        if !replaced.is_empty() {
            let smaller = stays.lay_out(&replaced);
            if smaller.bytes < layout.bytes {
                layout = smaller;
            } else {
                replaced.clear();
            }
        }
        // Slots are as long as their last value's room, which is whole words.
        pool.slot = pool.slot.max(layout.bytes.next_multiple_of(ALIGN));
        count(&mut pool, variant, stays, &replaced);
        all.push(replaced);
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
    (pool, all)
}

/// Notes how much lives when, and when it is most.
fn count(pool: &mut Pool, variant: usize, stays: &Stays, replaced: &[Replacing]) {
    let end = stays.list.iter().map(|stay| stay.last).max().unwrap_or(0);
    // Bytes come and go; the sum in between is what lives.
    let mut change = vec![0_i128; end + 2];
    for stay in &stays.list {
        change[stay.first] += i128::from(stay.bytes);
        change[stay.last + 1] -= i128::from(stay.bytes);
    }
    // At the moment at which one is written over the other, both are the same bytes.
    for one in replaced {
        let bytes = i128::from(stays.list[one.to].bytes);
        change[one.moment] -= bytes;
        change[one.moment + 1] += bytes;
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
