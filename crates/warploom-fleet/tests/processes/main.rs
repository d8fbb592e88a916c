//! Fleets of real processes that go wrong in every way there is. This program is its own worker, and in
//! some tests its own coordinator, so that either can be killed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stderr,
    reason = "what workers write is what logs are for"
)]

mod coordinator;
mod faults;
mod faulty;
mod ground;
mod hangs;
mod health;
mod marks;
mod masks;
mod memory;
mod seven;
mod sharing;
mod soak;
mod stopping;
mod streams;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// A test by name.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("be-worker") => {
            match warploom_fleet::worker::serve::<faulty::Faulty>(std::env::vars()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            }
        }
        Some("be-coordinator") => coordinator::main(arguments),
        Some("be-sharer") => sharing::main(arguments),
        Some("be-masked") => masks::main(arguments),
        _ => {
            let all = [
                seven::TESTS,
                faults::TESTS,
                hangs::TESTS,
                health::TESTS,
                masks::TESTS,
                stopping::TESTS,
                streams::TESTS,
                sharing::TESTS,
                coordinator::TESTS,
                soak::TESTS,
            ];
            let trials = all.concat().into_iter().map(|(name, test)| {
                let obstacle = sharing::obstacle(name);
                if let Some(reason) = &obstacle {
                    eprintln!("skipped: {name}: {reason}");
                }
                let trial = Trial::test(name, move || {
                    test();
                    Ok::<(), Failed>(())
                });
                trial.with_ignored_flag(obstacle.is_some())
            });
            let mut arguments = Arguments::from_args();
            // Each test is several processes; more than two at once starve each other on small machines.
            arguments.test_threads.get_or_insert(2);
            libtest_mimic::run(&arguments, trials.collect()).exit_code()
        }
    }
}
