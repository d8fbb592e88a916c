//! Why no card may run a pipeline: what its steps ask for, and what the caller allows, are not on
//! one card.

use std::collections::BTreeSet;

use warploom_core::BackendId;

use crate::diagnostic::{Diagnostic, Place, Problem};
use crate::pipeline::Step;
use crate::place::Placing;
use crate::target::{Ask, is_card, reason, there_are};

impl Placing<'_, '_> {
    /// The cards and faces that may be used, where not all may.
    fn allowed_names(&self) -> String {
        let names = self.options.devices.iter();
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        names.join(" and ")
    }

    /// A device that may be used and that is not there.
    pub(crate) fn unknown_device(&self) -> Option<Diagnostic> {
        let Some(status) = self.status else {
            let mut names = self.options.devices.iter();
            let gpu = names.find(|name| !["cpu", "cpu:0"].contains(&name.as_str()))?;
            let message =
                format!("only `{gpu}` may be used, and nobody has looked for devices yet");
            let finding = Diagnostic::error(Problem::NoRegistry, message);
            return Some(finding.help("initialise the registry first (`warploom plan` does)"));
        };
        let survey = &status.survey;
        let mut names = self.options.devices.iter();
        let name = names.find(|name| survey.find(name).is_none())?;
        let message = format!("there is no device `{name}`");
        let mut finding = Diagnostic::error(Problem::UnknownDevice, message);
        if is_card(name) && survey.gpus().next().is_none() {
            for report in &survey.backends {
                let why = reason(survey, report.id);
                finding = finding.note(format!("`{}`: {why}", report.id));
            }
        }
        Some(finding.help(there_are(survey)))
    }

    /// Where the first step that asks for something like this was written.
    fn asked_at(&self, is_it: impl Fn(&Ask) -> bool) -> Option<Place> {
        let graphs = self.graphs.iter().zip(self.asks);
        let mut asked = graphs.flat_map(|(graph, asks)| graph.ops.iter().zip(asks));
        let (op, ask) = asked.find(|(_, ask)| is_it(ask))?;
        ask.place.or_else(|| op.step.place())
    }

    /// Tells that no card is all that is asked for.
    pub(crate) fn apart(&self, required: &BTreeSet<BackendId>) -> Diagnostic {
        if self.world.cards.is_empty() {
            return self.no_device();
        }
        if self.all_cpu() {
            return self.no_processor();
        }
        let names: Vec<String> = required.iter().map(ToString::to_string).collect();
        let pins: Vec<&str> = self.pins().into_iter().collect();
        let limited = !self.options.devices.is_empty();
        let (message, place) = if pins.len() > 1 {
            let message = format!(
                "steps are pinned to {}, and no one card is all of it",
                pins.join(" and ")
            );
            // The first agrees with itself.
            let other = |ask: &Ask| ask.card.as_deref().is_some_and(|card| card != pins[0]);
            (message, self.asked_at(other))
        } else if !pins.is_empty() {
            let message = format!("steps are pinned to {}", pins.join(" and "));
            let message = if names.is_empty() {
                message
            } else {
                format!("{message} and ask for {}", names.join(" and "))
            };
            (message, self.asked_at(|ask| ask.card.is_some()))
        } else {
            let names = names.join(" and ");
            let message = if limited {
                format!("steps ask for {names}")
            } else {
                format!("no one card has the faces {names}")
            };
            let last = required.last().copied();
            let place = self.asked_at(|ask| ask.backend.is_some() && ask.backend == last);
            (message, place)
        };
        let message = if limited {
            format!("{message}, and only {} may be used", self.allowed_names())
        } else {
            message
        };
        let mut finding = Diagnostic::error(Problem::NoCommonDevice, message).at(place);
        for card in &self.world.cards {
            let faces: Vec<String> = card.faces.iter().map(|face| face.id.to_string()).collect();
            finding = finding.note(format!("{} is {}", card.name, faces.join(", ")));
        }
        finding.help(if limited {
            "allow more of the above with `--devices`, or put all steps on what may be used"
        } else {
            "put all steps on one backend, or allow several cards with `spread_steps = true`"
        })
    }

    /// Tells that all steps need the processor, which is not there or may not be used.
    fn no_processor(&self) -> Diagnostic {
        let first = self.graphs.iter().flat_map(|graph| &graph.ops).next();
        if self.world.cpu().is_none()
            && let (Some(op), Some(ask)) = (first, self.asks.iter().flatten().next())
        {
            return nowhere(op.step, ask);
        }
        let message = format!(
            "every step asks for the processor or needs it, and only {} may be used",
            self.allowed_names()
        );
        let finding = Diagnostic::error(Problem::NoCommonDevice, message);
        let finding = finding.at(self.asked_at(|_| true));
        finding.help("allow it with `--devices cpu`, or leave the devices out")
    }

    /// Tells that there is nothing at all.
    fn no_device(&self) -> Diagnostic {
        let message = "there is no device here, not even the processor";
        let mut finding = Diagnostic::error(Problem::NoDevice, message);
        let survey = self.status.map(|status| &status.survey);
        for (survey, report) in survey
            .iter()
            .flat_map(|s| s.backends.iter().map(move |r| (s, r)))
        {
            finding = finding.note(format!("`{}`: {}", report.id, reason(survey, report.id)));
        }
        finding.help("mend one of the above (`warploom detect` shows it)")
    }
}

/// Tells that what one step asks for is on no card that may be used.
pub(crate) fn nowhere(step: &Step, ask: &Ask) -> Diagnostic {
    let place = ask.place.or_else(|| step.place());
    let name = &step.name;
    let (message, help) = match ask.backend {
        Some(BackendId::CPU) => (
            format!("step `{name}` needs the processor, and the cpu backend is not in this build"),
            "build with the `cpu` feature",
        ),
        Some(backend) => (
            format!("step `{name}` asks for `{backend}`, which is on no card that may be used"),
            "allow a card that has it with `--devices`",
        ),
        None => (
            format!(
                "step `{name}` is pinned to `{}`, which may not be used",
                ask.card.as_deref().unwrap_or_default()
            ),
            "allow it with `--devices`",
        ),
    };
    let finding = Diagnostic::error(Problem::MissingBackend, message);
    finding.step(&name.value).at(place).help(help)
}
