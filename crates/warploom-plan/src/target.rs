//! Where each operation is asked to run: backend, memory and device agree, and are there.

use std::collections::BTreeSet;

use warploom_core::memory::{MemoryKind, WELL_KNOWN};
use warploom_core::{BackendId, BackendState, DeviceId, PhysicalDevice, Status, Survey};
use warploom_kernels::op::{self, Backends};

use crate::diagnostic::{Diagnostic, Place, Problem, merge};
use crate::missing::Missing;
use crate::pipeline::{OpUse, Pipeline, Step, Whereabouts, Work};
use crate::typed::{AskedBy, Typed, said};
use warploom_core::nearest;

/// What one operation is asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ask {
    /// This backend and no other.
    pub(crate) backend: Option<BackendId>,
    /// This card and no other, by its name.
    pub(crate) card: Option<String>,
    /// Is it the operation itself that asks for the processor?
    pub(crate) cpu_only: bool,
    /// Where that was written.
    pub(crate) place: Option<Place>,
}

impl Ask {
    /// Does it ask for something else than the processor?
    pub(crate) fn needs_gpu(&self) -> bool {
        self.backend
            .is_some_and(|backend| backend != BackendId::CPU)
            || self.card.as_deref().is_some_and(|card| card != "cpu")
    }

    /// What it asks for, in words of the language.
    pub(crate) fn wish(&self) -> Option<String> {
        let backend = self.backend.map(|backend| backend.to_string());
        backend.or_else(|| self.card.clone())
    }
}

