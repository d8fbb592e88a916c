//! How fast a device moves and computes, found by trying.

use std::slice::from_ref;
use std::time::{Duration, Instant};

use warploom_core::{DType, Queue as _, QueueDesc, Result, Slice, Space};

use super::compile::{Program, room};
use super::loader::Loader;
use crate::expr::Ty;
use crate::flow::{Flow, Number, ValueKind};
use crate::fuse::{Machine, Speed};
use crate::image::ImageType;

/// Pixels along each side of the image that is worked on: far larger than caches.
const SIDE: u64 = 2048;
/// Pixels along each side of an image that takes no time but that of its launch.
const SMALL: u64 = 16;
/// Launches in a row, of which one costs its share.
const LAUNCHES: u32 = 64;
/// Multiplications with addition for each pixel of the second trial: far more work than moving it.
const TERMS: usize = 256;
/// The best of so many runs counts: the first compiles, others are disturbed.
const RUNS: usize = 5;

/// The formula of a trial: `terms` steps `v = v*a + b`.
fn trial(side: u64, terms: usize) -> Flow {
    let mut flow = Flow::new();
    let image = ImageType::plane(DType::F32, side, side);
    let image = flow.input(ValueKind::Image(image));
    let numbers = [Number::F32(0.5), Number::F32(0.25)];
    let result = flow.map(&[image], image, DType::F32, &numbers, |g, images, n| {
        let pixel = g.pixel(images[0]).cast(Ty::F32);
        (0..terms).fold(pixel, |value, _| value.fma(n[0], n[1]))
    });
    flow.output(result);
    flow
}

/// The best of a few runs, in seconds; nothing takes no time at all.
fn best(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best.as_secs_f64().max(1e-9))
}

impl Loader {
    /// Measures the device: copies an image, and computes much of every pixel of it. Takes a few
    /// images of memory and some tenths of a second; what it finds is plain data to keep.
    pub fn measure(&self) -> Result<Machine> {
        let bytes = (2 * SIDE * SIDE * DType::F32.bytes()) as f64;
        let operations = (TERMS as u64 * SIDE * SIDE) as f64;
        Ok(Machine {
            bytes_per_second: bytes / self.time(&trial(SIDE, 0), 1)?,
            operations_per_second: operations / self.time(&trial(SIDE, TERMS), 1)?,
        })
    }

    /// Measures all that choosing between devices goes by: as [`Loader::measure`], and copies to the
    /// device and back the way plans do them, and launches of next to nothing.
    pub fn calibrate(&self) -> Result<Speed> {
        let machine = self.measure()?;
        let (up, down) = self.copies()?;
        let launches = self.time(&trial(SMALL, 0), LAUNCHES)?;
        Ok(Speed {
            machine,
            up,
            down,
            launch: launches / f64::from(LAUNCHES),
        })
    }

    /// Bytes a second to the device and back, through its staging memory where it has such.
    fn copies(&self) -> Result<(f64, f64)> {
        let device = self.device();
        let bytes = SIDE * SIDE * DType::F32.bytes();
        let own = Slice::whole(&device.alloc(super::loaded::own_kind(device)?, bytes)?);
        let mut queue = device.queue(&QueueDesc::named("measure"))?;
        let mut host = vec![0; usize::try_from(bytes).expect("fits the host")];
        let staging = device.info().staging_kind();
        let pinned = staging.filter(|kind| kind.space() == Space::Pinned);
        let (up, down) = if let Some(kind) = pinned {
            let staging = Slice::whole(&device.alloc(kind, bytes)?);
            queue.upload(&host, &staging)?;
            let mut copy = |from: &Slice, to: &Slice| {
                best(|| {
                    queue.copy(from, to)?;
                    queue.record()?.wait(None)
                })
            };
            (copy(&staging, &own)?, copy(&own, &staging)?)
        } else {
            let up = best(|| {
                queue.upload(&host, &own)?;
                queue.record()?.wait(None)
            })?;
            (up, best(|| queue.download(&own, &mut host))?)
        };
        Ok((bytes as f64 / up, bytes as f64 / down))
    }

    /// Seconds that so many runs of a flow take, one after the other.
    fn time(&self, flow: &Flow, runs: u32) -> Result<f64> {
        let device = self.device();
        let loaded = self.load(Program::unfused(flow, device.info()))?;
        let kind = super::loaded::own_kind(device)?;
        let mut queue = device.queue(&QueueDesc::named("measure"))?;
        let bytes = room(&flow.kind(flow.inputs()[0]));
        let input = Slice::whole(&device.alloc(kind, bytes)?);
        let output = Slice::whole(&device.alloc(kind, bytes)?);
        let zeros = vec![0; usize::try_from(bytes).expect("fits the host")];
        queue.upload(&zeros, &input)?;
        queue.record()?.wait(None)?;
        best(|| {
            for _ in 0..runs {
                loaded.enqueue(&mut queue, from_ref(&input), from_ref(&output), None)?;
            }
            queue.record()?.wait(None)
        })
    }
}
