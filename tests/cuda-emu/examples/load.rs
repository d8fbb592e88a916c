//! Loads PTX files and says what is in them, or why they are refused.

use std::time::Instant;

use warploom_cuda_emu::engine::{Module, Options};

#[expect(clippy::print_stdout, reason = "a tool for people")]
fn main() -> std::process::ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                println!("{path}: {error}");
                failed = true;
                continue;
            }
        };
        let start = Instant::now();
        match Module::load(&text, &Options::default()) {
            Ok(module) => {
                let names: Vec<&str> = module.kernel_names().collect();
                println!("{path}: {} in {:?}", names.join(", "), start.elapsed());
            }
            Err(error) => {
                println!("{path}: {error}");
                failed = true;
            }
        }
    }
    std::process::ExitCode::from(u8::from(failed))
}
