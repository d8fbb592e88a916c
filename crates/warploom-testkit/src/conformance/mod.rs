//! The contract, one case per sentence, one file per part of it.
//!
//! A case fails only for what the contract says. Time is never a judge where a busy machine could
//! be at fault: cases that need something to take long try again, and say so when they cannot see
//! what they came to see.

mod backend;
mod buffer;
mod copy;
mod device;
mod error;
mod event;
mod kernel;
mod launch;
mod lifetime;
mod math;
mod memory;
mod order;
mod parallel;
mod queue;
mod refusal;
mod stranger;
mod timing;

use crate::case::Case;

/// Every case, grouped by the part of the contract it is about.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [
        backend::CASES,
        device::CASES,
        memory::CASES,
        buffer::CASES,
        queue::CASES,
        copy::CASES,
        order::CASES,
        kernel::CASES,
        launch::CASES,
        math::CASES,
        event::CASES,
        timing::CASES,
        parallel::CASES,
        lifetime::CASES,
        refusal::CASES,
        error::CASES,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cases_share_a_name() {
        let mut names: Vec<String> = cases().map(|case| case.title("x")).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_case_quotes_a_promise() {
        for case in cases() {
            assert!(case.promise().len() > 20, "{}", case.title("x"));
        }
    }
}
