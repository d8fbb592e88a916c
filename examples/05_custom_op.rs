//! An operation of your own: a formula over pixels, written once, on every device.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use anyhow::ensure;
use warploom::kernels::expr::Ty;
use warploom::kernels::flow::{Flow, Number, ValueKind};
use warploom::kernels::program::{Loader, Program};
use warploom::kernels::{Boundary, ImageType};
use warploom::{CheckedDevice, DType, Math, Options, registry};

const WIDTH: u64 = 640;
const HEIGHT: u64 = 480;

/// How much a pixel of a `u16` image stands out from the four around it, times a gain.
fn stand_out(gain: f32) -> Flow {
    let mut flow = Flow::new();
    let image = flow.input(ValueKind::Image(ImageType::plane(
        DType::U16,
        HEIGHT,
        WIDTH,
    )));
    let result = flow.map(
        &[image],
        image,
        DType::F32,
        &[Number::F32(gain)],
        |g, images, numbers| {
            let at = |y, x| {
                g.near(images[0], [0, y, x], Boundary::Reflect)
                    .cast(Ty::F32)
            };
            let around = (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) / 4.0;
            (at(0, 0) - around).abs() * numbers[0]
        },
    );
    flow.output(result);
    flow
}

fn run(device: &CheckedDevice, pixels: &[u16]) -> anyhow::Result<Vec<f32>> {
    let program = Program::new(&stand_out(2.5), device.info());
    let loaded = Loader::new(device.clone(), Math::Strict).load(program)?;
    let results = loaded.run(device, &[bytemuck::cast_slice(pixels)])?;
    Ok(bytemuck::pod_collect_to_vec(&results[0]))
}

fn main() -> anyhow::Result<()> {
    let status = registry().setup(&Options::default())?;
    let pixels: Vec<u16> = (0..WIDTH * HEIGHT)
        .map(|at| u16::try_from((at * 7919) % 4096))
        .collect::<Result<_, _>>()?;
    let mut expected: Option<Vec<f32>> = None;
    let devices = status.survey.devices.iter();
    for face in devices.flat_map(|device| &device.faces) {
        let result = run(&registry().open(face.id)?, &pixels)?;
        println!(
            "{:10} {:32} pixel 0 stands out by {}",
            face.id.to_string(),
            face.name,
            result[0]
        );
        let expected = expected.get_or_insert_with(|| result.clone());
        ensure!(*expected == result, "{} gives other numbers", face.id);
    }
    Ok(())
}
