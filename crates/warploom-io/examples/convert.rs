//! Reads an image and writes it in the format that another name says:
//! `cargo run -p warploom-io --example convert -- in.tif out.npy`.

use std::process::ExitCode;

use warploom_io::FileError;

fn main() -> Result<ExitCode, FileError> {
    let mut names = std::env::args_os().skip(1);
    let (Some(from), Some(to), None) = (names.next(), names.next(), names.next()) else {
        return Ok(ExitCode::from(2));
    };
    let image = warploom_io::read(&from)?;
    warploom_io::write(&to, &image)?;
    Ok(ExitCode::SUCCESS)
}
