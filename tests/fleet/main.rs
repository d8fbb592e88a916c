//! A fleet over every device that is here: one worker process each, which sees its own device and no other,
//! and all of them compute the same. This program is its own worker.
#![expect(clippy::print_stderr, reason = "a test says what it ran on")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use warploom::fleet::{
    Assigned, Batch, Fleet, FleetDevice, Outcome, Program, Record, Refusal, Schedule, Trouble,
    Work, worker,
};
use warploom::kernels::ImageType;
use warploom::kernels::lower::Recipe;
use warploom::kernels::op::Given;
use warploom::kernels::program::{Loaded, Loader, Program as Kernels};
use warploom::{DType, DeviceInfo, Math, Options, registry};

const SIDE: u32 = 48;
/// So many records for each worker.
const EACH: u32 = 6;

/// A filter of whole numbers, which is exact on every device.
struct Largest {
    loader: Loader,
    loaded: Loaded,
    device: String,
}

impl Largest {
    fn open(assigned: &Assigned) -> Result<Self, Box<dyn std::error::Error>> {
        let status = registry().setup(&Options::default())?;
        let faces = status
            .survey
            .devices
            .iter()
            .flat_map(|device| &device.faces);
        let id = assigned.find(faces)?;
        let mut recipe = Recipe::new();
        let image = recipe.image(ImageType::plane(DType::U16, SIDE.into(), SIDE.into()));
        let largest = recipe.apply("maximum_box", &Given::new().with("radius", 2_i64), &[image])?;
        recipe.give(largest);
        let loader = Loader::new(registry().open(id)?, Math::Strict);
        let program = Kernels::new(recipe.flow(), loader.device().info());
        let loaded = loader.load(program)?;
        Ok(Self {
            loader,
            loaded,
            device: assigned.device.clone(),
        })
    }
}

impl Work for Largest {
    fn init(assigned: &Assigned) -> Result<Self, Refusal> {
        Self::open(assigned).map_err(|error| match error.downcast::<Refusal>() {
            Ok(refusal) => *refusal,
            Err(error) => Refusal::Failed(error.to_string()),
        })
    }

    fn process(&mut self, batch: &mut Batch<'_>) -> Result<(), Trouble> {
        for (place, (_, body)) in batch.records().enumerate() {
            let result = self.loaded.run(self.loader.device(), &[body])?;
            let mut answer = self.device.clone().into_bytes();
            answer.push(b'\n');
            answer.extend_from_slice(&result[0]);
            batch.done(place, &answer);
        }
        Ok(())
    }
}

/// The picture of a record, and what has to come out.
fn picture(seed: u32) -> (Vec<u8>, Vec<u8>) {
    let pixel = |y: i64, x: i64| {
        let inside = |at: i64| u32::try_from(at.clamp(0, i64::from(SIDE) - 1)).unwrap_or(0);
        let at = inside(y) * SIDE + inside(x);
        let [_, _, low, high] = (at ^ (seed << 16))
            .wrapping_mul(2_654_435_761)
            .to_le_bytes();
        u16::from_le_bytes([low, high])
    };
    let side = i64::from(SIDE);
    let places = (0..side).flat_map(|y| (0..side).map(move |x| (y, x)));
    let (mut image, mut largest) = (Vec::new(), Vec::new());
    for (y, x) in places {
        image.extend_from_slice(&pixel(y, x).to_ne_bytes());
        let near = (y - 2..=y + 2).flat_map(|y| (x - 2..=x + 2).map(move |x| (y, x)));
        let most = near.map(|(y, x)| pixel(y, x)).max().unwrap_or(0);
        largest.extend_from_slice(&most.to_ne_bytes());
    }
    (image, largest)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().is_some_and(|word| word == "be-worker") {
        return match worker::serve::<Largest>(std::env::vars()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let trial = Trial::test("every_device_has_its_worker_and_sees_no_other", || {
        every_device().map_err(|error| Failed::from(format!("{error:#}")))
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

/// How many devices of which backend there have to be, where somebody knows: `cuda=2` is exactly, `opencl>=3`
/// at least so many.
fn check(expected: Option<&str>, faces: &[&DeviceInfo]) -> Result<()> {
    let Some(expected) = expected else {
        eprintln!("on whatever is here: nobody said in WARPLOOM_TEST_FACES what has to be");
        return Ok(());
    };
    for rule in expected.split(',') {
        let (name, least) = rule.split_once('=').context("a rule is NAME=COUNT")?;
        let (name, is_exact) = match name.strip_suffix('>') {
            Some(name) => (name, false),
            None => (name, true),
        };
        let least: usize = least.trim().parse()?;
        let own = faces.iter().filter(|face| face.id.backend.as_str() == name);
        let count = own.count();
        ensure!(
            count == least || (!is_exact && count > least),
            "{rule} was expected, and there are {count}"
        );
    }
    Ok(())
}

fn every_device() -> Result<()> {
    let status = registry().setup(&Options::default())?;
    let devices = status.survey.devices.iter();
    let faces: Vec<_> = devices.flat_map(|device| &device.faces).collect();
    let mut variables = std::env::vars();
    let expected = variables.find(|(name, _)| name == "WARPLOOM_TEST_FACES");
    check(expected.as_ref().map(|(_, text)| text.as_str()), &faces)?;
    let folder = tempfile::tempdir()?;
    let mut fleet = Fleet::builder(Program::this().arg("be-worker"))
        .plan("largest")
        .folder(folder.path())
        .schedule(Schedule::Balanced);
    for face in &faces {
        eprintln!("a worker for {} ({})", face.id, face.name);
        fleet = fleet.device(FleetDevice::of(face));
    }
    let count = u32::try_from(faces.len())? * EACH;
    let pictures: Vec<_> = (0..count).map(picture).collect();
    let records: Vec<Record> = pictures
        .iter()
        .map(|(image, _)| Record::new(image.clone()))
        .collect();
    let report = fleet.build()?.run(&records, |_| Ok(()))?;
    ensure!(
        report.is_complete() && report.counts.failed == 0,
        "{report:?}"
    );
    ensure!(report.incidents.is_empty(), "{:?}", report.incidents);
    let mut served: BTreeMap<String, u32> = BTreeMap::new();
    for (outcome, (_, expected)) in report.outcomes.iter().zip(&pictures) {
        let Outcome::Ok { result, .. } = outcome else {
            continue;
        };
        let bytes = result.bytes().context("small answers are kept")?;
        let cut = bytes
            .iter()
            .position(|&byte| byte == b'\n')
            .context("a device")?;
        let device = String::from_utf8_lossy(&bytes[..cut]).into_owned();
        ensure!(
            bytes[cut + 1..] == expected[..],
            "{device} gives other numbers"
        );
        *served.entry(device).or_default() += 1;
    }
    let each = faces.iter().map(|face| (face.id.to_string(), EACH));
    ensure!(
        served == each.collect(),
        "each device did its part: {served:?}"
    );
    eprintln!("{count} records on {} devices: ok", faces.len());
    Ok(())
}
