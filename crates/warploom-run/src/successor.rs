//! What goes on where a device failed.

use warploom_core::{Caps, PhysicalDevice, Status};
use warploom_plan::pipeline::Math;
use warploom_plan::{ExecutionPlan, Options};

use crate::error::RunFailure;
use crate::job::Job;
use crate::recipe;
use crate::settings::Settings;

impl Job {
    /// Another plan for what is left, after a device failed: on strict devices, as all before were.
    pub(crate) fn instead(
        &self,
        plan: &ExecutionPlan,
        options: &mut Options,
        status: &Status,
        settings: &Settings,
        failure: &RunFailure,
    ) -> Option<(ExecutionPlan, String)> {
        let is_allowed = settings.failover && plan.math == Math::Strict;
        if !failure.is_of_device() || !is_allowed || !recipe::loose(plan, status).is_empty() {
            return None;
        }
        options.devices = rest(plan, options, status);
        if options.devices.is_empty() {
            return None;
        }
        // A GPU takes the place of a GPU as long as there is one: the processor has room for more
        // pipelines than any, and would always seem the idlest.
        let mut gpus = options.clone();
        let is_gpu = |face: &String| status.gpus().any(|card| has_face(card, face));
        gpus.devices.retain(is_gpu);
        let next = (!gpus.devices.is_empty()).then(|| self.plan(status, &gpus).ok());
        let next = next.flatten().or_else(|| self.plan(status, options).ok())?;
        let change = format!(
            "{} was given up ({failure}); {} goes on",
            plan.device.faces.join(", "),
            next.device.faces.join(", ")
        );
        Some((next, change))
    }
}

fn has_face(card: &PhysicalDevice, name: &str) -> bool {
    card.faces.iter().any(|face| face.id.to_string() == name)
}

/// The strict faces that may be used and that a plan does not use.
fn rest(plan: &ExecutionPlan, options: &Options, status: &Status) -> Vec<String> {
    let names = &options.devices;
    let cards = status.survey.devices.iter();
    let faces = cards.flat_map(|card| card.faces.iter().map(move |face| (face, &card.name)));
    let strict = faces.filter(|(face, _)| face.caps.contains(Caps::STRICT_MATH));
    let faces = strict.map(|(face, card)| (face.id.to_string(), card));
    let allowed = |face: &String, card: &String| {
        names.is_empty() || names.contains(face) || names.contains(card)
    };
    let open = faces.filter(|(face, card)| {
        let used = plan.device.faces.contains(face);
        !used && allowed(face, card)
    });
    open.map(|(face, _)| face).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use warploom_core::memory::{CUDA_DEVICE, HOST, OPENCL_DEVICE};
    use warploom_core::{
        BackendId, Capacity, CapacityPolicy, DeviceError, DeviceId, DeviceInfo, Survey, Uuid,
    };

    use warploom_plan::Pipeline;

    use super::*;
    use crate::input::Input;

    fn card(backend: &str, ordinal: u32, card: u32) -> DeviceInfo {
        let kind = if backend == "cuda" {
            CUDA_DEVICE
        } else {
            OPENCL_DEVICE
        };
        let id = DeviceId::new(BackendId::new(backend), ordinal);
        let mut info = DeviceInfo::new(id, "Card", &[kind]);
        info.total_memory = 1 << 30;
        info.caps = Caps::F64 | Caps::STRICT_MATH;
        let uuid: Uuid = format!("00000000-0000-4000-8000-0000000000{card:02x}")
            .parse()
            .unwrap();
        info.key.uuid = Some(uuid);
        info
    }

    fn machine() -> Status {
        let id = DeviceId::new(BackendId::CPU, 0);
        let mut cpu = DeviceInfo::software(id, "processor", &[HOST]);
        cpu.caps = Caps::F64 | Caps::STRICT_MATH | Caps::UNIFIED_MEMORY;
        let cards = [
            cpu,
            card("cuda", 0, 0),
            card("opencl", 0, 0),
            card("cuda", 1, 1),
        ];
        let survey = Survey::unite(Vec::new(), cards);
        let threads = NonZeroU32::new(8).unwrap();
        let capacity = Capacity::of(&survey, CapacityPolicy::Threads, threads);
        Status::described(survey, capacity)
    }

    /// The faces that one failure after the other leads to.
    fn successors(devices: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("a.npy");
        let head = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 4), }";
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{head:<117}\n").bytes());
        bytes.extend([7; 16]);
        std::fs::write(&image, bytes).unwrap();
        let pipeline = Pipeline::from_toml("[[step]]\nop = \"sqrt\"").unwrap();
        let input = Input::find(image.to_str().unwrap()).unwrap();
        let job = Job::new(pipeline, folder.path(), input, folder.path().join("out"));
        let (status, settings) = (machine(), Settings::default());
        let mut options = Options::default();
        options.devices = devices.iter().map(|name| (*name).to_owned()).collect();
        let mut plan = job.plan(&status, &options).unwrap();
        let mut faces = plan.device.faces.clone();
        loop {
            let id = DeviceId::new(BackendId::CPU, 0);
            let failure = RunFailure::Device(DeviceError::driver(id, "launch", "it is gone"));
            let next = job.instead(&plan, &mut options, &status, &settings, &failure);
            let Some((next, _)) = next else {
                return faces;
            };
            faces.extend(next.device.faces.iter().cloned());
            plan = next;
        }
    }

    #[test]
    fn every_face_takes_its_turn_and_the_processor_is_last() {
        assert_eq!(successors(&[]), ["cuda:0", "opencl:0", "cuda:1", "cpu:0"]);
    }

    #[test]
    fn no_face_takes_over_that_was_not_named() {
        assert_eq!(successors(&["gpu0"]), ["cuda:0", "opencl:0"]);
        assert_eq!(successors(&["opencl:0"]), ["opencl:0"]);
        assert_eq!(successors(&["opencl:0", "gpu1"]).len(), 2);
    }
}
