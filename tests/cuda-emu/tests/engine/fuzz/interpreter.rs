//! Programs, step by step.

use super::program::{Guard, REGISTERS, SCRATCH, SCRATCHES, SORTS, Sort, Source, Statement};

/// One thread.
pub(super) struct Machine {
    registers: [[u64; REGISTERS]; SORTS.len()],
    scratch: [[u8; SCRATCH]; SCRATCHES],
}

fn index(sort: Sort) -> usize {
    SORTS
        .iter()
        .position(|one| *one == sort)
        .expect("all sorts are listed")
}

impl Machine {
    pub(super) fn new(record: &[u8]) -> Self {
        let mut machine = Self {
            registers: [[0; REGISTERS]; SORTS.len()],
            scratch: [[0; SCRATCH]; SCRATCHES],
        };
        let mut words = record.chunks(8).map(|chunk| {
            let chunk: [u8; 8] = chunk.try_into().expect("records are whole words");
            u64::from_le_bytes(chunk)
        });
        for sort in SORTS {
            for number in 0..REGISTERS {
                let word = words.next().expect("the record is long enough");
                machine.set(sort, number, word);
            }
        }
        let start = SORTS.len() * REGISTERS * 8;
        for (scratch, bytes) in machine
            .scratch
            .iter_mut()
            .zip(record[start..].chunks(SCRATCH))
        {
            scratch.copy_from_slice(bytes);
        }
        machine
    }

    fn set(&mut self, sort: Sort, number: usize, value: u64) {
        self.registers[index(sort)][number] = value & (u64::MAX >> (64 - sort.bits()));
    }

    fn get(&self, sort: Sort, number: usize) -> u64 {
        self.registers[index(sort)][number]
    }

    fn holds(&self, guard: Guard) -> bool {
        guard.is_none_or(|(number, negated)| (self.get(Sort::P, number) == 1) != negated)
    }

    pub(super) fn run(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.step(statement);
        }
    }

    fn step(&mut self, statement: &Statement) {
        match statement {
            Statement::Compute {
                rule,
                target,
                sources,
                guard,
            } => {
                if self.holds(*guard) {
                    let values: Vec<u64> = rule
                        .from
                        .iter()
                        .zip(sources)
                        .map(|(sort, source)| match source {
                            Source::Register(number) => self.get(*sort, *number),
                            Source::Constant(bits) => *bits,
                        })
                        .collect();
                    self.set(rule.to, *target, (rule.eval)(&values));
                }
                // As in the text, this happens whether or not the guard holds.
                if rule.to == Sort::G && rule.is_arithmetic {
                    let value = f64::from_bits(self.get(Sort::G, *target));
                    if value.is_nan() {
                        self.set(Sort::G, *target, 0x7ff8_0000_0000_0000);
                    }
                }
            }
            Statement::Access { .. } => self.access(statement),
            Statement::If {
                predicate,
                then,
                otherwise,
            } => {
                if self.get(Sort::P, *predicate) == 1 {
                    self.run(then);
                } else {
                    self.run(otherwise);
                }
            }
            Statement::Loop { times, body } => {
                for _ in 0..*times {
                    self.run(body);
                }
            }
            Statement::Barrier => {}
        }
    }

    fn access(&mut self, statement: &Statement) {
        let Statement::Access {
            is_load,
            space,
            ty,
            bytes,
            sort,
            lanes,
            target,
            place,
            guard,
        } = statement
        else {
            return;
        };
        if !self.holds(*guard) {
            return;
        }
        let size = bytes * lanes;
        let start = self.get(Sort::R, *place) as usize & (SCRATCH - size);
        for lane in 0..*lanes {
            let at = start + lane * bytes;
            let memory = &mut self.scratch[space.scratch()][at..at + bytes];
            if *is_load {
                let mut word = [0; 8];
                word[..*bytes].copy_from_slice(memory);
                let mut value = u64::from_le_bytes(word);
                if ty.starts_with('s') {
                    let unused = 64 - 8 * bytes;
                    value = ((value << unused) as i64 >> unused) as u64;
                }
                self.set(*sort, target + lane, value);
            } else {
                let word = self.registers[index(*sort)][target + lane].to_le_bytes();
                memory.copy_from_slice(&word[..*bytes]);
            }
        }
    }

    /// What differs from the record that a kernel has left.
    pub(super) fn difference(&self, record: &[u8]) -> Option<String> {
        let found = Self::new(record);
        for sort in SORTS {
            for number in 0..REGISTERS {
                let (wanted, found) = (self.get(sort, number), found.get(sort, number));
                if wanted != found {
                    let name = sort.prefix();
                    return Some(format!(
                        "{name}{number} is {found:#x}, expected {wanted:#x}"
                    ));
                }
            }
        }
        (0..SCRATCHES)
            .find(|space| self.scratch[*space] != found.scratch[*space])
            .map(|space| {
                format!(
                    "scratch memory {space} is\n{:x?}, expected\n{:x?}",
                    found.scratch[space], self.scratch[space]
                )
            })
    }
}
