//! The cards a plan may use, and which of them can run a pipeline.

use std::collections::BTreeSet;

use warploom_core::memory::HOST;
use warploom_core::{
    BackendId, Caps, DeviceId, DeviceInfo, DeviceKind, PhysicalDevice, PhysicalKey, Status,
};

use crate::options::Options;
use crate::pipeline::Math;
use warploom_kernels::fuse::Speed;

/// Every card, the processor among them.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) cards: Vec<PhysicalDevice>,
}

impl World {
    /// What detection found; only the processor when nobody looked.
    pub(crate) fn of(status: Option<&Status>) -> Self {
        let cards = match status {
            Some(status) => status.survey.devices.clone(),
            None => vec![processor()],
        };
        Self { cards }
    }

    /// The processor, if it is there.
    pub(crate) fn cpu(&self) -> Option<usize> {
        let has_face = |card: &PhysicalDevice| card.face(BackendId::CPU).is_some();
        self.cards.iter().position(has_face)
    }

    pub(crate) fn face(&self, card: usize, backend: BackendId) -> Option<&DeviceInfo> {
        self.cards[card].face(backend)
    }

    /// The faces of a card, best first: those with strict math where that is asked for, then by
    /// how much of a card a backend reaches.
    pub(crate) fn best_faces(&self, card: usize, math: Math) -> Vec<BackendId> {
        const ORDER: [&str; 4] = ["cuda", "opencl", "wgpu", "cpu"];
        let rank = |face: &&DeviceInfo| {
            let strict = math == Math::Fast || face.caps.contains(Caps::STRICT_MATH);
            let name = face.id.backend.as_str();
            let place = ORDER.iter().position(|known| *known == name);
            (!strict, place.unwrap_or(2), face.id)
        };
        let mut faces: Vec<&DeviceInfo> = self.cards[card].faces.iter().collect();
        faces.sort_by_key(rank);
        let mut seen = BTreeSet::new();
        let backends = faces.into_iter().map(|face| face.id.backend);
        backends.filter(|backend| seen.insert(*backend)).collect()
    }

    /// The cards a pipeline without wishes goes to: GPUs, or where there is none the processor
    /// itself, never something the processor plays.
    pub(crate) fn willing(&self, with_cpu: bool) -> Vec<usize> {
        let is_gpu = |card: &PhysicalDevice| !card.software && card.kind != DeviceKind::Cpu;
        let all = 0..self.cards.len();
        let mut cards: Vec<usize> = all.filter(|at| is_gpu(&self.cards[*at])).collect();
        if with_cpu || cards.is_empty() {
            cards.extend(self.cpu());
        }
        if cards.is_empty() {
            cards = (0..self.cards.len()).collect();
        }
        cards
    }

    /// Cards that have all these faces.
    pub(crate) fn with_faces(&self, backends: &BTreeSet<BackendId>) -> Vec<usize> {
        let able = |at: &usize| {
            let card = &self.cards[*at];
            backends.iter().all(|backend| card.face(*backend).is_some())
        };
        let able: Vec<usize> = (0..self.cards.len()).filter(able).collect();
        let hardware: Vec<usize> = able
            .iter()
            .copied()
            .filter(|at| !self.cards[*at].software)
            .collect();
        // What the processor plays is used when it is asked for and nothing else will do.
        if hardware.is_empty() { able } else { hardware }
    }
}

/// Cards by name as people count them: `gpu2` before `gpu10`.
pub(crate) fn order(name: &str) -> (&str, u64, &str) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0), name)
}

/// What was measured of a face, or what such a device is taken for.
pub(crate) fn speed(info: &DeviceInfo, options: &Options) -> (Speed, bool) {
    if let Some(speed) = options.calibration.get(&info.id.to_string()) {
        (*speed, true)
    } else {
        let discrete = info.kind == DeviceKind::Discrete;
        let software = info.software || info.kind == DeviceKind::Cpu;
        (Speed::guess(discrete, software), false)
    }
}

/// The processor as it is when nobody has looked.
fn processor() -> PhysicalDevice {
    let id = DeviceId::new(BackendId::CPU, 0);
    let mut face = DeviceInfo::software(id, "processor", &[HOST]);
    face.caps = Caps::F64 | Caps::STRICT_MATH | Caps::UNIFIED_MEMORY;
    PhysicalDevice {
        name: "cpu".to_owned(),
        label: "processor".to_owned(),
        kind: DeviceKind::Cpu,
        software: true,
        total_memory: 0,
        free_memory: None,
        key: PhysicalKey::default(),
        faces: vec![face],
    }
}
