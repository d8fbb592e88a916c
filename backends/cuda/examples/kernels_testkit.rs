//! Writes the conformance suite's kernels in CUDA C to the folder that is named, one file each.
//!
//! `cargo xtask cuda-check` runs every example whose name starts with `kernels_`; what follows in
//! the name says where the kernels come from.

use std::path::Path;
use std::process::ExitCode;

use warploom_core::Language;

#[expect(clippy::print_stderr, reason = "a tool for people")]
fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: kernels_testkit FOLDER");
        return ExitCode::from(2);
    };
    for text in warploom_testkit::kernel_texts(Language::CudaC) {
        let file = Path::new(&folder).join(format!("{}.cu", text.name));
        if let Err(error) = std::fs::write(&file, text.code) {
            eprintln!("error: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
