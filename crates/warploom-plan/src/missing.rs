//! Backends and cards that steps ask for and that are not there: one message for all of them.

use std::collections::{BTreeMap, BTreeSet};

use warploom_core::{BackendId, Status};

use crate::diagnostic::{Diagnostic, Place, Problem};
use crate::target::reason;

/// Backends that steps ask for and that give no device, and cards where there are none.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// With the names they were asked for by, where these are others.
    pub(crate) backends: BTreeMap<BackendId, BTreeSet<String>>,
    pub(crate) cards: BTreeSet<String>,
    pub(crate) steps: BTreeSet<String>,
    pub(crate) place: Option<Place>,
}

impl Missing {
    /// One message for all of them.
    pub(crate) fn tell(&self, status: Option<&Status>, findings: &mut Vec<Diagnostic>) {
        let nothing = self.backends.is_empty() && self.cards.is_empty();
        let Some(status) = status.filter(|_| !nothing) else {
            return;
        };
        let survey = &status.survey;
        let backends = self.backends.iter().map(|(backend, words)| {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            if words.is_empty() {
                format!("`{backend}`")
            } else {
                format!("`{backend}` ({})", words.join(", "))
            }
        });
        let cards = self.cards.iter().map(|name| format!("`{name}`"));
        let names: Vec<String> = backends.chain(cards).collect();
        let steps: Vec<String> = self.steps.iter().map(|step| format!("`{step}`")).collect();
        let only_cpu = survey.devices.iter().all(|device| device.name == "cpu");
        let none = survey.gpus().next().is_none() && (only_cpu || !self.cards.is_empty());
        let problem = if none {
            Problem::NoDevice
        } else {
            Problem::MissingBackend
        };
        let message = if self.backends.is_empty() {
            format!(
                "{} {} not here, nor is any other GPU; asked for by {}",
                names.join(" and "),
                if names.len() == 1 { "is" } else { "are" },
                steps.join(", ")
            )
        } else {
            format!(
                "{} {} no device here; asked for by {}",
                names.join(" and "),
                if names.len() == 1 { "has" } else { "have" },
                steps.join(", ")
            )
        };
        let mut finding = Diagnostic::error(problem, message).at(self.place);
        let tried: Vec<BackendId> = if none {
            let tried = survey.backends.iter().map(|report| report.id);
            tried
                .chain(self.backends.keys().copied())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        } else {
            self.backends.keys().copied().collect()
        };
        for backend in tried {
            finding = finding.note(format!("`{backend}`: {}", reason(survey, backend)));
        }
        let there: BTreeSet<String> = survey
            .devices
            .iter()
            .flat_map(|device| device.faces.iter().map(|face| face.id.backend.to_string()))
            .collect();
        let there: Vec<String> = there.into_iter().collect();
        let help = if there.is_empty() {
            "mend one of the above (`warploom detect` shows it)".to_owned()
        } else {
            format!(
                "run these steps on {}, or mend the above (`warploom detect` shows it)",
                there.join(" or ")
            )
        };
        findings.push(finding.help(help));
    }
}
