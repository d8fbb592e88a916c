//! Where values lie in memory: none that live at the same time overlap.

use warploom_core::MemoryKind;
use warploom_kernels::program::{Lifetime, lay_out};

use crate::draft::info;
use crate::plan::{Lodging, Peak, Pool};
use crate::segment::FaceAt;
use crate::world::World;

/// Values start at multiples of this, which suits every device known.
pub(crate) const ALIGN: u64 = 256;

/// Where a value is: a kind of memory of a face.
pub(crate) type Spot = (FaceAt, MemoryKind);

/// How long something is in a pool.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Lays out everything that stays at a spot, variant by variant.
pub(crate) fn pool(world: &World, (face, kind): Spot, lists: &[Vec<Stay>], shared: u64) -> Pool {
    let mut pool = Pool {
        memory: kind.to_string(),
        device: info(world, face).id.to_string(),
        budget: None,
        slot: 0,
        bound: 0,
        shared,
        total: 0,
        fullest: None,
        layout: Vec::new(),
    };
    for (variant, stays) in lists.iter().enumerate() {
        let lives: Vec<Lifetime> = stays
            .iter()
            .map(|stay| Lifetime {
                bytes: stay.bytes,
                first: stay.first,
                last: stay.last,
            })
            .collect();
        let layout = lay_out(&lives, ALIGN);
        pool.slot = pool.slot.max(layout.bytes);
        let end = stays.iter().map(|stay| stay.last).max().unwrap_or(0);
        // Bytes come and go; the sum in between is what lives.
        let mut change = vec![0_i128; end + 2];
        for stay in stays {
            change[stay.first] += i128::from(stay.bytes);
            change[stay.last + 1] -= i128::from(stay.bytes);
        }
        let mut live = 0_i128;
        for (step, by) in change.iter().enumerate() {
            live += by;
            let bytes = u64::try_from(live).unwrap_or(0);
            if bytes > pool.bound {
                pool.bound = bytes;
                pool.fullest = Some(Peak {
                    variant: number(variant),
                    step: number(step + 1),
                    bytes,
                });
            }
        }
        let lodgings = stays.iter().zip(&layout.offsets);
        let lodgings = lodgings.map(|(stay, offset)| Lodging {
            value: stay.name.clone(),
            offset: *offset,
            bytes: stay.bytes,
            first: number(stay.first + 1),
            last: number(stay.last + 1),
        });
        pool.layout.push(lodgings.collect());
    }
    pool
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
