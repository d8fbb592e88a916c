//! The device that computes, and what is loaded on it.

use std::cmp::Reverse;
use std::fmt;

use warploom::kernels::fuse;
use warploom::kernels::op::{Backends, OpInfo};
use warploom::kernels::program::Loader;
use warploom::{Caps, DeviceId, DeviceInfo, Math, Options, Registry};

use crate::args;
use crate::calibration;
use crate::report::Problem;
use crate::settings::{self, Environment};

/// An opened device and the kernels on it.
#[derive(Debug)]
pub(super) struct Machine {
    loader: Loader,
    fusion: fuse::Options,
    math: Math,
    /// Was it asked for by name?
    named: bool,
}

impl Machine {
    /// Opens the device that was named, or the one that suits the operation best.
    pub(super) fn open(
        args: &args::Apply,
        environment: &Environment,
        op: Option<&OpInfo>,
    ) -> Result<Self, Problem> {
        let registry = Registry::linked();
        let math = if args.fast { Math::Fast } else { Math::Strict };
        let face = match &args.device {
            Some(name) => named(&registry, name, environment)?,
            None => best(&registry, environment, op, math)?,
        };
        let known = calibration::known(environment, args.calibration.as_deref())?;
        let mut fusion = fuse::Options::of(&face);
        if let Some(speed) = known.of(&face) {
            fusion = fusion.measured(speed.machine);
        }
        Ok(Self {
            loader: Loader::new(registry.open(face.id)?, math),
            fusion,
            math,
            named: args.device.is_some(),
        })
    }

    pub(super) fn loader(&self) -> &Loader {
        &self.loader
    }

    /// How far to fuse on it, as measured if it was.
    pub(super) fn fusion(&self) -> &fuse::Options {
        &self.fusion
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        self.loader.device().info()
    }

    pub(super) fn math(&self) -> &'static str {
        match self.math {
            Math::Fast => "fast",
            Math::Strict => "strict",
        }
    }
}

/// `cpu:0 (AMD EPYC 9354), strict`.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        let chosen = if self.named { "" } else { ", chosen here" };
        write!(f, "{} ({}){chosen}, {}", info.id, info.name, self.math())
    }
}

/// The device of this name. Where the name says the backend no other is loaded: that takes longer
/// than most operations.
fn named(
    registry: &Registry,
    name: &str,
    environment: &Environment,
) -> Result<DeviceInfo, Problem> {
    let options = match name.parse::<DeviceId>() {
        Ok(id) => {
            let mut options = Options::default();
            options.backends = Some(vec![id.backend]);
            options
        }
        Err(_) => settings::backends(environment)?,
    };
    let status = registry.initialize(&options)?;
    let device = status.device(name)?;
    let face = device.faces.iter().find(|face| face.id.to_string() == name);
    // A card's faces are in order of preference.
    match face.or(device.faces.first()) {
        Some(face) => Ok(face.clone()),
        None => Err(Problem::failure(format_args!("{name} has no face"))),
    }
}

/// As the compiler places a pipeline that says nothing of devices: the GPU with room for the most
/// pipelines, by a face that keeps to strict math where that is wanted; the processor where there
/// is no GPU, or where the operation runs there anyway.
fn best(
    registry: &Registry,
    environment: &Environment,
    op: Option<&OpInfo>,
    math: Math,
) -> Result<DeviceInfo, Problem> {
    let options = match op.map(|op| op.backends) {
        Some(Backends::CpuOnly { .. }) => Options::cpu_only(),
        _ => settings::backends(environment)?,
    };
    let status = registry.initialize(&options)?;
    // Of equals the first, as there.
    let gpu = status
        .gpus()
        .min_by_key(|gpu| Reverse(status.max_pipelines(gpu)))
        .and_then(|gpu| {
            let strict =
                |face: &&DeviceInfo| math == Math::Fast || face.caps.contains(Caps::STRICT_MATH);
            // A card's faces are in order of preference.
            gpu.faces.iter().find(strict).or(gpu.faces.first())
        });
    let processor = || {
        let faces = status
            .survey
            .devices
            .iter()
            .flat_map(|device| &device.faces);
        let mut faces: Vec<&DeviceInfo> = faces.collect();
        // PoCL and its like are the processor too, only slower.
        faces.sort_by_key(|face| face.id.backend.as_str() != "cpu");
        faces.first().copied()
    };
    match gpu.or_else(processor) {
        Some(face) => Ok(face.clone()),
        None => Err(Problem::failure("there is no device to compute on")),
    }
}
