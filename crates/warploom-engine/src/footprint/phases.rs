//! Networks of comparisons as machine code.
//!
//! Step by step every comparison reads two rows and writes two. Comparisons whose operands lie in the same column are
//! made together, in registers; only what is seen from another column has to rest in memory between. So the steps
//! fall into few phases, each of them one pass over a tile: the sorted columns of a box are one, and what is
//! made of them at several shifts is the next.

use std::collections::HashMap;
use std::sync::OnceLock;

use warploom_core::DType;
use warploom_native::{Bin, Element, Ins, Routine, Value, Width};

use super::network::Network;

/// Rows that a phase reads and writes: pointers to them are few.
const MOST_ROWS: usize = 46;

/// Longer networks take longer to make than they save.
const MOST_STEPS: usize = 4096;

/// A row of memory, lines first, and a column of it.
pub(super) type Spot = (usize, usize);

/// Comparisons that are made together.
#[derive(Debug)]
pub(super) struct Phase {
    /// What it reads, and where it writes, from these columns on.
    pub(super) reads: Vec<Spot>,
    pub(super) writes: Vec<Spot>,
    /// How many more columns it makes than the tile is wide.
    pub(super) extra: usize,
    code: Vec<Ins>,
}

/// A network in phases.
#[derive(Debug)]
pub(super) struct Phases {
    pub(super) list: Vec<Phase>,
    /// Rows of memory beside the lines.
    pub(super) rows: usize,
    /// The row with the result, and the column where it begins.
    pub(super) result: Spot,
    /// As machine code, with vectors of either width.
    made: [OnceLock<Option<Vec<Routine>>>; 2],
}

/// What a step compares.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operand {
    Line(usize, usize),
    /// A result of a step before, from a column on.
    Made(usize, usize),
}

/// The lesser or the greater of a step.
struct Made {
    step: usize,
    column: usize,
    /// Steps that need it, and the one that is the result of all.
    uses: usize,
}

struct Comparison {
    of: [Operand; 2],
    /// The lesser and the greater, where they are needed.
    gives: [Option<usize>; 2],
    extra: usize,
    /// How often what it is made of was seen from another column.
    level: usize,
}

impl Phases {
    /// For images of a type; `None` for those whose elements are not words, for networks that are too long, and for
    /// one that compares nothing.
    pub(super) fn new(network: &Network, lines: usize, dtype: DType) -> Option<Self> {
        let acts = match dtype {
            // Real numbers are compared by keys that are whole.
            DType::F32 | DType::I32 => [Bin::MinI, Bin::MaxI],
            DType::U32 => [Bin::MinU, Bin::MaxU],
            _ => return None,
        };
        if network.steps.is_empty() || network.steps.len() > MOST_STEPS {
            return None;
        }
        let (comparisons, made, result) = comparisons(network, lines);
        let groups = groups(&comparisons, &made);
        let mut phase_of = vec![0; comparisons.len()];
        for (phase, group) in groups.iter().enumerate() {
            for &step in group {
                phase_of[step] = phase;
            }
        }
        // Until which phase each result is read from memory, if it is.
        let mut until: Vec<Option<usize>> = vec![None; made.len()];
        for (step, comparison) in comparisons.iter().enumerate() {
            for operand in comparison.of {
                if let Operand::Made(id, _) = operand
                    && phase_of[made[id].step] != phase_of[step]
                {
                    until[id] = until[id].max(Some(phase_of[step]));
                }
            }
        }
        until[result] = Some(usize::MAX);
        let (mut place, mut free, mut rows) = (vec![0; made.len()], Vec::new(), 0);
        let mut phases = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let mut phase = Phase {
                reads: Vec::new(),
                writes: Vec::new(),
                extra: 0,
                code: Vec::new(),
            };
            let mut known: HashMap<Operand, Value> = HashMap::new();
            for &step in group {
                let comparison = &comparisons[step];
                phase.extra = phase.extra.max(comparison.extra);
                let [a, b] = comparison.of.map(|operand| {
                    *known.entry(operand).or_insert_with(|| {
                        let spot = match operand {
                            Operand::Line(line, column) => (line, column),
                            Operand::Made(id, column) => (place[id], column),
                        };
                        let row = phase.reads.len() as u8;
                        phase.reads.push(spot);
                        let element = Element::Word;
                        push(&mut phase.code, Ins::Row { row, element })
                    })
                });
                for (act, gives) in acts.into_iter().zip(comparison.gives) {
                    let Some(id) = gives else {
                        continue;
                    };
                    let value = push(&mut phase.code, Ins::Bin(act, a, b));
                    let column = made[id].column;
                    known.insert(Operand::Made(id, column), value);
                    if until[id].is_none() {
                        continue;
                    }
                    place[id] = free.pop().unwrap_or_else(|| {
                        rows += 1;
                        lines + rows - 1
                    });
                    let out = phase.writes.len() as u8;
                    phase.writes.push((place[id], column));
                    let element = Element::Word;
                    push(
                        &mut phase.code,
                        Ins::Put {
                            out,
                            element,
                            value,
                        },
                    );
                }
            }
            phases.push(phase);
            // Rows are used again by later phases, never by one that still reads them.
            for (id, made) in made.iter().enumerate() {
                if until[id] == Some(at) && phase_of[made.step] < at {
                    free.push(place[id]);
                }
            }
        }
        Some(Self {
            list: phases,
            rows,
            result: (place[result], network.result.1),
            made: [OnceLock::new(), OnceLock::new()],
        })
    }

    /// Its phases as machine code; `None` where the machine cannot have it.
    pub(super) fn routines(&self, width: Width) -> Option<&[Routine]> {
        let made = &self.made[usize::from(width == Width::Bits512)];
        let made = made.get_or_init(|| {
            let phases = self.list.iter();
            phases
                .map(|phase| Routine::new(&phase.code, width))
                .collect()
        });
        made.as_deref()
    }
}

