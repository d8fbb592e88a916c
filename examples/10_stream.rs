//! A pipeline on every device at once, its outcomes as they come.
//!
//! `cargo run -p warploom-examples --bin 10_stream -- FOLDER PATTERN` blurs the images that `PATTERN` finds into
//! `FOLDER`, a worker process for each card. Without arguments it makes some images first. No file says what is to
//! be done: the pipeline is a value of this program.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use warploom::fleet::Program;
use warploom::io::{Header, Sync, write_image};
use warploom::plan::Pipeline;
use warploom::plan::pipeline::{OpUse, Step};
use warploom::run::many::{self, Crew};
use warploom::run::{Input, Job, Outcome, Settings};
use warploom::{DType, Options, Shape, registry};

const SIDE: u16 = 128;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("worker") {
        return Ok(many::serve(std::env::vars())?);
    }
    let folder = PathBuf::from(first.unwrap_or_else(|| "stream-demo".into()));
    let pattern = match arguments.next() {
        Some(pattern) => pattern,
        None => images(&folder.join("images"))?,
    };
    let pipeline = Pipeline::new("soft")
        .step(Step::new("soft", OpUse::new("gaussian").with("sigma", 2.0)))
        .output("soft", "{record}.npy");
    let job = Job::new(pipeline, ".", Input::find(&pattern)?, folder.join("soft"));

    let status = registry().setup(&Options::default())?;
    let cards = status.survey.usable();
    let cards = cards.into_iter().map(|card| card.name.clone());
    let crew = Crew::new(Program::this().arg("worker"), cards.collect());
    let mut outcomes = job.stream_on(crew, registry(), Settings::default())?;
    for (place, done) in outcomes.by_ref().enumerate() {
        let done = done?;
        match done.outcome {
            Outcome::Ok { files } if place < 3 => println!("{}: {files:?}", done.record),
            Outcome::Failed(failure) => println!("{} failed: {}", done.record, failure.reason),
            _ => {}
        }
    }
    let summary = outcomes.summary().context("it has ended")?;
    println!("{} images on {}", summary.tally.ok, summary.device);
    ensure!(summary.is_ok(), "some images failed");
    Ok(())
}

/// Makes some images; what they are found by.
fn images(folder: &Path) -> anyhow::Result<String> {
    std::fs::create_dir_all(folder)?;
    let header = Header::new(DType::U16, Shape::new(&[SIDE.into(), SIDE.into()])?);
    for number in 0..24_u16 {
        let pixels = (0..SIDE * SIDE).map(|at| at.wrapping_mul(2 * number + 1));
        let bytes: Vec<u8> = pixels.flat_map(u16::to_ne_bytes).collect();
        let path = folder.join(format!("image{number:02}.tif"));
        write_image(&path, &header, &bytes, Sync::No)?;
    }
    Ok(folder.to_string_lossy().into_owned())
}
