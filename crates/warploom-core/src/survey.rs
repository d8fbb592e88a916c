//! The union of what all backends report, by physical identity: every card once, with all the ways
//! to reach it.
//!
//! Two devices are one card when their PCI addresses are equal, else their UUIDs, else their LUIDs.
//! Names never count, two devices of one backend are never one, and software devices never merge.
//! Where identities contradict each other (a MIG slice shares its card's address, a driver repeats
//! a UUID) nothing is merged on that evidence: a device shown twice is a nuisance, two cards shown
//! as one is lost work. The result does not depend on the order of backends or devices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::BackendId;
use crate::device::{DeviceId, DeviceInfo, DeviceKind};
use crate::error::list;
use crate::physical::PhysicalKey;

/// How loading a backend ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendState {
    /// It answered.
    Loaded,
    /// What it needs is not installed, or it was switched off.
    Absent,
    /// What it needs is installed and does not work.
    Broken,
}

/// What became of one backend.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BackendReport {
    /// Which backend.
    pub id: BackendId,
    /// How it ended.
    pub state: BackendState,
    /// Why it is absent or broken.
    pub reason: Option<String>,
    /// How long it took to load and probe.
    pub took: Duration,
}

/// A card, or whatever else a user would point at: the devices that are it are its faces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PhysicalDevice {
    /// What users call it: `gpu0`, `cpu`, `soft1`.
    pub name: String,
    /// What its driver calls it.
    pub label: String,
    /// What sort of hardware it is.
    pub kind: DeviceKind,
    /// Is it played by the processor?
    pub software: bool,
    /// Its memory in bytes: the least that any face claims, 0 when none knows.
    pub total_memory: u64,
    /// Free memory in bytes: the least that any face claims.
    pub free_memory: Option<u64>,
    /// Every identity its faces tell.
    pub key: PhysicalKey,
    /// The devices that are this card, by id.
    pub faces: Vec<DeviceInfo>,
}

impl PhysicalDevice {
    /// The face of one backend.
    pub fn face(&self, backend: BackendId) -> Option<&DeviceInfo> {
        self.faces.iter().find(|face| face.id.backend == backend)
    }

    /// A name for this card that other processes and users arrive at too; safe as a file name.
    /// Cards without an identity are known by their first face, which is the best that is there.
    pub fn ledger_key(&self) -> String {
        match (self.key.pci, self.key.uuid, self.faces.first()) {
            // Slices of one card have memory of their own, and so a ledger of their own.
            (Some(pci), Some(uuid), _) if self.key.slice => format!("pci-{pci}-{uuid}"),
            // The address alone: a process that reaches the card through another backend may
            // know the address and not the UUID, and must still arrive at the same name.
            (Some(pci), _, _) if !self.software => format!("pci-{pci}"),
            (None, Some(uuid), _) if !self.software => format!("uuid-{uuid}"),
            (_, _, Some(face)) => format!("{}-{}", face.id.backend, face.id.ordinal),
            (_, _, None) => self.name.clone(),
        }
        .replace(':', "-")
    }

    fn is_gpu(&self) -> bool {
        !self.software && self.kind != DeviceKind::Cpu
    }
}

/// The result of detection: plain data.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Survey {
    /// Every backend of this program, by name.
    pub backends: Vec<BackendReport>,
    /// Every card once: hardware first, by PCI address; then what the processor plays.
    pub devices: Vec<PhysicalDevice>,
    /// Contradictions that were met, for people.
    pub notes: Vec<String>,
}

impl Survey {
    /// Unites the devices that backends reported, in any order.
    pub fn unite(
        mut backends: Vec<BackendReport>,
        reported: impl IntoIterator<Item = DeviceInfo>,
    ) -> Self {
        backends.sort_by_key(|report| report.id);
        let (devices, notes) = unite(reported.into_iter().collect());
        Self {
            backends,
            devices,
            notes,
        }
    }

    /// The hardware GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &PhysicalDevice> {
        self.devices.iter().filter(|device| device.is_gpu())
    }

    /// What pipelines run on unless told otherwise: the GPUs, or, where there is none, whatever
    /// the processor plays.
    pub fn usable(&self) -> Vec<&PhysicalDevice> {
        let gpus: Vec<_> = self.gpus().collect();
        if gpus.is_empty() {
            self.devices.iter().collect()
        } else {
            gpus
        }
    }

    /// The card a user means by `gpu0`, or by one of its faces, `cuda:0`.
    pub fn find(&self, name: &str) -> Option<&PhysicalDevice> {
        let id = name.parse::<DeviceId>().ok();
        self.devices.iter().find(|device| {
            device.name == name || device.faces.iter().any(|face| Some(face.id) == id)
        })
    }

    /// What became of one backend.
    pub fn backend(&self, id: BackendId) -> Option<&BackendReport> {
        self.backends.iter().find(|report| report.id == id)
    }
}

/// The identities in order of trust.
const LEVELS: [fn(&PhysicalKey) -> Option<String>; 3] = [
    |key| key.pci.map(|pci| format!("PCI address {pci}")),
    |key| key.uuid.map(|uuid| format!("UUID {uuid}")),
    |key| key.luid.map(|luid| format!("LUID {luid}")),
];

type Cluster = Vec<DeviceInfo>;

