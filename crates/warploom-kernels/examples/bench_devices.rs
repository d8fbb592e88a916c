//! Speed of primitives on every device beside the CPU engine: processor time of a run, and the time
//! it took, both the best of several rounds. Processor time is what counts on a busy machine.
//!
//! `bench_devices [NAME]` runs only those whose name contains it.
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a report on small numbers"
)]

use std::time::Instant;

use warploom_core::{BackendEntry, CheckedDevice, DType, Math, Queue as _, QueueDesc, Slice};
use warploom_kernels::expr::Ty;
use warploom_kernels::flow::{
    Combine, Flow, Footprint, Prim, Project, Tile, ValueId, ValueKind, Weights,
};
use warploom_kernels::program::{Loader, Program, room};
use warploom_kernels::{Boundary, ImageType};

const ENTRIES: [&BackendEntry; 2] = [&warploom_cpu::ENTRY, &warploom_opencl::ENTRY];

fn gaussian(sigma: f64) -> Weights {
    let radius = (4.0 * sigma + 0.5) as i32;
    let weight = |x: i32| (-0.5 * (f64::from(x) / sigma).powi(2)).exp();
    let sum: f64 = (-radius..=radius).map(weight).sum();
    Weights::Even((0..=radius).map(|x| weight(x) / sum).collect())
}

fn build(image: ImageType, make: impl FnOnce(&mut Flow, ValueId) -> ValueId) -> Flow {
    let mut flow = Flow::new();
    let input = flow.input(ValueKind::Image(image));
    let output = make(&mut flow, input);
    flow.output(output);
    flow
}

fn one(image: ImageType, prim: Prim, gives: ImageType) -> Flow {
    build(image, |flow, input| flow.add_image(prim, &[input], gives))
}

/// A whole segmentation: flat field, blur, difference of blurs, percentiles, threshold.
fn segmentation() -> Flow {
    let mut flow = Flow::new();
    let image = |dtype| ValueKind::Image(ImageType::plane(dtype, 2048, 2048));
    let raw = flow.input(image(DType::U16));
    let [dark, gain] = [0, 1].map(|_| flow.input(image(DType::F32)));
    let even = flow.map(&[raw, dark, gain], raw, DType::F32, &[], |g, images, _| {
        (g.pixel(images[0]).cast(Ty::F32) - g.pixel(images[1])) * g.pixel(images[2])
    });
    let blur = |flow: &mut Flow, id: ValueId, sigma: f64| {
        let rows = flow.taps(id, 1, gaussian(sigma * 0.75), Boundary::Clamp);
        flow.taps(rows, 2, gaussian(sigma * 0.75), Boundary::Clamp)
    };
    let fine = blur(&mut flow, even, 2.0);
    let coarse = blur(&mut flow, fine, 8.0);
    let apart = flow.map(&[fine, coarse], fine, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]) - g.pixel(images[1])
    });
    let q = vec![1.0, 99.8];
    let ends = flow.add(Prim::Percentiles { q }, &[apart], ValueKind::scalars(2));
    let out = flow.map(&[apart, ends], apart, DType::U16, &[], |g, inputs, _| {
        let [low, high] = [0, 1].map(|at| g.scalar(inputs[1], at).cast(Ty::F32));
        ((g.pixel(inputs[0]) - low) / (high - low) * 65_535.0).clamp(0.0, 65_535.0)
    });
    let mask = flow.map(&[out], out, DType::U8, &[], |g, images, _| {
        g.pixel(images[0]).gt(32_767).cast(Ty::I32)
    });
    flow.output(mask);
    flow
}

/// An expression that ends in numbers of the whole image.
fn reduced(prim: Prim, gives: ValueKind) -> Flow {
    build(ImageType::plane(DType::F32, 2048, 2048), |flow, input| {
        let value = flow.map(&[input], input, DType::F32, &[], |g, images, _| {
            (g.pixel(images[0]) * 0.5 + 3.0).sqrt()
        });
        flow.add(prim, &[value], gives)
    })
}

