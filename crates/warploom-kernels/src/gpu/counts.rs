//! Counting: how many elements have which place in a table.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Builder, Space};

use super::fill;
use super::gate::Gate;
use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, group, int, item, lane, launch, launch_each, word};
use super::tuning::Tuning;

/// Longest table that a group keeps for itself.
const SHARED: u64 = 4096;
/// Elements a group of a GPU counts before it adds its table to the others'.
const SHARE: u32 = 64;
/// Words that all tables of a processor's items may take together.
const TABLES: u64 = 1 << 21;
/// Places found in one loop before they are counted in another: the first becomes vector code.
const BLOCK: u32 = 256;

/// Places of a block that are looked at together for any that is counted.
const FEW: i32 = 16;

/// From an element's number to its place.
pub(super) type Place<'k> = Box<dyn Fn(Ex<'k>) -> Ex<'k> + 'k>;

/// What is counted, and into what.
pub(super) struct Count {
    /// The table: `places` words.
    pub(super) table: LaunchArg,
    /// Its length.
    pub(super) places: u64,
    /// How many elements there are.
    pub(super) elements: u64,
    /// Have most of them no place? Then those that have are picked out before they are counted: one
    /// counter for all the others would wait for itself.
    pub(super) sparse: bool,
    /// Is there anything to count? Only processors ask.
    pub(super) gate: Gate,
}

/// Counts. `declare` declares what is read and gives the arguments in the same order; what it
/// gives back is a function from an element's number to its place, `places` for none.
pub(super) fn plan<D>(plan: &mut Plan, tuning: &Tuning, count: &Count, name: &str, declare: D)
where
    D: for<'k> Fn(&'k Builder, Args) -> (Place<'k>, Args),
{
    if tuning.is_processor() {
        private(plan, tuning, count, name, declare);
    } else {
        atomic(plan, tuning, count, name, declare);
    }
}

/// Every item has tables of its own, which are added up at the end.
fn private<D>(plan: &mut Plan, tuning: &Tuning, count: &Count, name: &str, declare: D)
where
    D: for<'k> Fn(&'k Builder, Args) -> (Place<'k>, Args),
{
    // One place more, for what is not counted.
    let length = count.places + 1;
    // Equal neighbours would wait for each other's count in one table.
    let tables: u64 = if length <= SHARED { 4 } else { 1 };
    let items = (TABLES / (tables * length)).clamp(2, 16);
    let items = items.min(count.elements.div_ceil(4096)).max(1);
    let share = count.elements.div_ceil(items);
    let scratch = plan.scratch(items * tables * length * 4);

    let k = Builder::new();
    let args = Args::new().buffer(scratch);
    let own = k.buffer("tables", DType::U32, Access::ReadWrite);
    let (gate, args) = count.gate.declare(&k, args);
    let size = k.scalar("length", Ty::I32);
    let elements = k.scalar("elements", Ty::I32);
    let portion = k.scalar("share", Ty::I32);
    let args = args.count(length).count(count.elements).count(share);
    let (place, args) = declare(&k, args);
    let at = item(&k, tuning);
    let ways = i32::try_from(tables).expect("a few tables");
    gate.through(|| {
        let base = k.let_(at * size * ways);
        k.for_(base, base + size * ways, |i| k.store(own, i, word(&k, 0)));
        let start = k.let_(at * portion);
        k.if_(start.ge(0) & start.lt(elements), || {
            let stop = k.let_((elements - start).min(portion));
            let places = k.array(Ty::I32, BLOCK, Space::Private);
            let block = BLOCK.cast_signed();
            let add = |at: Ex<'_>| {
                let now = k.load(own, at);
                k.store(own, at, now + word(&k, 1));
            };
            k.for_by(int(&k, 0), stop, int(&k, block), |first| {
                let length = k.let_((stop - first).min(block));
                k.if_else(
                    length.is(block),
                    || {
                        k.for_(int(&k, 0), int(&k, block), |i| {
                            k.store(places, i, place(k.let_(start + first + i)));
                        });
                        if count.sparse {
                            let found = k.var(int(&k, 0));
                            let none = k.let_(size - 1);
                            k.for_by(int(&k, 0), int(&k, block), int(&k, FEW), |few| {
                                // Vectors tell whether there are any; to pick them out goes one by one.
                                let any = k.var(int(&k, 0));
                                k.for_(int(&k, 0), int(&k, FEW), |i| {
                                    let has = k.load(places, few + i).lt(none).cast(Ty::I32);
                                    k.set(any, k.get(any) | has);
                                });
                                k.if_(k.get(any).is_not(0), || {
                                    k.for_(few, few + FEW, |i| {
                                        let (place, next) = (k.load(places, i), k.get(found));
                                        // Never ahead of where it is read.
                                        k.store(places, next, place);
                                        k.set(found, next + place.lt(none).cast(Ty::I32));
                                    });
                                });
                            });
                            k.for_(int(&k, 0), k.get(found), |i| {
                                add(k.let_(base + k.load(places, i)));
                            });
                            return;
                        }
                        k.for_by(int(&k, 0), int(&k, block), int(&k, ways), |i| {
                            for way in 0..ways {
                                let place = k.load(places, i + way);
                                add(k.let_(base + size * way + place));
                            }
                        });
                    },
                    || {
                        k.for_(int(&k, 0), length, |i| {
                            add(k.let_(base + place(k.let_(start + first + i))));
                        });
                    },
                );
            });
        });
    });
    drop(place);
    launch(plan, k.finish(name, tuning.line()), items, args);

    let k = Builder::new();
    let own = k.buffer("tables", DType::U32, Access::Read);
    let table = k.buffer("table", DType::U32, Access::Write);
    let args = Args::new().buffer(scratch).buffer(count.table);
    let (gate, args) = count.gate.declare(&k, args);
    let size = k.scalar("length", Ty::I32);
    let parts = k.scalar("parts", Ty::I32);
    gate.through(|| {
        each(&k, tuning, size - 1, |place| {
            let sum = k.var(word(&k, 0));
            k.for_(int(&k, 0), parts, |part| {
                let next = k.load(own, part * size + place);
                k.set(sum, k.get(sum) + next);
            });
            k.store(table, place, k.get(sum));
        });
    });
    let args = args.count(length).count(items * tables);
    let def = k.finish("wl_add_tables", tuning.line());
    launch_each(plan, tuning, def, count.places, args);
}

