//! Which comparisons find the element of a rank: sorting and merging networks, cut down to what
//! the one result needs.
//!
//! Values are rows, each of them seen at some shift along x. What is made of equal rows at equal
//! shifts from each other is made once: the sorted columns of a box are the same column seen from
//! different places, and so are merged pairs of them.

use std::collections::HashMap;

/// A row seen `dx` pixels further right.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Seen {
    row: u32,
    dx: i32,
}

/// What a row is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Row {
    /// A line of the image.
    Line(u32),
    /// The lesser of two.
    Less(Seen, Seen),
    /// The greater of two.
    More(Seen, Seen),
}

/// Rows, and how they come about.
#[derive(Default)]
struct Graph {
    rows: Vec<Row>,
    known: HashMap<Row, u32>,
}

impl Graph {
    fn row(&mut self, row: Row) -> u32 {
        *self.known.entry(row).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() as u32 - 1
        })
    }

    fn line(&mut self, line: usize, dx: i32) -> Seen {
        let row = self.row(Row::Line(line as u32));
        Seen { row, dx }
    }

    fn pair(&mut self, a: Seen, b: Seen, make: fn(Seen, Seen) -> Row) -> Seen {
        if a == b {
            return a;
        }
        let (a, b) = (a.min(b), a.max(b));
        let moved = |seen: Seen| Seen {
            row: seen.row,
            dx: seen.dx - a.dx,
        };
        let row = self.row(make(moved(a), moved(b)));
        Seen { row, dx: a.dx }
    }

    fn less(&mut self, a: Seen, b: Seen) -> Seen {
        self.pair(a, b, Row::Less)
    }

    fn more(&mut self, a: Seen, b: Seen) -> Seen {
        self.pair(a, b, Row::More)
    }

    fn sorted(&mut self, values: &[Seen]) -> Vec<Seen> {
        if values.len() < 2 {
            return values.to_vec();
        }
        let (low, high) = values.split_at(values.len() / 2);
        let (low, high) = (self.sorted(low), self.sorted(high));
        self.merged(&low, &high)
    }

    /// Batcher's odd-even merge, of lists of any lengths.
    fn merged(&mut self, a: &[Seen], b: &[Seen]) -> Vec<Seen> {
        if a.is_empty() || b.is_empty() {
            return [a, b].concat();
        }
        if let ([a], [b]) = (a, b) {
            return vec![self.less(*a, *b), self.more(*a, *b)];
        }
        let part = |list: &[Seen], first: usize| -> Vec<Seen> {
            list.iter().skip(first).step_by(2).copied().collect()
        };
        let even = self.merged(&part(a, 0), &part(b, 0));
        let odd = self.merged(&part(a, 1), &part(b, 1));
        let mut all = vec![even[0]];
        for (at, &low) in odd.iter().enumerate() {
            match even.get(at + 1) {
                Some(&high) => {
                    all.push(self.less(low, high));
                    all.push(self.more(low, high));
                }
                None => all.push(low),
            }
        }
        all.extend(even.get(odd.len() + 1));
        all
    }

    /// The element of a rank in two sorted lists: the least over all ways to take `rank + 1`
    /// elements from the beginnings of both, of the greatest taken.
    fn ranked(&mut self, a: &[Seen], b: &[Seen], rank: usize) -> Seen {
        let mut best: Option<Seen> = None;
        for from_b in 0..=b.len().min(rank + 1) {
            let from_a = rank + 1 - from_b;
            if from_a > a.len() {
                continue;
            }
            let greatest = match (from_a, from_b) {
                (0, n) => b[n - 1],
                (n, 0) => a[n - 1],
                (n, m) => self.more(a[n - 1], b[m - 1]),
            };
            best = Some(match best {
                Some(best) => self.less(best, greatest),
                None => greatest,
            });
        }
        best.expect("a rank is less than the number of elements")
    }

    /// Merges the sorted columns in pairs of neighbours, or always the two shortest.
    fn find(&mut self, columns: &[Vec<Seen>], rank: usize, neighbours: bool) -> Seen {
        let mut lists = columns.to_vec();
        while lists.len() > 2 {
            if neighbours {
                let pairs = lists.chunks(2);
                lists = pairs
                    .map(|pair| match pair {
                        [a, b] => self.merged(a, b),
                        rest => rest.concat(),
                    })
                    .collect();
            } else {
                lists.sort_by_key(|list| std::cmp::Reverse(list.len()));
                let pair = lists.split_off(lists.len() - 2);
                lists.push(self.merged(&pair[0], &pair[1]));
            }
        }
        match &lists[..] {
            [a, b] => self.ranked(a, b, rank),
            _ => lists[0][rank],
        }
    }
}

