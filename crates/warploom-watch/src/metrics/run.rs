//! Metrics of a run.

use std::collections::BTreeMap;

use super::Measured;
use super::family::{Families, Kind, Labels};
use crate::figures;
use crate::recording::{DeviceNo, Outcome, Recording, Unit};

const NANO: f64 = 1e-9;

impl Measured for Recording {
    fn render(&self) -> String {
        let mut families = Families::default();
        let own = || -> Labels<'_> { vec![("pipeline", &self.pipeline)] };
        whole(self, &mut families, &own);
        of_devices(self, &mut families, &own);
        let stages = figures::stages(self);
        let of_stage = |number: fn(&figures::StageFigures) -> f64| {
            stages
                .iter()
                .map(move |stage| (with(own(), &[("stage", &stage.name)]), number(stage)))
        };
        families.add(
            "warploom_stage_seconds_total",
            Kind::Counter,
            "Time spent in a stage.",
            of_stage(|stage| stage.total as f64 * NANO),
        );
        families.add(
            "warploom_stage_runs_total",
            Kind::Counter,
            "How often a stage ran.",
            of_stage(|stage| stage.spans as f64),
        );
        let device = |at: Option<DeviceNo>| self.device_label(at);
        let edges = self.edges.iter();
        families.add(
            "warploom_edge_blocked_seconds_total",
            Kind::Counter,
            "Time in which the host had nothing to do but to wait because of an edge.",
            edges.clone().map(|edge| {
                let labels = [
                    ("edge", edge.name.as_str()),
                    ("device", device(edge.device)),
                ];
                (with(own(), &labels), edge.blocked as f64 * NANO)
            }),
        );
        families.add(
            "warploom_edge_waits_total",
            Kind::Counter,
            "How often somebody was told to wait because of an edge.",
            edges.map(|edge| {
                let labels = [
                    ("edge", edge.name.as_str()),
                    ("device", device(edge.device)),
                ];
                (with(own(), &labels), edge.waits as f64)
            }),
        );
        families.text()
    }
}

fn with<'l>(mut labels: Labels<'l>, more: &[(&'static str, &'l str)]) -> Labels<'l> {
    labels.extend_from_slice(more);
    labels
}

fn whole<'r>(recording: &'r Recording, families: &mut Families, own: &dyn Fn() -> Labels<'r>) {
    let tally = recording.tally();
    let kinds = [
        ("ok", tally.ok),
        ("failed", tally.failed),
        ("skipped", tally.skipped),
        ("not-started", tally.not_started),
    ];
    let counted = !recording.records.is_empty();
    families.add(
        "warploom_records",
        Kind::Gauge,
        "Records by how they ended.",
        kinds
            .into_iter()
            .filter(|_| counted)
            .map(|(word, number)| (with(own(), &[("outcome", word)]), number as f64)),
    );
    let mut codes: BTreeMap<&str, u64> = BTreeMap::new();
    for record in &recording.records {
        if let Outcome::Failed { code, .. } = &record.outcome {
            *codes.entry(code.as_deref().unwrap_or("")).or_default() += 1;
        }
    }
    families.add(
        "warploom_failures",
        Kind::Gauge,
        "Failed records by the code of the reason.",
        codes
            .into_iter()
            .map(|(code, number)| (with(own(), &[("code", code)]), number as f64)),
    );
    let single = |value: Option<f64>| value.map(|value| (own(), value));
    families.add(
        "warploom_run_seconds",
        Kind::Gauge,
        "How long the run took.",
        single((recording.wall > 0).then_some(recording.wall as f64 * NANO)),
    );
    families.add(
        "warploom_run_start_time_seconds",
        Kind::Gauge,
        "When the run began, in seconds since 1970.",
        single((recording.started > 0).then_some(recording.started as f64 * 1e-3)),
    );
    families.add(
        "warploom_records_per_second",
        Kind::Gauge,
        "Records that went well per second of the whole run.",
        single(recording.rate()),
    );
    families.add(
        "warploom_bound_records_per_second",
        Kind::Gauge,
        "Records per second that the times of the stages allow.",
        single(recording.bound()),
    );
}

fn of_devices<'r>(recording: &'r Recording, families: &mut Families, own: &dyn Fn() -> Labels<'r>) {
    let figures = figures::devices(recording);
    let each = |number: &dyn Fn(&figures::DeviceFigures) -> Option<f64>| {
        let devices = recording.devices.iter().zip(&figures);
        let samples = devices.filter_map(|(device, figures)| {
            Some((with(own(), &[("device", &device.label)]), number(figures)?))
        });
        samples.collect::<Vec<_>>()
    };
    families.add(
        "warploom_device_records",
        Kind::Gauge,
        "Records that went well, by device.",
        each(&|figures| Some(figures.ok as f64)),
    );
    families.add(
        "warploom_device_retries_total",
        Kind::Counter,
        "Attempts beyond the first, by device.",
        each(&|figures| Some(figures.retries as f64)),
    );
    families.add(
        "warploom_device_busy_seconds",
        Kind::Gauge,
        "Time in which a queue of the device had work.",
        each(&|figures| figures.busy.map(|busy| busy as f64 * NANO)),
    );
    let memory = || {
        recording
            .counters
            .iter()
            .filter(|counter| counter.unit == Unit::Bytes)
    };
    let labels = |name: &'r str, device| {
        with(
            own(),
            &[("memory", name), ("device", recording.device_label(device))],
        )
    };
    families.add(
        "warploom_memory_peak_bytes",
        Kind::Gauge,
        "The most memory that was in use.",
        memory().filter_map(|counter| {
            Some((
                labels(&counter.name, counter.device),
                figures::peak(counter)?,
            ))
        }),
    );
    families.add(
        "warploom_memory_budget_bytes",
        Kind::Gauge,
        "What memory was not to exceed.",
        memory()
            .filter_map(|counter| Some((labels(&counter.name, counter.device), counter.budget?))),
    );
}
