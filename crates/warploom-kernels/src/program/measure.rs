//! How fast a device moves and computes, found by trying.

use std::slice::from_ref;
use std::time::{Duration, Instant};

use warploom_core::{DType, Queue as _, QueueDesc, Result, Slice};

use super::compile::{Program, room};
use super::loader::Loader;
use crate::expr::Ty;
use crate::flow::{Flow, Number, ValueKind};
use crate::fuse::Machine;
use crate::image::ImageType;

/// Pixels along each side of the image that is worked on: far larger than caches.
const SIDE: u64 = 2048;
/// Multiplications with addition for each pixel of the second trial: far more work than moving it.
const TERMS: usize = 256;
/// The best of so many runs counts: the first compiles, others are disturbed.
const RUNS: usize = 5;

/// The formula of a trial: `terms` steps `v = v*a + b`.
fn trial(terms: usize) -> Flow {
    let mut flow = Flow::new();
    let image = ImageType::plane(DType::F32, SIDE, SIDE);
    let image = flow.input(ValueKind::Image(image));
    let numbers = [Number::F32(0.5), Number::F32(0.25)];
    let result = flow.map(&[image], image, DType::F32, &numbers, |g, images, n| {
        let pixel = g.pixel(images[0]).cast(Ty::F32);
        (0..terms).fold(pixel, |value, _| value.fma(n[0], n[1]))
    });
    flow.output(result);
    flow
}

impl Loader {
    /// Measures the device: copies an image, and computes much of every pixel of it. Takes a few
    /// images of memory and some tenths of a second; what it finds is plain data to keep.
    pub fn measure(&self) -> Result<Machine> {
        let bytes = (2 * SIDE * SIDE * DType::F32.bytes()) as f64;
        let operations = (TERMS as u64 * SIDE * SIDE) as f64;
        let moving = self.time(&trial(0))?.as_secs_f64();
        let computing = self.time(&trial(TERMS))?.as_secs_f64();
        Ok(Machine {
            bytes_per_second: bytes / moving.max(f64::MIN_POSITIVE),
            operations_per_second: operations / computing.max(f64::MIN_POSITIVE),
        })
    }

    fn time(&self, flow: &Flow) -> Result<Duration> {
        let device = self.device();
        let loaded = self.load(Program::unfused(flow, device.info()))?;
        let kind = super::loaded::own_kind(device)?;
        let mut queue = device.queue(&QueueDesc::named("measure"))?;
        let bytes = room(&flow.kind(flow.inputs()[0]));
        let input = Slice::whole(&device.alloc(kind, bytes)?);
        let output = Slice::whole(&device.alloc(kind, bytes)?);
        let zeros = vec![0; usize::try_from(bytes).expect("fits the host")];
        queue.upload(&zeros, &input)?;
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            queue.record()?.wait(None)?;
            let start = Instant::now();
            loaded.enqueue(&mut queue, from_ref(&input), from_ref(&output), None)?;
            queue.record()?.wait(None)?;
            best = best.min(start.elapsed());
        }
        Ok(best)
    }
}
