//! Memory for whole images between steps.

use bytemuck::Pod;
use memmap2::MmapMut;

/// Values in memory of their own, which are zero at first. The threads that write to it first have the
/// system make its pages, and not one thread for all.
pub(crate) enum Pages<T> {
    /// Large ones ask for large pages, of which there are fewer to make and to look up.
    Large(MmapMut),
    Small(Vec<T>),
}

/// From here on large pages are worth asking for.
const LARGE: usize = 1 << 22;

impl<T: Pod> Pages<T> {
    pub(crate) fn zeros(count: usize) -> Self {
        let bytes = count * size_of::<T>();
        if bytes < LARGE {
            return Self::Small(vec![T::zeroed(); count]);
        }
        match MmapMut::map_anon(bytes) {
            Ok(pages) => {
                // A system without them has small ones, which serve as well.
                #[cfg(target_os = "linux")]
                let _ = pages.advise(memmap2::Advice::HugePage);
                Self::Large(pages)
            }
            Err(_) => Self::Small(vec![T::zeroed(); count]),
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::Large(pages) => bytemuck::cast_slice(pages),
            Self::Small(values) => values,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::Large(pages) => bytemuck::cast_slice_mut(pages),
            Self::Small(values) => values,
        }
    }
}