/// A step: rows are numbered, lines first, and read at an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) a: (usize, usize),
    pub(super) b: (usize, usize),
    /// Where the lesser goes.
    pub(super) less: Option<usize>,
    /// Where the greater goes.
    pub(super) more: Option<usize>,
    /// Results are made from this column on,
    pub(super) from: usize,
    /// so many more than the tile is wide.
    pub(super) extra: usize,
}

/// The steps that find a rank.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) steps: Vec<Step>,
    /// Rows of memory beside the lines.
    pub(super) slots: usize,
    /// The row with the result, and the column where it begins.
    pub(super) result: (usize, usize),
}

impl Network {
    /// For elements at these lines and columns, of so many lines; `middle` is the pixel's column.
    pub(super) fn new(places: &[(usize, usize)], lines: usize, middle: usize, rank: usize) -> Self {
        let mut graph = Graph::default();
        let mut columns: Vec<(usize, Vec<Seen>)> = Vec::new();
        let mut sorted = places.to_vec();
        sorted.sort_unstable_by_key(|&(line, x)| (x, line));
        for (line, x) in sorted {
            let seen = graph.line(line, x as i32 - middle as i32);
            match columns.last_mut() {
                Some((last, column)) if *last == x => column.push(seen),
                _ => columns.push((x, vec![seen])),
            }
        }
        let columns: Vec<Vec<Seen>> = columns
            .iter()
            .map(|(_, column)| graph.sorted(column))
            .collect();
        let results = [true, false].map(|neighbours| graph.find(&columns, rank, neighbours));
        let ways = results.map(|result| (uses(&graph.rows, result), result));
        let cheapest = ways
            .iter()
            .min_by_key(|(uses, _)| uses.iter().flatten().count());
        let (uses, result) = cheapest.expect("there are two ways");
        laid_out(&graph.rows, uses, *result, lines, middle)
    }
}

/// Which rows a result needs, and at which shifts: the least and the greatest.
fn uses(rows: &[Row], result: Seen) -> Vec<Option<(i32, i32)>> {
    let mut uses: Vec<Option<(i32, i32)>> = vec![None; rows.len()];
    uses[result.row as usize] = Some((result.dx, result.dx));
    // Rows are made of rows before them.
    for at in (0..rows.len()).rev() {
        let (Some((least, most)), Row::Less(a, b) | Row::More(a, b)) = (uses[at], rows[at]) else {
            continue;
        };
        for seen in [a, b] {
            let use_ = &mut uses[seen.row as usize];
            let (low, high) = use_.unwrap_or((i32::MAX, i32::MIN));
            *use_ = Some((low.min(least + seen.dx), high.max(most + seen.dx)));
        }
    }
    uses
}

