//! Numbers in order: as whole numbers that compare alike, sorted by a network, or found by halving.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Buf, Builder};

use super::lanes::{Lanes, Values};
use super::launch::{Args, Plan};

/// How many bits the whole numbers that stand for elements have; `None` where none can.
pub(super) fn bits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::U8 => Some(8),
        DType::U16 | DType::I16 => Some(16),
        DType::F64 => None,
        _ => Some(32),
    }
}

/// Turns `0..=2^bits - 1` into keys, by an exclusive or.
fn flip(dtype: DType) -> i32 {
    match bits(dtype) {
        Some(32) => i32::MIN,
        _ => 0,
    }
}

/// An `i32` that compares as the element does; what is not a number is the greatest.
pub(super) fn key(dtype: DType, value: Ex<'_>) -> Ex<'_> {
    match dtype {
        DType::I16 => value + 32_768,
        DType::U32 => value.cast(Ty::I32) ^ i32::MIN,
        DType::F32 => {
            let nan = value.graph().int(i32::MAX);
            value.is_nan().select(nan, turned(value.to_bits()))
        }
        _ => value,
    }
}

/// The element of a key.
pub(super) fn element(dtype: DType, key: Ex<'_>) -> Ex<'_> {
    match dtype {
        DType::I16 => key - 32_768,
        DType::U32 => (key ^ i32::MIN).cast(Ty::U32),
        DType::F32 => turned(key).from_bits(),
        _ => key,
    }
}

/// Negative floats compare the other way round; its own inverse.
fn turned(bits: Ex<'_>) -> Ex<'_> {
    bits ^ (bits.shifted_right(31) & i32::MAX)
}

/// Does `a` come before `b`, what is not a number last?
fn before<'k>(a: Ex<'k>, b: Ex<'k>) -> Ex<'k> {
    if a.ty().is_float() {
        a.lt(b) | (b.is_nan() & !a.is_nan())
    } else {
        a.lt(b)
    }
}

/// The element of this rank among `values`: of sorting them an expression keeps only what the one result needs.
pub(super) fn ranked(values: Vec<Ex<'_>>, rank: usize) -> Ex<'_> {
    sorted(values)[rank]
}

/// All values in order.
pub(super) fn sorted(mut values: Vec<Ex<'_>>) -> Vec<Ex<'_>> {
    for (low, high) in exchanges(values.len()) {
        exchange(&mut values, low, high);
    }
    values
}

/// Which of so many values merge exchange puts in order, one pair after the other.
fn exchanges(count: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let top = count.next_power_of_two() / 2;
    let mut span = top;
    while span > 0 {
        let (mut wide, mut rest, mut apart) = (top, 0, span);
        loop {
            let lows = (0..count.saturating_sub(apart)).filter(|low| low & span == rest);
            pairs.extend(lows.map(|low| (low, low + apart)));
            if wide == span {
                break;
            }
            apart = wide - span;
            wide /= 2;
            rest = span;
        }
        span /= 2;
    }
    pairs
}

/// How many keys of each pixel of a run are put in order side by side: as many as the caches near a processor hold.
pub(super) const LISTED: usize = 128;

/// The places that are put in order, one pair after the other, so that some ranks of `count` keys are found.
pub(super) fn pairs(count: usize, ranks: &[usize]) -> Vec<i32> {
    let mut wanted = vec![false; count];
    for rank in ranks {
        wanted[*rank] = true;
    }
    let mut all = exchanges(count);
    // From the end: what no rank depends on is left out.
    all.reverse();
    all.retain(|&(low, high)| {
        let is_wanted = wanted[low] || wanted[high];
        wanted[low] |= is_wanted;
        wanted[high] |= is_wanted;
        is_wanted
    });
    all.reverse();
    let place = |at: usize| i32::try_from(at).expect("few keys");
    all.into_iter()
        .flat_map(|(low, high)| [place(low), place(high)])
        .collect()
}

/// Gives a kernel such a list, as [`Listed::new`] declares it.
pub(super) fn listed(plan: &mut Plan, args: Args, pairs: &[i32]) -> Args {
    // One key has no pairs, but a buffer has to have something.
    let list = if pairs.is_empty() { &[0, 0] } else { pairs };
    let constant = plan.constant::<i32>(list);
    args.buffer(constant).count(pairs.len() as u64 / 2)
}

/// Keys of the pixels of a run, and the pairs that put them in order. In a loop over a list, because a compiler takes
/// seconds for hundreds of comparisons in a row.
#[derive(Clone, Copy)]
pub(super) struct Listed<'k> {
    k: &'k Builder,
    run: u32,
    keys: Buf,
    pairs: Buf,
    many: Ex<'k>,
}

impl<'k> Listed<'k> {
    /// Declares the list, which the caller gives with its number of pairs, and room for the keys.
    pub(super) fn new(k: &'k Builder, run: u32) -> Self {
        Self {
            k,
            run,
            keys: k.line(DType::I32, u32::try_from(LISTED).expect("few keys") * run),
            pairs: k.buffer("pairs", DType::I32, Access::Read),
            many: k.scalar("many", Ty::I32),
        }
    }

    /// Where the run's keys at a place are.
    pub(super) fn at(&self, place: Ex<'k>) -> Ex<'k> {
        self.k.let_(place * self.run.cast_signed())
    }

    pub(super) fn get(&self, at: Ex<'k>) -> Ex<'k> {
        self.k.load(self.keys, at)
    }

    pub(super) fn set(&self, at: Ex<'k>, key: Ex<'k>) {
        self.k.store(self.keys, at, self.k.let_(key));
    }

    /// Puts them in order, as far as the list goes.
    pub(super) fn sort(&self) {
        let (k, int) = (self.k, |value: i32| self.k.graph().int(value));
        k.for_(int(0), self.many, |pair| {
            let [low, high] = [0, 1].map(|end| self.at(k.load(self.pairs, pair * 2 + end)));
            // Of a whole run, since a compiler knows how many that is: what lies beside the image is for nobody.
            Lanes::whole(k, self.run).each(|lane| {
                let [a, b] = [low, high].map(|at| k.let_(self.get(at + lane)));
                self.set(low + lane, a.min(b));
                self.set(high + lane, a.max(b));
            });
        });
    }
}

/// The key of this rank among those of columns, each of which is sorted and as long as the others.
///
/// When the least of all columns are sorted too, then the next ones and so on, columns stay sorted. A key then
/// has all before it that have a column and a place before its own, and all behind it likewise: most can neither
/// be sorted into the rank nor need to be. The others are sorted, less what is known of them.
pub(super) fn among(mut columns: Vec<Vec<Ex<'_>>>, rank: usize) -> Ex<'_> {
    let (wide, high) = (columns.len(), columns[0].len());
    for place in 0..high {
        let across = sorted(columns.iter().map(|column| column[place]).collect());
        for (column, key) in columns.iter_mut().zip(across) {
            column[place] = key;
        }
    }
    let mut places = Vec::new();
    let mut before = 0;
    for column in 0..wide {
        for place in 0..high {
            let least = (column + 1) * (place + 1) - 1;
            let most = (wide - column) * (high - place) - 1;
            if most > wide * high - 1 - rank {
                before += 1;
            } else if least <= rank {
                places.push([column, place]);
            }
        }
    }
    places.sort_by_key(|[column, place]| (column + place, *place));
    let mut known = Known::of(&places);
    let mut keys: Vec<_> = places
        .iter()
        .map(|[column, place]| columns[*column][*place])
        .collect();
    for (low, high) in exchanges(keys.len()) {
        if known.is(high, low) {
            known.swap(low, high);
            keys.swap(low, high);
        } else if !known.is(low, high) {
            known.exchange(low, high);
            exchange(&mut keys, low, high);
        }
    }
    keys[rank - before]
}

/// What is known of the order of some keys: for each a bit for every key that it does not come behind.
struct Known(Vec<u64>);

impl Known {
    /// Keys in columns and places that are sorted both ways.
    fn of(places: &[[usize; 2]]) -> Self {
        let behind = |[column, place]: &[usize; 2]| {
            let keys = places.iter().enumerate();
            let behind = keys.filter(|(_, other)| other[0] >= *column && other[1] >= *place);
            behind.fold(0, |all, (number, _)| all | 1 << number)
        };
        Self(places.iter().map(behind).collect())
    }

    fn is(&self, first: usize, second: usize) -> bool {
        self.0[first] >> second & 1 == 1
    }

    /// Two keys change places.
    fn swap(&mut self, low: usize, high: usize) {
        self.0.swap(low, high);
        for bits in &mut self.0 {
            let differs = (*bits >> low ^ *bits >> high) & 1;
            *bits ^= differs << low | differs << high;
        }
    }

    /// Of two keys the lesser one comes first now.
    fn exchange(&mut self, low: usize, high: usize) {
        let [a, b] = [self.0[low], self.0[high]];
        for bits in &mut self.0 {
            let [first, second] = [*bits >> low & 1, *bits >> high & 1];
            *bits &= !(1 << low | 1 << high);
            *bits |= (first & second) << low | (first | second) << high;
        }
        let both = 1 << low | 1 << high;
        self.0[low] = (a | b) & !both | both;
        self.0[high] = a & b & !both | 1 << high;
    }
}

/// Puts two values in order.
fn exchange(values: &mut [Ex<'_>], low: usize, high: usize) {
    let (a, b) = (values[low], values[high]);
    (values[low], values[high]) = if a.ty().is_float() {
        let swap = before(b, a);
        (swap.select(b, a), swap.select(a, b))
    } else {
        (a.min(b), a.max(b))
    };
}

/// An element of each pixel of a run.
pub(super) type Element<'a, 'k> = &'a dyn Fn(Ex<'k>) -> Ex<'k>;
/// What is done with an element of each.
pub(super) type Body<'a, 'k> = &'a dyn Fn(Element<'_, 'k>);
/// Does it with every element of a neighbourhood, or of a column, in turn.
pub(super) type Each<'a, 'k> = &'a dyn Fn(Body<'_, 'k>);

/// Finds for each pixel of a run the key that has at most `rank` keys before it, bit by bit.
/// `each` calls its argument with every element in turn, as a function of the pixel.
pub(super) fn halved<'k>(
    k: &'k Builder,
    lanes: Lanes<'k>,
    dtype: DType,
    rank: Ex<'k>,
    each: Each<'_, 'k>,
) -> Values<'k> {
    let bits = bits(dtype)
        .expect("an element type with keys")
        .cast_signed();
    let [found, limit, below] = [0; 3].map(|_| lanes.values(Ty::I32));
    let int = |value: i32| k.graph().int(value);
    lanes.each(|lane| found.set(lane, int(0)));
    k.for_(int(0), int(bits), |step| {
        let bit = k.let_(int(1).shifted_left(int(bits - 1) - step));
        lanes.each(|lane| {
            limit.set(lane, (found.get(lane) | (bit - 1)) ^ flip(dtype));
            below.set(lane, int(0));
        });
        each(&|pixel| {
            lanes.each(|lane| {
                let counts = key(dtype, pixel(lane)).le(limit.get(lane));
                below.set(lane, below.get(lane) + counts.cast(Ty::I32));
            });
        });
        lanes.each(|lane| {
            let so_far = found.get(lane);
            let more = below.get(lane).le(rank);
            found.set(lane, more.select(so_far | bit, so_far));
        });
    });
    lanes.each(|lane| found.set(lane, found.get(lane) ^ flip(dtype)));
    found
}

/// Finds for each pixel of a run the element that has at most `rank` elements before it, by
/// comparing every element with every other: for types without keys.
pub(super) fn compared<'k>(
    k: &'k Builder,
    lanes: Lanes<'k>,
    ty: Ty,
    rank: Ex<'k>,
    each: Each<'_, 'k>,
) -> Values<'k> {
    let (found, candidate) = (lanes.values(ty), lanes.values(ty));
    let (less, same) = (lanes.values(Ty::I32), lanes.values(Ty::I32));
    let int = |value: i32| k.graph().int(value);
    lanes.each(|lane| found.set(lane, k.graph().number(ty, f64::NAN)));
    each(&|pixel| {
        lanes.each(|lane| {
            candidate.set(lane, pixel(lane));
            less.set(lane, int(0));
            same.set(lane, int(0));
        });
        each(&|other| {
            lanes.each(|lane| {
                let (mine, other) = (candidate.get(lane), k.let_(other(lane)));
                let (ahead, behind) = (before(other, mine), before(mine, other));
                less.set(lane, less.get(lane) + ahead.cast(Ty::I32));
                let equal = !ahead & !behind;
                same.set(lane, same.get(lane) + equal.cast(Ty::I32));
            });
        });
        lanes.each(|lane| {
            let (low, ties) = (less.get(lane), same.get(lane));
            let here = low.le(rank) & rank.lt(low + ties);
            found.set(lane, here.select(candidate.get(lane), found.get(lane)));
        });
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Graph;

    /// A network finds a rank of everything when it does of zeros and ones.
    #[test]
    fn listed_pairs_find_their_ranks() {
        for count in 1..=9_usize {
            for rank in 0..count {
                let pairs = pairs(count, &[rank]);
                for bits in 0..1_u32 << count {
                    let mut keys: Vec<u32> = (0..count).map(|at| bits >> at & 1).collect();
                    for pair in pairs.chunks(2) {
                        let [low, high] = [0, 1].map(|end| usize::try_from(pair[end]).unwrap());
                        let (a, b) = (keys[low], keys[high]);
                        (keys[low], keys[high]) = (a.min(b), a.max(b));
                    }
                    let zeros = count - bits.count_ones() as usize;
                    assert_eq!(
                        keys[rank],
                        u32::from(rank >= zeros),
                        "{count} {rank} {bits:b}"
                    );
                }
            }
        }
    }

    #[test]
    fn among_columns_the_rank_is_that_among_all_keys() {
        let mut random = 1_u32;
        for [wide, high] in [[1, 5], [3, 1], [3, 3], [5, 5], [3, 9], [7, 7]] {
            let graph = Graph::new();
            let mut columns = vec![Vec::new(); wide];
            for column in &mut columns {
                for _ in 0..high {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    column.push((random >> 24).cast_signed());
                }
                column.sort_unstable();
            }
            let mut all = columns.concat();
            all.sort_unstable();
            let keys = |column: &Vec<i32>| column.iter().map(|key| graph.int(*key)).collect();
            let columns: Vec<Vec<Ex<'_>>> = columns.iter().map(keys).collect();
            for (rank, key) in all.into_iter().enumerate() {
                let found = among(columns.clone(), rank);
                assert_eq!(found.id(), graph.int(key).id(), "{wide} {high} {rank}");
            }
        }
    }
}
