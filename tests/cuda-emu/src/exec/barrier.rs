//! Barriers of a block: when they open, and whether they were used as they must be.

use std::collections::BTreeSet;

use super::wait::{BarrierWait, Reduce, Wait};

/// Barriers that a block has.
pub(super) const BARRIERS: u32 = 16;

/// Threads that have executed `bar.arrive` and gone on, by barrier.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    threads: [BTreeSet<usize>; BARRIERS as usize],
}

impl Arrivals {
    pub(super) fn add(&mut self, id: u32, thread: usize) {
        self.threads[id as usize].insert(thread);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A barrier that opens.
#[derive(Debug)]
pub(super) struct Opening {
    /// Threads that wait at it.
    pub(super) threads: Vec<usize>,
    /// What all of them get.
    pub(super) reply: u64,
}

/// Two threads that met at one barrier and must not have.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) thread: usize,
    pub(super) line: u32,
    pub(super) detail: String,
}

/// Looks whether barrier `id` can open.
pub(super) fn open(
    id: u32,
    waits: &[Wait],
    arrivals: &mut Arrivals,
    divergence_allowed: bool,
) -> Result<Option<Opening>, Mismatch> {
    let at_barrier = |wait: &Wait| match wait {
        Wait::Barrier(wait) if wait.id == id => Some(*wait),
        _ => None,
    };
    let waiting: Vec<(usize, BarrierWait)> = waits
        .iter()
        .enumerate()
        .filter_map(|(thread, wait)| Some((thread, at_barrier(wait)?)))
        .collect();
    let Some((_, first)) = waiting.first().copied() else {
        return Ok(None);
    };
    if let Some(mismatch) = disagreement(&waiting, first) {
        return Err(mismatch);
    }
    let arrived = &arrivals.threads[id as usize];
    let is_there =
        |thread: usize, wait: &Wait| at_barrier(wait).is_some() || arrived.contains(&thread);
    let is_open = if first.count == 0 {
        let mut all = waits.iter().enumerate();
        all.all(|(thread, wait)| *wait == Wait::Done || is_there(thread, wait))
    } else {
        // Hardware counts warps: one that has a thread at the barrier counts as 32.
        let whole_warps = waits.chunks(32).enumerate().filter(|(warp, lanes)| {
            let mut threads = lanes
                .iter()
                .enumerate()
                .map(|(lane, wait)| (warp * 32 + lane, wait));
            let all = threads
                .clone()
                .all(|(thread, wait)| *wait == Wait::Done || is_there(thread, wait));
            all && threads.any(|(thread, wait)| is_there(thread, wait))
        });
        u32::try_from(whole_warps.count())
            .unwrap_or(u32::MAX)
            .saturating_mul(32)
            >= first.count
    };
    if !is_open {
        return Ok(None);
    }
    if let Some(mismatch) = divergence(&waiting, first, divergence_allowed) {
        return Err(mismatch);
    }
    arrivals.threads[id as usize].clear();
    let votes = waiting.iter().filter(|(_, wait)| wait.value).count();
    let reply = match first.reduce {
        Reduce::None => 0,
        Reduce::Popc => votes,
        Reduce::And => usize::from(votes == waiting.len()),
        Reduce::Or => usize::from(votes > 0),
    };
    Ok(Some(Opening {
        threads: waiting.into_iter().map(|(thread, _)| thread).collect(),
        reply: reply as u64,
    }))
}

/// Threads that expect different things of the barrier.
fn disagreement(waiting: &[(usize, BarrierWait)], first: BarrierWait) -> Option<Mismatch> {
    let (thread, other) = waiting
        .iter()
        .find(|(_, wait)| wait.count != first.count || wait.reduce != first.reduce)?;
    Some(Mismatch {
        thread: *thread,
        line: other.line,
        detail: format!(
            "barrier {} is used with {} at line {} and {} at line {}",
            first.id,
            expectation(first),
            first.line,
            expectation(*other),
            other.line
        ),
    })
}

fn expectation(wait: BarrierWait) -> String {
    let threads = match wait.count {
        0 => "all threads".to_owned(),
        count => format!("{count} threads"),
    };
    match wait.reduce {
        Reduce::None => threads,
        Reduce::Popc => format!("{threads} counting"),
        Reduce::And => format!("{threads} and-ing"),
        Reduce::Or => format!("{threads} or-ing"),
    }
}

/// Threads that came to the barrier by different instructions although they must not.
fn divergence(
    waiting: &[(usize, BarrierWait)],
    first: BarrierWait,
    allowed: bool,
) -> Option<Mismatch> {
    let whole_block = first.count == 0 && !allowed;
    let mut lead = (usize::MAX, first);
    waiting.iter().find_map(|(thread, wait)| {
        if thread / 32 != lead.0 {
            lead = (thread / 32, *wait);
        }
        let other = if whole_block { first } else { lead.1 };
        let must_agree = whole_block || wait.aligned || other.aligned;
        (must_agree && other.line != wait.line).then(|| Mismatch {
            thread: *thread,
            line: wait.line,
            detail: format!(
                "threads meet at barrier {} from line {} and line {}",
                first.id, other.line, wait.line
            ),
        })
    })
}
