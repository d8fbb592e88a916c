//! Device times: a timestamp query per event, resolved straight into mapped memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use wgpu::BufferUsages;

use crate::error::scoped;
use crate::mapping::Mapped;

const QUERIES: u32 = 256;
/// Query results go to multiples of this.
const STRIDE: u64 = wgpu::QUERY_RESOLVE_BUFFER_ALIGNMENT;

/// The queries of one opened device.
#[derive(Debug)]
pub(crate) struct Stamps {
    // The longest unused first: a driver may wait for a query's last use before its next.
    free: Mutex<VecDeque<(Arc<Block>, u32)>>,
    /// Nanoseconds of a tick.
    period: f64,
}

#[derive(Debug)]
struct Block {
    queries: wgpu::QuerySet,
    results: Mapped,
}

/// One query. It is free for another event when the last event that shares it is gone and the
/// device has answered it.
#[derive(Debug)]
pub(crate) struct Stamp {
    block: Arc<Block>,
    query: u32,
    home: Weak<Stamps>,
}

impl Stamps {
    pub(crate) fn new(queue: &wgpu::Queue) -> Arc<Self> {
        Arc::new(Self {
            free: Mutex::default(),
            period: f64::from(queue.get_timestamp_period()),
        })
    }

    /// A query; `None` when the device has no more of them.
    pub(crate) fn take(self: &Arc<Self>, device: &wgpu::Device) -> Option<Arc<Stamp>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.is_empty() {
            let block = Arc::new(Block::new(device)?);
            free.extend((0..QUERIES).map(|query| (Arc::clone(&block), query)));
        }
        let (block, query) = free.pop_front()?;
        Some(Arc::new(Stamp {
            block,
            query,
            home: Arc::downgrade(self),
        }))
    }
}

impl Block {
    fn new(device: &wgpu::Device) -> Option<Self> {
        let usage = BufferUsages::MAP_READ | BufferUsages::QUERY_RESOLVE;
        let results = Mapped::new(device, usage, u64::from(QUERIES) * STRIDE).ok()?;
        let queries = scoped(device, || {
            device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: QUERIES,
            })
        });
        let queries = queries.ok()?;
        Some(Self { queries, results })
    }
}

impl Stamp {
    /// Writes the time after all earlier commands of `encoder`.
    pub(crate) fn record(&self, encoder: &mut wgpu::CommandEncoder) {
        let (set, query) = (&self.block.queries, self.query);
        encoder.write_timestamp(set, query);
        let results = &self.block.results.buffer;
        encoder.resolve_query_set(set, query..query + 1, results, self.place());
    }

    fn place(&self) -> u64 {
        u64::from(self.query) * STRIDE
    }

    /// The time, on the device's own clock.
    ///
    /// # Safety
    /// The submit that [`record`](Self::record) went into is done.
    pub(crate) unsafe fn read(&self) -> Option<Duration> {
        let mut ticks = [0; 8];
        // SAFETY: the device has written these bytes (caller), and writes them again only for
        // another event, which cannot have this query while `self` lives.
        unsafe { self.block.results.read(self.place(), &mut ticks) };
        let nanos = u64::from_ne_bytes(ticks) as f64 * self.home.upgrade()?.period;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of nanoseconds; the cast saturates"
        )]
        Some(Duration::from_nanos(nanos as u64))
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            let mut free = home.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.push_back((Arc::clone(&self.block), self.query));
        }
    }
}
