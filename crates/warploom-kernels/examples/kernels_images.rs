//! Writes every image kernel in CUDA C to the folder that is named, one file each.
//!
//! `cargo xtask cuda-check` runs every example whose name starts with `kernels_`.

use std::path::Path;
use std::process::ExitCode;

use warploom_kernels::kernel::Target;

#[expect(clippy::print_stderr, reason = "a tool for people")]
fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: kernels_images FOLDER");
        return ExitCode::from(2);
    };
    for (name, def) in warploom_kernels::gpu::samples() {
        let file = Path::new(&folder).join(format!("{name}.cu"));
        if let Err(error) = std::fs::write(&file, def.text(Target::Cuda)) {
            eprintln!("error: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