fn push(code: &mut Vec<Ins>, ins: Ins) -> Value {
    code.push(ins);
    (code.len() - 1) as Value
}

/// The steps without the rows that they share, and which of their results is that of all.
fn comparisons(network: &Network, lines: usize) -> (Vec<Comparison>, Vec<Made>, usize) {
    let mut made: Vec<Made> = Vec::new();
    let mut comparisons: Vec<Comparison> = Vec::new();
    // What is in each row now.
    let mut holds: HashMap<usize, usize> = HashMap::new();
    for (at, step) in network.steps.iter().enumerate() {
        let mut level = 0;
        let of = [step.a, step.b].map(|(row, column)| {
            if row < lines {
                return Operand::Line(row, column);
            }
            let id = holds[&row];
            let is_shifted = made[id].column != column;
            level = level.max(comparisons[made[id].step].level + usize::from(is_shifted));
            Operand::Made(id, column)
        });
        for operand in of {
            if let Operand::Made(id, _) = operand {
                made[id].uses += 1;
            }
        }
        let gives = [step.less, step.more].map(|row| {
            let row = row?;
            made.push(Made {
                step: at,
                column: step.from,
                uses: 0,
            });
            holds.insert(row, made.len() - 1);
            Some(made.len() - 1)
        });
        comparisons.push(Comparison {
            of,
            gives,
            extra: step.extra,
            level,
        });
    }
    let result = holds[&network.result.0];
    made[result].uses += 1;
    (comparisons, made, result)
}

/// Which comparisons are made together: those of a level, as many as have few enough rows.
fn groups(comparisons: &[Comparison], made: &[Made]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..comparisons.len()).collect();
    order.sort_by_key(|&step| comparisons[step].level);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group = Group::default();
    for step in order {
        let comparison = &comparisons[step];
        let is_next = group
            .steps
            .last()
            .is_some_and(|&last| comparisons[last].level != comparison.level);
        if is_next || !group.steps.is_empty() && group.with(comparison) > MOST_ROWS {
            groups.push(std::mem::take(&mut group).steps);
        }
        group.add(step, comparison, made);
    }
    groups.push(group.steps);
    groups
}

#[derive(Default)]
struct Group {
    steps: Vec<usize>,
    reads: Vec<Operand>,
    /// Its results, and how many of their uses are elsewhere as far as is known.
    left: HashMap<usize, usize>,
}

impl Group {
    fn is_read(&self, operand: Operand) -> bool {
        let is_own = matches!(operand, Operand::Made(id, _) if self.left.contains_key(&id));
        !is_own && !self.reads.contains(&operand)
    }

