//! Writes every image kernel in CUDA C to the folder that is named, all in one file: compilers take
//! longer to start than to compile one of them.
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
    let samples = warploom_kernels::gpu::samples();
    let texts: Vec<String> = samples.iter().map(|it| it.1.text(Target::Cuda)).collect();
    let file = Path::new(&folder).join("all.cu");
    if let Err(error) = std::fs::write(&file, texts.join("\n")) {
        eprintln!("error: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
