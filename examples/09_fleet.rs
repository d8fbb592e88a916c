//! Every device at once. Run it with `cargo run -p warploom-examples --bin 09_fleet`.
//!
//! One process per device works through 200 images. Kill one of them meanwhile, or press Ctrl-C and start it
//! again with the same folder: `cargo run … -- run-folder`. Every image is accounted for in any case.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use anyhow::{Context as _, ensure};
use warploom::fleet::{
    Assigned, Batch, Fleet, FleetDevice, Outcome, Program, Record, Refusal, Stopper, Trouble, Work,
    worker,
};
use warploom::kernels::ImageType;
use warploom::kernels::lower::Recipe;
use warploom::kernels::op::Given;
use warploom::kernels::program::{Loaded, Loader, Program as Kernels};
use warploom::{DType, Math, Options, registry};

const SIDE: u32 = 256;

/// What each worker has: a blur that was compiled for its device.
struct Blur {
    loader: Loader,
    loaded: Loaded,
}

impl Work for Blur {
    fn init(assigned: &Assigned) -> Result<Self, Refusal> {
        let failed = |error: &dyn std::fmt::Display| Refusal::Failed(error.to_string());
        let status = registry()
            .setup(&Options::default())
            .map_err(|error| failed(&error))?;
        // The device that this process is for, and only that: anything else is refused.
        let faces = status
            .survey
            .devices
            .iter()
            .flat_map(|device| &device.faces);
        let id = assigned.find(faces)?;
        let device = registry().open(id).map_err(|error| failed(&error))?;
        let mut recipe = Recipe::new();
        let image = recipe.image(ImageType::plane(DType::U16, SIDE.into(), SIDE.into()));
        let sigma = Given::new().with("sigma", 2.0);
        let blurred = recipe
            .apply("gaussian", &sigma, &[image])
            .map_err(|error| failed(&error))?;
        recipe.give(blurred);
        let loader = Loader::new(device, Math::Strict);
        let program = Kernels::new(recipe.flow(), loader.device().info());
        let loaded = loader.load(program).map_err(|error| failed(&error))?;
        Ok(Self { loader, loaded })
    }

    fn process(&mut self, batch: &mut Batch<'_>) -> Result<(), Trouble> {
        for (place, (_, body)) in batch.records().enumerate() {
            // A record is whatever its work makes of it: here, where the image begins.
            let Ok(seed) = body.try_into().map(u32::from_le_bytes) else {
                batch.failed(place, format!("{} bytes are no seed", body.len()));
                continue;
            };
            let pixels = (0..SIDE * SIDE).map(|at| {
                let [_, _, low, high] = (at ^ seed).wrapping_mul(2_654_435_761).to_le_bytes();
                u16::from_le_bytes([low, high])
            });
            let pixels: Vec<u16> = pixels.collect();
            let blurred = self
                .loaded
                .run(self.loader.device(), &[bytemuck::cast_slice(&pixels)])?;
            let values = blurred[0].as_chunks().0.iter().copied();
            let brightest = values.map(f32::from_ne_bytes).fold(0.0, f32::max);
            batch.done(place, &brightest.to_le_bytes());
        }
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("worker") {
        return Ok(worker::serve::<Blur>(std::env::vars())?);
    }
    let status = registry().setup(&Options::default())?;
    let stopper = Stopper::new()?;
    let _signals = stopper.on_signals()?;
    let mut fleet = Fleet::builder(Program::this().arg("worker"))
        .plan("blur 2.0")
        .stopper(&stopper);
    if let Some(folder) = argument {
        fleet = fleet.folder(folder);
    }
    // One face per card, the first; software devices only where there is nothing else.
    for device in status.survey.usable() {
        let face = device.faces.first().context("a card has a face")?;
        fleet = fleet.device(FleetDevice::of(face));
    }
    let fleet = fleet.build()?;

    let records: Vec<Record> = (0..200_u32)
        .map(|seed| Record::new(seed.to_le_bytes()))
        .collect();
    let mut taken = 0;
    // As they come; of a run that is resumed, those that were not taken before.
    let mut outcomes = fleet.stream(records)?;
    for delivered in &mut outcomes {
        let delivered = delivered?;
        taken += 1;
        let record = delivered.record;
        match (delivered.outcome, delivered.answer) {
            (Outcome::Ok { .. }, Some(answer)) if record < 3 => {
                let brightest = f32::from_le_bytes(answer[..].try_into()?);
                println!("record {record}: {brightest}");
            }
            (Outcome::Failed { reason, attempts }, _) => {
                println!("record {record} failed after {attempts} attempts: {reason}");
            }
            _ => {}
        }
    }

    let report = outcomes.report().context("it has ended")?;
    println!(
        "{} done, {} failed, {} not started; {taken} of them this time, by slot: {:?}",
        report.counts.ok, report.counts.failed, report.counts.waiting, report.per_slot
    );
    ensure!(report.interrupted || report.is_complete());
    Ok(())
}
