//! Telling who waits for whom.

use std::collections::BTreeMap;

use super::wait::Wait;
use crate::engine::FaultKind;

/// Groups of a deadlock that are described; the others are counted.
const DESCRIBED: usize = 4;

/// A thread to name, its line, and what is wrong.
pub(super) fn deadlock(waits: &[Wait]) -> (usize, u32, FaultKind) {
    // Where threads wait: line, and what is said about it.
    let mut groups: BTreeMap<(u32, String), Vec<usize>> = BTreeMap::new();
    let mut only_barriers = true;
    let mut ended = 0;
    for (place, wait) in waits.iter().enumerate() {
        let key = match wait {
            Wait::Barrier(wait) => (wait.line, format!("barrier {}", wait.id)),
            Wait::Warp(wait) => {
                only_barriers = false;
                let lanes = wait.mask.unwrap_or(0);
                (
                    wait.line,
                    format!("`{}` for lanes {lanes:#010x}", wait.op.name()),
                )
            }
            Wait::Done => {
                ended += 1;
                continue;
            }
            Wait::Ready | Wait::Paused => continue,
        };
        groups.entry(key).or_default().push(place);
    }
    let count = groups.len();
    // The group that keeps the others waiting is most likely the smallest.
    let smallest = groups.iter().min_by_key(|(_, threads)| threads.len());
    let (place, line) = smallest.map_or((0, 0), |((line, _), threads)| (threads[0], *line));
    let mut parts: Vec<String> = groups
        .iter()
        .take(DESCRIBED)
        .map(|((line, what), threads)| {
            let noun = if threads.len() == 1 {
                "thread waits"
            } else {
                "threads wait"
            };
            format!("{} {noun} at {what}, line {line}", threads.len())
        })
        .collect();
    if count > DESCRIBED {
        parts.push(format!("others at {} more places", count - DESCRIBED));
    }
    if ended > 0 {
        parts.push(format!("{ended} have ended"));
    }
    let detail = parts.join("; ");
    let kind = if only_barriers && count > 1 {
        FaultKind::BarrierDivergence { detail }
    } else {
        FaultKind::Deadlock { detail }
    };
    (place, line, kind)
}
