//! A plate of nuclei, from images to a table, on every device there is: do all of them agree?
//!
//! Makes twelve small images as a microscope might, runs the pipeline `pipelines/nuclei.toml` over them on
//! each device, compares what came out, and leaves images, tables, a trace for Perfetto and a report to
//! look at: `cargo run --example 07_plate -- FOLDER`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use warploom::io::{Header, Sync, read, write_image};
use warploom::plan::Pipeline;
use warploom::run::{Input, Job, Settings, Summary};
use warploom::{Caps, DType, Options, Shape, registry, watch};

const SIDE: u16 = 256;

fn main() -> Result<ExitCode> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| PathBuf::from("plate-demo"));
    let plate = folder.join("plate");
    std::fs::create_dir_all(&plate)?;
    for (well, seed) in ["A01", "A02", "A03", "B01", "B02", "B03"].iter().zip(1..) {
        for site in 1..=2 {
            image(&plate.join(format!("{well}_s{site}.tif")), 10 * seed + site)?;
        }
    }
    let status = registry().setup(&Options::default())?;
    let faces = status.survey.devices.iter().flat_map(|card| &card.faces);
    let (mut expected, mut all_agree) = (None, true);
    for face in faces {
        let name = face.id.to_string();
        let is_strict = face.caps.contains(Caps::STRICT_MATH);
        let output = folder.join(name.replace(':', "-"));
        let summary = match run(&plate, &output, &name) {
            Ok(summary) => summary,
            Err(error) => {
                println!("{name:<10} {error}");
                all_agree = false;
                continue;
            }
        };
        let found = (labels(&summary, &output)?, cells(&summary, &output)?);
        let first = expected.get_or_insert_with(|| found.clone());
        let pixels = differing(&found.0, &first.0, |one, other| one == other);
        // Strict devices give the same bits. Others may round the last digits differently, and a few pixels
        // to the other side, and with them what is measured of a few nuclei.
        let rows = differing(&found.1, &first.1, |one, other| {
            one == other || (!is_strict && is_close(one, other))
        });
        let few = pixels < found.0.len() / 1000 && rows < 2 + found.1.len() / 50;
        let agrees = (pixels, rows) == (0, 0) || (!is_strict && few);
        all_agree &= agrees && summary.is_ok();
        println!(
            "{name:<10} {} images in {:6.2} s, {:7.1} Mpix/s, {pixels} of {} pixels and {rows} of {} nuclei differ: {}",
            summary.tally.ok,
            summary.seconds,
            summary.mpix_per_second,
            found.0.len(),
            found.1.len(),
            if agrees { "agrees" } else { "DIFFERS" }
        );
    }
    println!("\nLook at {}", folder.join("cpu-0/report.html").display());
    println!("or drop trace.json beside it into Perfetto; tables and label images are there too.");
    Ok(if all_agree {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The pipeline over the plate on one device, with a report.
fn run(plate: &Path, output: &Path, device: &str) -> Result<Summary> {
    let text = include_str!("pipelines/nuclei.toml");
    let pipeline = Pipeline::from_toml(text).map_err(|found| anyhow!("{}", found[0]))?;
    let pattern = plate.join("{well}_{site}.tif");
    let job = Job::new(
        pipeline,
        ".",
        Input::find(&pattern.to_string_lossy())?,
        output,
    );
    let mut settings = Settings::default();
    settings.plan.devices = vec![device.to_owned()];
    settings.record = true;
    let summary = job.run(registry(), &settings)?;
    if let Some(recording) = &summary.recording {
        std::fs::write(output.join("report.html"), watch::report(recording))?;
        watch::trace(recording, std::fs::File::create(output.join("trace.json"))?)?;
    }
    Ok(summary)
}

/// All labels of all images, in order.
fn labels(summary: &Summary, output: &Path) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for done in &summary.records {
        let image = read(output.join(format!("{}-labels.tif", done.record)))?;
        all.extend_from_slice(image.elements::<u32>().context("labels are u32")?);
    }
    Ok(all)
}

/// The rows of all tables, each with its image, in order.
fn cells(summary: &Summary, output: &Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for done in &summary.records {
        let table = std::fs::read_to_string(output.join(format!("{}-cells.csv", done.record)))?;
        let rows = table.lines().skip(1);
        all.extend(rows.map(|row| format!("{},{row}", done.record)));
    }
    Ok(all)
}

/// How many are not like those in the same place, or have none there.
fn differing<T>(some: &[T], others: &[T], alike: impl Fn(&T, &T) -> bool) -> usize {
    let both = some.iter().zip(others);
    let unlike = both.filter(|(one, other)| !alike(one, other)).count();
    unlike + some.len().abs_diff(others.len())
}

/// Are the numbers of two rows the same, but for the last digits?
fn is_close(one: &str, other: &str) -> bool {
    let mut fields = one.split(',').zip(other.split(','));
    let close = |(one, other): (&str, &str)| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() <= 1e-4 * one.abs().max(1.0),
        _ => one == other,
    };
    one.split(',').count() == other.split(',').count() && fields.all(close)
}

/// Nuclei of different sizes and brightness on uneven light, with the noise of a camera.
fn image(path: &Path, seed: u64) -> Result<()> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut dice = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from(u32::try_from(state >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    };
    let side = f64::from(SIDE);
    let nuclei: Vec<[f64; 5]> = (0..28)
        .map(|_| {
            let (wide, long) = (5.0 + 4.0 * dice(), 6.0 + 6.0 * dice());
            [
                side * dice(),
                side * dice(),
                wide,
                long,
                900.0 + 1500.0 * dice(),
            ]
        })
        .collect();
    let mut pixels = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (y, x) = (f64::from(y), f64::from(x));
            let light = 200.0 + 150.0 * (x / side) + 80.0 * (y / side);
            let shine = nuclei.iter().map(|[cy, cx, wide, long, bright]| {
                let away = ((y - cy) / long).powi(2) + ((x - cx) / wide).powi(2);
                bright / (1.0 + (8.0 * (away - 1.0)).exp())
            });
            let clean = light + shine.fold(0.0, f64::max);
            // The sum of some dice is close to the bell of a camera's noise.
            let noise = (0..4).map(|_| dice() - 0.5).sum::<f64>() * clean.sqrt() * 1.7;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a camera saturates, as this cast does"
            )]
            pixels.extend(((clean + noise) as u16).to_ne_bytes());
        }
    }
    let shape = Shape::new(&[SIDE.into(), SIDE.into()])?;
    write_image(path, &Header::new(DType::U16, shape), &pixels, Sync::No)?;
    Ok(())
}
