//! What the lanes of a warp compute together.

use super::arena::POISON;
use super::wait::{Wait, WarpOp, WarpWait};

/// Lanes that have met, and the instruction each of them is at.
#[derive(Debug)]
pub(super) struct Meeting {
    lanes: [Option<WarpWait>; 32],
    /// Lanes that take part.
    pub(super) mask: u32,
}

/// The value of a lane that does not take part: nothing may depend on it.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
const NOBODY: u32 = POISON as u32;

impl Meeting {
    /// The lanes that can go on because everybody they wait for is there. `waits` are those of the
    /// warp, by lane; lanes that have ended are not waited for.
    pub(super) fn complete(waits: &[Wait]) -> Option<Self> {
        let is_done = |lane: usize| waits.get(lane).is_none_or(|wait| *wait == Wait::Done);
        waits.iter().find_map(|wait| {
            let Wait::Warp(first) = wait else { return None };
            let mask = first.mask?;
            let mut meeting = Self::empty();
            for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
                match waits.get(lane) {
                    Some(Wait::Warp(other)) if other.op == first.op && other.mask == first.mask => {
                        meeting.add(lane, *other);
                    }
                    _ if is_done(lane) => {}
                    _ => return None,
                }
            }
            Some(meeting)
        })
    }

    /// The lanes that stand at the same instruction of the old kind, which waits for nobody.
    pub(super) fn by_chance(waits: &[Wait]) -> Option<Self> {
        let is_old = |wait: &&Wait| matches!(wait, Wait::Warp(wait) if wait.mask.is_none());
        let Some(Wait::Warp(first)) = waits.iter().find(is_old) else {
            return None;
        };
        let mut meeting = Self::empty();
        for (lane, wait) in waits.iter().enumerate() {
            if let Wait::Warp(other) = wait
                && (other.op, other.mask, other.line) == (first.op, None, first.line)
            {
                meeting.add(lane, *other);
            }
        }
        Some(meeting)
    }

    fn empty() -> Self {
        Self {
            lanes: [None; 32],
            mask: 0,
        }
    }

    fn add(&mut self, lane: usize, wait: WarpWait) {
        self.lanes[lane] = Some(wait);
        self.mask |= 1 << lane;
    }

    fn taking_part(&self) -> impl Iterator<Item = &WarpWait> {
        self.lanes.iter().flatten()
    }

    /// Lanes for which `wanted` holds.
    fn ballot(&self, wanted: impl Fn(&WarpWait) -> bool) -> u32 {
        let bit = |(lane, wait): (usize, &Option<WarpWait>)| {
            u32::from(wait.as_ref().is_some_and(&wanted)) << lane
        };
        self.lanes.iter().enumerate().map(bit).sum()
    }

    /// What lane `lane` gets: a value in the lower half, a predicate in bit 32.
    pub(super) fn reply(&self, lane: usize) -> u64 {
        let Some(own) = &self.lanes[lane] else {
            return 0;
        };
        let votes = |wait: &WarpWait| wait.a != 0;
        let plain = u64::from;
        let with_predicate =
            |value: u32, predicate: bool| u64::from(value) | u64::from(predicate) << 32;
        match own.op {
            WarpOp::Sync => 0,
            WarpOp::ShflUp | WarpOp::ShflDown | WarpOp::ShflBfly | WarpOp::ShflIdx => {
                let (source, in_range) = source(own, lane);
                let value = self.lanes[source].as_ref().map_or(NOBODY, low);
                with_predicate(value, in_range)
            }
            WarpOp::VoteAll => plain(u32::from(self.taking_part().all(votes))),
            WarpOp::VoteAny => plain(u32::from(self.taking_part().any(votes))),
            WarpOp::VoteUni => {
                let same = self.taking_part().all(|wait| votes(wait) == votes(own));
                plain(u32::from(same))
            }
            WarpOp::VoteBallot => plain(self.ballot(votes)),
            WarpOp::MatchAny => plain(self.ballot(|wait| wait.a == own.a)),
            WarpOp::MatchAll => {
                let same = self.taking_part().all(|wait| wait.a == own.a);
                with_predicate(if same { self.mask } else { 0 }, same)
            }
            WarpOp::Active => plain(self.mask),
            WarpOp::Elect => {
                let leader = self.mask.trailing_zeros();
                with_predicate(leader, leader as usize == lane)
            }
            _ => plain(self.reduce(own.op)),
        }
    }

    fn reduce(&self, op: WarpOp) -> u32 {
        let values = self.taking_part().map(low);
        let signed = |value: u32| value.cast_signed();
        let found = match op {
            WarpOp::ReduxAdd => values.reduce(u32::wrapping_add),
            WarpOp::ReduxMinU => values.min(),
            WarpOp::ReduxMaxU => values.max(),
            WarpOp::ReduxMinS => values.min_by_key(|value| signed(*value)),
            WarpOp::ReduxMaxS => values.max_by_key(|value| signed(*value)),
            WarpOp::ReduxAnd => values.reduce(|a, b| a & b),
            WarpOp::ReduxOr => values.reduce(|a, b| a | b),
            _ => values.reduce(|a, b| a ^ b),
        };
        found.unwrap_or(0)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "32-bit operands arrive in 64 bits"
)]
fn low(wait: &WarpWait) -> u32 {
    wait.a as u32
}

/// The lane a shuffle reads, and whether it lies in the segment.
fn source(wait: &WarpWait, lane: usize) -> (usize, bool) {
    let lane = i32::try_from(lane).unwrap_or(0);
    let distance = (wait.b & 31).cast_signed();
    let clamp = (wait.c & 31).cast_signed();
    let segment = (wait.c >> 8 & 31).cast_signed();
    let first = lane & segment;
    let last = first | clamp & !segment;
    let (from, in_range) = match wait.op {
        WarpOp::ShflUp => (lane - distance, lane - distance >= last),
        WarpOp::ShflDown => (lane + distance, lane + distance <= last),
        WarpOp::ShflBfly => (lane ^ distance, lane ^ distance <= last),
        _ => {
            let from = first | distance & !segment;
            (from, from <= last)
        }
    };
    let from = if in_range { from } else { lane };
    (usize::try_from(from).unwrap_or(0), in_range)
}