    /// How many rows it would have with one more, at most.
    fn with(&self, comparison: &Comparison) -> usize {
        let more = comparison.of.iter().filter(|one| self.is_read(**one));
        let gives = comparison.gives.iter().flatten().count();
        let writes = self.left.values().filter(|left| **left > 0).count();
        self.reads.len() + more.count() + writes + gives
    }

    fn add(&mut self, step: usize, comparison: &Comparison, made: &[Made]) {
        for operand in comparison.of {
            if self.is_read(operand) {
                self.reads.push(operand);
            }
            if let Operand::Made(id, _) = operand
                && let Some(left) = self.left.get_mut(&id)
            {
                *left -= 1;
            }
        }
        for id in comparison.gives.into_iter().flatten() {
            self.left.insert(id, made[id].uses);
        }
        self.steps.push(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs phases on columns of numbers, one column after the other.
    fn found(phases: &Phases, lines: &[Vec<u32>], width: usize) -> Vec<u32> {
        let length = 2 * lines[0].len();
        let mut rows = lines.to_vec();
        rows.resize(lines.len() + phases.rows, Vec::new());
        for row in &mut rows {
            row.resize(length, 99);
        }
        for phase in &phases.list {
            for x in 0..width + phase.extra {
                let mut values: Vec<u32> = Vec::new();
                for ins in &phase.code {
                    values.push(match *ins {
                        Ins::Row { row, .. } => {
                            let (row, column) = phase.reads[usize::from(row)];
                            rows[row][column + x]
                        }
                        Ins::Bin(Bin::MinU, a, b) => values[a as usize].min(values[b as usize]),
                        Ins::Bin(Bin::MaxU, a, b) => values[a as usize].max(values[b as usize]),
                        Ins::Put { out, value, .. } => {
                            let (row, column) = phase.writes[usize::from(out)];
                            rows[row][column + x] = values[value as usize];
                            0
                        }
                        other => panic!("{other:?}"),
                    });
                }
            }
        }
        let (row, first) = phases.result;
        rows[row][first..first + width].to_vec()
    }

    #[test]
    fn phases_find_what_sorting_finds() {
        let mut state = 7_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..160 {
            let (lines, radius, width) = (1 + round % 26, round % 5, 7);
            let mut places: Vec<(usize, usize)> = (0..lines)
                .flat_map(|line| (0..=2 * radius).map(move |x| (line, x)))
                .collect();
            if round % 2 == 1 {
                places.retain(|_| random(3) > 0);
            }
            let rank = random(places.len().max(1) as u32) as usize;
            let image: Vec<Vec<u32>> = (0..lines)
                .map(|_| (0..width + 2 * radius).map(|_| random(50)).collect())
                .collect();
            if places.len() < 2 {
                continue;
            }
            let network = Network::new(&places, lines, radius, rank);
            let Some(phases) = Phases::new(&network, lines, DType::U32) else {
                continue;
            };
            for phase in &phases.list {
                assert!(phase.reads.len() + phase.writes.len() <= MOST_ROWS + 2);
                let is_read = |row: usize| phase.reads.iter().any(|(read, _)| *read == row);
                let mut writes = phase.writes.iter();
                assert!(writes.all(|(row, _)| *row >= lines && !is_read(*row)));
            }
            let wanted: Vec<u32> = (0..width)
                .map(|x| {
                    let window = places.iter().map(|&(line, dx)| image[line][x + dx]);
                    let mut window: Vec<u32> = window.collect();
                    window.sort_unstable();
                    window[rank]
                })
                .collect();
            assert_eq!(found(&phases, &image, width), wanted, "{places:?} {rank}");
        }
    }

    #[test]
    fn a_box_of_planes_is_sorted_in_one_phase_and_merged_in_the_next() {
        let places: Vec<(usize, usize)> = (0..9)
            .flat_map(|line| (0..3).map(move |x| (line, x)))
            .collect();
        let network = Network::new(&places, 9, 1, 13);
        let phases = Phases::new(&network, 9, DType::F32).unwrap();
        assert!(phases.list.len() <= 3, "{} phases", phases.list.len());
        assert!(Phases::new(&network, 9, DType::U8).is_none());
    }
}
