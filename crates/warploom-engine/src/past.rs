//! Rows that go to memory past the caches.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::available_parallelism;

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
        // Kept, since clearing it for a row takes a sixth of the time that the row takes.
        thread_local! {
            static OWN: RefCell<[f32; MEMORY]> = const { RefCell::new([0.0; MEMORY]) };
        }
        OWN.with_borrow_mut(|memory| {
            mover.run_past(memory, &[from], &mut [&mut *to], 0, bytes / 4);
        });
        bytes
    });
    to[moved..].copy_from_slice(&from[moved..]);
}

/// Is a pass that moves so many bytes too large for what it writes to be in a cache when somebody reads it?
///
/// It is where all of it is a quarter more than the last caches hold. With less, writing past them is what makes
/// memory the limit: six pointwise steps whose bytes are as many as the cache has went from 59 to 94 % of the speed
/// of a copy. With much more, the caches fetch every line that is about to be overwritten.
pub(crate) fn pays(bytes: usize) -> bool {
    static LARGE: OnceLock<usize> = OnceLock::new();
    bytes >= *LARGE.get_or_init(|| last_caches().unwrap_or(USUAL) / 4 * 5)
}

/// Bytes of the last cache where a machine does not tell.
const USUAL: usize = 32 << 20;

/// What the last caches of all processors hold together, as far as they work for this process.
fn last_caches() -> Option<usize> {
    let caches = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let told = |level: usize, what: &str| {
        fs::read_to_string(caches.join(format!("index{level}")).join(what)).ok()
    };
    // They are listed from the smallest on; more than these nobody has.
    let last = (0..8)
        .take_while(|level| told(*level, "size").is_some())
        .last()?;
    let (bytes, sharers) = (
        size(&told(last, "size")?)?,
        processors(&told(last, "shared_cpu_list")?)?,
    );
    let threads = available_parallelism().map_or(1, usize::from);
    Some(bytes * threads.div_ceil(sharers.max(1)))
}

/// The bytes of `32768K`.
fn size(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, shift) = match text.strip_suffix('K') {
        Some(number) => (number, 10),
        None => text
            .strip_suffix('M')
            .map_or((text, 0), |number| (number, 20)),
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// How many processors `0-7,64` are.
fn processors(list: &str) -> Option<usize> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.trim().split(',').map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::{copy, last_caches, pays, processors, size};

    #[rstest::rstest]
    #[case("32768K\n", Some(32 << 20))]
    #[case("2M", Some(2 << 20))]
    #[case("512", Some(512))]
    #[case("", None)]
    #[case("large", None)]
    #[case("99999999999999999999K", None)]
    fn sizes_of_caches_have_units(#[case] text: &str, #[case] bytes: Option<usize>) {
        assert_eq!(size(text), bytes);
    }

    #[rstest::rstest]
    #[case("0-1\n", Some(2))]
    #[case("3", Some(1))]
    #[case("0-7,64-71", Some(16))]
    #[case("0,2,4-5", Some(4))]
    #[case("5-4", None)]
    #[case("", None)]
    fn lists_of_processors_are_counted(#[case] list: &str, #[case] count: Option<usize>) {
        assert_eq!(processors(list), count);
    }

    #[test]
    fn small_passes_stay_in_the_caches_and_endless_ones_do_not() {
        if let Some(bytes) = last_caches() {
            assert!(bytes > 1 << 10, "{bytes}");
        }
        assert!(!pays(1 << 10));
        assert!(pays(usize::MAX));
    }

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
