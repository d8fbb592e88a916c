//! Compressed images through a run, with threads that read ahead and without.

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use warploom::plan::Pipeline;
use warploom::registry;
use warploom::run::{Input, Job, Settings};

const SIDE: u32 = 2048;
/// Rows of a strip.
const ROWS: u32 = 64;
const FILES: usize = 16;
const ROUNDS: usize = 4;

const PIPELINE: &str = r#"
name = "bright"
[[step]]
name = "bright"
op = "greater"
value = 180
[[output]]
of = "bright"
write = "{record}.npy"
"#;

/// What a run took, each way at its best.
pub(crate) struct Gain {
    pub(crate) with_ms: f64,
    pub(crate) without_ms: f64,
}

/// Milliseconds a file, both ways in turn.
pub(crate) fn gain() -> Result<Gain> {
    let folder = tempfile::tempdir()?;
    let images = folder.path().join("images");
    std::fs::create_dir(&images)?;
    for number in 0..FILES {
        write(&images.join(format!("{number:02}.tif")), number as u64)?;
    }
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (readers, best) in [None, Some(0)].into_iter().zip(&mut best) {
            *best = best.min(seconds(folder.path(), readers)?);
        }
    }
    let [with_ms, without_ms] = best.map(|seconds| seconds * 1e3 / FILES as f64);
    Ok(Gain {
        with_ms,
        without_ms,
    })
}

/// From the first record to the last.
fn seconds(folder: &Path, readers: Option<usize>) -> Result<f64> {
    let output = tempfile::tempdir_in(folder)?;
    let pipeline = Pipeline::from_toml(PIPELINE).map_err(|findings| {
        anyhow::anyhow!(
            "{}",
            findings.iter().map(|one| &*one.message).collect::<String>()
        )
    })?;
    let input = Input::find(&folder.join("images").to_string_lossy())?;
    let mut settings = Settings::default();
    settings.plan.devices = vec!["cpu:0".to_owned()];
    settings.readers = readers;
    let summary = Job::new(pipeline, folder, input, output.path()).run(registry(), &settings)?;
    anyhow::ensure!(summary.is_ok(), "{:?}", summary.tally);
    Ok(summary.seconds)
}

/// A dim camera frame, in strips that are deflated.
fn write(path: &Path, seed: u64) -> Result<()> {
    let mut state = seed + 1;
    let mut strips = Vec::new();
    for _ in 0..SIDE / ROWS {
        let mut strip = ZlibEncoder::new(Vec::new(), Compression::default());
        for _ in 0..SIDE * ROWS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let pixel = 160 + (state >> 59) + (state >> 50 & 15);
            strip.write_all(&u16::try_from(pixel)?.to_le_bytes())?;
        }
        strips.push(strip.finish()?);
    }
    let mut bytes = b"II*\0\0\0\0\0".to_vec();
    let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
    for strip in &strips {
        offsets.push(u32::try_from(bytes.len())?);
        lengths.push(u32::try_from(strip.len())?);
        bytes.extend_from_slice(strip);
    }
    let mut list = |numbers: &[u32]| -> Result<u32> {
        let at = u32::try_from(bytes.len())?;
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        Ok(at)
    };
    let count = u32::try_from(strips.len())?;
    let (offsets, lengths) = (list(&offsets)?, list(&lengths)?);
    // Width, height, bits, zlib, black is zero, where strips are, samples, rows of a strip, their lengths.
    let fields: [(u16, u32, u32); 9] = [
        (256, 1, SIDE),
        (257, 1, SIDE),
        (258, 1, 16),
        (259, 1, 8),
        (262, 1, 1),
        (273, count, offsets),
        (277, 1, 1),
        (278, 1, ROWS),
        (279, count, lengths),
    ];
    let directory = u32::try_from(bytes.len())?;
    bytes[4..8].copy_from_slice(&directory.to_le_bytes());
    bytes.extend(u16::try_from(fields.len())?.to_le_bytes());
    for (tag, count, value) in fields {
        bytes.extend(tag.to_le_bytes());
        // Numbers of 32 bits, all of them.
        bytes.extend(4_u16.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    std::fs::write(path, bytes)?;
    Ok(())
}