fn unite(mut devices: Vec<DeviceInfo>) -> (Vec<PhysicalDevice>, Vec<String>) {
    // Sorted once here, everything below follows one order whatever the input's was.
    devices.sort_by(|a, b| (a.id, &a.name, a.key).cmp(&(b.id, &b.name, b.key)));
    let (software, hardware): (Vec<_>, Vec<_>) = devices.into_iter().partition(|d| d.software);
    let mut clusters: Vec<Cluster> = hardware.into_iter().map(|d| vec![d]).collect();
    let mut notes = Vec::new();
    for level in 0..LEVELS.len() {
        clusters = merge_level(clusters, level, &mut notes);
    }
    clusters.extend(software.into_iter().map(|d| vec![d]));
    let mut united: Vec<PhysicalDevice> = clusters.into_iter().map(describe).collect();
    united.sort_by_key(|device| {
        let face = device.faces.first().map(|face| face.id);
        let cpu = face.is_some_and(|id| id.backend == BackendId::CPU);
        (
            device.software,
            !cpu,
            device.key.pci.is_none(),
            device.key.pci,
            face,
        )
    });
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for device in &mut united {
        let cpu = device
            .faces
            .iter()
            .any(|face| face.id.backend == BackendId::CPU);
        let stem = match (device.software, cpu) {
            (false, _) => "gpu",
            (true, true) => "cpu",
            (true, false) => "soft",
        };
        let count = counts.entry(stem).or_default();
        device.name = if stem == "cpu" && *count == 0 {
            "cpu".into()
        } else {
            format!("{stem}{count}")
        };
        *count += 1;
    }
    (united, notes)
}

/// Merges clusters that share an identity of this level, unless that would contradict something.
fn merge_level(clusters: Vec<Cluster>, level: usize, notes: &mut Vec<String>) -> Vec<Cluster> {
    let mut by_value: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        for value in values(cluster, level) {
            by_value.entry(value).or_default().insert(at);
        }
    }
    // Connected groups: the smallest index each cluster reaches through shared values.
    let mut group: Vec<usize> = (0..clusters.len()).collect();
    for members in by_value.values() {
        let reached: BTreeSet<usize> = members.iter().map(|at| group[*at]).collect();
        let target = reached.iter().next().copied().unwrap_or_default();
        for slot in &mut group {
            if reached.contains(slot) {
                *slot = target;
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<Cluster>> = BTreeMap::new();
    for (at, cluster) in clusters.into_iter().enumerate() {
        groups.entry(group[at]).or_default().push(cluster);
    }
    groups
        .into_values()
        .flat_map(|members| {
            if members.len() < 2 || !contradicts(&members, level) {
                return vec![members.concat()];
            }
            notes.push(note(&by_value, &members, level));
            members
        })
        .collect()
}

fn note(by_value: &BTreeMap<String, BTreeSet<usize>>, members: &[Cluster], level: usize) -> String {
    let ids: Vec<DeviceId> = members.iter().flatten().map(|device| device.id).collect();
    let shared: BTreeSet<String> = members.iter().flat_map(|m| values(m, level)).collect();
    let shared = shared
        .into_iter()
        .find(|value| by_value.get(value).is_some_and(|users| users.len() > 1));
    format!(
        "{} share {}, but cannot all be one device; not merged on that evidence",
        list(&ids),
        shared.unwrap_or_default()
    )
}

fn values(cluster: &[DeviceInfo], level: usize) -> BTreeSet<String> {
    cluster
        .iter()
        .filter_map(|device| LEVELS[level](&device.key))
        .collect()
}

/// Would one device hold two of one backend, or two answers to a more trusted question?
fn contradicts(members: &[Cluster], level: usize) -> bool {
    let mut backends = BTreeSet::new();
    let twice = members
        .iter()
        .flatten()
        .any(|device| !backends.insert(device.id.backend));
    let disagree = |stronger: usize| {
        members.iter().enumerate().any(|(at, first)| {
            members[..at].iter().any(|second| {
                let (first, second) = (values(first, stronger), values(second, stronger));
                !first.is_empty() && !second.is_empty() && first.is_disjoint(&second)
            })
        })
    };
    twice || (0..level).any(disagree)
}

fn describe(mut faces: Cluster) -> PhysicalDevice {
    faces.sort_by_key(|face| face.id);
    // Faces that cannot tell say "discrete", so any other answer is the better informed one.
    let kinds: BTreeSet<DeviceKind> = faces.iter().map(|face| face.kind).collect();
    let label = faces
        .iter()
        .map(|face| face.name.as_str())
        .max_by_key(|name| (name.len(), std::cmp::Reverse(*name)));
    PhysicalDevice {
        name: String::new(),
        label: label.unwrap_or_default().to_owned(),
        kind: kinds.last().copied().unwrap_or(DeviceKind::Discrete),
        software: faces.iter().any(|face| face.software),
        total_memory: faces
            .iter()
            .map(|face| face.total_memory)
            .filter(|bytes| *bytes > 0)
            .min()
            .unwrap_or(0),
        free_memory: faces.iter().filter_map(|face| face.free_memory).min(),
        key: faces
            .iter()
            .fold(PhysicalKey::default(), |key, face| key.or(face.key)),
        faces,
    }
}