fn cases() -> Vec<(String, Flow)> {
    let plane = ImageType::plane(DType::F32, 2048, 2048);
    let bytes = ImageType::plane(DType::U8, 2048, 2048);
    let stack = ImageType::stack(DType::F32, 16, 512, 512);
    let clamp = Boundary::Clamp;
    let mut cases: Vec<(String, Flow)> = Vec::new();
    for sigma in [2.0, 6.0] {
        for axis in [1, 2] {
            let flow = build(plane, |f, i| f.taps(i, axis, gaussian(sigma), clamp));
            cases.push((format!("gaussian {sigma} axis {axis}"), flow));
        }
    }
    for radius in [2, 30] {
        for axis in [1, 2] {
            let window = |c: Combine| {
                build(plane, |f, i| {
                    f.window(i, axis, radius, c, clamp, DType::F32)
                })
            };
            cases.push((
                format!("box sum {radius} axis {axis}"),
                window(Combine::Sum),
            ));
            cases.push((
                format!("box max {radius} axis {axis}"),
                window(Combine::Max),
            ));
        }
    }
    let flow = build(bytes, |f, i| {
        f.window(i, 2, 3, Combine::Max, clamp, DType::F32)
    });
    cases.push(("box max 3 axis 2 u8".into(), flow));
    let flow = build(bytes, |f, i| {
        f.window(i, 1, 3, Combine::Max, clamp, DType::F32)
    });
    cases.push(("box max 3 axis 1 u8".into(), flow));
    let around = |combine| Prim::Around {
        footprint: Footprint::Ball([0.0, 3.0, 3.0]),
        combine,
        boundary: clamp,
    };
    cases.push(("ball max 3".into(), one(plane, around(Combine::Max), plane)));
    for reach in [1, 2, 3] {
        let side = 2 * reach + 1;
        let prim = || Prim::Rank {
            footprint: Footprint::Box([0, reach, reach]),
            rank: side * side / 2,
            boundary: clamp,
        };
        cases.push((format!("median {side}"), one(plane, prim(), plane)));
        cases.push((format!("median {side} u8"), one(bytes, prim(), bytes)));
    }
    let flat = ImageType::plane(DType::F32, 512, 512);
    for project in [Project::Max, Project::Mean, Project::Std, Project::Median] {
        cases.push((
            format!("project {project:?}"),
            one(stack, Prim::Project(project), flat),
        ));
    }
    cases.push(("segmentation".into(), segmentation()));
    let totals = reduced(Prim::Totals, ValueKind::scalars(5));
    cases.push(("root totals".into(), totals));
    let q = vec![1.0, 99.0];
    let percentiles = reduced(Prim::Percentiles { q }, ValueKind::scalars(2));
    cases.push(("root percentiles".into(), percentiles));
    let half = ImageType::plane(DType::F32, 1024, 1024);
    let prim = Prim::Bin {
        factor: [1, 2, 2],
        tile: Tile::Mean,
    };
    cases.push(("bin 2".into(), one(plane, prim, half)));
    let prim = Prim::Crop {
        start: [0, 100, 100],
        boundary: clamp,
        fill: 0.0,
    };
    cases.push(("crop".into(), one(plane, prim, half)));
    cases.push(("flip x".into(), one(plane, Prim::Flip { axis: 2 }, plane)));
    cases.push((
        "transpose".into(),
        one(plane, Prim::Transpose { axes: [1, 2] }, plane),
    ));
    let matrix = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.8, 0.6, -3.0],
        [0.0, -0.6, 0.8, 200.0],
    ];
    cases.push(("rotate".into(), one(plane, Prim::Affine { matrix }, plane)));
    cases.push((
        "resize".into(),
        one(plane, Prim::Resize { linear: true }, half),
    ));
    cases
}

/// Processor time of this process in milliseconds, as Linux counts it.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split(' ').collect();
    let ticks = |at: usize| -> f64 { fields.get(at).and_then(|f| f.parse().ok()).unwrap_or(0.0) };
    (ticks(12) + ticks(13)) * 10.0
}

/// Milliseconds of processor and of time.
fn measure(device: &CheckedDevice, flow: &Flow) -> Option<[f64; 2]> {
    let program = Program::new(flow, device.info());
    if !program.detours().is_empty() {
        return None;
    }
    let loader = Loader::new(device.clone(), Math::Strict);
    let ready = loader.load(program).ok()?;
    let kind = device.info().local_kind()?;
    let mut queue = device.queue(&QueueDesc::named("bench")).ok()?;
    let flow = ready.program().flow();
    let alloc = |ids: &[ValueId]| -> Option<Vec<Slice>> {
        let slice = |id: &ValueId| device.alloc(kind, room(&flow.kind(*id))).ok();
        ids.iter()
            .map(|id| Some(Slice::whole(&slice(id)?)))
            .collect()
    };
    let (inputs, outputs) = (alloc(flow.inputs())?, alloc(flow.outputs())?);
    for (id, slice) in flow.inputs().iter().zip(&inputs) {
        let count = flow.kind(*id).bytes() as usize;
        let bytes: Vec<u8> = match flow.kind(*id).dtype() {
            DType::F32 => (0..count / 4)
                .flat_map(|i| ((i * 7919 % 1013) as f32).to_ne_bytes())
                .collect(),
            _ => (0..count).map(|i| (i * 7919 % 251) as u8).collect(),
        };
        queue
            .upload(&bytes, &slice.part(0..count as u64).ok()?)
            .ok()?;
    }
    let workspace = match ready.program().workspace() {
        0 => None,
        bytes => Some(Slice::whole(&device.alloc(kind, bytes).ok()?)),
    };
    let mut run = |times: usize| -> Option<()> {
        for _ in 0..times {
            let workspace = workspace.as_ref();
            ready
                .enqueue(&mut queue, &inputs, &outputs, workspace)
                .ok()?;
        }
        queue.record().ok()?.wait(None).ok()
    };
    run(1)?;
    let begun = Instant::now();
    run(1)?;
    let times = (0.15 / begun.elapsed().as_secs_f64()).clamp(1.0, 60.0) as usize;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..4 {
        let (begun, cpu) = (Instant::now(), processor());
        run(times)?;
        let taken = [processor() - cpu, begun.elapsed().as_secs_f64() * 1000.0];
        for (best, taken) in best.iter_mut().zip(taken) {
            *best = best.min(taken / times as f64);
        }
    }
    Some(best)
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let devices: Vec<CheckedDevice> = ENTRIES
        .into_iter()
        .filter_map(|entry| {
            let backend = entry.load().ok()?;
            Some(CheckedDevice::new(backend.open(0).ok()?))
        })
        .collect();
    let all = cases().into_iter();
    for (name, flow) in all.filter(|(name, _)| name.contains(&wanted)) {
        let mut first = None;
        for device in &devices {
            let id = device.info().id.to_string();
            let Some([cpu, time]) = measure(device, &flow) else {
                println!("{name:24} {id:>9}  -");
                continue;
            };
            let base = *first.get_or_insert(cpu);
            let ratio = base / cpu;
            println!("{name:24} {id:>9} {cpu:8.2} cpu-ms {time:8.2} ms {ratio:6.2} x");
        }
    }
}
