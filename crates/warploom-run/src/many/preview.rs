//! What a run on several devices would do.

use warploom_core::Registry;

use super::staff::staff;
use super::{Crew, nobody};
use crate::attempt::{at_once, taken};
use crate::error::RunFailure;
use crate::job::{Hire, Job, Preview};
use crate::settings::Settings;
use crate::unit::units;

impl Job {
    /// What [`run_on`](Self::run_on) would do: the plan is that of the first device.
    ///
    /// # Errors
    /// When it would be refused.
    pub fn preview_on(
        &self,
        crew: &Crew,
        registry: &Registry,
        settings: &Settings,
    ) -> Result<Preview, RunFailure> {
        let chosen = self.chosen(crew, registry, settings)?;
        let Some((_, first)) = chosen.first() else {
            return Err(nobody());
        };
        let mut preview = self.preview_of(first.clone(), &*registry.status()?, settings)?;
        let open = preview.records.len() as u64 - preview.skipped;
        let items = open * units(first).len() as u64;
        let staff = staff(crew, registry, settings, &chosen, items)?;
        let hires = chosen.iter().zip(staff);
        let hires = hires.map(|((info, plan), workers)| Hire {
            device: info.id.to_string(),
            name: info.name.clone(),
            workers,
            batch: at_once(plan, settings, items),
            bytes: taken(plan, settings, items),
        });
        preview.crew = hires.collect();
        Ok(preview)
    }
}