/// Reads what steps ask, against what is there. `None` if nothing sensible can be said.
pub(crate) fn asks(
    graphs: &[Typed<'_>],
    status: Option<&Status>,
    findings: &mut Vec<Diagnostic>,
) -> Option<Vec<Vec<Ask>>> {
    let mut found = Vec::new();
    let mut missing = Missing::default();
    let mut all = Vec::new();
    for graph in graphs {
        let mut asks = Vec::new();
        for op in &graph.ops {
            let mut ask = Reading {
                step: &op.step.name.value,
                status,
                missing: &mut missing,
                findings: &mut found,
            }
            .ask(op.whereabouts);
            if matches!(op.call.op.backends, Backends::CpuOnly { .. }) {
                ask = Ask {
                    backend: Some(BackendId::CPU),
                    card: None,
                    cpu_only: true,
                    place: op.step.place(),
                };
            }
            asks.push(ask);
        }
        all.push(asks);
    }
    missing.tell(status, &mut found);
    if !found.is_empty() {
        // A step with several operations would say everything several times.
        merge(findings, found);
        return None;
    }
    let mut steps: Vec<String> = Vec::new();
    let mut place = None;
    for (graph, asks) in graphs.iter().zip(&all) {
        for (op, ask) in graph.ops.iter().zip(asks) {
            let name = format!("`{}`", op.step.name);
            if ask.needs_gpu() && !steps.contains(&name) {
                steps.push(name);
                place = place.or(ask.place).or(op.step.place());
            }
        }
    }
    if !steps.is_empty() && status.is_none() {
        let message = format!(
            "{} {} a GPU, and nobody has looked for one yet",
            listed(&steps),
            if steps.len() == 1 { "needs" } else { "need" }
        );
        let finding = Diagnostic::error(Problem::NoRegistry, message).at(place);
        findings.push(finding.help("initialise the registry first (`warploom plan` does)"));
        return None;
    }
    Some(all)
}

/// The first few of many, and how many more there are.
pub(crate) fn listed(names: &[String]) -> String {
    const MOST: usize = 6;
    let more = names.len().saturating_sub(MOST);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

/// Tells names that no machine knows, or not this one, and those that contradict each other. With
/// `missing`, backends that give no device as well: where types are not known, nobody else tells.
pub(crate) fn names(
    pipeline: &Pipeline,
    status: Option<&Status>,
    missing: bool,
    findings: &mut Vec<Diagnostic>,
) {
    let mut found = Vec::new();
    let mut lacking = Missing::default();
    for step in &pipeline.steps {
        for used in ops(step) {
            let (whereabouts, asked_by) = said(pipeline, step, used);
            let ask = Reading {
                step: &step.name.value,
                status,
                missing: &mut lacking,
                findings: &mut found,
            }
            .ask(whereabouts);
            found.extend(elsewhere(step, used, &ask, asked_by));
        }
    }
    if missing {
        lacking.tell(status, &mut found);
    } else {
        // Whoever runs is asked about devices when it is placed, and nobody else needs one.
        found.retain(|finding| finding.code != Problem::UnknownDevice.code());
    }
    merge(findings, found);
}

/// Tells that an operation does not run where it is asked to, as only the processor can do it.
fn elsewhere(step: &Step, used: &OpUse, ask: &Ask, asked_by: AskedBy) -> Option<Diagnostic> {
    let info = op::find(&used.op.value).ok()?;
    let Backends::CpuOnly { why } = info.backends else {
        return None;
    };
    let wish = ask.wish().filter(|_| ask.needs_gpu())?;
    let who = match asked_by {
        AskedBy::Pipeline => "the pipeline",
        _ => "its step",
    };
    let message = format!(
        "{} of step `{}` runs on the processor, although {who} asks for `{wish}`: {why}",
        info.name, step.name
    );
    let finding = Diagnostic::warning(Problem::Moved, message).step(&step.name.value);
    let place = used.op.place.or_else(|| step.place());
    let help = "say `backend = \"cpu\"` where it is, so that the file says what happens";
    Some(finding.at(place).help(help))
}

/// The operations of a step, of all its branches.
fn ops(step: &Step) -> Vec<&OpUse> {
    match &step.work {
        Work::Chain(ops) => ops.iter().collect(),
        Work::Branch { chains, .. } => chains.iter().flat_map(|(_, ops)| ops).collect(),
    }
}

/// Is it a card's name, as cards are named where there are any?
pub(crate) fn is_card(name: &str) -> bool {
    let number = name.strip_prefix("gpu");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Every card by its name and by those of its faces.
fn known(survey: &Survey) -> Vec<String> {
    let names = survey.devices.iter().flat_map(|device| {
        let faces = device.faces.iter().map(|face| face.id.to_string());
        std::iter::once(device.name.clone()).chain(faces)
    });
    names.collect()
}

/// Why a backend gives no device.
pub(crate) fn reason(survey: &Survey, backend: BackendId) -> String {
    let devices = survey
        .devices
        .iter()
        .filter(|device| device.face(backend).is_some())
        .count();
    match survey.backend(backend) {
        None => "not in this build".to_owned(),
        Some(_) if devices == 1 => "1 device".to_owned(),
        Some(_) if devices > 0 => format!("{devices} devices"),
        Some(report) if report.state == BackendState::Loaded => {
            "its driver is there and lists no device".to_owned()
        }
        Some(report) => report
            .reason
            .clone()
            .unwrap_or_else(|| "not there".to_owned()),
    }
}

struct Reading<'a> {
    step: &'a str,
    status: Option<&'a Status>,
    missing: &'a mut Missing,
    findings: &'a mut Vec<Diagnostic>,
}

impl Reading<'_> {
    fn ask(&mut self, whereabouts: &Whereabouts) -> Ask {
        let mut claims: Vec<(BackendId, String)> = Vec::new();
        let mut card = None;
        let mut place = None;
        let mut alias = None;
        if let Some(name) = &whereabouts.backend {
            place = name.place;
            match self.backend(&name.value) {
                Some(backend) => claims.push((backend, format!("`backend = \"{name}\"`"))),
                None => self.unknown_backend(&name.value, name.place),
            }
        }
        if let Some(name) = &whereabouts.memory {
            place = place.or(name.place);
            match self.kind(&name.value) {
                Some(kind) if !kind.space().kernel_visible() => {
                    let message = format!(
                        "step `{}` cannot work in `{kind}`: only copies can use it",
                        self.step
                    );
                    let finding = Diagnostic::error(Problem::Contradiction, message);
                    let help = format!("`memory = \"{}.device\"`", kind.backend());
                    let finding = finding.step(self.step).at(name.place);
                    self.findings.push(finding.help(help));
                }
                Some(kind) => {
                    let known =
                        [kind.name(), kind.backend().as_str()].contains(&name.value.as_str());
                    alias = (!known).then(|| (kind.backend(), name.value.clone()));
                    claims.push((kind.backend(), format!("`memory = \"{name}\"`")));
                }
                None => self.unknown_memory(&name.value, name.place),
            }
        }
        if let Some(name) = &whereabouts.device {
            place = place.or(name.place);
            self.device(&name.value, name.place, &mut claims, &mut card);
        }
        if let Some(((first, said), (_, other))) = claims
            .first()
            .zip(claims.iter().find(|(backend, _)| *backend != claims[0].0))
        {
            let message = format!("step `{}` says {said} and {other}", self.step);
            let finding = Diagnostic::error(Problem::Contradiction, message);
            let note = format!("{said} is of the backend `{first}`");
            self.findings.push(
                finding
                    .step(self.step)
                    .at(place)
                    .note(note)
                    .help("drop one of them"),
            );
        }
        let backend = claims.first().map(|(backend, _)| *backend);
        if let (Some(backend), Some(status)) = (backend, self.status)
            && backend != BackendId::CPU
            && !status
                .survey
                .devices
                .iter()
                .any(|device| device.face(backend).is_some())
        {
            let words = self.missing.backends.entry(backend).or_default();
            words.extend(alias.filter(|(of, _)| *of == backend).map(|(_, word)| word));
            self.missing.steps.insert(self.step.to_owned());
            self.missing.place = self.missing.place.or(place);
        }
        Ask {
            backend,
            card,
            cpu_only: false,
            place,
        }
    }

    /// A backend that is known by name, here or anywhere.
    fn backend(&self, name: &str) -> Option<BackendId> {
        let survey = self.status.map(|status| &status.survey);
        let linked = survey.into_iter().flat_map(|survey| &survey.backends);
        let known = linked
            .map(|report| report.id)
            .chain(WELL_KNOWN.iter().map(MemoryKind::backend));
        known.into_iter().find(|id| id.as_str() == name)
    }

    fn kinds(&self) -> Vec<MemoryKind> {
        let survey = self.status.map(|status| &status.survey);
        let devices = survey.into_iter().flat_map(|survey| &survey.devices);
        let faces = devices.flat_map(|device| &device.faces);
        let found = faces.flat_map(|face| face.memory.iter().copied());
        WELL_KNOWN.iter().copied().chain(found).collect()
    }

    fn kind(&self, name: &str) -> Option<MemoryKind> {
        let kinds = self.kinds();
        let own = kinds.iter().find(|kind| kind.name() == name);
        own.or_else(|| kinds.iter().find(|kind| kind.aliases().contains(&name)))
            .copied()
    }

    fn unknown_backend(&mut self, name: &str, place: Option<Place>) {
        let known: BTreeSet<String> = self
            .kinds()
            .iter()
            .map(|kind| kind.backend().to_string())
            .collect();
        let message = format!(
            "step `{}` asks for the backend `{name}`, and there is no such backend",
            self.step
        );
        let mut finding = Diagnostic::error(Problem::MissingBackend, message)
            .step(self.step)
            .at(place);
        finding = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding.help(format!(
                "there are: {}",
                known.into_iter().collect::<Vec<_>>().join(", ")
            )),
        };
        self.findings.push(finding);
    }

    fn unknown_memory(&mut self, name: &str, place: Option<Place>) {
        let kinds = self.kinds();
        let known: BTreeSet<&str> = kinds
            .iter()
            .flat_map(|kind| std::iter::once(kind.name()).chain(kind.aliases().iter().copied()))
            .collect();
        let message = format!(
            "step `{}` asks for memory `{name}`, and there is no such kind",
            self.step
        );
        let mut finding = Diagnostic::error(Problem::UnknownMemory, message)
            .step(self.step)
            .at(place);
        let lower = name.to_lowercase();
        finding = match nearest(&lower, known.iter().copied()) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding.help(format!(
                "there are: {}",
                known.into_iter().collect::<Vec<_>>().join(", ")
            )),
        };
        self.findings.push(finding);
    }

    fn device(
        &mut self,
        name: &str,
        place: Option<Place>,
        claims: &mut Vec<(BackendId, String)>,
        card: &mut Option<String>,
    ) {
        let id = name.parse::<DeviceId>().ok();
        if let Some(id) = id {
            claims.push((id.backend, format!("`device = \"{name}\"`")));
        }
        if name == "cpu" {
            claims.push((BackendId::CPU, "`device = \"cpu\"`".to_owned()));
            return;
        }
        let Some(status) = self.status else {
            if id.is_none_or(|id| id.backend != BackendId::CPU) {
                *card = Some(name.to_owned());
            }
            return;
        };
        let found: Option<&PhysicalDevice> = status.survey.find(name);
        if let Some(found) = found {
            *card = Some(found.name.clone());
            return;
        }
        // A backend without devices is told once, for all steps.
        if id.is_some_and(|id| {
            !status
                .survey
                .devices
                .iter()
                .any(|d| d.face(id.backend).is_some())
        }) {
            return;
        }
        if is_card(name) && status.survey.gpus().next().is_none() {
            self.missing.cards.insert(name.to_owned());
            self.missing.steps.insert(self.step.to_owned());
            self.missing.place = self.missing.place.or(place);
            return;
        }
        let message = format!(
            "step `{}` asks for `{name}`, and there is no such device",
            self.step
        );
        let finding = Diagnostic::error(Problem::UnknownDevice, message)
            .step(self.step)
            .at(place);
        self.findings.push(finding.help(there_are(&status.survey)));
    }
}

/// What may be named instead of what is not there.
pub(crate) fn there_are(survey: &Survey) -> String {
    match known(survey).as_slice() {
        [] => "there is none at all (`warploom detect` shows why)".to_owned(),
        some => format!("there are: {}", some.join(", ")),
    }
}
