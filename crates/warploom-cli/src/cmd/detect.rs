//! `warploom detect`: every device once, with all the ways to reach it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use warploom::{
    BackendId, BackendReport, BackendState, Bytes, DeviceId, DeviceInfo, DeviceKind, Language,
    Limits, MemoryKind, PhysicalDevice, Registry, Status,
};

use crate::args;
use crate::output;
use crate::report;
use crate::settings::{self, Environment};

pub(crate) fn run(args: &args::Detect, environment: &Environment) -> ExitCode {
    let found = settings::options(args, environment).and_then(|options| {
        let registry = Registry::linked();
        Ok(registry.initialize(&options)?)
    });
    let status = match found {
        Ok(status) => status,
        Err(problem) => return report::print(&problem),
    };
    for warning in status.warnings() {
        report::remark(format_args!("warning: {warning}"));
    }
    if args.json {
        output::json(&Answer::from(&*status))
    } else {
        output::text(&table(&status))
    }
}

/// The answer as JSON, with a version of its own: scripts depend on it.
#[derive(Serialize)]
struct Answer<'s> {
    schema: u32,
    backends: Vec<BackendAnswer<'s>>,
    devices: Vec<DeviceAnswer<'s>>,
    capacity: CapacityAnswer<'s>,
    notes: &'s [String],
}

#[derive(Serialize)]
struct BackendAnswer<'s> {
    id: BackendId,
    state: BackendState,
    reason: Option<&'s str>,
    probe_ms: f64,
}

#[derive(Serialize)]
struct DeviceAnswer<'s> {
    name: &'s str,
    label: &'s str,
    kind: DeviceKind,
    software: bool,
    total_memory: u64,
    free_memory: Option<u64>,
    pci: Option<String>,
    uuid: Option<String>,
    faces: Vec<FaceAnswer<'s>>,
}

#[derive(Serialize)]
struct FaceAnswer<'s> {
    id: DeviceId,
    backend: BackendId,
    ordinal: u32,
    driver: &'s str,
    name: &'s str,
    memory: Vec<&'s str>,
    languages: &'s [Language],
    caps: Vec<&'static str>,
    limits: &'s Limits,
}

#[derive(Serialize)]
struct CapacityAnswer<'s> {
    policy: &'static str,
    cpu_threads: u32,
    max_pipelines: &'s BTreeMap<String, u32>,
}

impl<'s> From<&'s Status> for Answer<'s> {
    fn from(status: &'s Status) -> Self {
        Self {
            schema: 1,
            backends: status.survey.backends.iter().map(Into::into).collect(),
            devices: status.survey.devices.iter().map(Into::into).collect(),
            capacity: CapacityAnswer {
                policy: status.capacity.policy.name(),
                cpu_threads: status.capacity.cpu_threads.get(),
                max_pipelines: &status.capacity.max_pipelines,
            },
            notes: &status.survey.notes,
        }
    }
}

impl<'s> From<&'s BackendReport> for BackendAnswer<'s> {
    fn from(report: &'s BackendReport) -> Self {
        Self {
            id: report.id,
            state: report.state,
            reason: report.reason.as_deref(),
            probe_ms: (report.took.as_secs_f64() * 1e4).round() / 10.0,
        }
    }
}

impl<'s> From<&'s PhysicalDevice> for DeviceAnswer<'s> {
    fn from(device: &'s PhysicalDevice) -> Self {
        Self {
            name: &device.name,
            label: &device.label,
            kind: device.kind,
            software: device.software,
            total_memory: device.total_memory,
            free_memory: device.free_memory,
            pci: device.key.pci.map(|pci| pci.to_string()),
            uuid: device.key.uuid.map(|uuid| uuid.to_string()),
            faces: device.faces.iter().map(Into::into).collect(),
        }
    }
}

impl<'s> From<&'s DeviceInfo> for FaceAnswer<'s> {
    fn from(face: &'s DeviceInfo) -> Self {
        Self {
            id: face.id,
            backend: face.id.backend,
            ordinal: face.id.ordinal,
            driver: &face.driver,
            name: &face.name,
            memory: face.memory.iter().map(MemoryKind::name).collect(),
            languages: &face.languages,
            caps: face.caps.iter_names().map(|(name, _)| name).collect(),
            limits: &face.limits,
        }
    }
}

/// The answer for people.
fn table(status: &Status) -> String {
    let survey = &status.survey;
    let (software, hardware): (Vec<_>, Vec<_>) =
        survey.devices.iter().partition(|device| device.software);
    let row = |device: &&PhysicalDevice| {
        let memory = match device.total_memory {
            0 => "memory ?".into(),
            bytes => Bytes(bytes).to_string(),
        };
        let faces: Vec<String> = device.faces.iter().map(|f| f.id.to_string()).collect();
        vec![
            device.name.clone(),
            device.label.clone(),
            device.kind.to_string(),
            format!("{memory:>10}"),
            device
                .key
                .pci
                .map(|pci| format!("pci {pci}"))
                .unwrap_or_default(),
            faces.join(" "),
            match status.max_pipelines(device) {
                1 => "1 pipeline".into(),
                many => format!("{many} pipelines"),
            },
        ]
    };
    // One table, so that the columns of both parts line up.
    let rows: Vec<Vec<String>> = hardware.iter().chain(&software).map(row).collect();
    let lines = output::table(&rows, "  ");
    let mut lines = lines.lines();
    let mut text = match hardware.len() {
        0 => "no GPU\n".to_owned(),
        1 => "1 GPU\n".to_owned(),
        many => format!("{many} GPUs\n"),
    };
    for line in lines.by_ref().take(hardware.len()) {
        text.extend([line, "\n"]);
    }
    if !software.is_empty() {
        text += "software\n";
        for line in lines {
            text.extend([line, "\n"]);
        }
    }
    let reports = survey.backends.iter().map(|report| {
        let (state, detail) = match report.state {
            BackendState::Loaded => {
                let found = survey
                    .devices
                    .iter()
                    .filter(|d| d.face(report.id).is_some())
                    .count();
                let ms = report.took.as_secs_f64() * 1e3;
                let devices = if found == 1 { "device" } else { "devices" };
                ("loaded", format!("{found} {devices} in {ms:.1} ms"))
            }
            BackendState::Absent => ("absent", report.reason.clone().unwrap_or_default()),
            BackendState::Broken => ("broken", report.reason.clone().unwrap_or_default()),
        };
        vec![report.id.to_string(), state.into(), detail]
    });
    text + "backends\n" + &output::table(&reports.collect::<Vec<_>>(), "  ")
}