/// Gives rows their memory, which is used again after their last use.
fn laid_out(
    rows: &[Row],
    uses: &[Option<(i32, i32)>],
    result: Seen,
    lines: usize,
    middle: usize,
) -> Network {
    // A pair's lesser and greater are made together.
    let mut greater: HashMap<(Seen, Seen), usize> = HashMap::new();
    let mut lesser: HashMap<(Seen, Seen), usize> = HashMap::new();
    let mut last: Vec<usize> = vec![0; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        if uses[at].is_none() {
            continue;
        }
        match *row {
            Row::Line(_) => {}
            Row::Less(a, b) => drop(lesser.insert((a, b), at)),
            Row::More(a, b) => drop(greater.insert((a, b), at)),
        }
    }
    // Pairs in the order of whichever of the two is needed first, which is the order of rows.
    let mut order: Vec<(Seen, Seen)> = Vec::new();
    let mut ordered: HashMap<(Seen, Seen), usize> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let (Some(_), Row::Less(a, b) | Row::More(a, b)) = (uses[at], *row) {
            ordered.entry((a, b)).or_insert_with(|| {
                order.push((a, b));
                order.len() - 1
            });
        }
    }
    for (step, (a, b)) in order.iter().enumerate() {
        last[a.row as usize] = step;
        last[b.row as usize] = step;
    }
    last[result.row as usize] = usize::MAX;

    let mut place: Vec<usize> = rows
        .iter()
        .map(|row| match row {
            Row::Line(line) => *line as usize,
            _ => usize::MAX,
        })
        .collect();
    let (mut free, mut slots) = (Vec::new(), 0);
    let mut steps = Vec::new();
    let column = |dx: i32| (dx + middle as i32) as usize;
    for (step, &(a, b)) in order.iter().enumerate() {
        let mut range = (i32::MAX, i32::MIN);
        let mut give = |row: Option<&usize>| {
            let row = *row?;
            let (least, most) = uses[row]?;
            range = (range.0.min(least), range.1.max(most));
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                lines + slots - 1
            });
            place[row] = slot;
            Some(slot)
        };
        let less = give(lesser.get(&(a, b)));
        let more = give(greater.get(&(a, b)));
        let (least, most) = range;
        let read = |seen: Seen| (place[seen.row as usize], column(least + seen.dx));
        steps.push(Step {
            a: read(a),
            b: read(b),
            less,
            more,
            from: column(least),
            extra: (most - least) as usize,
        });
        let mut done = [a.row as usize, b.row as usize];
        if done[0] == done[1] {
            done[1] = usize::MAX;
        }
        for row in done {
            let is_slot = row != usize::MAX && !matches!(rows[row], Row::Line(_));
            if is_slot && last[row] == step {
                free.push(place[row]);
            }
        }
    }
    Network {
        steps,
        slots,
        result: (place[result.row as usize], column(result.dx)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a network on single columns of numbers.
    fn found(network: &Network, lines: &[Vec<u32>], width: usize) -> Vec<u32> {
        let length = lines[0].len();
        let mut rows = lines.to_vec();
        rows.resize(lines.len() + network.slots, vec![0; length]);
        for step in &network.steps {
            for x in 0..width + step.extra {
                let a = rows[step.a.0][step.a.1 + x];
                let b = rows[step.b.0][step.b.1 + x];
                if let Some(less) = step.less {
                    rows[less][step.from + x] = a.min(b);
                }
                if let Some(more) = step.more {
                    rows[more][step.from + x] = a.max(b);
                }
            }
        }
        let (row, first) = network.result;
        rows[row][first..first + width].to_vec()
    }

    #[test]
    fn networks_find_what_sorting_finds() {
        let mut state = 7_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..120 {
            let (lines, radius, width) = (1 + round % 9, round % 5, 7);
            let mut places: Vec<(usize, usize)> = (0..lines)
                .flat_map(|line| (0..=2 * radius).map(move |x| (line, x)))
                .collect();
            if round % 2 == 1 {
                places.retain(|_| random(3) > 0);
            }
            if places.is_empty() {
                places.push((0, radius));
            }
            let rank = random(places.len() as u32) as usize;
            let image: Vec<Vec<u32>> = (0..lines)
                .map(|_| (0..width + 2 * radius).map(|_| random(50)).collect())
                .collect();
            let network = Network::new(&places, lines, radius, rank);
            let wanted: Vec<u32> = (0..width)
                .map(|x| {
                    let mut window: Vec<u32> = places
                        .iter()
                        .map(|&(line, dx)| image[line][x + dx])
                        .collect();
                    window.sort_unstable();
                    window[rank]
                })
                .collect();
            assert_eq!(found(&network, &image, width), wanted, "{places:?} {rank}");
        }
    }

    #[test]
    fn what_neighbours_share_is_made_once() {
        let places: Vec<(usize, usize)> = (0..5)
            .flat_map(|line| (0..5).map(move |x| (line, x)))
            .collect();
        let network = Network::new(&places, 5, 2, 12);
        // Each column sorted by itself would take 45 steps alone.
        assert!(network.steps.len() < 75, "{} steps", network.steps.len());
        assert!(network.slots < 30, "{} slots", network.slots);
    }
}
