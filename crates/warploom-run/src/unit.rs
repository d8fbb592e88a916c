//! How a record is taken apart: every unit is one pass of one variant of the plan.

use warploom_core::Axis;
use warploom_io::records::Record;
use warploom_plan::ExecutionPlan;

/// One pass of a variant over a part of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    /// The variant of the plan.
    pub(crate) variant: usize,
    /// The channel it is about; all that sources name when there is none.
    pub(crate) channel: Option<usize>,
    /// The plane, where planes are worked on one by one.
    pub(crate) plane: u64,
}

/// The units of a record, planes of one channel together, so that what belongs to one file comes in
/// a row.
pub(crate) fn units(plan: &ExecutionPlan) -> Vec<Unit> {
    let channels = &plan.record.channels;
    let mut runs: Vec<(usize, Option<usize>)> = Vec::new();
    for (variant, of) in plan.variants.iter().enumerate() {
        match &of.channel {
            Some(name) => runs.push((variant, channels.iter().position(|known| known == name))),
            None if plan.record.each_channel && !channels.is_empty() => {
                runs.extend((0..channels.len()).map(|channel| (variant, Some(channel))));
            }
            None => runs.push((variant, None)),
        }
    }
    let mut units = Vec::new();
    for (variant, channel) in runs {
        units.extend((0..plan.record.planes.max(1)).map(|plane| Unit {
            variant,
            channel,
            plane,
        }));
    }
    units
}

impl Unit {
    /// The part of a record that a source of the plan is, for this unit. `axes` are those that
    /// records have.
    pub(crate) fn part(
        self,
        plan: &ExecutionPlan,
        record: &Record,
        channel: Option<&str>,
        axes: &[Axis],
    ) -> Record {
        let named = channel.and_then(|name| plan.record.channels.iter().position(|c| c == name));
        let mut picks = Vec::new();
        if let Some(at) = named.or(self.channel).filter(|_| axes.contains(&Axis::C)) {
            picks.push((Axis::C, at as u64));
        }
        if plan.record.planes > 1 && axes.contains(&Axis::Z) {
            picks.push((Axis::Z, self.plane));
        }
        if picks.is_empty() {
            record.clone()
        } else {
            record.at(&picks)
        }
    }
}
