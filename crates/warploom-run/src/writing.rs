//! The stage that writes.

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use warploom_core::DType;
use warploom_io::thumbnail;
use warploom_kernels::program::to_wide;
use warploom_plan::plan::{Form, PlanValue};
use warploom_watch::recording::Picture;

use crate::content::Gathered;
use crate::course::{Course, Item};
use crate::error::RecordFault;
use crate::journal::{Keeper, Line, measure};
use crate::outcome::{Failure, Outcome};
use crate::reading::PIXELS;

/// Where in a slot a result is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Leaving {
    pub(crate) range: Range<usize>,
    /// Did the device keep numbers of 64 bits as pairs?
    pub(crate) pairs: bool,
}

/// Writes results of units; those of several planes are put together first.
pub(crate) struct Writing {
    output: PathBuf,
    keeper: Keeper,
    /// For each output of the run of planes that is being gathered, what came so far.
    gathered: Vec<Vec<u8>>,
    /// Files of the record that is being written.
    files: Vec<PathBuf>,
}

impl Writing {
    pub(crate) fn new(output: PathBuf, keeper: Keeper) -> Self {
        Self {
            output,
            keeper,
            gathered: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Takes the results of one unit. What cannot be written loses its record and nothing else.
    pub(crate) fn take(
        &mut self,
        course: &Course,
        number: u64,
        leavings: &[Leaving],
        bytes: &[u8],
    ) {
        let item = course.item(number);
        if item.place == 0 {
            self.files.clear();
        }
        if course.is_lost(item) {
            self.retract(course, item);
            return;
        }
        let work = AssertUnwindSafe(|| {
            self.write(course, item, leavings, bytes)?;
            if item.place + 1 == course.units.len() {
                self.finish(course, item)?;
            }
            Ok(())
        });
        let done = catch_unwind(work);
        let done =
            done.unwrap_or_else(|_| Err(Failure::of(&RecordFault::Panicked { doing: "writing" })));
        if let Err(failure) = done {
            self.retract(course, item);
            course.lose(item.number, failure);
        }
    }

    fn write(
        &mut self,
        course: &Course,
        item: Item<'_>,
        leavings: &[Leaving],
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let variant = &course.plan.variants[item.unit.variant];
        let planes = course.plan.record.planes.max(1);
        let (is_first, is_last) = (item.unit.plane == 0, item.unit.plane + 1 == planes);
        if is_first {
            self.gathered.resize_with(variant.outputs.len(), Vec::new);
            self.gathered.iter_mut().for_each(Vec::clear);
        }
        let run = item.place / usize::try_from(planes).unwrap_or(usize::MAX);
        for (at, (output, leaving)) in variant.outputs.iter().zip(leavings).enumerate() {
            let Some(value) = variant.value(&output.value) else {
                return Err(Failure::new(format!(
                    "the plan says nothing of `{}`",
                    output.value
                )));
            };
            let one = &bytes[leaving.range.clone()];
            let wide = leaving.pairs && value.dtype == DType::F64;
            if planes > 1 || wide {
                let start = self.gathered[at].len();
                self.gathered[at].extend_from_slice(one);
                if wide {
                    to_wide(&mut self.gathered[at][start..]);
                }
            }
            if !is_last {
                continue;
            }
            let whole: &[u8] = if planes > 1 || wide {
                &self.gathered[at]
            } else {
                one
            };
            if course.recorder.is_pictured(item.number) {
                picture(course, item.number, (&output.of, value), whole);
            }
            let path = &item.task.files[run][at];
            let gathered = Gathered::new(value, planes, course.header.spacing);
            let path = course.output.join(path);
            make_folder(&path)?;
            let lost = gathered.write(&path, whole);
            let lost = lost.map_err(|error| Failure::of(&error))?;
            self.files.push(item.task.files[run][at].clone());
            if lost > 0 {
                return Err(Failure::of(&RecordFault::Rows {
                    step: output.of.clone(),
                    rows: lost,
                }));
            }
        }
        Ok(())
    }

    /// All files have their names: the record is done.
    fn finish(&mut self, course: &Course, item: Item<'_>) -> Result<(), Failure> {
        let files = self.files.iter().map(|path| {
            // What cannot be measured now is done again.
            let measured = measure(&course.output.join(path)).unwrap_or(0);
            (path.clone(), measured)
        });
        if let Some(seen) = course.seen(item.number) {
            let line = Line {
                record: item.task.record.id().to_owned(),
                recipe: course.recipe.clone(),
                content: seen.content,
                stamp: seen.stamp,
                files: files.collect(),
            };
            (self.keeper)(&line).map_err(|error| {
                let reason = error.to_string();
                Failure::of(&RecordFault::Unlisted { reason })
            })?;
        }
        let files = std::mem::take(&mut self.files);
        course.end(item.number, Outcome::Ok { files });
        Ok(())
    }

    /// A record that failed has no results: neither those that were written before it did, nor those of earlier
    /// runs, which nobody listed.
    fn retract(&mut self, course: &Course, item: Item<'_>) {
        self.files.clear();
        for file in item.task.files.iter().flatten() {
            remove(&course.output.join(file));
        }
    }
}

fn remove(path: &Path) {
    // What cannot be removed either is on a disk that has been told of already.
    if let Err(error) = warploom_io::remove_result(path) {
        tracing::warn!(%error, "a result of a record that failed stays");
    }
}

/// Takes the picture of the first plane of a result.
fn picture(course: &Course, task: usize, (label, value): (&str, &PlanValue), bytes: &[u8]) {
    let Form::Image { dims, .. } = value.form else {
        return;
    };
    let [_, height, width] = dims;
    let plane = usize::try_from(height * width * value.dtype.bytes()).unwrap_or(usize::MAX);
    let Some(plane) = bytes.get(..plane) else {
        return;
    };
    if let Some(picture) = thumbnail(value.dtype, height, width, plane, PIXELS) {
        course.recorder.picture(task, |all| {
            all.after.push((label.to_owned(), Picture(picture)));
        });
    }
}

impl Drop for Writing {
    /// A record that was not finished has no results.
    fn drop(&mut self) {
        for file in self.files.drain(..) {
            remove(&self.output.join(file));
        }
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    fs::create_dir_all(folder).map_err(|error| {
        Failure::of(&RecordFault::Folder {
            path: folder.to_owned(),
            reason: error.to_string(),
        })
    })
}
