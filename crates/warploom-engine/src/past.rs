//! Rows that go to memory past the caches.

use std::sync::OnceLock;

use warploom_native::{Element, Ins, Routine, Width};

/// Words of memory that a routine which only moves pixels asks for, at most.
const MEMORY: usize = 1024;

/// Machine code that moves words, where the machine can have it.
fn mover() -> Option<&'static Routine> {
    static MOVER: OnceLock<Option<Routine>> = OnceLock::new();
    let made = || {
        let element = Element::Word;
        let code = [
            Ins::Row { row: 0, element },
            Ins::Put {
                out: 0,
                element,
                value: 0,
            },
        ];
        let routine = Routine::new(&code, Width::best()?)?;
        (routine.memory() <= MEMORY).then_some(routine)
    };
    MOVER.get_or_init(made).as_ref()
}

/// Copies a row that nobody reads soon. A cache would fetch what is about to be overwritten.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    let moved = mover().map_or(0, |mover| {
        let vector = 4 * mover.lanes();
        let bytes = from.len().min(to.len()) / vector * vector;
        let mut memory = [0.0; MEMORY];
        mover.run_past(&mut memory, &[from], &mut [&mut *to], 0, bytes / 4);
        bytes
    });
    to[moved..].copy_from_slice(&from[moved..]);
}

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn every_byte_is_copied_wherever_it_lies() {
        let from: Vec<u8> = (0..700_u32).map(|i| (i * 37) as u8).collect();
        for length in [0, 1, 63, 64, 65, 256, 500, 600] {
            for start in [0, 1, 4, 32] {
                let mut room = vec![0; 800];
                let to = start..start + length;
                copy(&from[start..][..length], &mut room[to.clone()]);
                assert_eq!(room[to.clone()], from[start..][..length]);
                assert!(room[..to.start].iter().all(|&byte| byte == 0));
                assert!(room[to.end..].iter().all(|&byte| byte == 0));
            }
        }
    }
}
