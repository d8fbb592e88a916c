//! Leases between real processes: this binary starts itself again in other [roles].
//!
//! Every claim is checked twice: live, by an auditor process that reads the ledgers with a parser
//! of its own, and afterwards, from the journals in which the workers noted what they held.

#[path = "../audit/mod.rs"]
mod audit;
mod journal;
mod roles;
mod scenes;
mod troupe;

use std::process::ExitCode;

/// Real processes need real locks, and the scenes need signals.
const PLAYS: bool = cfg!(all(not(warploom_shuttle), unix));

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((word, role)) if word == "--role" => roles::play(role),
        _ => {
            let arguments = libtest_mimic::Arguments::from_args();
            let scenes = if PLAYS { scenes::all() } else { Vec::new() };
            libtest_mimic::run(&arguments, scenes).exit_code()
        }
    }
}
