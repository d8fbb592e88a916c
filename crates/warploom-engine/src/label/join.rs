//! Which runs belong together.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::Connectivity;
use super::runs::{Part, Run, Runs};

/// What every run belongs to.
#[derive(Debug)]
pub(crate) struct Components {
    /// From 1, in the order of first pixels, for each run.
    pub(crate) numbers: Vec<u32>,
    pub(crate) count: u32,
}

/// The first run of the set; the path to it is halved on the way.
fn root(parents: &mut [u32], mut run: u32) -> u32 {
    while parents[run as usize] != run {
        let above = parents[parents[run as usize] as usize];
        parents[run as usize] = above;
        run = above;
    }
    run
}

/// Joins two sets; the first run of both is the root, so roots come in scan order.
fn join(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parents, a), root(parents, b));
    if a != b {
        parents[a.max(b) as usize] = a.min(b);
    }
}

/// Joins the runs of two rows that touch: they overlap by `reach` pixels beyond their ends.
fn join_rows(
    parents: &mut [u32],
    (first_a, a): (u32, &[Run]),
    (first_b, b): (u32, &[Run]),
    reach: u32,
    same: impl Fn(u32, u32) -> bool,
) {
    let mut meet = |i: usize, j: usize| {
        if let (Some(a), Some(b)) = (a.get(i), b.get(j))
            && a.start < b.end + reach
            && b.start < a.end + reach
            && same(a.start, b.start)
        {
            join(parents, first_a + i as u32, first_b + j as u32);
        }
    };
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        meet(i, j);
        // The one that ends first touches nothing further.
        match a[i].end.cmp(&b[j].end) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                // Runs of different labels may lie side by side and touch across the corner.
                meet(i, j + 1);
                meet(i + 1, j);
                i += 1;
                j += 1;
            }
        }
    }
}

/// The rows before `row` whose pixels touch its own.
fn touching(
    row: usize,
    [_, ny, _]: [usize; 3],
    connectivity: Connectivity,
) -> impl Iterator<Item = usize> {
    let (z, y) = (row / ny, row % ny);
    let corners = connectivity == Connectivity::Box;
    [
        (y > 0).then(|| row - 1),
        (z > 0).then(|| row.wrapping_sub(ny)),
        (z > 0 && y > 0 && corners).then(|| row.wrapping_sub(ny + 1)),
        (z > 0 && y + 1 < ny && corners).then(|| row.wrapping_sub(ny - 1)),
    ]
    .into_iter()
    .flatten()
}

/// Joins runs that touch and for which `same`, given row and start of both, holds.
pub(crate) fn connect(
    runs: &Runs,
    connectivity: Connectivity,
    same: impl Fn((usize, u32), (usize, u32)) -> bool + Sync,
) -> Components {
    let reach = u32::from(connectivity == Connectivity::Box);
    let mut parents = vec![0_u32; runs.len()];
    let mut pieces = Vec::with_capacity(runs.parts.len());
    let mut rest = parents.as_mut_slice();
    for part in &runs.parts {
        let (piece, tail) = std::mem::take(&mut rest).split_at_mut(part.runs.len());
        pieces.push((part, piece));
        rest = tail;
    }
    pieces.into_par_iter().for_each(|(part, parents)| {
        for (run, parent) in parents.iter_mut().enumerate() {
            *parent = run as u32;
        }
        let line = |part: &Part, row| {
            let runs = part.row(row);
            (runs.start as u32, runs)
        };
        for row in part.rows.clone() {
            for other in touching(row, runs.dims, connectivity) {
                if other >= part.rows.start {
                    let ((a, a_runs), (b, b_runs)) = (line(part, other), line(part, row));
                    let (a, b) = ((a, &part.runs[a_runs]), (b, &part.runs[b_runs]));
                    join_rows(parents, a, b, reach, |x, y| same((other, x), (row, y)));
                }
            }
        }
        for parent in parents {
            *parent += part.before as u32;
        }
    });
    for part in &runs.parts {
        for row in part.rows.clone() {
            // Rows that touch the part before are at its beginning, a plane at most.
            if row > part.rows.start + runs.dims[1] {
                break;
            }
            for other in touching(row, runs.dims, connectivity) {
                if other < part.rows.start {
                    let ((a, a_runs), (b, b_runs)) = (runs.row(other), runs.row(row));
                    let (a, b) = ((a.start as u32, a_runs), (b.start as u32, b_runs));
                    join_rows(&mut parents, a, b, reach, |x, y| same((other, x), (row, y)));
                }
            }
        }
    }
    number(runs, &parents)
}

/// Numbers the roots in order and gives every run its root's number.
fn number(runs: &Runs, parents: &[u32]) -> Components {
    let of = |part: &Part| part.before..part.before + part.runs.len();
    let is_root = |run: usize| parents[run] as usize == run;
    let roots: Vec<u32> = runs
        .parts
        .par_iter()
        .map(|part| of(part).filter(|&run| is_root(run)).count() as u32)
        .collect();
    let mut first = Vec::with_capacity(roots.len());
    let mut count = 0;
    for &roots in &roots {
        first.push(count);
        count += roots;
    }
    let mut numbers = vec![0_u32; parents.len()];
    let mut rest = numbers.as_mut_slice();
    let mut pieces = Vec::with_capacity(runs.parts.len());
    for (part, &first) in runs.parts.iter().zip(&first) {
        let (piece, tail) = std::mem::take(&mut rest).split_at_mut(part.runs.len());
        pieces.push((part, first, piece));
        rest = tail;
    }
    // Inside a part, parents come before their children; a parent outside is followed to its root
    // later, when all roots have numbers.
    pieces.into_par_iter().for_each(|(part, first, numbers)| {
        let mut next = first;
        for run in of(part) {
            let parent = parents[run] as usize;
            numbers[run - part.before] = if parent == run {
                next += 1;
                next
            } else if parent >= part.before {
                numbers[parent - part.before]
            } else {
                0
            };
        }
    });
    if runs.parts.len() > 1 {
        let missing: Vec<(usize, u32)> = runs
            .parts
            .par_iter()
            .flat_map_iter(|part| of(part).filter(|&run| numbers[run] == 0))
            .map(|run| {
                let mut root = run;
                while !is_root(root) {
                    root = parents[root] as usize;
                }
                (run, numbers[root])
            })
            .collect();
        for (run, number) in missing {
            numbers[run] = number;
        }
    }
    Components { numbers, count }
}
