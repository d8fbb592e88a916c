//! Devices of a plan, opened, with everything on them that all records share.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warploom_core::{
    CheckedDevice, DType, DeviceId, Math, MemoryKind, Queue as _, QueueDesc, Registry, Slice,
};
use warploom_io::Image;
use warploom_kernels::Dims;
use warploom_kernels::program::{Loaded, Loader, to_pairs};
use warploom_plan::ExecutionPlan;
use warploom_plan::pipeline::Math as PlanMath;
use warploom_plan::plan::{CopyReason, PlanStep, Pool, Variant};

use crate::error::RunFailure;

/// Constants of a pipeline, read once.
#[derive(Debug)]
pub(crate) struct Constants {
    images: BTreeMap<String, Image>,
    /// A fingerprint of each, in the order of the plan's sources.
    pub(crate) prints: Vec<u128>,
}

impl Constants {
    /// Reads them from their files below `folder`.
    pub(crate) fn read(plan: &ExecutionPlan, folder: &Path) -> Result<Self, RunFailure> {
        let mut constants = Self {
            images: BTreeMap::new(),
            prints: Vec::new(),
        };
        for source in &plan.sources {
            let Some(file) = &source.file else {
                continue;
            };
            let path = folder.join(file);
            let image = warploom_io::read(&path)?;
            if image.bytes().len() as u64 != source.bytes {
                return Err(RunFailure::Constant {
                    name: source.name.clone(),
                    path,
                    found: format!("{} {}", image.shape(), image.dtype()),
                    wanted: source.image.clone(),
                });
            }
            let print = xxhash_rust::xxh3::xxh3_128(image.bytes());
            constants.prints.push(print);
            constants.images.insert(source.name.clone(), image);
        }
        Ok(constants)
    }

    /// The bytes of one.
    pub(crate) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.images.get(name).map(Image::bytes)
    }
}

/// The opened faces of a plan.
#[derive(Debug)]
pub(crate) struct Faces {
    loaders: BTreeMap<String, Loader>,
}

impl Faces {
    pub(crate) fn open(plan: &ExecutionPlan, registry: &Registry) -> Result<Self, RunFailure> {
        let math = match plan.math {
            PlanMath::Strict => Math::Strict,
            PlanMath::Fast => Math::Fast,
        };
        let mut loaders = BTreeMap::new();
        let cards = std::iter::once(&plan.device).chain(&plan.others);
        for face in cards.flat_map(|card| &card.faces) {
            let id: DeviceId = face.parse().map_err(|_| RunFailure::Foreign {
                what: format!("`{face}` names no device"),
            })?;
            loaders.insert(face.clone(), Loader::new(registry.open(id)?, math));
        }
        Ok(Self { loaders })
    }

    pub(crate) fn loader(&self, face: &str) -> Result<&Loader, RunFailure> {
        self.loaders.get(face).ok_or_else(|| RunFailure::Foreign {
            what: format!("a step is on {face}, which the plan does not use"),
        })
    }

    /// The one face there is, if there is one.
    pub(crate) fn only(&self) -> Option<&Loader> {
        let mut all = self.loaders.values();
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// Every device that was opened.
    #[cfg(all(feature = "fleet", target_os = "linux"))]
    pub(crate) fn devices(&self) -> impl Iterator<Item = &CheckedDevice> {
        self.loaders.values().map(Loader::device)
    }

    /// Someone who has memory that the host can see: the processor, or whoever has pages for staging.
    pub(crate) fn host(&self, registry: &Registry) -> Result<CheckedDevice, RunFailure> {
        let cpu = DeviceId::new(warploom_core::BackendId::CPU, 0);
        let opened = registry.open(cpu);
        if let Ok(device) = opened {
            return Ok(device);
        }
        let mut all = self.loaders.values();
        match all.next() {
            Some(loader) => Ok(loader.device().clone()),
            None => Ok(opened?),
        }
    }

    /// The program of a step on its device, which has to be the one that the plan counted.
    pub(crate) fn load(
        &self,
        variant: &Variant,
        step: usize,
        tile: Option<Dims>,
    ) -> Result<Arc<Loaded>, RunFailure> {
        let done = &variant.steps[step];
        let loader = self.loader(done.device())?;
        let program = variant.program(step, tile, loader.device().info());
        let program = program.map_err(|finding| RunFailure::Refused(vec![*finding]))?;
        let is_counted = match done {
            PlanStep::Run {
                passes,
                scratch,
                loaded,
                ..
            } => {
                program.steps().len() == *passes as usize
                    && program.workspace() == *scratch
                    && program.loaded_bytes() == *loaded
            }
            PlanStep::Tiled { scratch, .. } => program.workspace() <= *scratch,
            PlanStep::Copy { .. } => false,
        };
        if !is_counted {
            return Err(RunFailure::Foreign {
                what: format!("step {} became another program than it counted", step + 1),
            });
        }
        Ok(Arc::new(loader.load(program)?))
    }
}

/// The kind of memory of a pool, as its device knows it.
pub(crate) fn kind(device: &CheckedDevice, pool: &Pool) -> Option<MemoryKind> {
    let mut kinds = device.info().memory.iter().copied();
    kinds.find(|kind| kind.name() == pool.memory)
}

/// What all records share in a pool, put in its place.
pub(crate) fn shared(
    plan: &ExecutionPlan,
    pool: &Pool,
    device: &CheckedDevice,
    kind: MemoryKind,
    constants: &Constants,
) -> Result<Option<Slice>, RunFailure> {
    if pool.shared == 0 {
        return Ok(None);
    }
    let place = Slice::whole(&device.alloc(kind, pool.shared)?);
    let mut queue = device.queue(&QueueDesc::named("constants"))?;
    for lodging in &pool.constants {
        let Some(bytes) = constants.bytes(&lodging.value) else {
            return Err(RunFailure::Foreign {
                what: format!("nobody says where `{}` comes from", lodging.value),
            });
        };
        let to = place.part(lodging.offset..lodging.offset + bytes.len() as u64)?;
        if in_pairs(plan, &lodging.value, &pool.device) {
            let mut pairs = bytes.to_vec();
            to_pairs(&mut pairs);
            queue.upload(&pairs, &to)?;
        } else if !bytes.is_empty() {
            queue.upload(bytes, &to)?;
        }
    }
    queue.record()?.wait(None)?;
    Ok(Some(place))
}

/// Does a device keep this constant as pairs? The copy that brings it there says so.
fn in_pairs(plan: &ExecutionPlan, name: &str, face: &str) -> bool {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    let mut copies = steps.filter_map(|step| match step {
        PlanStep::Copy {
            value,
            device,
            pairs,
            why: CopyReason::Constant,
            ..
        } if value == name && device == face => Some(*pairs),
        _ => None,
    });
    let is_wide = |value: &warploom_plan::plan::PlanValue| value.dtype == DType::F64;
    let value = plan.variants.iter().find_map(|variant| variant.value(name));
    copies.any(|pairs| pairs) && value.is_some_and(is_wide)
}
