//! Device memory for tests: one stretch, with gaps between what is allocated in it.

use std::cell::UnsafeCell;
use std::sync::Mutex;

use bytemuck::Pod;
use warploom_cuda_emu::engine::{Access, DeviceMemory, Region, Why};

const BYTES: usize = 32 << 20;
/// Between two allocations; an access that is off by less belongs to the nearer one.
const GAP: u64 = 4096;

struct Allocation {
    region: Region,
    freed: bool,
}

#[derive(Default)]
struct Book {
    next: u64,
    allocations: Vec<Allocation>,
}

pub(crate) struct Memory {
    words: Box<[UnsafeCell<u64>]>,
    book: Mutex<Book>,
    /// Whether kernels may call `malloc`.
    pub(crate) has_heap: bool,
}

// SAFETY: the words are only reached through raw pointers, by kernels (which may race with each
// other, as on a device) and by tests between launches; the book has a lock.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new() -> Self {
        let words: Vec<u64> = vec![0; BYTES / 8];
        let words = Box::into_raw(words.into_boxed_slice()) as *mut [UnsafeCell<u64>];
        // SAFETY: the same allocation; `UnsafeCell<u64>` has the layout of `u64`.
        let words = unsafe { Box::from_raw(words) };
        Self {
            words,
            book: Mutex::default(),
            has_heap: false,
        }
    }

    fn start(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// Room for `bytes` bytes of zeros.
    pub(crate) fn reserve(&self, bytes: u64, align: u64) -> u64 {
        let mut book = self
            .book
            .lock()
            .expect("no test panics while it looks into the book");
        let base = self.start() + book.next + GAP;
        let base = base.next_multiple_of(align.max(256));
        book.next = base + bytes - self.start();
        assert!(
            book.next + GAP <= BYTES as u64,
            "the test needs more memory"
        );
        let region = Region {
            base,
            end: base + bytes,
        };
        book.allocations.push(Allocation {
            region,
            freed: false,
        });
        base
    }

    /// A buffer with these values.
    pub(crate) fn buffer<T: Pod>(&self, values: &[T]) -> u64 {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let base = self.reserve(bytes.len() as u64, 256);
        self.write(base, bytes);
        base
    }

    /// A buffer of zeros.
    pub(crate) fn zeros<T: Pod>(&self, count: usize) -> u64 {
        self.reserve((count * size_of::<T>()) as u64, 256)
    }

    pub(crate) fn free(&self, base: u64) {
        let mut book = self
            .book
            .lock()
            .expect("no test panics while it looks into the book");
        let mut all = book.allocations.iter_mut();
        let found = all.find(|one| one.region.base == base && !one.freed);
        found.expect("it was allocated").freed = true;
    }

    fn inside(&self, address: u64, bytes: usize) -> *mut u8 {
        let end = self.start() + BYTES as u64;
        assert!(address >= self.start() && address + bytes as u64 <= end);
        address as *mut u8
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) {
        let place = self.inside(address, bytes.len());
        // SAFETY: inside of the words, of which there are no references; no kernel runs.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub(crate) fn read<T: Pod>(&self, address: u64, count: usize) -> Vec<T> {
        let mut values = vec![T::zeroed(); count];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        let place = self.inside(address, bytes.len());
        // SAFETY: inside of the words, which are initialised; no kernel runs.
        unsafe {
            bytes
                .as_mut_ptr()
                .copy_from_nonoverlapping(place, bytes.len());
        }
        values
    }
}

impl DeviceMemory for Memory {
    fn check(&self, address: u64, bytes: u32, _: Access) -> Result<Region, Why> {
        let book = self
            .book
            .lock()
            .expect("no test panics while it looks into the book");
        let end = address.saturating_add(u64::from(bytes));
        let near = book.allocations.iter().find(|one| {
            let Region { base, end } = one.region;
            address >= base.saturating_sub(GAP / 2) && address < end + GAP / 2
        });
        match near {
            None => Err(Why::Unmapped),
            Some(one) if address < one.region.base || end > one.region.end => {
                let allocation = one.region;
                Err(Why::OutOfBounds { allocation })
            }
            Some(one) if one.freed => Err(Why::Freed {
                allocation: one.region,
            }),
            Some(one) => Ok(one.region),
        }
    }

    fn allocate(&self, bytes: u64) -> Option<u64> {
        (self.has_heap && bytes < 1 << 16).then(|| self.reserve(bytes, 16))
    }

    fn release(&self, address: u64) -> Result<(), Why> {
        let mut book = self
            .book
            .lock()
            .expect("no test panics while it looks into the book");
        let mut all = book.allocations.iter_mut();
        match all.find(|one| one.region.base == address) {
            None => Err(Why::Unmapped),
            Some(one) if one.freed => Err(Why::Freed {
                allocation: one.region,
            }),
            Some(one) => {
                one.freed = true;
                Ok(())
            }
        }
    }
}
