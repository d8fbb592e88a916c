//! Compiles a folder of CUDA C to PTX, exactly as the backend does before it loads a kernel, but
//! without a driver.
//!
//! ```text
//! nvrtc LIBRARY SOURCES OUT CAPABILITY...
//! ```
//!
//! compiles every `SOURCES/NAME.cu`, in strict and in fast math, with the NVRTC in the file LIBRARY,
//! to `OUT/NAME.strict.compute_75.ptx` and so on.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use warploom_core::Math;
use warploom_cuda::{Nvrtc, Target};

const USAGE: &str = "usage: nvrtc LIBRARY SOURCES OUT CAPABILITY...";

#[expect(clippy::print_stderr, reason = "a tool for people")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a tool for people")]
fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [library, sources, out, capabilities @ ..] = args.as_slice() else {
        return Err(USAGE.into());
    };
    let capabilities: Vec<u32> = capabilities
        .iter()
        .map(|text| text.to_str().and_then(|text| text.parse().ok()))
        .collect::<Option<_>>()
        .ok_or(USAGE)?;
    let nvrtc = Nvrtc::open(library)?;
    let sources = in_folder(sources)?;
    let mut failed = Vec::new();
    for source in &sources {
        for capability in &capabilities {
            if let Err(error) = compile(nvrtc, source, out, *capability) {
                failed.push(format!("{} for {capability}: {error}", source.display()));
            }
        }
    }
    if !failed.is_empty() {
        return Err(failed.join("\n").into());
    }
    let (major, minor) = nvrtc.version();
    println!(
        "NVRTC {major}.{minor}: {} kernels for {capabilities:?}",
        sources.len()
    );
    Ok(())
}

/// The sources, in the order of their names.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn compile(nvrtc: &Nvrtc, file: &Path, out: &Path, capability: u32) -> Result<(), Box<dyn Error>> {
    let source = std::fs::read_to_string(file)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    for (math, word) in [(Math::Strict, "strict"), (Math::Fast, "fast")] {
        let ptx = nvrtc.compile(&source, &name, Target::Ptx(capability), math)?;
        let file = format!("{name}.{word}.compute_{capability}.ptx");
        std::fs::write(out.join(file), ptx)?;
    }
    Ok(())
}