/// Every group has a table in its own memory, if it fits; the rest is done by atomic sums.
fn atomic<D>(plan: &mut Plan, tuning: &Tuning, count: &Count, name: &str, declare: D)
where
    D: for<'k> Fn(&'k Builder, Args) -> (Place<'k>, Args),
{
    fill::words(plan, tuning, count.table, count.places, 0);
    let k = Builder::new();
    let args = Args::new().buffer(count.table);
    let table = k.buffer("table", DType::U32, Access::ReadWrite);
    let size = k.scalar("length", Ty::I32);
    let elements = k.scalar("elements", Ty::I32);
    let args = args.count(count.places).count(count.elements);
    let (place, args) = declare(&k, args);
    if count.places > SHARED {
        each(&k, tuning, elements, |i| {
            let place = k.let_(place(i));
            k.if_(place.lt(size), || {
                k.atomic_add(table, place, word(&k, 1));
            });
        });
        drop(place);
        let def = k.finish(name, tuning.line());
        launch_each(plan, tuning, def, count.elements, args);
        return;
    }
    // The length is part of the code, rounded up so that few lengths are.
    let room = u32::try_from(count.places.next_power_of_two()).expect("a short table");
    let own = k.array(Ty::U32, room, Space::Shared);
    let mine = lane(&k, tuning);
    let lanes = tuning.lanes.cast_signed();
    k.for_by(mine, size, int(&k, lanes), |i| {
        k.store(own, i, word(&k, 0));
    });
    k.barrier();
    let share = lanes * SHARE.cast_signed();
    let start = k.let_(group(&k) * share);
    k.if_(start.ge(0) & start.lt(elements), || {
        let stop = k.let_((elements - start).min(share));
        k.for_by(mine, stop, int(&k, lanes), |i| {
            let place = k.let_(place(k.let_(start + i)));
            k.if_(place.lt(size), || {
                k.atomic_add(own, place, word(&k, 1));
            });
        });
    });
    k.barrier();
    k.for_by(mine, size, int(&k, lanes), |i| {
        let found = k.load(own, i);
        k.if_(found.is_not(0), || {
            k.atomic_add(table, i, found);
        });
    });
    let items = count.elements.div_ceil(u64::from(SHARE));
    drop(place);
    launch(plan, k.finish(name, tuning.line()), items, args);
}
